"""The run in 80 columns of plain text: what the page says, in short."""

from __future__ import annotations

from collections.abc import Sequence

from httpmark.harness.http.printable import terminal_line
from httpmark.harness.model.cases import Level
from httpmark.harness.model.load import Bottleneck
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import Word
from httpmark.harness.report import figures
from httpmark.harness.report.byte_maps import READINGS
from httpmark.harness.report.first_screen import SUITE, Column, Row, columns, rows
from httpmark.harness.report.quantities import count, memory, nanoseconds, percent, times
from httpmark.harness.report.text_tables import Table, fit, grouped, wrapped

# The suite whose MUSTs decide who is ranked.
REQUIREMENTS = "rfc"


def scoreboard(run: Run, *, width: int = 80) -> str:
    """The run in plain text of a width: all that is printed of it."""
    server_rows = rows(run)
    measured = [row for row in server_rows if row.state != "absent"]
    marks = (
        f"httpmark {run.harness_version}",
        f"run {run.id}",
        run.started,
        *(("quick",) if run.quick else ()),
        *(("INTERRUPTED, partial",) if run.interrupted else ()),
    )
    lines = [fit(terminal_line(" | ".join(marks)), width)]
    lines += _conformance_lines([row for row in measured if row.suite is not None], width)
    lines += _requirement_lines(measured, width)
    for column in columns(run):
        lines += _cost_lines(column, measured, width)
    lines += _asked_lines(run, width)
    lines += figures.of_load(run, width)
    lines += _memory_lines(measured, width)
    lines += figures.of_memory(run, width)
    lines += figures.paired_lines(run.paired, width)
    absent = [
        (row.server.name, row.server.unavailable or row.server.died or "")
        for row in server_rows
        if row.state == "absent" or row.server.died
    ]
    if absent:
        lines += ["", "NOT MEASURED, OR NOT TO THE END"]
        for name, why in absent:
            lines += wrapped(f"{name}: {why}", width)
    for note in run.notes:
        lines += wrapped(f"note: {note}", width, indent="")
    return "\n".join(lines) + "\n"


def _conformance_lines(measured: Sequence[Row], width: int) -> list[str]:
    if not measured:
        return []
    table = Table(
        width,
        ("detected", 8),
        ("rejected", 8),
        ("closed", 8),
        ("accepted", 8),
        ("mute", 7),
        ("other", 6),
        ("published", -9),
    )
    most = max(row.suite.requests for row in measured if row.suite)
    lines = [
        "",
        f"CONFORMANCE, suite {SUITE}: {most:,} malformed requests each",
        table.head("server"),
    ]
    notes = []
    for row in measured:
        suite = row.suite
        if suite is None:
            continue
        score = suite.score_percent
        if score is None and suite.reason:
            notes.append((row.server.name, suite.reason))
        cells = [
            "no score" if score is None else f"{percent(score)} %",
            *(count(row.totals[reading]) for reading in READINGS[:4]),
            count(row.totals["malformed"] + row.totals["void"]),
            suite.published or "-",
        ]
        lines.append(table.line(_named_server(row), cells))
    return lines + grouped(notes, width)


def _requirement_lines(measured: Sequence[Row], width: int) -> list[str]:
    """For each suite of designed cases: the MUSTs and controls of each server by verdict."""
    names = dict.fromkeys(
        name
        for row in measured
        for name, suite in row.server.compliance.suites.items()
        if suite.must is not None
    )
    lines = []
    for name in names:
        table = Table(
            width, ("kept", 8), ("passed", 7), ("warned", 7), ("failed", 7), ("unstable", 8),
            ("void", 5), ("n/a", 5), ("SHOULD", 7),
        )  # fmt: skip
        lines += ["", f"REQUIREMENTS of level MUST, and controls: suite {name}"]
        lines.append(table.head("server"))
        notes = []
        for row in measured:
            suite = row.server.compliance.suites.get(name)
            if suite is None or suite.must is None:
                continue
            if suite.score_percent is None and suite.reason:
                notes.append((row.server.name, suite.reason))
            keys = ("passed", "warned", "failed", "unstable", "void", "not_applicable")
            missed = suite.levels.get(Level.SHOULD, {}).get(Word.FAIL, 0)
            score = suite.score_percent
            cells = [
                "no score" if score is None else f"{percent(score)} %",
                *(count(suite.must[key]) for key in keys),
                count(missed),
            ]
            lines.append(table.line(_named_server(row), cells))
        lines.append("SHOULD: cases of that level that failed; they gate nothing by themselves")
        lines += grouped(notes, width)
    return lines


def _named_server(row: Row) -> str:
    return f"{row.server.name} *" if row.server.control else row.server.name


def _cost_lines(column: Column, measured: Sequence[Row], width: int) -> list[str]:
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
        lines.append(table.line(_named_server(row), cells))
        if not cell.rate.ranked and cell.rate.why != load.cost_rank_reason:
            is_bound = cell.rate.figure and load.bottleneck is not Bottleneck.SERVER
            prefix = "req/s is a lower bound, " if is_bound else "req/s "
            notes.append((name, prefix + cell.rate.why))
        if load.redone:
            notes.append((name, f"{load.redone} windows starved and were taken again"))
        if not interval and load.interval_reason:
            notes.append((name, f"no interval, {load.interval_reason}"))
        if (
            load.cost_rank is None
            and load.cost_rank_reason
            and load.cost_rank_reason != load.interval_reason
            and not row.server.control
        ):
            why = load.cost_rank_reason.removeprefix("not ranked: ")
            both = "" if load.cost_rank_reason == load.ranked_reason else "cost "
            notes.append((name, f"{both}not ranked, {why}"))
    if any(row.server.control for row in measured):
        notes.append(("*", "control, measured for calibration and never ranked"))
    return lines + grouped(notes, width)


def _asked_lines(run: Run, width: int) -> list[str]:
    """Which MUSTs stand behind the ranks, where those of HTTP were not asked."""
    if REQUIREMENTS in run.suites or not any(server.load for server in run.servers):
        return []
    fired = f"{', '.join(run.suites)} only" if run.suites else "no suite fired"
    told = f"conformance: {fired}; MUSTs of {REQUIREMENTS} were not asked: ranks are of cost alone"
    return ["", *wrapped(told, width, indent="")]


def _memory_lines(measured: Sequence[Row], width: int) -> list[str]:
    known = [row for row in measured if row.server.memory or row.server.memory_reason]
    if not known:
        return []
    table = Table(
        width, ("VmPeak", 10), ("VmHWM", 10), ("PSS", 10), ("connections", 11), ("VmHWM busy", 10)
    )
    lines = [
        "",
        fit("MEMORY of the process tree; VmPeak is virtual: address space, not memory", width),
        table.head("server"),
    ]
    notes = []
    for row in known:
        held = row.server.memory
        if held is None:
            notes.append((row.server.name, row.server.memory_reason or "not measured"))
            continue
        cells = [
            *(memory(figure) for figure in (held.vmpeak_kb, held.vmhwm_kb, held.pss_kb)),
            count(held.connections_held),
            memory(held.busy_vmhwm_kb),
        ]
        lines.append(table.line(_named_server(row), cells))
    return lines + grouped(notes, width)
