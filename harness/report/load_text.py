"""Load as text of the scoreboard: cost, latency, connections, and paired ratios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from httpmark.harness.http.printable import terminal_line
from httpmark.harness.model.load import Bottleneck, Cost, LoadMode, LoadResult, PairedRatio
from httpmark.harness.model.run import Run
from httpmark.harness.report.number_format import (
    count,
    microseconds,
    nanoseconds,
    rate,
    times,
)
from httpmark.harness.report.overview import Column, Row
from httpmark.harness.report.text_layout import Table, fit, grouped, wrapped

_USUAL_PATH = "/hello"  # of the profiles
_PERCENTILES = ("p50", "p90", "p99", "p99_9", "max")


def detail_lines(run: Run, width: int) -> list[str]:
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
            f"LATENCY, {profile}: time from when a request was due; service: p99 from when "
            "it was sent; lag: p99 of how late the generator was; medians of the rounds",
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
                of = f"{late} of {result.rounds} rounds"
                notes.append((server, f"in {of} the server did not keep up with the rate"))
        yield from grouped(notes, width)


def _of_connections(run: Run, width: int) -> Iterator[str]:
    table = Table(width, ("a second", 8), ("p50", 7), ("p99", 7), ("TLS", -37))
    for profile, found in _results(run, LoadMode.CHURN):
        yield ""
        yield from wrapped(
            f"CONNECTIONS, {profile}: opened and served per second; time of a TLS handshake",
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
        title = f"PAIRED, {profile} with {engine}: divided by {base}, block by block"
        lines += ["", *wrapped(title, width, indent=""), table.head("server")]
        notes = []
        for pair in sorted(group, key=lambda pair: [p.head for p in group].index(pair.head)):
            metric = "cost" if pair.metric.startswith("cpu") else "req/s"
            if pair.ratio is None:
                notes.append((pair.head, f"{metric} not compared: {pair.reason}"))
                continue
            if pair.interval_95 is None:
                notes.append((pair.head, f"no interval: {pair.reason}"))
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
        lines.append("shows: the smallest change that so many pairs would show, 8 times in 10")
    return lines


def _ratio(number: float) -> str:
    """A ratio: near one its thousandths count."""
    return f"{number:.3f}" if number < 10 else times(number)


_NO_QUOTIENT = "x null is typical of samples in one block; it is not ns/req divided by that of null"


def _of_ratio(load: LoadResult, null: LoadResult | None) -> Iterator[str]:
    """That a ratio to null stands beside two costs that do not divide to it, if they do not."""
    cost = load.cpu_ns_per_request.server
    base = null.cpu_ns_per_request.server if null is not None else None
    if load.cost_over_null is None or not cost or not base:
        return
    # As they are printed: who divides two figures of the table must get the third one.
    shown = [float(nanoseconds(figure).replace(",", "")) for figure in (cost, base)]
    if times(shown[0] / shown[1]) != times(load.cost_over_null):
        yield _NO_QUOTIENT


def _of_path(load: LoadResult, runtime: str | None) -> Iterator[str]:
    """What was requested, where that is not what every server is asked for."""
    if load.path and (load.path != _USUAL_PATH or runtime == "address"):
        yield f"requested: GET {terminal_line(load.path)}"


def cost_lines(column: Column, measured: Sequence[Row], width: int) -> list[str]:
    table = Table(
        width, ("rank", 4), ("ns/req", 8), ("95 % interval", 17), ("x null", 6), ("req/s", 11),
        ("bound by", -9),
    )  # fmt: skip
    title = (
        f"COST, {column.title}: {column.connections:,} connections x depth {column.depth:,}, "
        "server CPU per request"
    )
    lines = ["", fit(terminal_line(title), width), table.head("server")]
    notes: list[tuple[str, str]] = []
    by_name = {row.server.name: row for row in measured}
    null = next((column.cells[row.server.name].load for row in measured
                 if row.server.control and row.server.name in column.cells), None)  # fmt: skip
    for name in column.order:
        row, cell = by_name.get(name), column.cells[name]
        if row is None:
            continue
        load, interval = cell.load, cell.load.interval_95
        cells = [
            cell.rank or "-",
            nanoseconds(load.cpu_ns_per_request.server),
            f"{nanoseconds(interval[0])} - {nanoseconds(interval[1])}" if interval else "-",
            times(load.cost_over_null) if not row.server.control else "-",
            cell.rate.text,
            cell.stamp.removesuffix("-bound"),
        ]
        lines.append(table.line(row.marked_name, cells))
        notes += [(name, told) for told in _of_path(load, row.server.runtime)]
        notes += [(name, told) for told in _of_ratio(load, null) if not row.server.control]
        if not cell.rate.ranked and cell.rate.why != load.cost_rank_reason:
            is_bound = cell.rate.figure and load.bottleneck is not Bottleneck.SERVER
            prefix = "req/s is a lower bound: " if is_bound else "req/s: "
            notes.append((name, prefix + cell.rate.why))
        if load.redone:
            notes.append((name, f"{load.redone} samples lacked CPU time and were repeated"))
        if not interval and load.interval_reason:
            notes.append((name, f"no interval: {load.interval_reason}"))
        if (
            load.cost_rank is None
            and load.cost_rank_reason
            and load.cost_rank_reason != load.interval_reason
            and not row.server.control
        ):
            why = load.cost_rank_reason.removeprefix("not ranked: ")
            both = "" if load.cost_rank_reason == load.ranked_reason else "cost "
            notes.append((name, f"{both}not ranked: {why}"))
    if any(row.server.control for row in measured):
        notes.append(("*", "control: measured for calibration, never ranked"))
    return lines + grouped(notes, width)
