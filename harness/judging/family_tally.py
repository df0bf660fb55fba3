"""Verdicts of one family, folded: how many of each word at each level, and the first failures.

Failures that bind come before others: a report shows one where they fail a gate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from httpmark.harness.judging import failure_modes
from httpmark.harness.model.cases import Level
from httpmark.harness.model.verdicts import (
    Tally,
    Verdict,
    Word,
)

FAILURES_KEPT = 10


def in_order(words: Mapping[Level, Mapping[Word, int]]) -> dict[Level, dict[Word, int]]:
    """Counts by level and verdict in one order, whatever was counted first: the same counts are
    written as the same bytes."""
    return {
        level: {word: words[level][word] for word in Word if word in words[level]}
        for level in Level
        if level in words
    }


class FamilyCount:
    """Counts the verdicts of one family, one after the other."""

    def __init__(self) -> None:
        self._words: dict[Level, Counter[Word]] = {}
        self._modes: Counter[str] = Counter()
        self._closed = 0
        self._binding: list[Verdict] = []  # the first failures that bind, and the first others
        self._others: list[Verdict] = []

    def add(self, verdict: Verdict) -> None:
        """Count one more verdict."""
        self._words.setdefault(verdict.level, Counter())[verdict.word] += 1
        self._closed += verdict.closed_unanswered
        if verdict.word is Word.FAIL:
            self._modes[failure_modes.failure_mode(verdict.actual)] += 1
        if verdict.word in (Word.FAIL, Word.UNSTABLE):
            binds = verdict.word is Word.FAIL and verdict.level.is_binding
            kept = self._binding if binds else self._others
            if len(kept) < FAILURES_KEPT:
                kept.append(verdict)

    def merge(self, other: FamilyCount, position: Callable[[str], int]) -> None:
        """Add what another one counted of the same family.

        :param position: the place of a case in the family, by its id.
        """
        for level, counts in other._words.items():
            self._words.setdefault(level, Counter()).update(counts)
        self._modes.update(other._modes)
        self._closed += other._closed
        for own, more in ((self._binding, other._binding), (self._others, other._others)):
            both = sorted([*own, *more], key=lambda one: position(one.case))
            own[:] = both[:FAILURES_KEPT]

    def tally(self) -> Tally:
        """What was counted."""
        return Tally(
            words=in_order(self._words),
            closed_unanswered=self._closed,
            failures=tuple([*self._binding, *self._others][:FAILURES_KEPT]),
            failure_modes=failure_modes.most_frequent(self._modes),
        )


def tally(verdicts: Iterable[Verdict]) -> Tally:
    """Fold the verdicts of one family."""
    count = FamilyCount()
    for verdict in verdicts:
        count.add(verdict)
    return count.tally()
