"""Figures of load and memory that the scoreboard has no column for, as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from httpmark.harness.model import (
    BytesPerConnection,
    LoadMode,
    LoadResult,
    Memory,
    PairedRatio,
    Run,
    ServerResult,
)

_PERCENTILES = ("p50", "p90", "p99", "p99_9", "max")


def lines(run: Run) -> list[str]:
    """Latency of open loops, connections a second, memory per connection, paired ratios."""
    return [
        *_of_latency(run),
        *_of_connections(run),
        *_of_memory(run.servers),
        *paired_lines(run.paired),
    ]


def _results(run: Run, mode: LoadMode) -> Iterator[tuple[str, list[tuple[str, LoadResult]]]]:
    """The results of one mode, profile by profile."""
    for profile in run.profiles:
        found = [
            (server.name, result)
            for server in run.servers
            for result in server.load
            if result.profile == profile and result.mode is mode and result.samples
        ]
        if found:
            yield profile, found


def _of_latency(run: Run) -> Iterator[str]:
    for profile, found in _results(run, LoadMode.OPEN):
        yield ""
        yield f"LATENCY, {profile}: us from when a request was due, medians of the rounds"
        heads = "".join(f"{name.replace('_', '.'):>9}" for name in _PERCENTILES)
        yield f"{'server':<16}{'rate/s':>10}{heads}{'service p99':>13}{'own lag p99':>13}"
        notes = []
        for server, result in found:
            latency = result.latency_us or {}
            service, lag = result.service_us or {}, result.lag_us or {}
            figures = "".join(_cell(latency.get(name), 9) for name in _PERCENTILES)
            yield (
                f"{server:<16}{_cell(result.rate_offered, 10)}{figures}"
                f"{_cell(service.get('p99'), 13)}{_cell(lag.get('p99'), 13)}"
            )
            if result.latency_reason:
                notes.append(f"  {server}: {result.latency_reason}")
            late = sum(sample.saturated is True for sample in result.samples)
            if late:
                notes.append(
                    f"  {server}: in {late} of {result.rounds} rounds the rate was not served"
                )
        yield from notes


def _of_connections(run: Run) -> Iterator[str]:
    for profile, found in _results(run, LoadMode.CHURN):
        yield ""
        yield f"CONNECTIONS, {profile}: opened and served a second; us of a handshake"
        yield f"{'server':<16}{'per second':>12}{'handshake p50':>15}{'p99':>9}  TLS"
        for name, result in found:
            shake = result.handshake_us or {}
            yield (
                f"{name:<16}{_cell(result.connections_per_second, 12)}"
                f"{_cell(shake.get('p50'), 15)}{_cell(shake.get('p99'), 9)}  {result.tls or '-'}"
            )


def _of_memory(servers: Sequence[ServerResult]) -> Iterator[str]:
    climbed = [(s.name, s.memory) for s in servers if s.memory and s.memory.ladder]
    if climbed:
        yield ""
        yield "PER CONNECTION, idle, after one request: bytes; virtual is address space"
        yield (
            f"{'server':<16}{'resident':>10}{'kernel':>10}{'virtual':>10}{'held':>10}"
            f"{'after close':>14}"
        )
    for name, memory in climbed:
        per = memory.bytes_per_connection or BytesPerConnection(None, None, None)
        yield (
            f"{name:<16}{_cell(per.resident, 10)}{_cell(per.kernel, 10)}"
            f"{_cell(per.virtual, 10)}{memory.connections_held:>10,}"
            f"{_cell(memory.after_close_pss_kb, 11)} kB"
        )
        if memory.reason:
            yield f"  {name}: {memory.reason}"
        yield from _of_trickle(name, memory)
    for server in servers:
        slow = server.memory.slow_readers if server.memory else None
        if slow and slow.pss_peak_kb is not None and slow.pss_before_kb is not None:
            yield (
                f"SLOW READERS, {server.name}: took {slow.sent_kb:,} kB of requests from "
                f"{slow.connections} clients that never read, "
                f"and grew by {slow.pss_peak_kb - slow.pss_before_kb:,} kB"
                + (
                    f"; the kernel's buffers by {slow.socket_buffers_kb:,} kB, both ends"
                    if slow.socket_buffers_kb is not None
                    else ""
                )
            )


def _of_trickle(name: str, memory: Memory) -> Iterator[str]:
    """What connections cost that are not idle, beside what they cost when they are."""
    if memory.trickle_reason:
        yield f"  {name}: not measured with each asking now and then: {memory.trickle_reason}"
    one = memory.trickle
    if one is None or one.pss_peak_kb is None:
        return
    wrong = f", errors {one.errors}" if one.errors else ""
    idle = next((r.pss_kb for r in memory.ladder if r.connections == one.connections), None)
    yield (
        f"  {name}: {one.connections:,} that each ask once in {one.seconds:g} s: PSS "
        f"{one.pss_peak_kb:,} kB, idle {'-' if idle is None else format(idle, ',')} kB{wrong}"
    )


def _cell(value: float | None, width: int) -> str:
    """A figure at the right of its column; one that fills it still stands apart from the last."""
    return " " + f"{'-' if value is None else format(value, ',.0f'):>{width - 1}}"


def paired_lines(pairs: Sequence[PairedRatio]) -> list[str]:
    """Paired ratios as a table for the terminal, a line for each server; empty where none is."""
    lines = []
    rows: dict[tuple[str, str, str, str], list[PairedRatio]] = {}
    for pair in pairs:
        rows.setdefault((pair.profile, pair.engine, pair.base, pair.head), []).append(pair)
    told: tuple[str, str, str] | None = None
    for (profile, engine, base, head), figures in rows.items():
        if told != (profile, engine, base):
            told = (profile, engine, base)
            lines += ["", f"PAIRED, {profile} by {engine}: times {base}, block by block (95 %)"]
        words = "; ".join(
            f"{'cost' if pair.metric.startswith('cpu') else 'req/s'} {_paired_words(pair)}"
            for pair in figures
        )
        lines.append(f"  {head:<16} {words}")
    return lines


def _paired_words(pair: PairedRatio) -> str:
    if pair.ratio is None or pair.interval_95 is None:
        return f"- ({pair.reason})"
    low, high = pair.interval_95
    shows = f", shows {pair.detectable - 1:.1%}" if pair.detectable else ""
    return f"{pair.ratio:.3f} ({low:.3f} - {high:.3f}; {pair.pairs} pairs{shows})"
