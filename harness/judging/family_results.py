"""The exchanges of one family to settled verdicts, and these folded.

Cases are made once more from the catalogue and what is stored of the target, and judged with all
attempts at them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.catalogue.vocabulary import HARDENED
from httpmark.harness.judging import (
    family_tally,
    judge,
)
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.quick_look import step_of
from httpmark.harness.judging.response_rules.collector import Collector
from httpmark.harness.model.cases import Facts, Family
from httpmark.harness.model.exchanges import Doubt, Exchange
from httpmark.harness.model.verdicts import Tally, Verdict, Word

# Of a large family the first few that fail are asked again (docs/method.md).
_AGAIN_MAX = 32
_DOUBTED = (Word.FAIL, Word.VOID, Word.UNSTABLE)


class Folded(msgspec.Struct, frozen=True):
    """What the exchanges of one family say, folded."""

    tally: Tally
    first: Verdict | None
    exchanges: int
    answers: Collector
    asked_again: dict[Doubt, int] = {}


class FoldedWithDoubts(NamedTuple):
    """The same, with the first cases to ask again, and whether the time of each ran out."""

    folded: Folded
    doubted: list[tuple[str, bool]]


class StoredServer(msgspec.Struct, frozen=True):
    """All that judging a server needs: the catalogue, and what is stored of the server."""

    catalogue: Catalogue
    facts: Facts
    evidence: Evidence
    name: str


def fold_with_doubts(stored: StoredServer, family: str, *, quick: bool) -> FoldedWithDoubts:
    """Judge all exchanges of a family, and say which of its cases are to be asked again."""
    doubted: list[tuple[str, bool]] = []

    def look(verdict: Verdict, exchanges: list[Exchange]) -> None:
        # A quick run asks again only the cases that decide; the others keep their first verdict.
        decides = not quick or verdict.level.is_binding
        if decides and verdict.word in _DOUBTED and len(doubted) < _AGAIN_MAX:
            doubted.append((verdict.case, exchanges[-1].ran_out))

    return FoldedWithDoubts(fold(stored, family, quick=quick, look=look), doubted)


def fold(
    stored: StoredServer,
    family: str,
    *,
    quick: bool = False,
    hardened: bool = False,
    look: Callable[[Verdict, list[Exchange]], None] = lambda verdict, exchanges: None,
) -> Folded:
    """Judge all exchanges of a family, and what is to be said of every answer.

    :param look: sees each settled verdict and its exchanges.
    """
    answers = Collector(stored.facts)
    first: Verdict | None = None
    number = 0
    again: Counter[Doubt] = Counter()

    def verdicts() -> Iterator[Verdict]:
        nonlocal first, number
        for verdict, exchanges in judged(
            stored, family, quick=quick, hardened=hardened, answers=answers
        ):
            number += len(exchanges)
            if why := judge.why_again(exchanges):
                again[why] += 1
            look(verdict, exchanges)
            shown = strict(verdict, stored.catalogue.families[family]) if hardened else verdict
            first = first or shown
            yield shown

    tally = family_tally.tally(verdicts())
    return Folded(tally, first, number, answers, dict(again))


def judged(
    stored: StoredServer,
    family: str,
    *,
    quick: bool = False,
    hardened: bool = False,
    answers: Collector | None = None,
) -> Iterator[tuple[Verdict, list[Exchange]]]:
    """The settled verdict of each case of a family that has exchanges, and the exchanges.

    :param answers: collects what the rules on answers find in the attempt that counts.
    """
    judging = judge.Judge(hardened=hardened)
    # A stored run does not say whether it was quick. It was if it planned a part of the family.
    known = stored.catalogue.families[family]
    quick = quick or stored.evidence.planned(family) < known.count
    all_attempts = stored.evidence.attempts(stored.name, family=family)
    attempts = next(all_attempts, None)
    step = step_of(known, quick=quick)
    for one in stored.catalogue.planned(family, stored.facts, step=step):
        if attempts is None:
            return
        if attempts[0].case != one.case.id:
            continue
        verdicts = [judging.judge(one, exchange) for exchange in attempts]
        if answers is not None:
            answers.add(one.case, attempts[-1])
        # A server that was asked once cannot have chosen differently the second time.
        asked_for = one.expectation if len(attempts) > 1 else None
        has_choice = asked_for is not None and asked_for.offers_choice
        yield judge.settled(verdicts, attempts, has_choice=has_choice), attempts
        attempts = next(all_attempts, None)


def strict(verdict: Verdict, family: Family) -> Verdict:
    """By the ruleset ``hardened``: a warning about framing is a failure."""
    if verdict.word is Word.WARN and (family.framing or family.group in HARDENED):
        return msgspec.structs.replace(verdict, word=Word.FAIL)
    return verdict
