"""Windows as they were measured to samples, each with its bottleneck: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from httpmark.harness.load import bottlenecks
from httpmark.harness.load.engines.launch import Measured
from httpmark.harness.load.window_clocks import MachineUse
from httpmark.harness.model.load import (
    Bottleneck,
    Cost,
    GeneratorSample,
    LoadMode,
    LoadPlan,
    LoadSample,
)
from httpmark.harness.model.memory import Memory


class Path(msgspec.Struct, frozen=True, kw_only=True):
    """The round trip between a generator and the server, by handshakes of TCP."""

    idle_us: float  # the shortest before the load
    loaded_us: float | None  # the median under it


class GeneratorWindow(msgspec.Struct, frozen=True, kw_only=True):
    """What one of several generators did in a window."""

    name: str
    host: str
    connections: int  # of the plan, its share
    measured: Measured
    machine: MachineUse  # its host
    start_late_us: float  # later than all were told to begin
    path: Path | None = None


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured in one window."""

    measured: Measured
    machine: MachineUse
    is_pinned: bool  # the server had processors of its own
    memory: Memory | None = None
    redone: int = 0  # how many windows were taken before it that do not count
    generators: tuple[GeneratorWindow, ...] = ()  # where there are several
    start_spread_us: float | None = None  # between the first of them to begin and the last
    clocks_known_to_us: float | None = None  # so exactly


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One window of one server as it was measured."""

    taken: Taken
    block: int
    order: int  # position within the block
    started: str  # UTC, ISO 8601
    redo: bool  # it was taken again, as the first one starved
    is_null: bool
    runs_already: bool  # the server was not started for it, and its processors are not known

    @property
    def measured(self) -> Measured:
        return self.taken.measured

    @property
    def machine(self) -> MachineUse:
        return self.taken.machine

    @property
    def requests_per_second(self) -> float:
        return self.measured.requests / self.measured.seconds if self.measured.seconds else 0.0


def judged_block(plan: LoadPlan, windows: Sequence[Window]) -> list[LoadSample]:
    """The windows of one block as samples, in the same order.

    The null server's window of the block is what the others' rates and costs are compared with;
    its cost only where its own sample is without errors.
    """
    null = next((window for window in windows if window.is_null), None)
    samples = [_sample(plan, window, null) for window in windows]
    has_null = any(
        window.is_null and sample.is_sound for window, sample in zip(windows, samples, strict=True)
    )
    if null is None or not has_null:
        return samples
    beside = null.measured.server_ns_per_request
    return [
        sample if window.is_null
        else msgspec.structs.replace(sample, null_cpu_ns_per_request=beside)
        for window, sample in zip(windows, samples, strict=True)
    ]  # fmt: skip


def _sample(plan: LoadPlan, window: Window, null: Window | None) -> LoadSample:
    measured, machine = window.measured, window.machine
    signs = _signs(plan, window, null)
    generators = tuple(_generator(signs, one) for one in window.taken.generators)
    bottleneck, why = _of_all(bottlenecks.bottleneck(signs), generators)
    if bottleneck is Bottleneck.BROKEN and measured.errors and not measured.broken:
        why = errors_told(measured.errors)
    elif measured.late_dates and bottleneck is Bottleneck.STARVED:
        why += f"; of {measured.late_dates:,} answers the Date was late for that reason"
    return LoadSample(
        round=window.block,
        order=window.order,
        requests=measured.requests,
        seconds=measured.seconds,
        requests_per_second=window.requests_per_second,
        cpu_ns_per_request=Cost(measured.server_ns_per_request, measured.client_ns_per_request),
        littles_law_ratio=measured.littles_law_ratio,
        bottleneck=bottleneck,
        bottleneck_why=why,
        errors=measured.errors,
        statuses=measured.statuses,
        late_dates=measured.late_dates,
        server_on_cpu_ratio=measured.server_on_cpu_ratio,
        client_on_cpu_ratio=measured.client_on_cpu_ratio,
        run_delay_ratio=run_delay(measured, machine),
        latency_us=measured.latency_us,
        latency_reason=measured.latency_reason,
        histogram=measured.histogram,
        redo=window.redo,
        rate_offered=measured.rate_offered,
        service_us=measured.service_us,
        lag_us=measured.lag_us,
        saturated=measured.saturated,
        unanswered=measured.unanswered,
        connections_per_second=measured.connections_per_second,
        connect_us=measured.connect_us,
        handshake_us=measured.handshake_us,
        tls=measured.tls,
        context_switches_per_request=Cost(
            measured.server_switches_per_request, measured.client_switches_per_request
        ),
        started=window.started,
        instructions_per_request=Cost(
            measured.server_instructions_per_request, measured.client_instructions_per_request
        ),
        steal_ratio=machine.steal_ratio,
        retransmit_ratio=machine.retransmit_ratio,
        machine_dropped=machine.dropped,
        cost_reason=measured.cost_reason,
        generators=generators,
        start_spread_us=window.taken.start_spread_us,
        clocks_known_to_us=window.taken.clocks_known_to_us,
    )


def _generator(whole: bottlenecks.Signs, one: GeneratorWindow) -> GeneratorSample:
    """One of several generators, judged by its own figures and those of the one server."""
    measured, left = one.measured, one.measured.unanswered
    signs = msgspec.structs.replace(
        whole,
        broken=None,
        errors=sum(measured.errors.values()),
        connections_wanted=one.connections,
        connections_established=measured.established,
        client_on_cpu_ratio=measured.client_on_cpu_ratio,
        run_delay_ratio=measured.client_run_delay_ratio,
        steal_ratio=one.machine.steal_ratio,
        retransmit_ratio=one.machine.retransmit_ratio,
        littles_law_ratio=measured.littles_law_ratio,
        saturated=measured.saturated,
        unanswered_ratio=None if left is None else left / max(1, measured.requests + left),
        path=path_signs([one]),
    )
    bottleneck, why = bottlenecks.bottleneck(signs)
    return GeneratorSample(
        name=one.name,
        host=one.host,
        connections=one.connections,
        requests=measured.requests,
        requests_per_second=measured.requests / measured.seconds if measured.seconds else 0.0,
        errors=measured.errors,
        littles_law_ratio=measured.littles_law_ratio,
        client_on_cpu_ratio=measured.client_on_cpu_ratio,
        run_delay_ratio=measured.client_run_delay_ratio,
        lag_us=measured.lag_us,
        start_late_us=one.start_late_us,
        path_us=None if one.path is None else one.path.idle_us,
        path_loaded_us=None if one.path is None else one.path.loaded_us,
        bottleneck=bottleneck,
        bottleneck_why=why,
    )


def _of_all(
    whole: tuple[Bottleneck, str], generators: Sequence[GeneratorSample]
) -> tuple[Bottleneck, str]:
    """What counts for the sample: the whole must say it, and no generator something else."""
    if whole[0] in (Bottleneck.SERVER, Bottleneck.NONE):
        for one in generators:
            if one.bottleneck is not whole[0]:
                return one.bottleneck, f"generator {one.name}: {one.bottleneck_why}"
    return whole


def _signs(plan: LoadPlan, window: Window, null: Window | None) -> bottlenecks.Signs:
    measured, machine = window.measured, window.machine
    left = measured.unanswered
    return bottlenecks.Signs(
        broken=measured.broken,
        errors=sum(measured.errors.values()),
        connections_wanted=plan.connections,
        connections_established=measured.established,
        requests_per_second=window.requests_per_second,
        null_requests_per_second=null.requests_per_second
        if null is not None and null.measured.seconds
        else None,
        server_on_cpu_ratio=measured.server_on_cpu_ratio,
        client_on_cpu_ratio=measured.client_on_cpu_ratio,
        run_delay_ratio=run_delay(measured, machine),
        steal_ratio=machine.steal_ratio,
        retransmit_ratio=machine.retransmit_ratio,
        # Only where connections are opened in the window do lost ones change its figures.
        lost_connects=machine.dropped if plan.mode is LoadMode.CHURN else {},
        littles_law_ratio=measured.littles_law_ratio,
        server_cpu_demand=_demand(plan, window),
        is_null=window.is_null,
        saturated=measured.saturated,
        unanswered_ratio=None if left is None else left / max(1, measured.requests + left),
        path=path_signs(window.taken.generators),
    )


def path_signs(generators: Sequence[GeneratorWindow]) -> bottlenecks.PathSigns | None:
    """The path whose queue grew most under load, with the latency of its generator."""
    found = []
    for one in generators:
        path, latency = one.path, one.measured.latency_us
        if path is None or path.loaded_us is None or not latency or not latency.get("p50"):
            continue
        found.append(bottlenecks.PathSigns(path.idle_us, path.loaded_us, latency["p50"]))
    return max(found, key=lambda signs: signs.loaded_us - signs.idle_us, default=None)


def _demand(plan: LoadPlan, window: Window) -> float | None:
    """Cost times throughput as a share of the server's processors; None where it has all.

    An open loop counts the requests that were due in the window, and the cost of answering them
    later: there the product means nothing.
    """
    cost = window.measured.server_ns_per_request
    if window.runs_already or plan.mode is LoadMode.OPEN:
        return None
    if cost is None or not window.taken.is_pinned:
        return None
    return cost * window.requests_per_second / 1e9 / plan.workers


def run_delay(measured: Measured, machine: MachineUse) -> float | None:
    """How long one end waited for a processor that another program used, as a share of the window.

    The threads of a server that has more of them than processors also wait for each other. So a
    server's wait counts up to the share of its processors that other programs used.
    """
    delay, strangers = measured.run_delay_ratio, machine.strangers_ratio
    if delay is None or strangers is None:
        return delay
    return max(min(delay, strangers), measured.client_run_delay_ratio or 0.0)


def capacity_doubt(measured: Measured, machine: MachineUse) -> str | None:
    """Why the capacity that was measured in a closed loop may be too low; None where it is not."""
    busy = measured.server_on_cpu_ratio
    if measured.broken is not None:
        why = measured.broken
    elif starved(measured, machine):
        why = "the server got too little CPU"
    elif busy is None:
        why = "the server's CPU time was not known"
    elif busy < bottlenecks.SERVER_BUSY_MIN:
        why = f"the server was only on CPU {busy:.0%}"
    else:
        return None
    return f"the rate is a share of a lower bound: {why} while its capacity was measured"


def starved(measured: Measured, machine: MachineUse) -> bool:
    """Whether a window got too little CPU for its figures to count."""
    delay, steal = run_delay(measured, machine), machine.steal_ratio
    return (delay is not None and delay > bottlenecks.RUN_DELAY_MAX) or (
        steal is not None and steal > bottlenecks.STEAL_MAX
    )


def excused(measured: Measured, machine: MachineUse) -> Measured:
    """A window without its late Dates, where it starved: who has no processor renews no Date.

    The answers were right otherwise. Without one answer there is nothing to excuse.
    """
    late = min(measured.late_dates, measured.errors.get("date", 0))
    if not late or not measured.requests or not starved(measured, machine):
        return measured
    left = {**measured.errors, "date": measured.errors["date"] - late}
    return msgspec.structs.replace(
        measured, errors={name: count for name, count in left.items() if count}
    )


def errors_told(errors: Mapping[str, int]) -> str:
    """Errors as words, as ``errors under load: 3 status``."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(errors.items()))
    return f"errors under load: {kinds}"
