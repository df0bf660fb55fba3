"""The exchanges of one family to settled verdicts, and these folded.

Cases are made once more from the catalogue and what is stored of the target, and judged with all
attempts at them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.catalogue.vocabulary import HARDENED
from httpmark.harness.judging import (
    family_tally,
    judge,
)
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.quick_look import stored_step
from httpmark.harness.judging.response_rules.collector import Collector
from httpmark.harness.judging.response_rules.findings import Findings
from httpmark.harness.model.cases import Case, Facts, Family
from httpmark.harness.model.exchanges import Doubt, Exchange
from httpmark.harness.model.verdicts import Verdict, Word

# Of a large family the first few that fail are asked again (docs/method.md).
_AGAIN_MAX = 32
_LATE_MAX = 256  # in a quick run, of those whose time ran out
# Whether a close that was announced comes at all takes seconds to see: that many are asked again.
LINGERING_MAX = 8
_DOUBTED = (Word.FAIL, Word.VOID, Word.UNSTABLE)


class Folded(msgspec.Struct, frozen=True):
    """What the exchanges of one family say, folded."""

    count: family_tally.FamilyCount
    first: Verdict | None
    exchanges: int
    answers: Collector
    asked_again: dict[Doubt, int] = {}
    # Cases that are asked again: they are not counted yet.
    left: tuple[str, ...] = ()


class FoldedWithDoubts(NamedTuple):
    """The same, with the first cases to ask again, and whether the time of each ran out."""

    folded: Folded
    doubted: list[tuple[str, bool]]
    lingering: list[str]  # cases that got "close" and, as far as was seen, no close


class JudgedCase(NamedTuple):
    """A case with its settled verdict and all attempts at it."""

    case: Case
    verdict: Verdict
    exchanges: list[Exchange]


class StoredServer(msgspec.Struct, frozen=True):
    """All that judging a server needs: the catalogue, and what is stored of the server."""

    catalogue: Catalogue
    facts: Facts
    evidence: Evidence
    name: str


def fold_with_doubts(stored: StoredServer, family: str, *, quick: bool) -> FoldedWithDoubts:
    """Judge all exchanges of a family, and say which of its cases are to be asked again."""
    doubted: list[tuple[str, bool]] = []
    lingering: list[str] = []
    # What ran out of time is counted apart: on a busy machine it would take all places.
    of_late: Counter[bool] = Counter()

    def is_doubted(one: JudgedCase, found: Findings) -> bool:
        # A quick run asks again what decides, and what ran out of time: a busy machine may be why.
        ran_out = one.exchanges[-1].ran_out
        decides = not quick or one.verdict.level.is_binding or ran_out
        late = quick and ran_out
        most = _LATE_MAX if late else _AGAIN_MAX
        fails = decides and one.verdict.word in _DOUBTED and of_late[late] < most
        if fails:
            of_late[late] += 1
            doubted.append((one.case.id, ran_out))
        lingers = not quick and Collector.lingers(found) and len(lingering) < LINGERING_MAX
        if lingers:
            lingering.append(one.case.id)
        return fails or lingers

    folded = fold(stored, family, leave=is_doubted)
    return FoldedWithDoubts(folded, doubted, lingering)


def fold(
    stored: StoredServer,
    family: str,
    *,
    hardened: bool = False,
    leave: Callable[[JudgedCase, Findings], bool] = lambda one, found: False,
    only: Collection[str] | None = None,
) -> Folded:
    """Judge all exchanges of a family, and what is to be said of every answer.

    :param leave: sees each case and what the rules find in its answers; says whether to leave it
        out of the counts.
    :param only: the ids of the cases to look at; None for all.
    """
    answers = Collector(stored.facts)
    count = family_tally.FamilyCount()
    first: Verdict | None = None
    number = 0
    again: Counter[Doubt] = Counter()
    left: list[str] = []
    for one in judged(stored, family, hardened=hardened, only=only):
        found = answers.judged(one.case, one.exchanges[-1])
        if leave(one, found):
            left.append(one.case.id)
            continue
        answers.count(one.case, found)
        number += len(one.exchanges)
        if why := judge.why_again(one.exchanges):
            again[why] += 1
        shown = one.verdict
        if hardened:
            shown = strict(shown, stored.catalogue.families[family])
        first = first or shown
        count.add(shown)
    return Folded(count, first, number, answers, dict(again), tuple(left))


def completed(stored: StoredServer, family: str, known: Folded) -> Folded:
    """What is known of a family, with the cases that were left because they were asked again."""
    if not known.left:
        return known
    late = fold(stored, family, only=frozenset(known.left))
    # Of a thinned family the same cases have other places, in the same order.
    places = {slug: at for at, slug in enumerate(stored.catalogue.slugs(family))}
    answers, count = Collector(stored.facts), family_tally.FamilyCount()
    for part in (known, late):
        answers.merge(part.answers, places.__getitem__)
        count.merge(part.count, places.__getitem__)
    return Folded(
        count,
        known.first or late.first,
        known.exchanges + late.exchanges,
        answers,
        dict(Counter(known.asked_again) + Counter(late.asked_again)),
    )


def judged(
    stored: StoredServer,
    family: str,
    *,
    hardened: bool = False,
    only: Collection[str] | None = None,
) -> Iterator[JudgedCase]:
    """The cases of a family that have exchanges, in order, each with its settled verdict.

    :param only: the ids of the cases to look at; None for all.
    """
    judging = judge.Judge(stored.facts, hardened=hardened)
    # A stored run does not say whether it was quick: it planned a part of the family then.
    step = stored_step(stored.catalogue.families[family].count, stored.evidence.planned(family))
    planned = stored.catalogue.planned(family, stored.facts, step=step, only=only)
    if only is None:
        all_attempts = stored.evidence.attempts(stored.name, family=family)
    else:
        all_attempts = itertools.chain.from_iterable(
            stored.evidence.attempts(stored.name, case=case)
            for case in stored.catalogue.slugs(family, step=step)
            if case in only
        )
    # Where nothing was fired, the target may lack what the cases need: none can be made.
    attempts = next(all_attempts, None)
    if attempts is None:
        return
    for one in planned:
        if attempts is None:
            return
        if attempts[0].case != one.case.id:
            continue
        verdicts = [judging.judge(one, exchange) for exchange in attempts]
        # A server that was asked once cannot have chosen differently the second time.
        asked_for = one.expectation if len(attempts) > 1 else None
        has_choice = asked_for is not None and asked_for.offers_choice
        settled = judge.settled(verdicts, attempts, has_choice=has_choice)
        yield JudgedCase(one.case, settled, attempts)
        attempts = next(all_attempts, None)


def strict(verdict: Verdict, family: Family) -> Verdict:
    """By the ruleset ``hardened``: a warning about framing is a failure."""
    if verdict.word is Word.WARN and (family.framing or family.group in HARDENED):
        return msgspec.structs.replace(verdict, word=Word.FAIL)
    return verdict
