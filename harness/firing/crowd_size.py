"""How many cases go out at once: fewer to a target that does not answer many requests at once."""

from __future__ import annotations

from httpmark.harness.catalogue.case_builder import patience_ms
from httpmark.harness.firing.case_stream import AGAIN_IN_FLIGHT, CASES_IN_FLIGHT
from httpmark.harness.firing.first_questions import PLAIN_S
from httpmark.harness.firing.targets import FEW_IN_FLIGHT, Target, asked_at_once, hello
from httpmark.harness.model.exchanges import Outcome

_SIZES = (CASES_IN_FLIGHT, AGAIN_IN_FLIGHT)
_ANSWERED_MIN = 0.98  # of the requests of a crowd
_WAIT_MS = 1000
_QUEUE_MS = 300  # a connection that is dropped from a listen queue comes again after a second


def found(target: Target) -> int:
    """The largest crowd of plain requests that the target answers in time.

    A listen queue of five drops the others, and each comes again a second later. Many at once are
    then slower than few, and nearly all of them have to be asked a second time.
    """
    for size in _SIZES:
        for wait_ms in (_QUEUE_MS, _WAIT_MS):
            outcomes = _at_once(target, size, patience_ms(wait_ms, target.facts()))
            answered = outcomes.count(Outcome.ANSWERED)
            if answered >= _ANSWERED_MIN * size:
                return size
            # This one is answered when the target is done with those that were given up.
            hello(target, deadline_s=PLAIN_S)
            if Outcome.REFUSED in outcomes and 2 * answered < size:
                break  # most were dropped: more patience does not help
    return FEW_IN_FLIGHT


def _at_once(target: Target, size: int, wait_ms: int) -> list[Outcome]:
    """The outcomes of so many plain requests at once."""
    return [exchange.outcome for exchange in asked_at_once(target, size, wait_ms)]
