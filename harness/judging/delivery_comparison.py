"""Compares deliveries: does a server's answer depend on where TCP cuts the message?

Each message of the delivery corpus is sent twice in one write, then in every cut of the chosen
modes. A cut whose answer differs is sent twice more, and counts if the answer differs every time.
Cuts that get the same answer are counted and not kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from httpmark.harness.catalogue import case_builder, delivery_modes
from httpmark.harness.catalogue.catalogue import Catalogue, Planned
from httpmark.harness.catalogue.delivery_modes import Known
from httpmark.harness.judging import answer_difference, judge
from httpmark.harness.judging.answer_difference import Compared
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.response_rules.exchange_view import declared, view
from httpmark.harness.judging.response_rules.findings import Finding
from httpmark.harness.judging.response_rules.judge_answers import judge_bytes
from httpmark.harness.model.cases import Case, Facts, Family, Level
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.verdicts import Deliveries, Disagreement, Tally, Verdict, Word

ATTEMPTS = 3
AFTER_BUFFER_BYTES = 1024  # room for what follows the byte that is moved to the end of a buffer
_FRAMED = re.compile(rb"(?i)\n(?:content-length|transfer-encoding)[ \t]*:")
# One byte is left over after these messages: what follows the first answer is not theirs alone.
_FIRST_ONLY = frozenset({"EOL-07"})
_TAKEN = ("ACC", "EITHER", "PARSED")
_DISAGREEMENTS_MAX = 64  # deliveries that are named, for one case


def corpus_of(
    catalogue: Catalogue, suite: str, facts: Facts, chosen: Callable[[Family], bool]
) -> Iterator[tuple[Family, Planned]]:
    """The delivery corpus of a suite, without the cases that do not apply to the target."""
    for family in catalogue.of_suite(suite):
        wanted = family.deliver or any(ref in delivery_modes.VARIATIONS for ref in family.refs)
        if not wanted or not chosen(family) or catalogue.inapplicable(family.id, facts) is not None:
            continue
        for planned in catalogue.planned(family.id, facts):
            if delivery_modes.is_delivered(family, planned.case.id) and not _by_timing(planned):
                yield family, planned


def _by_timing(planned: Planned) -> bool:
    """Whether timing decides the answer: ``/hello`` answers before it reads the content."""
    case, expectation = planned.case, planned.expectation
    if case.place != "hello" or not _FRAMED.search(delivery_modes.message(case)):
        return False
    return expectation is not None and expectation.passes[0].answers[0].word not in _TAKEN


def before(case: Case, facts: Facts) -> bytes:
    """A whole request at the case's place, with content where it takes POST."""
    place = facts.posted_to if case.place == "hello" else f"/{case.place}"
    if place is None:
        return f"GET {facts.path} HTTP/1.1\r\n{facts.host_lines}\r\n".encode("latin-1")
    return (f"POST {place} HTTP/1.1\r\n{facts.host_lines}Content-Length: 5\r\n\r\nhello").encode(
        "latin-1"
    )


def room_control(count: int) -> str:
    """The name of the control of ``buf``: does the server take a header section of that size?"""
    return f"room@{count}"


def plain_request(catalogue: Catalogue, facts: Facts) -> Case | None:
    for family in catalogue.families.values():
        if "BASE-01" in family.refs:
            return next(case_builder.cases(family.id, catalogue.rules[family.id], facts))
    return None


class Comparison:
    """Reads stored exchanges, and remembers what each message got when it was sent in one write."""

    def __init__(self, catalogue: Catalogue, facts: Facts, evidence: Evidence, server: str) -> None:
        self._facts = facts
        self._evidence = evidence
        self._server = server
        self._alone: dict[str, tuple[Compared, ...]] = {}
        self._broken: dict[str, frozenset[str]] = {}
        self._declared = declared(facts)
        plain = plain_request(catalogue, facts)
        self._buffers = tuple(
            count
            for count in delivery_modes.BUFFERS
            if plain is not None
            for exchange in evidence.exchanges(server, case=plain.id, delivery=room_control(count))
            if judge.taken(exchange)
        )

    def alone(self, case: Case) -> tuple[Compared, ...]:
        """What the message got in one write, each time it was sent."""
        if case.id not in self._alone:
            made = delivery_modes.one(case)
            attempts = self._evidence.attempts(
                self._server, case=case.id, delivery=delivery_modes.ONE
            )
            self._alone[case.id] = tuple(
                answer_difference.compared(made, exchange) for one in attempts for exchange in one
            )
        return self._alone[case.id]

    def known(self, case: Case) -> Known | None:
        """What the cuts depend on; None where one write did not get the same answers twice."""
        return depends(case, self._facts, self.alone(case), self._buffers)

    def joins(self, family: Family, case: Case) -> bool:
        """Whether a second copy is worth sending: not after silence or a byte that is left over."""
        return bool(self.alone(case)[0].answers) and not _FIRST_ONLY.intersection(family.refs)

    def difference(self, family: Family, cut: Case, exchange: Exchange) -> str:
        """How the answers to a cut differ from those to one write; empty where they do not."""
        return unlike(family, self.alone(cut)[0], cut, exchange)

    def malformed(self, cut: Case, exchange: Exchange) -> bool:
        """Whether the answers to a cut break a rule that the answers to one write keep."""
        if cut.id not in self._broken:
            made = delivery_modes.one(cut)
            attempts = self._evidence.attempts(
                self._server, case=cut.id, delivery=delivery_modes.ONE
            )
            self._broken[cut.id] = frozenset(
                finding.rule
                for one in attempts
                for exchange in one
                for finding in self._findings(made, exchange)
            )
        broken = {finding.rule for finding in self._findings(cut, exchange)}
        return not broken <= self._broken[cut.id]

    def _findings(self, cut: Case, exchange: Exchange) -> tuple[Finding, ...]:
        return judge_bytes(view(cut, exchange), self._declared).found

    def agreed(self, case: Case) -> Counter[str]:
        """How many cuts got the same answers as one write, by mode."""
        return Counter(self._evidence.agreed(self._server, case.id))

    def kept(self, case: Case) -> Iterator[tuple[Case, list[Exchange]]]:
        """Each cut that was kept, with all attempts at it."""
        known = self.known(case)
        if known is None:
            return
        made = {
            cut.delivery: cut
            for mode in delivery_modes.MODES
            for cut in delivery_modes.deliveries(case, mode, known)
        }
        for attempts in self._evidence.attempts(self._server, case=case.id, delivery=None):
            cut = made.get(attempts[0].delivery)
            if cut is not None:
                yield cut, attempts

    def cuts(self, family: Family, case: Case) -> Iterator[tuple[Case, list[str]]]:
        """Each cut that was kept, with how each attempt at it differs from one write."""
        for cut, attempts in self.kept(case):
            yield (
                cut,
                [
                    self.difference(family, cut, exchange)
                    for exchange in attempts
                    if not exchange.machine_dropped
                ],
            )

    def differing(self, family: Family, case: Case) -> Iterator[tuple[Case, str]]:
        """The cuts that differed every time they were sent, and how."""
        for cut, told in self.cuts(family, case):
            if told and all(told):
                yield cut, told[-1]


