"""Asking again what is doubtful: cases that fail, cases that are silent, closes that did not come.

The rules are those of docs/method.md: what fails is asked three times and once alone. A quick look
asks once more, and only what decides.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from httpmark.harness.firing.case_stream import (
    AGAIN_IN_FLIGHT,
    CaseStream,
    Which,
    exhaust,
    patient,
)
from httpmark.harness.firing.time_budget import NOT_AWAITED, TimeBudget
from httpmark.harness.judging import second_process
from httpmark.harness.judging.response_rules import close_rules
from httpmark.harness.model.cases import Case
from httpmark.harness.model.exchanges import RAN_OUT, SILENT, Attempt

# Load may be why time ran out among many in flight. All of that is asked again with few in flight,
# in lots, until most of a lot is silent again.
_LATE_LOT = 256
_LINGERING_MAX = 8
_CLOSE_SLACK_MS = 500


class Doubts(msgspec.Struct, frozen=True):
    """What is to be asked again."""

    answered: set[Which]  # fails, and an answer came
    silent: set[Which]  # fails, and time ran out
    lingering: list[Which]  # a close was announced and did not come


def ask_again(
    stream: CaseStream,
    families: list[str],
    *,
    second: second_process.SecondProcess,
    budget: TimeBudget | None,
) -> None:
    """Ask again what is doubtful in families that were asked whole."""
    whole = set(families)
    ran_out = stream.evidence.last_with(stream.target.name, SILENT, RAN_OUT)
    late = [which for which in ran_out if which[0] in whole]
    if stream.quick:
        doubts = _doubts(stream, families, second)
        _ask_once_more(stream, late, doubts, end=None if budget is None else budget.end)
    else:
        _ask_late(stream, late)
        _ask_three_times(stream, _doubts(stream, families, second))


def _ask_late(stream: CaseStream, late: list[Which]) -> None:
    """Ask again with few in flight what ran out of time."""
    for begin in range(0, len(late), _LATE_LOT):
        lot = late[begin : begin + _LATE_LOT]
        asked = stream.play(stream.only(lot), in_flight=AGAIN_IN_FLIGHT, attempt=Attempt.LATE)
        if 2 * sum(1 for _ in asked) > len(lot):
            break


def _ask_three_times(stream: CaseStream, doubts: Doubts) -> None:
    """Ask what fails three times, the last time alone and with more patience."""
    for attempt in (Attempt.DOUBTED, Attempt.DOUBTED_AGAIN):
        chosen = stream.only(doubts.answered | doubts.silent)
        exhaust(stream.play(chosen, in_flight=AGAIN_IN_FLIGHT, attempt=attempt))
    # Whether a close that is announced comes at all is known after ten seconds (RESP-33).
    open_still = map(_to_the_end, stream.only(doubts.lingering[:_LINGERING_MAX]))
    exhaust(stream.play(open_still, in_flight=AGAIN_IN_FLIGHT, attempt=Attempt.TO_THE_END))
    # Alone, load cannot be why a case fails. Silent cases share the wait.
    for wanted, in_flight in ((doubts.answered, 1), (doubts.silent, AGAIN_IN_FLIGHT)):
        alone = map(patient, stream.only(wanted))
        exhaust(stream.play(alone, in_flight=in_flight, attempt=Attempt.ALONE))


def _ask_once_more(
    stream: CaseStream, late: list[Which], doubts: Doubts, *, end: float | None
) -> None:
    """Ask once more what fails and decides, and what ran out of time unless the target is prompt.

    Everything else is judged by its first answer.
    """
    waited = set() if stream.is_prompt else doubts.silent.union(late)
    for family, _ in doubts.answered | waited:
        stream.fired.folded.pop(family, None)

    def chosen() -> Iterator[Case]:
        yield from stream.only(doubts.answered - waited)
        yield from stream.only(waited)

    exhaust(stream.play(chosen(), in_flight=AGAIN_IN_FLIGHT, attempt=Attempt.DOUBTED, end=end))
    unheard = {(case.family, case.id) for case, _ in stream.unfinished}
    for family in {family for family, _ in unheard & waited}:
        stream.void(stream.catalogue.families[family], NOT_AWAITED)


def _doubts(
    stream: CaseStream, families: list[str], second: second_process.SecondProcess
) -> Doubts:
    """Judge what came, and say what of it is to be asked again.

    What families say in which nothing is doubtful goes into ``fired.folded``.
    """
    found = Doubts(set(), set(), [])
    judged = second_process.judged_with(second, stream.stored, families, quick=stream.quick)
    for family in families:
        folded, doubted = judged[family]
        open_still = folded.answers.lingering
        found.lingering.extend((family, case) for case in open_still)
        if not doubted and (stream.quick or not open_still):
            stream.fired.folded[family] = folded
        for case, late in doubted:
            (found.silent if late else found.answered).add((family, case))
    return found


def _to_the_end(case: Case) -> Case:
    """The same case with time for a close that was announced to come late."""
    more = close_rules.CLOSE_LATE_US // 1000 + _CLOSE_SLACK_MS
    return msgspec.structs.replace(case, close_ms=more, deadline_ms=case.deadline_ms + more)
