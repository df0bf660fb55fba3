"""The probe's event records, as they are stored."""

from __future__ import annotations

import struct

import pytest

from httpmark.harness.model import timeline
from httpmark.harness.model.timeline import EVENT_RECORD, Event, EventKind


def test_records_are_read_as_the_probe_writes_them() -> None:
    octets = bytes.fromhex("01 0a000000 05000000  02 10270000 00000100  05 ffffffff 00000000")
    assert timeline.events(octets) == [
        Event(EventKind.SENT, 10, 5),
        Event(EventKind.RECEIVED, 10_000, 65_536),
        Event(EventKind.OWN_FIN, 0xFFFFFFFF, 0),
    ]
    assert timeline.events(b"") == []


def test_writes_are_counted_by_their_kind_alone() -> None:
    # A time and a length of one in every byte are no writes.
    kinds = (EventKind.SENT, EventKind.RECEIVED, EventKind.SENT, EventKind.FIN)
    octets = b"".join(EVENT_RECORD.pack(kind, 0x01010101, 0x01010101) for kind in kinds)
    assert timeline.writes(octets) == 2
    assert timeline.writes(b"") == 0


def test_a_record_that_no_probe_writes_is_an_error() -> None:
    with pytest.raises(KeyError):
        timeline.events(EVENT_RECORD.pack(9, 1, 1))
    with pytest.raises(struct.error):
        timeline.events(b"\1\2\3")
