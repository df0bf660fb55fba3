"""Family + exchange to verdict: pure, so that stored evidence can be judged again for ever."""

from __future__ import annotations

import functools

from httpmark.harness import checks
from httpmark.harness.model import Exchange, Family, Verdict


@functools.lru_cache(maxsize=4096)
def _judged(word: str, seen: checks.Seen) -> checks.Judgement:
    """Equal sights have equal judgements; a suite of 124,000 exchanges has a few dozen of them."""
    return checks.WORDS[word](seen)


@functools.lru_cache(maxsize=4096)
def _reading(seen: checks.Seen) -> tuple[bool, str]:
    return checks.reading(seen)


def _seen(exchange: Exchange) -> checks.Seen:
    return checks.Seen(
        exchange.outcome,
        exchange.end,
        exchange.received,
        exchange.head_only,
        exchange.machine_dropped,
    )


def judge(family: Family, exchange: Exchange) -> Verdict:
    """The verdict on one exchange, by the word its family is judged by."""
    found = _judged(family.judged_by, _seen(exchange))
    return Verdict(exchange.case, found.word, found.expected, found.actual, found.span)


def seed_reading(exchange: Exchange) -> tuple[bool, str]:
    """Both readings of a ``seed`` exchange: detected, and our strict word (checks.reading)."""
    return _reading(_seen(exchange))
