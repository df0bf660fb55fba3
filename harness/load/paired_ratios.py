"""Servers compared pair by pair within the blocks of one race."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from httpmark.harness.load import statistics
from httpmark.harness.model.load import (
    LoadMode,
    LoadResult,
    LoadSample,
    PairedRatio,
)

_METRICS: dict[str, Callable[[LoadSample], float | None]] = {
    "cpu_ns_per_request": lambda sample: sample.cpu_ns_per_request.server,
    "requests_per_second": lambda sample: sample.requests_per_second,
}


def pair_log_ratios(
    base: Sequence[LoadSample], head: Sequence[LoadSample], metric: str
) -> list[float]:
    """ln(head / base) of samples of the same block; pairs with an error in one are left out."""
    figure = _METRICS[metric]
    bases = {sample.round: figure(sample) for sample in base if sample.is_sound}
    pairs = [
        (value, against)
        for sample in head
        if sample.is_sound
        and (value := figure(sample)) is not None
        and (against := bases.get(sample.round)) is not None
    ]
    return statistics.log_ratios([a for a, _ in pairs], [b for _, b in pairs])


def paired(
    results: dict[str, LoadResult], *, base: str, leave_out: Collection[str] = (), seed: int
) -> tuple[PairedRatio, ...]:
    """Every server against ``base``, pair by pair within the blocks of one profile.

    Throughput is compared only where both servers were the bottleneck in every sample. The rate of
    an open loop is given and not compared.
    """
    if base not in results:
        return ()
    found = []
    for name, result in results.items():
        if name == base or name in leave_out:
            continue
        for metric in _METRICS:
            reason = None
            if metric == "requests_per_second" and result.mode is LoadMode.OPEN:
                continue
            if metric == "requests_per_second" and not (result.ranked and results[base].ranked):
                reason = "the server was not the bottleneck on both sides"
            logs = pair_log_ratios(results[base].samples, result.samples, metric)
            found.append(_paired_ratio(result, metric, base, name, logs, reason, seed))
    return tuple(found)


def _paired_ratio(
    result: LoadResult,
    metric: str,
    base: str,
    head: str,
    logs: list[float],
    reason: str | None,
    seed: int,
) -> PairedRatio:
    interval = ratio = None
    if reason is None and not logs:
        reason = "no pair of samples without errors that have this figure"
    if reason is None:
        ratio = math.exp(statistics.trimmed_mean(logs))
        interval = statistics.interval(logs, level=0.95, seed=seed)
        if interval is None:
            reason = f"{len(logs)} pairs; an interval needs {statistics.SAMPLES_FOR_INTERVAL_MIN}"
    return PairedRatio(
        profile=result.profile,
        engine=result.engine,
        metric=metric,
        base=base,
        head=head,
        ratio=ratio,
        interval_95=(math.exp(interval[0]), math.exp(interval[1])) if interval else None,
        pairs=len(logs),
        detectable=statistics.detectable_ratio(statistics.deviation(logs), len(logs))
        if len(logs) > 1
        else None,
        reason=reason,
    )
