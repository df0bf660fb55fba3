"""Every table of a run as rows, for people with tools of their own.

Columns are the fields of the result, nested ones joined by a dot, so that a new field is a new
column. What is absent is empty (null), with its reason in a column beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.gate.findings import Finding
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import SuiteResult
from httpmark.harness.report import agreement, byte_maps, overview

# These have rows of their own, or are too much for a cell.
_TABLES = {
    "families", "compliance", "memory", "controls", "cases", "generated", "answers",
    "requirements", "deliveries", "load", "samples", "failures", "differences", "disagreements",
    "ladder",
}  # fmt: skip


Value = str | int | float | bool | None


class Table(msgspec.Struct, frozen=True):
    """One table: its name, what it holds, its columns and its rows."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


def tables(
    run: Run, found: Sequence[Finding] = (), *, evidence: Path | None = None
) -> dict[str, Table]:
    """The tables of a run by name; one without a row is there, too.

    :param evidence: the file of its exchanges, which alone can say who agrees with whom.
    """
    made = (
        _table("servers", "the servers", map(_flat, run.servers)),
        _table("conformance", "scores by suite", _conformance(run)),
        _table("requirements", "requirements and their verdicts", _requirements(run)),
        _table("cases", "designed cases and their verdicts", _cases(run)),
        _table("generated", "generated families and checks on every answer", _generated(run)),
        _table("families", "published families and what became of their requests", _families(run)),
        _table("failures", "the first failures of controls, families and checks", _failures(run)),
        _table("differences", "where counts differ from the published ones", _differences(run)),
        _table("deliveries", "messages that were sent in pieces", _deliveries(run)),
        _table(
            "disagreements",
            "messages whose answer depends on where TCP splits them",
            _disagreements(run),
        ),
        _table(
            "agreement",
            "how much each two servers treated alike, in percent",
            _agreement(run, evidence),
        ),
        _table("findings", "the findings that the gate judges", _findings(found)),
        _table("load", "cost and throughput by profile", _load(run)),
        _table("samples", "each sample of load", _samples(run)),
        _table("ratios", "one server over another, in pairs of samples", map(_flat, run.paired)),
        _table("memory", "memory of the process tree, in kB", _memory(run)),
        _table("ladder", "memory by connections held", _ladder(run)),
        _table("environment", "the machine", _environment(run)),
    )
    return {table.name: table for table in made}


_Row = dict[str, Value]


def _suites(run: Run) -> Iterator[tuple[_Row, SuiteResult]]:
    """Each suite of each server, with the columns that name it."""
    for server in run.servers:
        for name, suite in server.compliance.suites.items():
            yield {"server": server.name, "suite": name}, suite


def _conformance(run: Run) -> Iterator[_Row]:
    for of, suite in _suites(run):
        controls = _flat(suite.controls, "controls.") if suite.controls else {}
        yield {**of, **_flat(suite), **controls}


def _requirements(run: Run) -> Iterator[_Row]:
    for of, suite in _suites(run):
        for id, word in suite.requirements.items():
            yield {**of, "requirement": id, "verdict": word.value}


def _cases(run: Run) -> Iterator[_Row]:
    for of, suite in _suites(run):
        for verdict in suite.cases.values():
            yield {**of, **_flat(verdict)}


def _generated(run: Run) -> Iterator[_Row]:
    for of, suite in _suites(run):
        for id, tally in (suite.generated | suite.answers).items():
            yield {**of, "family": id, **_flat(tally)}


def _families(run: Run) -> Iterator[_Row]:
    for of, suite in _suites(run):
        for id, counts in suite.families.items():
            yield {**of, "family": id, **_flat(counts)}


def _failures(run: Run) -> Iterator[_Row]:
    for of, suite in _suites(run):
        controls = suite.controls.failures if suite.controls else ()
        failing = {"controls": controls} | {
            id: tally.failures for id, tally in (suite.generated | suite.answers).items()
        }
        for id, verdicts in failing.items():
            for verdict in verdicts:
                yield {**of, "of": id, **_flat(verdict)}


def _differences(run: Run) -> Iterator[_Row]:
    for of, suite in _suites(run):
        for one in suite.differences:
            yield {**of, **_flat(one, whole=True)}


