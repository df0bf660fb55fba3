"""Medians, paired ratios, bootstrap intervals, trends: pure.

Sources: docs/method.md; the percentile bootstrap after Efron and Tibshirani (1993); Little's
law, L = lambda W (Little 1961).
"""

from __future__ import annotations

import bisect
import functools
import math
import random
import statistics as standard
from collections.abc import Callable, Sequence

import msgspec

RESAMPLES = 10_000
SAMPLES_FOR_INTERVAL_MIN = 3

RESAMPLED_MIN = 6
TRIM = 0.10
BCA_VALUES_MIN = 20
DRIFT_VALUES_MIN = 8
DRIFT_P_MAX = 0.01
_TRIMMED_EFFICIENCY = 0.943


def median(values: Sequence[float]) -> float:
    """The median; of an even number, the mean of the middle two."""
    return standard.median(values)


def bootstrap(
    values: Sequence[float],
    *,
    statistic: Callable[[Sequence[float]], float] = median,
    level: float = 0.95,
    seed: int,
) -> tuple[float, float] | None:
    """The percentile-bootstrap interval of a statistic; None below three values.

    :param level: coverage, as 0.95.
    :param seed: the same seed gives the same interval.
    """
    if len(values) < SAMPLES_FOR_INTERVAL_MIN:
        return None
    resampled = bootstrap_distribution(tuple(values), statistic, seed)
    tail = (1 - level) / 2
    return _quantile(resampled, tail, down=True), _quantile(resampled, 1 - tail, down=False)


@functools.lru_cache(maxsize=256)
def bootstrap_distribution(
    values: tuple[float, ...], statistic: Callable[[Sequence[float]], float], seed: int
) -> tuple[float, ...]:
    """The bootstrap distribution in order; kept, as a run folds the same samples many times."""
    draw = random.Random(seed)
    return tuple(sorted(statistic(draw.choices(values, k=len(values))) for _ in range(RESAMPLES)))


def _quantile(ordered: Sequence[float], share: float, *, down: bool) -> float:
    position = share * (len(ordered) - 1)
    return ordered[math.floor(position) if down else math.ceil(position)]


def interval(
    values: Sequence[float],
    *,
    level: float,
    seed: int,
    statistic: Callable[[Sequence[float]], float] | None = None,
) -> tuple[float, float] | None:
    """The interval of the trimmed mean, or of another statistic: bootstrapped, as wide as it says.

    Below six values by Student's t: no resampling leaves the range of what was drawn, and that of
    three holds the truth three times in four. Else the percentile interval, expanded, as few values
    would cover less than ``level`` says; of the trimmed mean from 20 values on bias-corrected and
    accelerated, BCa after Efron (1987) with the jackknife's acceleration. None below three values.
    """
    count = len(values)
    if count < SAMPLES_FOR_INTERVAL_MIN:
        return None
    if count < RESAMPLED_MIN:
        reach = student_t((1 + level) / 2, count - 1) * deviation(values) / math.sqrt(count)
        mean = math.fsum(values) / count
        return mean - reach, mean + reach
    tail = expanded_tail(level, count)
    if count < BCA_VALUES_MIN or statistic is not None:
        return bootstrap(values, statistic=statistic or trimmed_mean, level=1 - 2 * tail, seed=seed)
    resampled = bootstrap_distribution(tuple(values), trimmed_mean, seed)
    centre = trimmed_mean(values)
    below = bisect.bisect_left(resampled, centre) / len(resampled)
    normal = standard.NormalDist()
    if not 0 < below < 1:  # all values are alike
        return bootstrap(values, statistic=trimmed_mean, level=1 - 2 * tail, seed=seed)
    bias = normal.inv_cdf(below)
    left_out = [trimmed_mean([*values[:i], *values[i + 1 :]]) for i in range(len(values))]
    mean = math.fsum(left_out) / len(left_out)
    squares = math.fsum((mean - one) ** 2 for one in left_out)
    cubes = math.fsum((mean - one) ** 3 for one in left_out)
    acceleration = cubes / (6 * squares**1.5) if squares else 0.0

    def share(wanted: float) -> float:
        z = bias + normal.inv_cdf(wanted)
        return normal.cdf(bias + z / (1 - acceleration * z))

    return (
        _quantile(resampled, share(tail), down=True),
        _quantile(resampled, share(1 - tail), down=False),
    )


def interval_of_cost(costs: Sequence[float], *, seed: int) -> tuple[float, float] | None:
    """The 95 % interval of the median of positive figures, over their logarithms; it holds the
    median. None below three of them."""
    logs = [math.log(cost) for cost in costs if cost > 0]
    bounds = interval(logs, level=0.95, seed=seed, statistic=median)
    return (math.exp(bounds[0]), math.exp(bounds[1])) if bounds else None


def unpaired(head: Sequence[float], base: Sequence[float], *, seed: int) -> list[float]:
    """Differences of two independent samples, as many as the smaller has: each shuffled alone.

    For figures of two runs, whose blocks did not stand beside each other.
    """
    draw = random.Random(seed)
    size = min(len(head), len(base))
    return [a - b for a, b in zip(draw.sample(head, size), draw.sample(base, size), strict=True)]


def paired_ratio(values: Sequence[float], bases: Sequence[float]) -> float | None:
    """The typical ratio value / base over pairs of one block: exp of the median log-ratio."""
    ratios = log_ratios(values, bases)
    return math.exp(median(ratios)) if ratios else None


