"""The samples of one server to one result: medians, the interval of cost, what may be ranked."""

from __future__ import annotations

from collections.abc import Sequence

from httpmark.harness.load import statistics
from httpmark.harness.load.ranking import rate_ranks
from httpmark.harness.model.load import (
    Bottleneck,
    Cost,
    LoadMode,
    LoadPlan,
    LoadResult,
    LoadSample,
)
from httpmark.harness.servers import cpu_time

# Above it the generator's own lag is too large a part of an open loop's latencies (docs/method.md).
LAG_P99_US_MAX = 100.0
_NO_SAMPLE = "no sample without errors"


def _median_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def fold(
    plan: LoadPlan,
    engine: str,
    samples: Sequence[LoadSample],
    *,
    null_samples: Sequence[LoadSample] = (),
    redone: int = 0,
    seed: int = 0,
    died: str | None = None,
    scaled: str | None = None,
    doubt: str | None = None,
) -> LoadResult:
    """Samples of one server as one result: medians, the interval of cost, what may be ranked.

    :param doubt: why the rate of an open loop, a share of the server's capacity, may be too low.
    """
    sound = [sample for sample in samples if sample.is_sound]
    costs = [
        sample.cpu_ns_per_request.server
        for sample in sound
        if sample.cpu_ns_per_request.server is not None
    ]
    interval = statistics.interval_of_cost(costs, seed=seed)
    bottleneck, why = _common(samples)
    ranked, ranked_reason = rate_ranks(bool(samples), plan.mode, bottleneck, why)
    middle = sorted(sound, key=lambda sample: sample.requests_per_second)
    typical = middle[len(middle) // 2] if middle else None
    histogram, histogram_reason = _histogram(typical)
    instructions = _median_cost([sample.instructions_per_request for sample in sound])
    return LoadResult(
        profile=plan.name,
        connections=plan.connections,
        depth=plan.depth,
        engine=engine,
        requests_per_second=_median_of([sample.requests_per_second for sample in samples]),
        cpu_ns_per_request=Cost(
            _median_of(costs), _median_of([s.cpu_ns_per_request.client for s in sound])
        ),
        bottleneck=bottleneck,
        bottleneck_why=why,
        ranked=ranked,
        ranked_reason=ranked_reason,
        littles_law_ratio=_median_of([sample.littles_law_ratio for sample in samples]),
        interval_95=interval,
        interval_reason=None if interval else _no_interval(sound, len(costs)),
        rounds=len(samples),
        redone=redone,
        errors=_errors(samples),
        histogram=histogram,
        histogram_reason=histogram_reason,
        cost_over_null=_cost_over_null(sound, null_samples),
        samples=tuple(samples),
        reason=died,
        mode=plan.mode,
        scaled=scaled,
        rate_offered=_median_of([sample.rate_offered for sample in samples]),
        latency_us=_median_times([s.latency_us for s in sound])
        if plan.mode is LoadMode.OPEN
        else None,
        latency_reason="; ".join(filter(None, (_latency_reason(plan, sound), doubt))) or None,
        service_us=_median_times([sample.service_us for sample in sound]),
        lag_us=_median_times([sample.lag_us for sample in sound]),
        connections_per_second=_median_of([s.connections_per_second for s in sound]),
        handshake_us=_median_times([sample.handshake_us for sample in sound]),
        tls=typical.tls if typical else None,
        context_switches_per_request=_median_cost(
            [sample.context_switches_per_request for sample in sound]
        ),
        instructions_per_request=instructions,
        instructions_reason=None if instructions.server is not None else _no_instructions(),
    )


def _errors(samples: Sequence[LoadSample]) -> dict[str, int]:
    found: dict[str, int] = {}
    for sample in samples:
        for name, count in sample.errors.items():
            found[name] = found.get(name, 0) + count
    return found


def _histogram(typical: LoadSample | None) -> tuple[str | None, str | None]:
    """The histogram of one sample, or why there is none."""
    if typical is None:
        return None, _NO_SAMPLE
    if typical.histogram:
        return typical.histogram, None
    return None, typical.latency_reason


def _cost_over_null(
    sound: Sequence[LoadSample], null_samples: Sequence[LoadSample]
) -> float | None:
    """The typical cost over the null server's in the same block."""
    null_cost = {s.round: s.cpu_ns_per_request.server for s in null_samples if s.is_sound}
    pairs = [
        (cost, base)
        for sample in sound
        if (cost := sample.cpu_ns_per_request.server) is not None
        and (base := null_cost.get(sample.round)) is not None
    ]
    return statistics.paired_ratio([a for a, _ in pairs], [b for _, b in pairs])


def _no_instructions() -> str:
    if not cpu_time.has_counters():
        return "this machine has no hardware counters"
    return "the engine does not count them, or perf_event_paranoid forbids it"


def _no_interval(sound: Sequence[LoadSample], costs: int) -> str:
    """Why there is no interval of the cost."""
    if sound and not costs:
        unseen = "the server's processes cannot be seen from here"
        return f"no CPU time: {sound[0].cost_reason or unseen}"
    return (
        f"{costs} samples without errors; an interval needs {statistics.SAMPLES_FOR_INTERVAL_MIN}"
    )


def _median_cost(costs: Sequence[Cost | None]) -> Cost:
    known = [cost for cost in costs if cost is not None]
    return Cost(
        _median_of([cost.server for cost in known]), _median_of([cost.client for cost in known])
    )


def _median_times(times: Sequence[dict[str, float] | None]) -> dict[str, float] | None:
    """The median of each figure over the samples that have all of them."""
    known = [figures for figures in times if figures is not None]
    if not known:
        return None
    return {name: statistics.median([figures[name] for figures in known]) for name in known[0]}


def _latency_reason(plan: LoadPlan, sound: Sequence[LoadSample]) -> str | None:
    """Why there is no latency, or what its reader must know."""
    if plan.mode is not LoadMode.OPEN:
        return (
            "a saturated closed loop: its latencies follow from the number of requests in flight, "
            "not from the server"
        )
    if not sound:
        return _NO_SAMPLE
    late = _median_times([sample.lag_us for sample in sound])
    if late is not None and late["p99"] > LAG_P99_US_MAX:
        return f"the generator itself was late: its lag has a p99 of {late['p99']:.0f} us"
    return sound[0].latency_reason


def _common(samples: Sequence[LoadSample]) -> tuple[Bottleneck, str]:
    """The verdict of all samples; where they differ the worst one, with how many have it."""
    if not samples:
        return Bottleneck.UNKNOWN, "no sample"
    verdicts = [sample.bottleneck for sample in samples]
    if len(set(verdicts)) == 1:
        return verdicts[0], samples[len(samples) // 2].bottleneck_why
    for verdict in (
        Bottleneck.BROKEN,
        Bottleneck.STARVED,
        Bottleneck.CLIENT,
        Bottleneck.NETWORK,
        Bottleneck.NONE,
        Bottleneck.UNKNOWN,
    ):
        if verdict in verdicts:
            sample = samples[verdicts.index(verdict)]
            return (
                verdict,
                f"{verdicts.count(verdict)} of {len(verdicts)} samples: {sample.bottleneck_why}",
            )
    raise AssertionError(verdicts)
