"""Pass, fail or inconclusive over pairs of figures: pure."""

from __future__ import annotations

import bisect
import enum
import math
import statistics as standard
from collections.abc import Mapping, Sequence

import msgspec

from httpmark.harness.load.statistics import (
    SAMPLES_FOR_INTERVAL_MIN,
    bootstrap_distribution,
    detectable_ratio,
    deviation,
    expanded_tail,
    interval,
    trimmed_mean,
)

# Of a bootstrap distribution: below so many beyond a limit their share says little.
_HITS_MIN = 20


class Gate(enum.StrEnum):
    """Three answers: where noise hides the change, neither pass nor fail would be true."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One metric's verdict over pairs; ratios above 1 are worse."""

    verdict: Gate
    why: str
    ratio: float | None
    interval: tuple[float, float] | None
    level: float
    margin: float
    pairs: int
    detectable: float | None


def judge_pairs(
    worse: Mapping[str, Sequence[float]],
    margins: Mapping[str, float],
    *,
    level: float,
    seed: int,
    shares: int = 1,
) -> dict[str, Judged]:
    """Judge several metrics at once (docs/method.md).

    :param worse: log-ratios of pairs by metric, positive where head is worse.
    :param margins: how much worse is still accepted, as 0.03.
    :param shares: how many such judgements one comparison consists of; they share its chance of a
        false alarm in equal parts (Bonferroni).

    *fail*: the whole interval is above the margin, with Holm's correction (1979) over the metrics.
    *pass*: the whole interval is below it. Otherwise *inconclusive*.
    """
    chances = {name: _chance_within(logs, margins[name], seed) for name, logs in worse.items()}
    failing = set()
    for rank, name in enumerate(sorted(chances, key=lambda name: chances[name])):
        shared = 1 - (1 - level) / shares / (len(chances) - rank)
        count = len(worse[name])
        if count < SAMPLES_FOR_INTERVAL_MIN or chances[name] > expanded_tail(shared, count):
            break
        failing.add(name)
    return {
        name: _judged(logs, margins[name], name in failing, level, seed)
        for name, logs in worse.items()
    }


def _chance_within(logs: Sequence[float], margin: float, seed: int) -> float:
    """The share of the bootstrap distribution that is no worse than the margin.

    With fewer than :data:`_HITS_MIN` such draws, the share of a normal distribution with the same
    mean and deviation: ten thousand draws cannot show a chance below one in ten thousand, and many
    metrics together need such chances.
    """
    if len(logs) < SAMPLES_FOR_INTERVAL_MIN:
        return 1.0
    resampled, limit = bootstrap_distribution(tuple(logs), trimmed_mean, seed), math.log1p(margin)
    hits = bisect.bisect_right(resampled, limit)
    spread = standard.pstdev(resampled)
    if hits >= _HITS_MIN or not spread:
        return hits / len(resampled)
    tail = standard.NormalDist(math.fsum(resampled) / len(resampled), spread).cdf(limit)
    return max(tail, hits / len(resampled))


def _judged(
    logs: Sequence[float], margin: float, is_failing: bool, level: float, seed: int
) -> Judged:
    bounds = interval(logs, level=level, seed=seed)
    limit = math.log1p(margin)
    if bounds is None:
        verdict, why = Gate.INCONCLUSIVE, f"{len(logs)} pairs are too few"
    elif is_failing and bounds[0] > limit:
        verdict, why = Gate.FAIL, f"worse by more than {margin:.0%}"
    elif bounds[1] <= limit:
        verdict, why = Gate.PASS, f"not worse by more than {margin:.0%}"
    else:
        verdict, why = Gate.INCONCLUSIVE, "the interval reaches to both sides of the margin"
    return Judged(
        verdict=verdict,
        why=why,
        ratio=math.exp(trimmed_mean(logs)) if logs else None,
        interval=(math.exp(bounds[0]), math.exp(bounds[1])) if bounds else None,
        level=level,
        margin=margin,
        pairs=len(logs),
        detectable=detectable_ratio(deviation(logs), len(logs)) if len(logs) > 1 else None,
    )