@functools.cache
def student_t(probability: float, freedom: int) -> float:
    """The quantile of Student's t for a probability of one half and more.

    By bisection over Simpson's rule on the density: exact to six digits, and the standard library
    has none.
    """
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(
        freedom * math.pi
    )

    def density(t: float) -> float:
        return scale * math.pow(1 + t * t / freedom, -(freedom + 1) / 2)

    def area(t: float) -> float:
        steps = 400
        width = t / steps
        inner = math.fsum((4 if i % 2 else 2) * density(i * width) for i in range(1, steps))
        return (density(0) + inner + density(t)) * width / 3

    low, high = 0.0, 1.0
    while area(high) < probability - 0.5:
        low, high = high, high * 2
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if area(middle) < probability - 0.5 else (low, middle)
    return (low + high) / 2


def expanded_tail(level: float, count: int) -> float:
    """The tail that a bootstrap of so few values must cut for its interval to cover ``level``.

    Hesterberg (2015), the expanded percentile interval: a bootstrap takes the spread of the sample
    for that of the world, which is too narrow by sqrt(1 - 1/n) and has no Student's t in it.
    """
    t = student_t((1 + level) / 2, count - 1) * math.sqrt(count / (count - 1))
    return standard.NormalDist().cdf(-t)


def trimmed_mean(values: Sequence[float], *, share: float = TRIM) -> float:
    """The mean without the ``share`` lowest and as many highest values (Tukey 1962)."""
    cut = math.floor(len(values) * share)
    kept = sorted(values)[cut : len(values) - cut]
    return math.fsum(kept) / len(kept)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of a sample of at least two."""
    return standard.stdev(values)


def log_ratios(values: Sequence[float], bases: Sequence[float]) -> list[float]:
    """ln(value / base) of each pair; pairs with a figure that is not positive are left out."""
    return [math.log(a / b) for a, b in zip(values, bases, strict=True) if a > 0 and b > 0]


def detectable_ratio(deviation: float, pairs: int) -> float | None:
    """The least true ratio that so many pairs show at 95 %, 80 times in 100; None below two pairs.

    :param deviation: the standard deviation of the pairs' log-ratios, as an A/A run gives it.

    So many standard errors of the trimmed mean (which uses 94.3 % of what normal values tell) as
    the quantiles of Student's t for both add up to.
    """
    if pairs < 2:
        return None
    error = deviation / math.sqrt(_TRIMMED_EFFICIENCY * pairs)
    return math.exp((student_t(0.975, pairs - 1) + student_t(0.80, pairs - 1)) * error)


def theil_sen(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Slope and intercept as medians over all pairs of points (Theil 1950, Sen 1968).

    None where no two points differ in x. One wild point in five does not move it.
    """
    slopes = [
        (y2 - y1) / (x2 - x1)
        for i, (x1, y1) in enumerate(points)
        for x2, y2 in points[i + 1 :]
        if x1 != x2
    ]
    if not slopes:
        return None
    slope = median(slopes)
    return slope, median([y - slope * x for x, y in points])


class Drift(msgspec.Struct, frozen=True):
    """Whether figures that should be alike moved in one direction over time."""

    ratio: float  # the last over the first, along the Theil-Sen line of their logarithms
    p: float  # how often chance alone would show as clear a trend (Kendall's tau, two-sided)

    @property
    def is_clear(self) -> bool:
        return self.p < DRIFT_P_MAX


def drift(values: Sequence[float]) -> Drift | None:
    """The trend of positive figures in order of time; None below :data:`DRIFT_VALUES_MIN`.

    Mann (1945) and Kendall (1975): the sum of the signs of all later-minus-earlier differences,
    normal approximation without ties.
    """
    count = len(values)
    if count < DRIFT_VALUES_MIN or min(values) <= 0:
        return None
    logs = [math.log(value) for value in values]
    signs = sum(
        (later > earlier) - (later < earlier)
        for i, earlier in enumerate(logs)
        for later in logs[i + 1 :]
    )
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    z = (abs(signs) - 1) / deviation if signs else 0.0
    line = theil_sen([(float(i), value) for i, value in enumerate(logs)])
    assert line is not None
    return Drift(math.exp(line[0] * (count - 1)), math.erfc(z / math.sqrt(2)))


def binomial_tail(hits: int, trials: int, chance: float) -> float:
    """How likely at least ``hits`` of ``trials`` are where each has ``chance``."""
    return math.fsum(
        math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
        for k in range(hits, trials + 1)
    )


def share_at_most(hits: int, trials: int, *, level: float = 0.95) -> float:
    """The largest share that ``hits`` of ``trials`` leave possible (Clopper and Pearson, 1934,
    one-sided): with it so few are seen once in ``1 / (1 - level)`` times."""
    low, high = hits / trials, 1.0
    for _ in range(50):
        share = (low + high) / 2
        if 1 - binomial_tail(hits + 1, trials, share) > 1 - level:
            low = share
        else:
            high = share
    return high


def littles_law_ratio(
    *, requests_per_second: float, mean_latency_s: float, in_flight: int
) -> float | None:
    """X R / N: 1 when all requests that should have been in flight were."""
    if in_flight <= 0 or requests_per_second <= 0:
        return None
    return requests_per_second * mean_latency_s / in_flight
