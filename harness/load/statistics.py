"""Medians, paired ratios, bootstrap intervals and the verdicts on a sample: pure.

Sources: load.md 4.3 to 4.5; the percentile bootstrap after Efron and Tibshirani (1993); Little's
law, L = lambda W (Little 1961).
"""

from __future__ import annotations

import bisect
import enum
import functools
import math
import random
import statistics as standard
from collections.abc import Callable, Mapping, Sequence

import msgspec

from httpmark.harness.model.load import Bottleneck

RESAMPLES = 10_000
SAMPLES_FOR_INTERVAL_MIN = 3

RESAMPLED_MIN = 6
TRIM = 0.10
BCA_VALUES_MIN = 20
DRIFT_VALUES_MIN = 8
DRIFT_P_MAX = 0.01
_TRIMMED_EFFICIENCY = 0.943
# Of a bootstrap distribution: below so many beyond a limit their share says little.
_HITS_MIN = 20

# load.md 4.5, the defaults of the verdict per sample.
SERVER_BUSY_MIN = 0.90
CLIENT_IDLE_MAX = 0.80
CLIENT_BUSY_MIN = 0.95
NULL_SHARE_MAX = 0.70
NULL_SHARE_CLIENT = 0.85
CONCURRENCY_MIN = 0.90
LAW_TOLERANCE = 0.10
UNANSWERED_MAX = 0.01
RUN_DELAY_MAX = 0.05
STEAL_MAX = 0.02
RETRANSMIT_MAX = 0.001


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
    resampled = _resampled(tuple(values), statistic, seed)
    tail = (1 - level) / 2
    return _quantile(resampled, tail, down=True), _quantile(resampled, 1 - tail, down=False)


