"""Failing requests made smaller: what failed is asked again with ever fewer bytes.

For each finding, the request that shows it. Fewer bytes count if the judge of the case says the
same about them and they break the same rule (``same_fault``). The smallest request is asked once
more by itself. It goes into evidence beside the finding, as a delivery that no verdict looks at, so
shrinking cannot change a verdict.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from httpmark.harness.catalogue import delivery_modes
from httpmark.harness.catalogue.case_builder import patience_ms
from httpmark.harness.catalogue.catalogue import Catalogue, Planned
from httpmark.harness.firing import delta_debugging, same_fault
from httpmark.harness.firing.targets import Target
from httpmark.harness.http import masking
from httpmark.harness.judging import failure_modes, judge, matching, observation, own_answers
from httpmark.harness.judging.evidence import Evidence, kept_as
from httpmark.harness.judging.family_results import strict
from httpmark.harness.judging.response_rules.collector import Collector
from httpmark.harness.model.cases import Case, Facts, Family, Op
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.verdicts import SuiteResult, Verdict, Word

BUDGET_S = 4.0  # for all findings of a check together
_IN_FLIGHT = 16
_AT_ONCE = 8  # findings
_CONFIRM_IN_FLIGHT = 4
_BYTES_MAX = 1024  # larger requests have their size for a reason
_CASES_MAX = 4096  # of a generated family are looked through for the one that failed
_FINDINGS_MAX = 64
_WORTH = 0.1  # a request that lost a smaller share of its bytes is not worth showing
_WAIT_MS = 300  # for the answer to fewer bytes
_SLOW_US = 1_000_000  # exchanges that took this long are left as they are


Key = TypeVar("Key", bound=Hashable)


class Subject(msgspec.Struct, frozen=True):
    """A failing request, and a test for whether another answer fails in the same way."""

    finding: str
    family: Family
    planned: Planned
    holds: Callable[[Case, Exchange], bool]

    @property
    def octets(self) -> bytes:
        """The write that gets smaller, the first one; what comes after it stays."""
        return self.planned.case.steps[0].data


def subject(
    family: Family,
    planned: Planned,
    exchange: Exchange,
    facts: Facts | None = None,
    *,
    hardened: bool = False,
) -> Subject | None:
    """A case and its answer as a subject; None if fewer bytes could fail for another reason.

    That is so if the case does not begin with a write or did not fail, if only its own expectation
    calls it a failure and the grammar does not, or if the failure is silence: a server may wait for
    the bytes that were left out.
    """
    judging = judge.Judge(facts, hardened=hardened)

    def said(case: Case, seen: Exchange) -> tuple[Word, str]:
        shown = msgspec.structs.replace(planned, case=case)
        verdict = judging.judge(shown, seen)
        verdict = strict(verdict, family) if hardened else verdict
        return verdict.word, failure_modes.failure_mode(verdict.actual)

    def holds(case: Case, seen: Exchange) -> bool:
        return said(case, seen) == wanted and _by_grammar(case, seen, facts) is by_grammar

    if not _can_shrink(planned) or planned.expectation is None or exchange.ran_out:
        return None
    wanted = said(planned.case, exchange)
    by_grammar = _by_grammar(planned.case, exchange, facts)
    failing = (Word.FAIL, Word.WARN)
    if wanted[0] not in failing or by_grammar not in failing:
        return None
    return Subject(family.id, family, planned, holds)


def of_answer(
    check: str, family: Family, planned: Planned, exchange: Exchange, facts: Facts
) -> Subject | None:
    """The same for a rule on every answer, which asks nothing of the request."""

    def found(case: Case, seen: Exchange) -> str | None:
        answers = Collector(facts)
        answers.add(case, seen)
        tally = answers.tallies().get(check)
        return next(iter(tally.failure_modes), None) if tally is not None else None

    wanted = found(planned.case, exchange)
    if wanted is None or not _can_shrink(planned) or exchange.ran_out:
        return None
    return Subject(check, family, planned, lambda case, seen: found(case, seen) == wanted)


def begins_with_a_write(planned: Planned) -> bool:
    """Whether a case begins with bytes of its own."""
    return planned.case.steps[0].op is Op.SEND and not planned.case.joined


def _can_shrink(planned: Planned) -> bool:
    octets = delivery_modes.message(planned.case)
    small = len(octets) <= _BYTES_MAX
    return begins_with_a_write(planned) and small and same_fault.sort(octets) is not None


def _by_grammar(case: Case, exchange: Exchange, facts: Facts | None) -> Word:
    """What the grammar alone says of the answer to a message."""
    seen = observation.sight(case, exchange)
    asked = same_fault.asks(delivery_modes.message(case))
    own = own_answers.of(exchange.sent, facts)
    return matching.judge(case, exchange, seen, asked, own=own).word


def with_octets(case: Case, octets: bytes) -> Case:
    """The case with another first write."""
    first = msgspec.structs.replace(case.steps[0], data=octets)
    return msgspec.structs.replace(case, steps=(first, *case.steps[1:]))


class _Quest:
    """The search for the smallest request of one subject."""

    def __init__(self, one: Subject) -> None:
        self.subject = one
        self.search = delta_debugging.Search(one.octets)
        self._is_alike = same_fault.alike(delivery_modes.message(one.planned.case))
        self._rest = delivery_modes.message(one.planned.case)[len(one.octets) :]

    def lot(self) -> list[bytes]:
        """What to ask next, each message once. Lots with nothing alike in them are not asked."""
        while self.search.lot:
            alike = (one for one in self.search.lot if self._is_alike(one + self._rest))
            if lot := list(dict.fromkeys(alike)):  # leaving out either of two CRs gives the same
                return lot
            self.told({})
        return []

    def told(self, held: Mapping[bytes, bool]) -> None:
        self.search.told([held.get(tried, False) for tried in self.search.lot])

    @property
    def is_smaller(self) -> bool:
        """Whether enough bytes are gone to be worth a reader's look."""
        whole = len(delivery_modes.message(self.subject.planned.case))
        fewer = len(self.subject.octets) - len(self.search.octets)
        return fewer >= _WORTH * whole


