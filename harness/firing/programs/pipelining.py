"""Pipelined requests, cut at every byte."""

from __future__ import annotations

from httpmark.harness.catalogue import delivery_modes
from httpmark.harness.firing.programs.stage import Found, Stage, is_success, mirrored_targets
from httpmark.harness.judging import observation
from httpmark.harness.judging.observation import Sight
from httpmark.harness.model.verdicts import Word

_IN_FLIGHT = 64
# Of a target of which it is not known: the shortest listen queue is five, and takes one more.
_IN_FLIGHT_UNKNOWN = 6


def every_cut(stage: Stage) -> Found:
    """Two requests in one go, cut at every byte: two answers in order for every cut."""
    cuts = list(delivery_modes.deliveries(stage.case, "two", delivery_modes.Known()))
    early = 0
    exchanges = stage.fire(cuts, min(_IN_FLIGHT, stage.facts.at_once or _IN_FLIGHT_UNKNOWN))
    for cut, exchange in zip(cuts, exchanges, strict=True):
        sight = observation.sight(cut, exchange)
        told = _out_of_order(sight)
        if told == "early":
            early += 1
        elif told:
            return Found(Word.FAIL, f"{cut.delivery}: {told}")
    if early:
        return Found(Word.WARN, f"{early} of {len(cuts)} cuts end with an announced close")
    return Found(Word.PASS, f"two answers in order in all {len(cuts)} cuts")


def _out_of_order(sight: Sight) -> str:
    """Why there are not two answers in order; "early" if the first one announced a close."""
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
        return "early"
    return f"{len(sight.answers)} answers instead of 2"
