"""Pipelined requests, cut at every byte."""

from __future__ import annotations

import msgspec

from httpmark.harness.catalogue import delivery_modes
from httpmark.harness.firing.case_stream import patient
from httpmark.harness.firing.programs.stage import Found, Stage, is_success, mirrored_targets
from httpmark.harness.firing.targets import FEW_IN_FLIGHT
from httpmark.harness.judging import observation
from httpmark.harness.judging.observation import Sight
from httpmark.harness.model.cases import Case
from httpmark.harness.model.verdicts import Word

_IN_FLIGHT = 64
_EARLY = "early"


def every_cut(stage: Stage) -> Found:
    """Two requests in one go, cut at every byte: two answers in order for every cut.

    A cut that gets something else is played again alone: on a busy machine an answer may be late.
    """
    cuts = list(delivery_modes.deliveries(stage.case, "two", delivery_modes.Known()))
    told = _played(stage, cuts, min(_IN_FLIGHT, stage.facts.at_once or FEW_IN_FLIGHT))
    early = sum(one == _EARLY for one in told)
    wrong = [cut for cut, one in zip(cuts, told, strict=True) if one not in ("", _EARLY)]
    for number, cut in enumerate(wrong):
        alone = msgspec.structs.replace(patient(cut), delivery=f"alone@{number}")
        (again,) = _played(stage, [alone], 1)
        if again == _EARLY:
            early += 1
        elif again:
            return Found(Word.FAIL, f"{cut.delivery}: {again}")
    if early:
        return Found(Word.WARN, f"{early} of {len(cuts)} cuts end with an announced close")
    return Found(Word.PASS, f"two answers in order in all {len(cuts)} cuts")


def _played(stage: Stage, cuts: list[Case], in_flight: int) -> list[str]:
    """Why there are not two answers in order, for each cut."""
    exchanges = stage.fire(cuts, in_flight)
    pairs = zip(cuts, exchanges, strict=True)
    return [_out_of_order(observation.sight(cut, exchange)) for cut, exchange in pairs]


def _out_of_order(sight: Sight) -> str:
    """Why there are not two answers in order; ``_EARLY`` if the first one announced a close."""
    if sight.fault is not None:
        return f"no HTTP response: {sight.fault}"
    for number, (final, target) in enumerate(
        zip(sight.answers, mirrored_targets(sight), strict=True)
    ):
        if not is_success(final):
            return f"{final.response.status} to request {number + 1}"
        if target is not None and not target.endswith(b"id=%d" % number):
            return "an answer out of order"
    if len(sight.answers) == 2:
        return ""
    announced = bool(sight.answers) and sight.answers[-1].response.announces_close
    if len(sight.answers) == 1 and announced:
        return _EARLY
    return f"{len(sight.answers)} answers instead of 2"