def smallest(
    subjects: Iterable[Subject],
    target: Target,
    *,
    seconds: float | None = None,
) -> Iterator[tuple[Subject, Exchange]]:
    """The exchange of the smallest request of each subject that could be made smaller.

    A subject is left out if the target stops answering, or answers differently the last time.

    :param seconds: about the longest time; None for as long as it takes.
    """
    end = None if seconds is None else time.monotonic() + seconds
    # An answer that takes longer is not waited for, and counts as another failure.
    wait_ms = patience_ms(_WAIT_MS, target.facts())
    rest = iter(subjects)
    # The first subjects matter most; they are done if time runs out.
    while not _over(end) and (group := [_Quest(one) for one in itertools.islice(rest, _AT_ONCE)]):
        while lots := [(quest, lot) for quest in group if (lot := quest.lot())]:
            made = {
                (number, tried): _tried(quest.subject.planned.case, tried, wait_ms)
                for number, (quest, lot) in enumerate(lots)
                for tried in lot
            }
            held: list[dict[bytes, bool]] = [{} for _ in lots]
            for (number, tried), case, exchange in _played(target, made, _IN_FLIGHT, end):
                one = lots[number][0].subject
                held[number][tried] = not exchange.ran_out and one.holds(case, exchange)
            for (quest, lot), answers in zip(lots, held, strict=True):
                if len(answers) == len(lot):
                    quest.told(answers)
            if _over(end) or sum(map(len, held)) < len(made):
                break  # time is up, or the target is gone
        smaller = [quest for quest in group if quest.is_smaller]
        # Once more with few in flight, and with the time of the case.
        last = {
            number: with_octets(quest.subject.planned.case, quest.search.octets)
            for number, quest in enumerate(smaller)
        }
        for number, case, exchange in _played(target, last, _CONFIRM_IN_FLIGHT, None):
            one = smaller[number].subject
            if one.holds(case, exchange):
                yield one, msgspec.structs.replace(exchange, delivery=kept_as(one.finding))


