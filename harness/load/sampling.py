"""Windows as they were measured to samples, each with its bottleneck: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from httpmark.harness.load import bottlenecks
from httpmark.harness.load.engines.launch import Measured
from httpmark.harness.load.placing import placement
from httpmark.harness.load.window_clocks import MachineUse
from httpmark.harness.model.load import Bottleneck, Cost, LoadMode, LoadPlan, LoadSample


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One window of one server as it was measured."""

    measured: Measured
    machine: MachineUse
    block: int
    order: int  # position within the block
    started: str  # UTC, ISO 8601
    redo: bool  # it was taken again, as the first one starved
    is_null: bool
    runs_already: bool  # the server was not started for it, and its processors are not known

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
    bottleneck, why = bottlenecks.bottleneck(_signs(plan, window, null))
    if bottleneck is Bottleneck.BROKEN and measured.errors:
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
    )


def _signs(plan: LoadPlan, window: Window, null: Window | None) -> bottlenecks.Signs:
    measured, machine = window.measured, window.machine
    left = measured.unanswered
    return bottlenecks.Signs(
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
    )


def _demand(plan: LoadPlan, window: Window) -> float | None:
    """Cost times throughput as a share of the server's processors; None where it has all.

    An open loop counts the requests that were due in the window, and the cost of answering them
    later: there the product means nothing.
    """
    cost = window.measured.server_ns_per_request
    if window.runs_already or plan.mode is LoadMode.OPEN:
        return None
    if cost is None or placement(plan).server is None:
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
    if starved(measured, machine):
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
