"""Verdicts of one family, folded: how many of each word at each level, and the first failures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from httpmark.harness.judging import failure_modes
from httpmark.harness.model.cases import Level
from httpmark.harness.model.verdicts import (
    Tally,
    Verdict,
    Word,
)

FAILURES_KEPT = 10


def tally(verdicts: Iterable[Verdict]) -> Tally:
    """Fold the verdicts of one family."""
    words: defaultdict[Level, Counter[Word]] = defaultdict(Counter)
    found: Counter[str] = Counter()
    closed = 0
    failures: list[Verdict] = []
    for verdict in verdicts:
        words[verdict.level][verdict.word] += 1
        closed += verdict.closed_unanswered
        if verdict.word is Word.FAIL:
            found[failure_modes.failure_mode(verdict.actual)] += 1
        if verdict.word in (Word.FAIL, Word.UNSTABLE) and len(failures) < FAILURES_KEPT:
            failures.append(verdict)
    return Tally(
        words={level: dict(count) for level, count in words.items()},
        closed_unanswered=closed,
        failures=tuple(failures),
        failure_modes=failure_modes.most_frequent(found),
    )
