"""From a family and an exchange to a verdict. Pure: stored evidence can be judged again."""

from __future__ import annotations

import msgspec

from httpmark.harness.catalogue.catalogue import Planned
from httpmark.harness.catalogue.expectation import Expectation
from httpmark.harness.http import response_reader
from httpmark.harness.judging import matching, observation, own_answers
from httpmark.harness.model import timeline
from httpmark.harness.model.cases import Case, Facts
from httpmark.harness.model.exchanges import Attempt, Doubt, End, Exchange, Outcome
from httpmark.harness.model.verdicts import Verdict, Word

CRASHED = "the server died or hung of it"

_Said = tuple[matching.Judgement, str, str]  # and what was expected, and what came, in words


class Judge:
    """Judges planned cases; equal refusals of one family are judged once.

    :param facts: of the server: what its application answers to good requests.
    :param hardened: judge by the ruleset ``hardened``.
    """

    def __init__(self, facts: Facts | None = None, *, hardened: bool = False) -> None:
        self._facts = facts
        self._hardened = hardened
        self._known: dict[tuple[object, ...], _Said] = {}

    def judge(self, planned: Planned, exchange: Exchange) -> Verdict:
        """The verdict on one exchange of a planned case."""
        case, expectation = planned.case, planned.expectation
        if expectation is None:
            raise AssertionError(f"{case.id} is judged by a word of the published suite")
        if exchange.crashed:
            expected = _expected(expectation, self._hardened)
            return Verdict(case.id, Word.FAIL, expected, CRASHED, None, planned.level)
        own = own_answers.of(exchange.sent, self._facts)
        key = self._key(expectation, case, exchange, own)
        said = self._known.get(key) if key is not None else None
        if said is None:
            sight = observation.sight(case, exchange)
            found = matching.judge(
                case, exchange, sight, expectation, hardened=self._hardened, own=own
            )
            actual = f"{found.actual} ({found.why})" if found.why else found.actual
            said = found, _expected(expectation, self._hardened), actual
            if key is not None:
                self._known[key] = said
        found, expected, actual = said
        return Verdict(
            case.id, found.word, expected, actual, found.span, planned.level,
            found.closed_unanswered, found.late,
        )  # fmt: skip

    def _key(
        self, expectation: Expectation, case: Case, exchange: Exchange, own: own_answers.Own
    ) -> tuple[object, ...] | None:
        """All that a judgement depends on, for a refusal or a close where no canary was sent.

        None where the judgement depends on the bytes sent, too: what was understood, and redirects.
        A 4xx or 5xx on a connection that ended in time does not depend on them.
        """
        if exchange.outcome is Outcome.ANSWERED:
            if not exchange.received.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")):
                return None
        elif exchange.outcome not in (Outcome.CLOSED, Outcome.RESET):
            return None
        writes = timeline.writes(exchange.timeline)
        if exchange.end is End.OPEN or writes != 1 or b"HEAD" in case.methods:
            return None  # how an answer to HEAD is read depends on the bytes sent, too
        in_time = observation.closed_in_time(exchange)
        return (
            expectation, case.methods, case.place, bool(case.canary), case.joined,
            exchange.received, exchange.outcome, exchange.end, in_time, own,
        )  # fmt: skip


def _expected(expectation: Expectation, hardened: bool) -> str:
    if hardened and expectation.hardened is not None:
        return expectation.text + " (hardened)"
    if expectation.allowed_text:
        return f"{expectation.text}; allowed: {expectation.allowed_text}"
    return expectation.text


def settled(
    verdicts: list[Verdict], attempts: list[Exchange], *, has_choice: bool = False
) -> Verdict:
    """One verdict from all attempts at a case: *unstable* where they differ.

    What happened while many other cases were in flight does not count where load may be its cause,
    unless no other attempt is left: silence, an answer that was only late, a reset, a close that
    was not announced, two writes that may have come as one. A later attempt counts instead.
    Nor does an attempt count, if there is another, during which the probe did not run for a while
    or two writes may have come as one.

    :param has_choice: the server may accept or refuse, but must do the same each time.
    """
    if _proves_nothing(verdicts[-1], attempts[-1]):
        return msgspec.structs.replace(verdicts[-1], word=Word.VOID)
    if len(verdicts) == 1 or attempts[-1].crashed:
        return verdicts[-1]
    alone = attempts[-1]
    # Where silence ends once a case is asked alone and with patience, the server was only slow
    # under us, be it each time or now and then.
    was_slow = alone.attempt == Attempt.ALONE and not alone.ran_out
    counted = [
        (verdict, exchange)
        for verdict, exchange in zip(verdicts, attempts, strict=True)
        if not (exchange.among_many and (verdict.late or exchange.doubt is not None))
        and not (was_slow and exchange.ran_out)
        and not exchange.was_disturbed
    ] or [(verdicts[-1], attempts[-1])]
    last = counted[-1][0]
    words = {verdict.word for verdict, _ in counted}
    chosen = {taken(exchange) for _, exchange in counted} if has_choice else set[bool]()
    if Word.VOID in words or (len(words) == 1 and len(chosen) < 2):
        return last
    told = ", ".join(f"{verdict.word}: {verdict.actual}" for verdict, _ in counted[:4])
    return Verdict(last.case, Word.UNSTABLE, last.expected, told, last.span, last.level)


def _proves_nothing(verdict: Verdict, exchange: Exchange) -> bool:
    """Whether a case fails by silence alone, for which the machine may be the cause."""
    return verdict.word is Word.FAIL and exchange.machine_dropped and exchange.ran_out


def why_again(attempts: list[Exchange]) -> Doubt | None:
    """Why a case was asked again; None where it was not."""
    if attempts[-1].among_many:
        return None
    if all(one.among_many or one.attempt == Attempt.TO_THE_END for one in attempts):
        return Doubt.CLOSE_AWAITED
    before = [one for one in attempts if one.among_many]
    return (before[-1].doubt if before else None) or Doubt.FAILED


def taken(exchange: Exchange, facts: Facts | None = None) -> bool:
    """Whether the message was accepted, rather than refused or met with a close.

    :param facts: of the server, where an answer of its application may show that, too.
    """
    status = response_reader.final_status(exchange.received)
    own = own_answers.at(own_answers.of(exchange.sent, facts), 0)
    return status // 100 == 2 or status in own
