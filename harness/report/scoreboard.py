"""The run as plain text for a terminal: what the page says, in short."""

from __future__ import annotations

from collections.abc import Sequence

from httpmark.harness.http.printable import terminal_line
from httpmark.harness.judging.score_text import score_text
from httpmark.harness.model.cases import Level
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import SuiteResult, Word
from httpmark.harness.report import forwarding_tables, load_text, memory_text
from httpmark.harness.report.byte_maps import READINGS
from httpmark.harness.report.number_format import count
from httpmark.harness.report.overview import PUBLISHED, REQUIREMENTS, Row, columns, rows
from httpmark.harness.report.text_layout import Table, fit, grouped, wrapped


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
    if crashed := [row for row in measured if row.server.crashes]:
        lines += ["", "DIED OR HUNG OF A REQUEST"]
        for row in crashed:
            lines += wrapped(f"{row.server.name} {row.sentence}", width)
    lines += _conformance_lines([row for row in measured if row.suite is not None], width)
    lines += _requirement_lines(measured, width)
    lines += forwarding_tables.run_lines(run, width)
    lines += _parser_lines(measured, width)
    for column in columns(run):
        lines += load_text.cost_lines(column, measured, width)
    lines += _asked_lines(run, width)
    lines += load_text.detail_lines(run, width)
    lines += memory_text.tree_lines(measured, width)
    lines += memory_text.connection_lines(run, width)
    lines += load_text.paired_lines(run.paired, width)
    absent = [
        (row.server.name, row.server.unavailable or row.server.died or "")
        for row in server_rows
        if row.state == "absent" or row.server.died
    ]
    if absent:
        lines += ["", "NOT MEASURED, OR NOT COMPLETED"]
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
        f"CONFORMANCE, suite {PUBLISHED}: {most:,} malformed requests each",
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
            "no score" if score is None else f"{score_text(score)} %",
            *(count(row.totals[reading]) for reading in READINGS[:4]),
            count(row.totals["malformed"] + row.totals["void"]),
            suite.published or "-",
        ]
        lines.append(table.line(row.marked_name, cells))
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
            width, ("score", 8), ("met", 5), ("permitted", 9), ("broken", 6), ("undecided", 9),
            ("n/a", 5), ("SHOULD", 7),
        )  # fmt: skip
        lines += ["", f"REQUIREMENTS, which are MUSTs and controls: suite {name}"]
        lines.append(table.head("server"))
        notes = []
        for row in measured:
            suite = row.server.compliance.suites.get(name)
            if suite is None or suite.must is None:
                continue
            if suite.score_percent is None and suite.reason:
                notes.append((row.server.name, suite.reason))
            must = suite.must
            missed = suite.levels.get(Level.SHOULD, {}).get(Word.FAIL, 0)
            score = suite.score_percent
            cells = [
                "no score" if score is None else f"{score_text(score)} %",
                count(must["passed"] + must["warned"]),
                count(must["warned"]),
                count(must["failed"]),
                count(must["unstable"] + must["void"]),
                count(must["not_applicable"]),
                count(missed),
            ]
            lines.append(table.line(row.marked_name, cells))
        lines.append("permitted: of those met; SHOULD: cases of that level that failed")
        lines += grouped(notes, width)
        for row in measured:
            lines += _again_lines(row.server.compliance.suites.get(name), row.server.name, width)
    return lines


def _parser_lines(measured: Sequence[Row], width: int) -> list[str]:
    """Which servers share an HTTP parser: what it breaks, all of them break."""
    shared: dict[str, list[str]] = {}
    for row in measured:
        if row.server.engine:
            shared.setdefault(row.server.engine, []).append(row.server.name)
    told = [
        line
        for engine, names in sorted(shared.items())
        for line in wrapped(f"HTTP parser of {engine}: {', '.join(names)}", width)
    ]
    return ["", *told] if told else []


def _again_lines(suite: SuiteResult | None, server: str, width: int) -> list[str]:
    """How many cases were asked again, and why."""
    if suite is None or not suite.asked_again:
        return []
    most_first = sorted(suite.asked_again.items(), key=lambda pair: -pair[1])
    why = ", ".join(f"{count(number)} {doubt.said}" for doubt, number in most_first)
    cases = count(sum(suite.asked_again.values()))
    return wrapped(f"{server}: cases asked again: {cases}, of which {why}", width)


def _asked_lines(run: Run, width: int) -> list[str]:
    """A warning that ranks are by cost alone, where the MUSTs of HTTP were not checked."""
    if REQUIREMENTS in run.suites or not any(server.load for server in run.servers):
        return []
    fired = f"only {', '.join(run.suites)} ran" if run.suites else "no suite ran"
    told = (
        f"conformance: {fired}; the MUSTs of {REQUIREMENTS} were not checked, so ranks are by cost "
        "alone"
    )
    return ["", *wrapped(told, width, indent="")]
