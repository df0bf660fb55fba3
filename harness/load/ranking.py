"""Ranks of servers by cost, and whether throughput may be ranked at all."""

from __future__ import annotations

import math

import msgspec

from httpmark.harness.load import ranking
from httpmark.harness.model.load import (
    Bottleneck,
    LoadMode,
    LoadResult,
)


def rate_ranks(
    measured: bool, mode: LoadMode, bottleneck: Bottleneck, why: str
) -> tuple[bool, str]:
    """Whether requests per second may be ranked, and why or why not."""
    if mode is LoadMode.OPEN:
        return False, "an offered rate is not a throughput"
    if measured and bottleneck is Bottleneck.SERVER:
        return True, "the server was the bottleneck in every sample"
    return False, f"a lower bound: bottleneck {bottleneck} ({why})"


def with_ranks(
    results: dict[str, LoadResult], *, excluded: dict[str, str]
) -> dict[str, LoadResult]:
    """Rank the costs of one profile's servers; one without a rank has none by throughput either.

    :param excluded: servers that may not be ranked, with the reason (a control, not scored).
    """
    intervals = {
        name: result.interval_95
        for name, result in results.items()
        if name not in excluded and not result.errors and not result.reason
    }
    ranks = ranking.ranks(intervals)
    ranked = {}
    for name, result in results.items():
        rank = ranks.get(name)
        may, reason = rate_ranks(
            result.rounds > 0, result.mode, result.bottleneck, result.bottleneck_why
        )
        barred = excluded.get(name) or (
            f"not measured to the end: {result.reason}" if result.reason else None
        )
        if may and barred:
            may, reason = False, barred
        ranked[name] = msgspec.structs.replace(
            result,
            ranked=may,
            ranked_reason=reason,
            cost_rank=rank,
            cost_rank_reason=None
            if rank is not None
            else barred
            or ("answers were wrong under load" if result.errors else result.interval_reason),
        )
    return ranked


def ranks(intervals: dict[str, tuple[float, float] | None]) -> dict[str, int]:
    """Ranks by interval, lowest first; a server without an interval has no rank.

    Intervals that overlap, be it through a chain of others, share a rank, as their order is not
    known: a new rank begins where all earlier ones lie wholly below. It counts those before it.
    """
    known = sorted((span, name) for name, span in intervals.items() if span is not None)
    found: dict[str, int] = {}
    rank, end = 1, -math.inf
    for (low, high), name in known:
        if low > end:
            rank = 1 + len(found)
        end = max(end, high)
        found[name] = rank
    return found