def _deliveries(run: Run) -> Iterator[_Row]:
    for of, suite in _suites(run):
        if (cut := suite.deliveries) is not None:
            yield {
                **of, "messages": cut.messages, "cuts": sum(cut.fired.values()),
                "disagreements": len(cut.disagreements),
                "early": ", ".join(cut.early), "unstable": ", ".join(cut.unstable),
                **{f"fired.{mode}": number for mode, number in cut.fired.items()},
            }  # fmt: skip


def _disagreements(run: Run) -> Iterator[_Row]:
    for of, suite in _suites(run):
        for one in suite.deliveries.disagreements if suite.deliveries else ():
            yield {**of, **_flat(one, whole=True)}


def _findings(found: Iterable[Finding]) -> Iterator[_Row]:
    for finding in found:
        yield {
            **_flat(finding),
            "details": " / ".join(finding.details),
            "reproducers": "\n".join(finding.reproducers),
        }


def _load(run: Run) -> Iterator[_Row]:
    for server in run.servers:
        for result in server.load:
            yield {"server": server.name, **_flat(result)}


def _samples(run: Run) -> Iterator[_Row]:
    for server in run.servers:
        for result in server.load:
            under = {"server": server.name, "profile": result.profile, "engine": result.engine}
            for sample in result.samples:
                yield {**under, **_flat(sample)}


def _memory(run: Run) -> Iterator[_Row]:
    for server in run.servers:
        if server.memory is not None:
            yield {"server": server.name, **_flat(server.memory)}
        elif server.memory_reason:
            yield {"server": server.name, "reason": server.memory_reason}


def _ladder(run: Run) -> Iterator[_Row]:
    for server in run.servers:
        for rung in server.memory.ladder if server.memory else ():
            yield {"server": server.name, **_flat(rung)}


def _environment(run: Run) -> Iterator[_Row]:
    for name, value in _flat_value(run.environment).items():
        yield {"name": name, "value": value}


def _agreement(run: Run, evidence: Path | None) -> list[dict[str, Value]]:
    """Each two servers once, on designed cases and on published bytes."""
    if evidence is None or not evidence.is_file():
        return []
    places = byte_maps.places(loading.load())
    published = [
        place.key for place in places if place.suite == overview.PUBLISHED and not place.pair
    ]
    with Evidence(evidence, masked=True) as store:
        seen = {
            server.name: byte_maps.look(server, store, places)
            for server in run.servers
            if not server.unavailable
        }
    rows: list[dict[str, Value]] = []
    for of, grid in (
        ("cases", agreement.of_cases(seen)), ("octets", agreement.of_bytes(seen, published)),
    ):  # fmt: skip
        for at, server in enumerate(grid.names if grid else ()):
            for beside, other in enumerate(grid.names if grid else ()):
                if grid is not None and at < beside:
                    share = grid.rows[at][beside]
                    rows.append({"of": of, "server": server, "other": other, "percent": share})
    return rows


def _flat(struct: msgspec.Struct, prefix: str = "", *, whole: bool = False) -> dict[str, Value]:
    """A struct's fields as columns.

    :param whole: with those that are elsewhere tables of their own.
    """
    value = msgspec.to_builtins(struct)
    return {
        f"{prefix}{name}": inner
        for key, part in value.items()
        if whole
        or not ((key in _TABLES and not isinstance(part, int)) or key.startswith("histogram"))
        for name, inner in _flat_value(part, key).items()
    }


def _flat_value(value: Any, name: str = "") -> dict[str, Value]:
    if isinstance(value, dict):
        return {
            full: inner
            for key, part in value.items()
            for full, inner in _flat_value(part, f"{name}.{key}" if name else str(key)).items()
        }
    if isinstance(value, list | tuple):
        if all(isinstance(part, str) for part in value):
            return {name: ", ".join(value)}
        return {
            full: inner
            for at, part in enumerate(value)
            for full, inner in _flat_value(part, f"{name}.{at}").items()
        }
    return {name: value}


def _table(name: str, title: str, rows: Iterable[_Row]) -> Table:
    found = list(rows)
    columns = tuple(dict.fromkeys(column for row in found for column in row))
    return Table(name, title, columns, tuple(tuple(row.get(c) for c in columns) for row in found))
