"""Figures of load and memory that the scoreboard's tables of cost and pages have no column for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from httpmark.harness.model.load import Cost, LoadMode, LoadResult, PairedRatio
from httpmark.harness.model.memory import BytesPerConnection, Memory
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.report.quantities import count, memory, microseconds, rate, times
from httpmark.harness.report.text_tables import Table, grouped, wrapped

_PERCENTILES = ("p50", "p90", "p99", "p99_9", "max")


def of_load(run: Run, width: int) -> list[str]:
    """Latency of open loops, connections a second, what a request takes besides CPU time."""
    return [*_of_latency(run, width), *_of_connections(run, width), *_of_requests(run, width)]


def _results(run: Run, mode: LoadMode | None) -> Iterator[tuple[str, list[tuple[str, LoadResult]]]]:
    """The results of one mode, or of all, profile by profile."""
    for profile in run.profiles:
        found = [
            (server.name, result)
            for server in run.servers
            for result in server.load
            if result.profile == profile and mode in (None, result.mode) and result.samples
        ]
        if found:
            yield profile, found


def _of_latency(run: Run, width: int) -> Iterator[str]:
    table = Table(
        width, ("req/s", 7), *((name.replace("_", "."), 7) for name in _PERCENTILES),
        ("service", 7), ("lag", 7),
    )  # fmt: skip
    for profile, found in _results(run, LoadMode.OPEN):
        yield ""
        yield from wrapped(
            f"LATENCY, {profile}: from when a request was due; p99 from its send (service), and of "
            "the generator's own lag; medians of the rounds",
            width,
            indent="",
        )
        yield table.head("server")
        notes = []
        for server, result in found:
            latency = result.latency_us or {}
            service, lag = result.service_us or {}, result.lag_us or {}
            figures = (
                *(latency.get(name) for name in _PERCENTILES), service.get("p99"), lag.get("p99"),
            )  # fmt: skip
            cells = [rate(result.rate_offered), *(microseconds(figure) for figure in figures)]
            yield table.line(server, cells)
            if result.latency_reason:
                notes.append((server, result.latency_reason))
            late = sum(sample.saturated is True for sample in result.samples)
            if late:
                notes.append(
                    (server, f"in {late} of {result.rounds} rounds the rate was not served")
                )
        yield from grouped(notes, width)


def _of_connections(run: Run, width: int) -> Iterator[str]:
    table = Table(width, ("a second", 8), ("p50", 7), ("p99", 7), ("TLS", -37))
    for profile, found in _results(run, LoadMode.CHURN):
        yield ""
        yield from wrapped(
            f"CONNECTIONS, {profile}: opened and served a second; times of a TLS handshake",
            width,
            indent="",
        )
        yield table.head("server")
        for name, result in found:
            shake = result.handshake_us or {}
            cells = [
                rate(result.connections_per_second),
                microseconds(shake.get("p50")),
                microseconds(shake.get("p99")),
                result.tls or "-",
            ]
            yield table.line(name, cells)


def _of_requests(run: Run, width: int) -> Iterator[str]:
    """Context switches and instructions of the server: what explains a cost."""
    lines: list[str] = []
    reasons = []
    for profile, found in _results(run, None):
        switches: list[str] = []
        instructions: list[str] = []
        for name, result in found:
            lines_of = (
                (switches, result.context_switches_per_request),
                (instructions, result.instructions_per_request),
            )
            for told, figure in lines_of:
                if figure is not None and figure.server is not None:
                    told.append(f"{name} {_small(figure)}")
            if result.instructions_reason:
                reasons.append(result.instructions_reason)
        if switches:
            lines += wrapped(f"{profile}: {'; '.join(switches)}", width)
        if instructions:
            lines += wrapped(f"{profile}, instructions: {'; '.join(instructions)}", width)
    if not lines:
        return
    yield ""
    yield from wrapped(
        "PER REQUEST, context switches of the server (and of the generator)", width, indent=""
    )
    yield from lines
    for reason in dict.fromkeys(reasons):
        yield from wrapped(f"instructions: {reason}", width)


def _small(figure: Cost) -> str:
    server, client = figure.server, figure.client
    return _digits3(server) + (f" ({_digits3(client)})" if client is not None else "")


def _digits3(number: float | None) -> str:
    """Three digits of a figure that may be below one."""
    if number is None:
        return "-"
    if 0 < number < 0.001:
        return "< 0.001"
    return f"{number:.3g}" if number < 999.5 else f"{number:,.0f}"


def of_memory(run: Run, width: int) -> list[str]:
    """What a connection takes: idle, asking now and then, and never reading."""
    return [*_per_connection(run.servers, width), *_of_slow_readers(run.servers, width)]


def _per_connection(servers: Sequence[ServerResult], width: int) -> Iterator[str]:
    climbed = [(s.name, s.memory) for s in servers if s.memory and s.memory.ladder]
    if not climbed:
        return
    table = Table(
        width, ("resident", 8), ("kernel", 7), ("total", 8), ("virtual", 8), ("held", 9),
        ("none held", 9), ("after", 9),
    )  # fmt: skip
    yield ""
    yield from wrapped(
        "PER CONNECTION, idle, after one request: bytes; virtual is address space; PSS before any "
        "was held, and after all were closed",
        width,
        indent="",
    )
    yield table.head("server")
    notes = []
    for name, held in climbed:
        per = held.bytes_per_connection or BytesPerConnection(None, None, None)
        cells = [
            *(_whole(figure) for figure in (per.resident, per.kernel, per.total, per.virtual)),
            count(held.connections_held),
            memory(held.baseline.pss_kb if held.baseline else None),
            memory(held.after_close_pss_kb),
        ]
        yield table.line(name, cells)
        if held.reason:
            notes.append((name, held.reason))
        if held.vmhwm_reason:
            notes.append((name, f"VmHWM {held.vmhwm_reason}"))
        notes += [(name, told) for told in _of_trickle(held)]
    yield from grouped(notes, width)


def _of_slow_readers(servers: Sequence[ServerResult], width: int) -> Iterator[str]:
    for server in servers:
        slow = server.memory.slow_readers if server.memory else None
        if slow and slow.pss_peak_kb is not None and slow.pss_before_kb is not None:
            yield ""
            yield from wrapped(
                f"SLOW READERS, {server.name}: took {slow.sent_kb:,} kB of requests from "
                f"{slow.connections:,} clients that never read, "
                f"and grew by {slow.pss_peak_kb - slow.pss_before_kb:,} kB"
                + (
                    f"; the kernel's buffers by {slow.socket_buffers_kb:,} kB, both ends"
                    if slow.socket_buffers_kb is not None
                    else ""
                ),
                width,
                indent="",
            )


def _of_trickle(held: Memory) -> Iterator[str]:
    """What connections cost that are not idle, beside what they cost when they are."""
    if held.trickle_reason:
        yield f"not measured with each asking now and then: {held.trickle_reason}"
    one = held.trickle
    if one is None or one.pss_peak_kb is None:
        return
    wrong = f", errors {one.errors}" if one.errors else ""
    idle = next((r.pss_kb for r in held.ladder if r.connections == one.connections), None)
    yield (
        f"{one.connections:,} that each ask once in {one.seconds:g} s: PSS "
        f"{one.pss_peak_kb:,} kB, idle {'-' if idle is None else format(idle, ',')} kB{wrong}"
    )


def _whole(number: float | None) -> str:
    return "-" if number is None else format(number, ",.0f")


def paired_lines(pairs: Sequence[PairedRatio], width: int = 80) -> list[str]:
    """Paired ratios as tables, a line for each server and metric; empty where there are none."""
    lines: list[str] = []
    groups: dict[tuple[str, str, str], list[PairedRatio]] = {}
    for pair in pairs:
        groups.setdefault((pair.profile, pair.engine, pair.base), []).append(pair)
    table = Table(
        width, ("of", -5), ("times", 9), ("95 % interval", 19), ("pairs", 5), ("shows", 7)
    )
    for (profile, engine, base), group in groups.items():
        title = f"PAIRED, {profile} by {engine}: times {base}, block by block"
        lines += ["", *wrapped(title, width, indent=""), table.head("server")]
        notes = []
        for pair in sorted(group, key=lambda pair: [p.head for p in group].index(pair.head)):
            metric = "cost" if pair.metric.startswith("cpu") else "req/s"
            if pair.ratio is None:
                notes.append((pair.head, f"{metric} not paired, {pair.reason}"))
                continue
            if pair.interval_95 is None:
                notes.append((pair.head, f"no interval, {pair.reason}"))
            cells = [
                metric,
                _ratio(pair.ratio),
                " - ".join(map(_ratio, pair.interval_95)) if pair.interval_95 else "-",
                count(pair.pairs),
                f"{pair.detectable - 1:.1%}" if pair.detectable else "-",
            ]
            lines.append(table.line(pair.head, cells))
        lines += grouped(notes, width)
    if lines:
        lines.append("shows: the least change that so many pairs would show, 8 times in 10")
    return lines


def _ratio(number: float) -> str:
    """A ratio: near one its thousandths count."""
    return f"{number:.3f}" if number < 10 else times(number)