def depends(
    case: Case, facts: Facts, alone: tuple[Compared, ...], buffers: tuple[int, ...]
) -> Known | None:
    """What the cuts of a message depend on; None where one write did not get the same twice.

    :param buffers: how many buffers of padding the server takes.
    """
    if len(alone) < 2 or not stable(alone):
        return None
    first = alone[0]
    return Known(
        refused=bool(first.answers) and first.answers[0].status >= 400,
        stays_open=not first.closed,
        before=before(case, facts),
        buffers=buffers,
    )


def unlike(family: Family, alone: Compared, cut: Case, exchange: Exchange) -> str:
    """How the answers to a cut differ from those to one write; empty where they do not."""
    return answer_difference.difference(
        alone,
        answer_difference.compared(cut, exchange),
        cut.delivery,
        first_only=bool(_FIRST_ONLY.intersection(family.refs)),
    )


def stable(alone: tuple[Compared, ...]) -> bool:
    """Whether one write of a message got the same each time; a close may vary."""
    return all(
        not answer_difference.difference(a, b, delivery_modes.ONE)
        for a in alone
        for b in alone
        if a is not b
    )


def answered(
    catalogue: Catalogue, suite: str, facts: Facts, evidence: Evidence, server: str
) -> Iterator[tuple[Case, Exchange]]:
    """The cuts of a suite that were kept, and the last exchange of each."""
    if not evidence.holds(server, delivery_modes.ONE):
        return
    found = Comparison(catalogue, facts, evidence, server)
    for _, planned in corpus_of(catalogue, suite, facts, lambda _: True):
        if found.alone(planned.case):
            for cut, attempts in found.kept(planned.case):
                yield cut, attempts[-1]


def compare(
    catalogue: Catalogue, suite: str, facts: Facts, evidence: Evidence, server: str
) -> Deliveries | None:
    """Where the deliveries of a suite agree and where they do not, from stored exchanges alone.

    None where none was fired.
    """
    if not evidence.holds(server, delivery_modes.ONE):
        return None
    found = Comparison(catalogue, facts, evidence, server)
    fired: Counter[str] = Counter()
    unstable: list[str] = []
    early: list[str] = []
    disagreements: list[Disagreement] = []
    messages = 0
    for family, planned in corpus_of(catalogue, suite, facts, lambda _: True):
        case = planned.case
        alone = found.alone(case)
        if not alone:
            continue
        messages += 1
        if not stable(alone):
            unstable.append(case.id)
            continue
        told: list[tuple[str, str]] = []
        fired += found.agreed(case)
        for cut, differences in found.cuts(family, case):
            fired[delivery_modes.mode_of(cut.delivery)] += 1
            if len(differences) >= ATTEMPTS and all(differences):
                told.append((cut.delivery, differences[-1]))
        if any(what == answer_difference.EARLY for _, what in told):
            early.append(case.id)
        if told:
            disagreements.append(
                Disagreement(
                    case=case.id,
                    level=planned.level,
                    count=len(told),
                    deliveries=tuple(name for name, _ in told[:_DISAGREEMENTS_MAX]),
                    what=Counter(what for _, what in told).most_common(1)[0][0],
                )
            )
    if not messages:
        return None
    return Deliveries(
        messages=messages,
        fired=dict(fired),
        unstable=tuple(unstable),
        early=tuple(early),
        disagreements=tuple(disagreements),
    )


# RFC 9110 5.3: a server must not apply a request before it has received the whole header section.
NOT_EARLY = "SEG-TAIL"


def tallies(told: Deliveries | None) -> dict[str, Tally]:
    """The tallies of the requirements that only deliveries can test, by catalogue number."""
    if told is None or not told.fired:
        return {}
    compared = told.messages - len(told.unstable)
    words = {Word.PASS: compared - len(told.early), Word.FAIL: len(told.early)}
    return {
        NOT_EARLY: Tally(
            words={Level.MUST: {word: count for word, count in words.items() if count}},
            failures=tuple(
                Verdict(case, Word.FAIL, "no answer yet", answer_difference.EARLY, None, Level.MUST)
                for case in told.early[:8]
            ),
            failure_modes={answer_difference.EARLY: len(told.early)} if told.early else {},
        )
    }
