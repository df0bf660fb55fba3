"""The layout of the frames: what Python packs and unpacks is what the probe was built with."""

from __future__ import annotations

import enum
import json
import subprocess
from typing import Any

import pytest

from httpmark.harness.firing import probe_frames
from httpmark.harness.model.cases import Await, Case, Op, Step
from httpmark.harness.model.exchanges import ExchangeFlag
from httpmark.harness.model.timeline import EVENT_RECORD, EventKind
from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared.pytest_rules import starts_process


@pytest.fixture(scope="module")
@starts_process
def layout() -> Any:
    printed = subprocess.run(
        [binaries.need("probe"), "--print-layout"], capture_output=True, check=True
    ).stdout
    return json.loads(printed)


def words(kinds: type[enum.IntEnum] | type[enum.IntFlag]) -> dict[str, int]:
    return {str(kind.name).lower(): int(kind) for kind in kinds}


@pytest.mark.process
def test_both_halves_have_the_same_words(layout: Any) -> None:
    ours = {
        "steps": words(Op),
        "awaits": words(Await),
        "outcomes": {str(word): number for number, word in enumerate(probe_frames.OUTCOMES)},
        "ends": {str(word): number for number, word in enumerate(probe_frames.ENDS)},
        "events": words(EventKind),
    }
    flags = {
        "step": words(probe_frames.StepFlag),
        "case": words(probe_frames.CaseFlag),
        "exchange": words(ExchangeFlag),
    }
    assert {name: layout[name] for name in ours} == ours
    assert layout["flags"] == flags
    assert layout["limits"]["never_us"] == probe_frames.NEVER_US


@pytest.mark.process
def test_both_halves_have_the_same_records(layout: Any) -> None:
    ours = {
        "request_frame": probe_frames.CASE,
        "step_record": probe_frames.STEP,
        "await_record": probe_frames.AWAIT,
        "exchange_frame": probe_frames.EXCHANGE,
    }
    shown = {
        name: {"bytes": record.size, "fields": [list(field) for field in record.fields]}
        for name, record in ours.items()
    }
    assert {name: layout[name] for name in ours} == shown
    event = layout["event_record"]
    assert event["fields"] == [["kind", "u8"], ["at_us", "u32"], ["bytes", "u32"]]
    assert event["bytes"] == EVENT_RECORD.size
    assert EVENT_RECORD.format == "<BII"


def test_nothing_of_the_layout_is_left_out(layout: Any) -> None:
    """What the probe gains has to be compared, too."""
    assert set(layout) == {
        "steps", "awaits", "outcomes", "ends", "events", "flags", "request_frame", "step_record",
        "await_record", "exchange_frame", "event_record", "limits",
    }  # fmt: skip
    assert set(layout["flags"]) == {"step", "case", "exchange"}


def test_a_case_is_packed_field_by_field() -> None:
    steps = (
        Step(Op.SEND, b"abc", if_open=True),
        Step(Op.AWAIT, wait_ms=7, kind=Await.ANY, if_unanswered=True, if_prompt=True),
        Step(Op.FIN),
        Step(Op.SEND, b"d", if_connected=True),
    )
    case = Case("a", "f", steps, head_only=True, deadline_ms=9, settle_ms=8, close_ms=6)
    packed = probe_frames.encode(5, case)
    size = probe_frames.CASE.size
    head = dict(
        zip(
            (name for name, _ in probe_frames.CASE.fields),
            probe_frames.CASE.unpack_from(packed),
            strict=True,
        )
    )
    assert head == {
        "length": len(packed) - probe_frames.LENGTH.size, "number": 5, "deadline_ms": 9,
        "settle_ms": 8, "close_ms": 6, "flags": probe_frames.CaseFlag.HEAD_ONLY, "zero": 0,
        "steps": 4,
    }  # fmt: skip
    assert packed[size:] == (
        b"\x81\x03\x00\x00\x00abc"
        + b"\x53\x07\x00\x00\x00\x03"
        + b"\x04\x00\x00\x00\x00"
        + b"\x21\x01\x00\x00\x00d"
    )


def test_an_exchange_ended_when_the_probe_says_however_late_it_is_read() -> None:
    fields = {name: 0 for name, _ in probe_frames.EXCHANGE.fields}
    fields |= {"length": probe_frames.EXCHANGE.size - probe_frames.LENGTH.size, "number": 5}
    fields |= {"end_us": 250_000, "ended_unix_us": 1_500_000}
    case = Case("a", "f", (Step(Op.SEND, b"abc"), Step(Op.AWAIT, wait_ms=7)))
    packed = probe_frames.EXCHANGE.pack(*fields.values())
    batch, used = probe_frames.decoded(packed, {5: (case, 0)})
    assert used == len(packed)
    assert [(one.end_us, one.ended_s) for one in batch] == [(250_000, 1.5)]