def _over(end: float | None) -> bool:
    return end is not None and time.monotonic() >= end


def _tried(case: Case, octets: bytes, wait_ms: int) -> Case:
    """The case with another first write, which waits ``wait_ms`` at most."""
    made = with_octets(case, octets)
    steps = tuple(
        msgspec.structs.replace(step, wait_ms=min(step.wait_ms, wait_ms))
        if step.op is Op.AWAIT
        else step
        for step in made.steps
    )
    most = sum(step.wait_ms for step in steps) + case.settle_ms + wait_ms
    return msgspec.structs.replace(made, steps=steps, deadline_ms=min(case.deadline_ms, most))


def _played(
    target: Target, cases: Mapping[Key, Case], in_flight: int, end: float | None
) -> Iterator[tuple[Key, Case, Exchange]]:
    """The exchange of each case, as long as there is time and the target answers."""
    keys = list(cases)
    numbered = (
        msgspec.structs.replace(cases[key], delivery=str(number)) for number, key in enumerate(keys)
    )
    with contextlib.suppress(Unusable), target.probe(in_flight=in_flight) as probe:
        for batch in probe.fire(target.last_asked.remembered(numbered)):
            for exchange in batch:
                key = keys[int(exchange.delivery)]
                yield key, cases[key], exchange
            if _over(end):
                return


def of_suite(
    catalogue: Catalogue,
    suite: SuiteResult,
    target: Target,
    evidence: Evidence,
    *,
    seconds: float,
) -> None:
    """Make the failing requests of a suite smaller, binding ones first; they go into evidence.

    :param target: the target that the suite was fired at.
    :param seconds: about the longest time.
    """
    if (facts := evidence.facts(target.name)) is None:
        return
    # What is stored is masked, and what is sent is not.
    facts = msgspec.structs.replace(facts, header=target.header)
    subjects = itertools.islice(
        _subjects(catalogue, suite, facts, evidence, target.name), _FINDINGS_MAX
    )
    asked = msgspec.structs.replace(target, slowest_ms=facts.slowest_ms, at_once=facts.at_once)
    found = [exchange for _, exchange in smallest(subjects, asked, seconds=seconds)]
    # A request that lost a part of a secret may still hold the rest of it.
    whole = [exchange for exchange in found if not masking.leaves_a_part(exchange)]
    evidence.add(target.name, whole)
    evidence.flush()


def _subjects(
    catalogue: Catalogue, suite: SuiteResult, facts: Facts, evidence: Evidence, server: str
) -> Iterator[Subject]:
    """The request that shows each failure, binding failures first."""
    shown: list[tuple[str, Verdict]] = [
        (id, verdict) for id, verdict in suite.cases.items() if verdict.word is Word.FAIL
    ]
    for id, tally in (*suite.generated.items(), *suite.answers.items()):
        failed = (verdict for verdict in tally.failures if verdict.word is Word.FAIL)
        shown += [(id, verdict) for verdict in itertools.islice(failed, 1)]
    for finding, verdict in sorted(shown, key=lambda one: not one[1].level.is_binding):
        exchange = next(evidence.exchanges(server, case=verdict.case), None)
        if exchange is None or exchange.end_us > _SLOW_US or exchange.crashed:
            continue
        planned = planned_of(catalogue, exchange, facts)
        if planned is None:
            continue
        family = catalogue.families[exchange.family]
        one = (
            of_answer(finding, family, planned, exchange, facts)
            if finding in suite.answers
            else subject(family, planned, exchange, facts, hardened=suite.ruleset == "hardened")
        )
        if one is not None:
            yield msgspec.structs.replace(one, finding=finding)


def planned_of(catalogue: Catalogue, exchange: Exchange, facts: Facts) -> Planned | None:
    """The case of an exchange; None if it has none, or one far down a generated family."""
    family = catalogue.families.get(exchange.family)
    if family is None or family.runner is not None:
        return None
    made = itertools.islice(catalogue.planned(family.id, facts), _CASES_MAX)
    return next((one for one in made if one.case.id == exchange.case), None)
