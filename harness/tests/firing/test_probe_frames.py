"""The frames of the probe, packed and unpacked."""

from __future__ import annotations

from httpmark.harness.firing import probe_frames
from httpmark.harness.model.cases import Await, Case, Op, Step


def test_a_case_is_packed_field_by_field() -> None:
    steps = (
        Step(Op.SEND, b"abc", if_open=True),
        Step(Op.AWAIT, wait_ms=7, kind=Await.ANY, if_unanswered=True),
        Step(Op.FIN),
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
        "steps": 3,
    }  # fmt: skip
    assert packed[size:] == (
        b"\x81\x03\x00\x00\x00abc" + b"\x43\x07\x00\x00\x00\x03" + b"\x04\x00\x00\x00\x00"
    )
