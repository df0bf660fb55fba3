"""Many bad or large requests: the server lives on and gives back what they took."""

from __future__ import annotations

from httpmark.harness.catalogue import delivery_modes
from httpmark.harness.firing.programs import held_resources
from httpmark.harness.firing.programs.stage import (
    Found,
    Stage,
    bad_cases,
    numbered,
    request_and_answer,
    with_steps,
)
from httpmark.harness.model.cases import Case, Op, Step
from httpmark.harness.model.verdicts import Word

_LARGE_BYTES = 64 << 20  # of all requests together
_LARGE_MAX = 1000
_LARGE_EACH = 10  # on one connection
_GROUP_MAX = 40  # bad requests of one family
_BAD_REQUESTS = 1000
_IN_FLIGHT = 64


def limit_sized_requests(stage: Stage) -> Found:
    """1000 requests of the largest size one after the other: memory grows by 64 MiB at most."""
    octets = delivery_modes.message(stage.case)
    number = min(_LARGE_MAX, max(1, _LARGE_BYTES // len(octets)))
    turn = [
        Step(Op.SEND, octets, if_open=True),
        Step(Op.AWAIT, wait_ms=stage.answer_ms, if_open=True),
    ]
    before = held_resources.memory_kb(pids := stage.pids())
    made = [
        with_steps(stage.case, turn * _LARGE_EACH) for _ in range(max(1, number // _LARGE_EACH))
    ]
    sent = len(made) * _LARGE_EACH
    stage.fire(numbered(made), 1)
    if not stage.alive():
        return Found(Word.FAIL, f"the server does not answer after {sent} requests")
    return held_resources.growth_within_bound(
        f"{sent} requests of {len(octets)} bytes", before, held_resources.memory_kb(pids)
    )


def alive_after_each_family(stage: Stage) -> Found:
    """A plain request is answered after the bad requests of each family."""
    groups: dict[str, list[Case]] = {}
    for one in stage.negatives():
        groups.setdefault(one.group, []).append(one.case)
    for name, cases in groups.items():
        stage.fire(numbered(cases[:_GROUP_MAX], f"after-{name}"), _IN_FLIGHT)
        if not stage.alive():
            return Found(Word.FAIL, f"the server does not answer after {name}")
    return Found(Word.PASS, f"answers after each of {len(groups)} families")


def not_restarted(stage: Stage) -> Found:
    """The processes after the bad requests are the same as before."""
    before = set(stage.pids())
    stage.fire(numbered(bad_cases(stage), "restart"), _IN_FLIGHT)
    if not stage.alive():
        return Found(Word.FAIL, "the server does not answer any more")
    after = set(stage.pids())
    if not before or not after:
        return Found(Word.NOT_APPLICABLE, "the server's processes cannot be seen from here")
    gone = len(before - after)
    told = f"{gone} of {len(before)} processes were replaced" if gone else "the same processes"
    return Found(Word.FAIL if gone else Word.PASS, told)


def gives_back(stage: Stage) -> Found:
    """After all bad requests memory has grown by 64 MiB at most and no descriptor is held."""
    stage.fire(numbered(bad_cases(stage)[:_GROUP_MAX], "warm"), _IN_FLIGHT)
    pids = stage.pids()
    before, memory = held_resources.settled_descriptors(pids, None), held_resources.memory_kb(pids)
    cases = numbered(bad_cases(stage), "give")
    stage.fire(cases, _IN_FLIGHT)
    if not stage.alive():
        return Found(Word.FAIL, "the server does not answer any more")
    after = held_resources.settled_descriptors(pids, before)
    if before is not None and after is not None and after > before:
        return Found(Word.FAIL, f"{before} descriptors before, {after} after")
    held = f", {after} descriptors" if after is not None else ""
    return held_resources.growth_within_bound(
        f"{len(cases)} requests{held}", memory, held_resources.memory_kb(pids)
    )


def thousand_bad_requests(stage: Stage) -> Found:
    """After 1000 bad requests on 1000 connections, a good one is answered."""
    octets = delivery_modes.message(stage.case)
    made = with_steps(stage.case, request_and_answer(stage, octets))
    stage.fire(numbered([made] * _BAD_REQUESTS), _IN_FLIGHT)
    if not stage.alive():
        return Found(Word.FAIL, "the next good request is not answered")
    return Found(Word.PASS, "the next good request is answered")
