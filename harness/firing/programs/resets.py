"""Connections that the client resets."""

from __future__ import annotations

from httpmark.harness.catalogue import delivery_modes
from httpmark.harness.firing.programs import held_resources
from httpmark.harness.firing.programs.stage import Found, Stage, numbered, with_steps
from httpmark.harness.model.cases import Await, Case, Op, Step
from httpmark.harness.model.verdicts import Word

_RESETS_EACH = 25
_RESETS_AT_CONNECT = 200
_IN_FLIGHT = 32


def resets(stage: Stage) -> Found:
    """Resets in the request line, the fields, the content and the answer, 25 of each."""
    octets = delivery_modes.message(stage.case)
    line = octets.index(b"\r\n")
    head = octets.index(b"\r\n\r\n") + 4
    parts = [octets[: line // 2], octets[: line + 5], octets[: head + 2], octets]
    looks: list[list[Step]] = [[], [], [], [Step(Op.AWAIT, wait_ms=2000, kind=Await.LOOK_FINAL)]]
    made = [
        with_steps(stage.case, [Step(Op.SEND, part), *look, Step(Op.RESET)])
        for part, look in zip(parts, looks, strict=True)
        for _ in range(_RESETS_EACH)
    ]
    return _without_leak(stage, made)


def resets_at_connect(stage: Stage) -> Found:
    """Two hundred connections that are reset as soon as they are made."""
    return _without_leak(stage, [with_steps(stage.case, [Step(Op.RESET)])] * _RESETS_AT_CONNECT)


def _without_leak(stage: Stage, cases: list[Case]) -> Found:
    """Whether the server answers after these cases and holds no more descriptors than before."""
    # The first reset may make a server open descriptors that it keeps for good.
    stage.fire(numbered(cases[:1], "before"), 1)
    pids = stage.pids()
    before = held_resources.settled_descriptors(pids, None)
    stage.fire(numbered(cases), _IN_FLIGHT)
    if not stage.alive():
        return Found(Word.FAIL, f"the server does not answer after {len(cases)} resets")
    if before is None:
        return Found(
            Word.NOT_APPLICABLE, "the server lives; its descriptors cannot be seen from here"
        )
    after = held_resources.settled_descriptors(pids, before)
    if after is None:
        return Found(Word.FAIL, "a process of the server has gone")
    told = f"{before} descriptors before {len(cases)} resets, {after} after them"
    return Found(Word.PASS if after <= before else Word.FAIL, told)
