"""The probe's event records: when each write, each byte and each end went by."""

from __future__ import annotations

import struct

import msgspec

EVENT_RECORD = struct.Struct("<BII")
SENT, RECEIVED, FIN, RST, OWN_FIN, CLOSE_NOTIFY = 1, 2, 3, 4, 5, 6


class Event(msgspec.Struct, frozen=True):
    """One record of the timeline: a write, octets that came, or an end."""

    kind: int
    at_us: int
    octets: int


def events(timeline: bytes) -> list[Event]:
    """The probe's records (``native/probe_frames.hpp``)."""
    return [Event(*record) for record in EVENT_RECORD.iter_unpack(timeline)]
