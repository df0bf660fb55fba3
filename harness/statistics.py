"""Medians, paired ratios, bootstrap intervals and the verdicts on a sample: pure.

Sources: load.md 4.3 to 4.5; the percentile bootstrap after Efron and Tibshirani (1993); Little's
law, L = lambda W (Little 1961).
"""

from __future__ import annotations

import math
import random
import statistics as standard
from collections.abc import Callable, Sequence

import msgspec

from httpmark.harness.model import Bottleneck

RESAMPLES = 10_000
SAMPLES_FOR_INTERVAL_MIN = 3

# load.md 4.5, the defaults of the verdict per sample.
SERVER_BUSY_MIN = 0.90
CLIENT_IDLE_MAX = 0.80
CLIENT_BUSY_MIN = 0.95
NULL_SHARE_MAX = 0.70
NULL_SHARE_CLIENT = 0.85
CONCURRENCY_MIN = 0.90
LAW_TOLERANCE = 0.10
RUN_DELAY_MAX = 0.05
STEAL_MAX = 0.02


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
    draw = random.Random(seed)
    resampled = sorted(statistic(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    tail = (1 - level) / 2
    low = resampled[math.floor(tail * (RESAMPLES - 1))]
    high = resampled[math.ceil((1 - tail) * (RESAMPLES - 1))]
    return low, high


def paired_ratio(values: Sequence[float], bases: Sequence[float]) -> float | None:
    """The typical ratio value / base over pairs of one block: exp of the median log-ratio."""
    ratios = [math.log(a / b) for a, b in zip(values, bases, strict=True) if a > 0 and b > 0]
    return math.exp(median(ratios)) if ratios else None


def separate(a: tuple[float, float] | None, b: tuple[float, float] | None) -> bool:
    """Whether two intervals do not touch; an absent one separates from nothing."""
    return a is not None and b is not None and (a[1] < b[0] or b[1] < a[0])


def ranks(intervals: dict[str, tuple[float, float] | None]) -> dict[str, int]:
    """Ranks by interval, lowest first: 1 + how many lie wholly below; who has none has no rank.

    Overlapping neighbours share a rank, as their order is not known.
    """
    known = {name: interval for name, interval in intervals.items() if interval is not None}
    return {
        name: 1 + sum(other[1] < interval[0] for other in known.values())
        for name, interval in known.items()
    }


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
    if signs.server_cpu_demand is not None and signs.server_cpu_demand > 1 + LAW_TOLERANCE:
        return (
            Bottleneck.BROKEN,
            f"the numbers do not add up: cost x requests/s is {signs.server_cpu_demand:.0%} "
            "of the server's CPUs",
        )
    if signs.steal_ratio is not None and signs.steal_ratio > STEAL_MAX:
        return Bottleneck.STARVED, f"{signs.steal_ratio:.0%} of the CPUs' time stolen"
    if signs.run_delay_ratio is not None and signs.run_delay_ratio > RUN_DELAY_MAX:
        return (
            Bottleneck.STARVED,
            f"{signs.run_delay_ratio:.0%} of the time waiting for a CPU",
        )
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
        law = signs.littles_law_ratio
        if law is not None and abs(law - 1) > LAW_TOLERANCE:
            return Bottleneck.UNKNOWN, f"the numbers do not add up: Little's law gives {law:.0%}"
        return Bottleneck.SERVER, f"server on CPU {signs.server_on_cpu_ratio:.0%}"
    if not server_busy and signs.client_on_cpu_ratio < SERVER_BUSY_MIN:
        return Bottleneck.NONE, "both ends idle at times: too few requests in flight"
    return (
        Bottleneck.UNKNOWN,
        f"server {signs.server_on_cpu_ratio:.0%}, generator {signs.client_on_cpu_ratio:.0%} on CPU",
    )