@functools.lru_cache(maxsize=256)
def _resampled(
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
    tail = _expanded_tail(level, count)
    if count < BCA_VALUES_MIN or statistic is not None:
        return bootstrap(values, statistic=statistic or trimmed_mean, level=1 - 2 * tail, seed=seed)
    resampled = _resampled(tuple(values), trimmed_mean, seed)
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


class Gate(enum.StrEnum):
    """Three answers, as noise must never be read as a regression nor as its absence."""

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
    """The gate of load.md 4.4 over several metrics at once.

    :param worse: log-ratios of pairs by metric, positive where head is worse.
    :param margins: how much worse is still borne, as 0.03.
    :param shares: how many such judgements one comparison consists of; they share its chance of a
        false alarm in equal parts (Bonferroni).

    *fail*: the whole interval lies beyond the margin, with Holm's correction (1979) over the
    metrics. *pass*: the interval excludes that it is worse by more than the margin. Else
    *inconclusive*.
    """
    chances = {name: _chance_within(logs, margins[name], seed) for name, logs in worse.items()}
    failing = set()
    for rank, name in enumerate(sorted(chances, key=lambda name: chances[name])):
        shared = 1 - (1 - level) / shares / (len(chances) - rank)
        count = len(worse[name])
        if count < SAMPLES_FOR_INTERVAL_MIN or chances[name] > _expanded_tail(shared, count):
            break
        failing.add(name)
    return {
        name: _judged(logs, margins[name], name in failing, level, seed)
        for name, logs in worse.items()
    }


def _chance_within(logs: Sequence[float], margin: float, seed: int) -> float:
    """The share of the bootstrap distribution that is no worse than the margin.

    Where next to none of it is, that of the normal distribution with its mean and deviation: ten
    thousand draws show no chance below one in ten thousand, and many metrics together ask for such.
    """
    if len(logs) < SAMPLES_FOR_INTERVAL_MIN:
        return 1.0
    resampled, limit = _resampled(tuple(logs), trimmed_mean, seed), math.log1p(margin)
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
        verdict, why = Gate.INCONCLUSIVE, "the interval holds both answers"
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


def _expanded_tail(level: float, count: int) -> float:
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


def ranks(intervals: dict[str, tuple[float, float] | None]) -> dict[str, int]:
    """Ranks by interval, lowest first; who has none has no rank.

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


def littles_law_ratio(
    *, requests_per_second: float, mean_latency_s: float, in_flight: int
) -> float | None:
    """X R / N: 1 when all requests that should have been in flight were."""
    if in_flight <= 0 or requests_per_second <= 0:
        return None
    return requests_per_second * mean_latency_s / in_flight


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """What a sample's bottleneck is read from; ratios of one CPU, None where not measured."""

    errors: int
    connections_wanted: int
    connections_established: int | None
    requests_per_second: float
    null_requests_per_second: float | None
    server_on_cpu_ratio: float | None  # of the CPUs the server was given
    client_on_cpu_ratio: float | None  # of the busiest generator thread
    run_delay_ratio: float | None  # the worse of both ends
    steal_ratio: float | None
    littles_law_ratio: float | None
    server_cpu_demand: float | None = None  # cost x requests/s over the CPUs it was given
    is_null: bool = False
    saturated: bool | None = None  # open loops only: the rate was not served (model.LoadSample)
    unanswered_ratio: float | None = None  # of all requests, those never answered
    retransmit_ratio: float | None = None  # of the segments this machine sent meanwhile
    lost_connects: dict[str, int] = {}  # where connections are opened: what the kernel dropped


def bottleneck(signs: Signs) -> tuple[Bottleneck, str]:
    """Who limited a sample, and the figure that says so (load.md 4.5).

    Only ``server`` lets throughput be ranked; when the evidence is missing the answer is
    ``unknown``, never the flattering one.
    """
    if signs.errors:
        return Bottleneck.BROKEN, f"{signs.errors} errors"
    established = signs.connections_established
    if established is not None and established < signs.connections_wanted:
        return (
            Bottleneck.BROKEN,
            f"{established} of {signs.connections_wanted} connections",
        )
    if signs.lost_connects:
        told = ", ".join(f"{name} {count}" for name, count in sorted(signs.lost_connects.items()))
        return Bottleneck.BROKEN, f"the kernel dropped what was to be connected: {told}"
    if signs.steal_ratio is not None and signs.steal_ratio > STEAL_MAX:
        return Bottleneck.STARVED, f"{signs.steal_ratio:.0%} of the CPUs' time stolen"
    if signs.run_delay_ratio is not None and signs.run_delay_ratio > RUN_DELAY_MAX:
        return (
            Bottleneck.STARVED,
            f"{signs.run_delay_ratio:.0%} of the time waiting for a CPU",
        )
    if signs.retransmit_ratio is not None and signs.retransmit_ratio > RETRANSMIT_MAX:
        return Bottleneck.NETWORK, f"{signs.retransmit_ratio:.1%} of all segments sent again"
    if signs.saturated is not None:
        return _of_open_loop(signs)
    if signs.server_on_cpu_ratio is None or signs.client_on_cpu_ratio is None:
        return Bottleneck.UNKNOWN, "CPU time of one end not measured"
    share = (
        signs.requests_per_second / signs.null_requests_per_second
        if signs.null_requests_per_second and not signs.is_null
        else None
    )
    if signs.client_on_cpu_ratio >= CLIENT_BUSY_MIN:
        return Bottleneck.CLIENT, f"generator on CPU {signs.client_on_cpu_ratio:.0%}"
    if share is not None and share > NULL_SHARE_CLIENT:
        return Bottleneck.CLIENT, f"{share:.0%} of what null reaches with this generator"
    if signs.server_on_cpu_ratio > 1 + LAW_TOLERANCE:
        return (
            Bottleneck.UNKNOWN,
            f"server on CPU {signs.server_on_cpu_ratio:.0%}: it has more CPUs than it was given, "
            "and how many is not known",
        )
    server_busy = signs.server_on_cpu_ratio >= SERVER_BUSY_MIN
    if (
        not server_busy
        and signs.littles_law_ratio is not None
        and signs.littles_law_ratio < CONCURRENCY_MIN
    ):
        return Bottleneck.CLIENT, f"only {signs.littles_law_ratio:.0%} of the requests in flight"
    if server_busy and signs.client_on_cpu_ratio <= CLIENT_IDLE_MAX:
        if share is None and not signs.is_null:
            return Bottleneck.UNKNOWN, "null was not measured beside it"
        if share is not None and share > NULL_SHARE_MAX:
            return Bottleneck.UNKNOWN, f"{share:.0%} of what null reaches: too near to tell"
        left = signs.unanswered_ratio
        if left is not None and left > UNANSWERED_MAX:
            return Bottleneck.UNKNOWN, f"{left:.0%} of the requests had no answer at the very end"
        if against := _contradiction(signs, signs.server_on_cpu_ratio):
            return Bottleneck.UNKNOWN, f"the numbers do not add up: {against}"
        return Bottleneck.SERVER, f"server on CPU {signs.server_on_cpu_ratio:.0%}"
    if not server_busy and signs.client_on_cpu_ratio < SERVER_BUSY_MIN:
        return Bottleneck.NONE, "both ends idle at times: too few requests in flight"
    return (
        Bottleneck.UNKNOWN,
        f"server {signs.server_on_cpu_ratio:.0%}, generator {signs.client_on_cpu_ratio:.0%} on CPU",
    )


def _contradiction(signs: Signs, server_on_cpu_ratio: float) -> str | None:
    """What a rate is contradicted by: Little's law, or what its requests cost."""
    law, demand = signs.littles_law_ratio, signs.server_cpu_demand
    if law is not None and abs(law - 1) > LAW_TOLERANCE:
        return f"Little's law gives {law:.0%}"
    # Cost is of all requests, those of the drain too; the rate is of the window. Where a turn of
    # all connections takes longer than the window, the rate may be that of a good part of it.
    if demand is not None and abs(demand / server_on_cpu_ratio - 1) > LAW_TOLERANCE:
        return f"cost x requests/s is {demand:.0%} of the server's CPUs"
    return None


def _of_open_loop(signs: Signs) -> tuple[Bottleneck, str]:
    """An offered rate asks for latency: only where it was not met has somebody been the limit."""
    busy = signs.client_on_cpu_ratio
    if busy is not None and busy >= CLIENT_BUSY_MIN:
        return Bottleneck.CLIENT, f"generator on CPU {busy:.0%}"
    if not signs.saturated:
        return Bottleneck.NONE, "the offered rate was served: nothing was the limit"
    if signs.server_on_cpu_ratio is not None and signs.server_on_cpu_ratio >= SERVER_BUSY_MIN:
        return (
            Bottleneck.SERVER,
            f"the offered rate was not served; server on CPU {signs.server_on_cpu_ratio:.0%}",
        )
    return Bottleneck.UNKNOWN, "the offered rate was not served"
