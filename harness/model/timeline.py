"""The probe's event records: when each write, each byte and each end went by."""

from __future__ import annotations

import enum
import struct

import msgspec

# One record, little endian: u8 kind, u32 µs since the beginning of the connect, u32 bytes.
EVENT_RECORD = struct.Struct("<BII")


class EventKind(enum.IntEnum):
    """What a record tells; the numbers are those of ``native/probe/frames.hpp`` and are stored."""

    SENT = 1  # a write of ours, or the part of it that the kernel took
    RECEIVED = 2
    FIN = 3  # the server's
    RST = 4  # the server's
    OWN_FIN = 5  # we closed our sending side
    CLOSE_NOTIFY = 6  # the closure alert of TLS


class Event(msgspec.Struct, frozen=True):
    """One record of the timeline: a write, bytes that came, or an end."""

    kind: EventKind
    at_us: int
    octets: int


_KINDS = {int(kind): kind for kind in EventKind}


def events(timeline: bytes) -> list[Event]:
    """The records, in order.

    :raises KeyError: a kind that no probe writes: the evidence is broken.
    :raises struct.error: the timeline is no whole number of records.
    """
    return [
        Event(_KINDS[kind], at_us, octets)
        for kind, at_us, octets in EVENT_RECORD.iter_unpack(timeline)
    ]


def writes(timeline: bytes) -> int:
    """How many writes were recorded, without reading the records: their first byte is the kind."""
    return timeline[:: EVENT_RECORD.size].count(EventKind.SENT)
