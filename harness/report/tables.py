"""Every table of a run as rows, for people with tools of their own: Markdown, CSV, JSON, Parquet.

Columns are the fields of the result, nested ones joined by a dot, so that a new field is a new
column. What is absent is empty (null), with its reason in a column beside it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.gate.findings import Finding
from httpmark.harness.http.printable import markdown, valid_unicode
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import Verdict
from httpmark.harness.report import agreement, byte_maps

EXCHANGES = "exchanges"
"""The table that only Parquet can hold: every exchange of the evidence."""

FOLDER = "tables"
"""Where tables go that cannot be printed, in the run folder, where no other is named."""

_BATCH = 20_000
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
    servers, suites, families, cases, generated = [], [], [], [], []
    requirements, load, samples, memory, ladder = [], [], [], [], []
    failures, differences, disagreements = [], [], []
    deliveries: list[dict[str, Value]] = []
    for server in run.servers:
        who = {"server": server.name}
        servers.append(_flat(server))
        for name, suite in server.compliance.suites.items():
            controls = _flat(suite.controls, "controls.") if suite.controls else {}
            suites.append({**who, "suite": name, **_flat(suite), **controls})
            of = {**who, "suite": name}
            families += [{**of, "family": id, **_flat(one)} for id, one in suite.families.items()]
            cases += [{**of, **_flat(verdict)} for verdict in suite.cases.values()]
            generated += [
                {**of, "family": id, **_flat(tally)}
                for id, tally in (suite.generated | suite.answers).items()
            ]
            requirements += [
                {**of, "requirement": id, "verdict": word.value}
                for id, word in suite.requirements.items()
            ]
            failing: dict[str, tuple[Verdict, ...]] = {}
            if suite.controls:
                failing["controls"] = suite.controls.failures
            for id, tally in (suite.generated | suite.answers).items():
                failing[id] = tally.failures
            failures += [
                {**of, "of": id, **_flat(one)} for id, told in failing.items() for one in told
            ]
            differences += [{**of, **_flat(one, whole=True)} for one in suite.differences]
            if (cut := suite.deliveries) is not None:
                deliveries.append(
                    {
                        **of, "messages": cut.messages, "cuts": sum(cut.fired.values()),
                        "disagreements": len(cut.disagreements),
                        "early": ", ".join(cut.early), "unstable": ", ".join(cut.unstable),
                        **{f"fired.{mode}": number for mode, number in cut.fired.items()},
                    }
                )  # fmt: skip
                disagreements += [{**of, **_flat(one, whole=True)} for one in cut.disagreements]
        for result in server.load:
            load.append({**who, **_flat(result)})
            under = {**who, "profile": result.profile, "engine": result.engine}
            samples += [{**under, **_flat(sample)} for sample in result.samples]
        if server.memory is not None:
            memory.append({**who, **_flat(server.memory)})
            ladder += [{**who, **_flat(rung)} for rung in server.memory.ladder]
        elif server.memory_reason:
            memory.append({**who, "reason": server.memory_reason})
    findings = [
        {**_flat(finding), "details": " / ".join(finding.details),
         "reproducers": "\n".join(finding.reproducers)}
        for finding in found
    ]  # fmt: skip
    environment = [
        {"name": name, "value": value} for name, value in _flat_value(run.environment).items()
    ]
    made = (
        _table("servers", "who was asked", servers),
        _table("conformance", "scores by suite", suites),
        _table("requirements", "rows of the ledger and their verdicts", requirements),
        _table("cases", "designed cases and their verdicts", cases),
        _table("generated", "generated families and checks on every answer", generated),
        _table("families", "published families and what became of their requests", families),
        _table("failures", "the first failures of controls, families and checks", failures),
        _table("differences", "where counts are not the published ones", differences),
        _table("deliveries", "messages cut into pieces", deliveries),
        _table("disagreements", "messages whose answer depends on the cut", disagreements),
        _table("agreement", "who took how much alike, in percent", _agreement(run, evidence)),
        _table("findings", "what a gate sees", findings),
        _table("load", "cost and throughput by profile", load),
        _table("samples", "each window of load", samples),
        _table("ratios", "one server over another, pair by pair", [_flat(p) for p in run.paired]),
        _table("memory", "memory of the process tree, in kB", memory),
        _table("ladder", "memory over connections held", ladder),
        _table("environment", "the machine", environment),
    )
    return {table.name: table for table in made}


def _agreement(run: Run, evidence: Path | None) -> list[dict[str, Value]]:
    """Each two servers once, on designed cases and on published octets."""
    if evidence is None or not evidence.is_file():
        return []
    places = byte_maps.places(loading.load())
    published = [place.key for place in places if place.suite == "seed" and not place.pair]
    with Evidence(evidence, masked=True) as store:
        seen = {
            server.name: byte_maps.look(server, store, places)
            for server in run.servers
            if not server.unavailable
        }
    rows: list[dict[str, Value]] = []
    for of, grid in (
        ("cases", agreement.of_cases(seen)), ("octets", agreement.of_octets(seen, published)),
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


def _table(name: str, title: str, rows: Sequence[Mapping[str, Value]]) -> Table:
    columns = tuple(dict.fromkeys(column for row in rows for column in row))
    return Table(name, title, columns, tuple(tuple(row.get(c) for c in columns) for row in rows))


def choose(known: Mapping[str, Table], names: Iterable[str]) -> list[Table]:
    """The tables named, or all.

    :raises HarnessError: there is none of a name.
    """
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        if name not in known:
            raise HarnessError(f"unknown table {name!r}: known are {', '.join(known)}")
    return [known[name] for name in chosen] or list(known.values())


def folder_of(run: Path, names: Sequence[str], form: str) -> Path | None:
    """The folder that tables go into where none is named; None: they can be printed."""
    printable = form in ("json", "markdown") or (form == "csv" and len(set(names)) == 1)
    return None if printable else run / FOLDER


def printed(
    run: Run,
    found: Sequence[Finding],
    names: Sequence[str],
    form: str,
    *,
    evidence: Path | None = None,
) -> str:
    """The tables named, or all, as one text.

    :raises HarnessError: a form that needs a folder, or several tables as one CSV.
    """
    chosen = choose(tables(run, found, evidence=evidence), names)
    if form == "json":
        return as_json(chosen)
    if form == "markdown":
        return as_markdown(chosen)
    if form == "csv" and len(chosen) == 1:
        return as_csv(chosen[0])
    raise HarnessError(
        f"--{form}: name the folder with --out DIR"
        + (", or one table with --table NAME" if form == "csv" else "")
    )


def export(
    run: Run,
    found: Sequence[Finding],
    names: Sequence[str],
    form: str,
    folder: Path,
    *,
    evidence: Path | None = None,
) -> Iterator[Path]:
    """A file per table into a folder, which is made where it is missing; yields each.

    Parquet has the exchanges, too, where there is evidence.

    :raises HarnessError: no such table, the folder cannot be written, or pyarrow is missing.
    """
    wanted = [name for name in names if name != EXCHANGES]
    known = tables(run, found, evidence=evidence)
    chosen = choose(known, wanted) if wanted or EXCHANGES not in names else []
    if EXCHANGES in names and form != "parquet":
        raise HarnessError(f"the table {EXCHANGES} is for --parquet only")
    suffix = {"markdown": "md"}.get(form, form)
    if form == "parquet":
        _arrow()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in chosen:
            path = folder / f"{table.name}.{suffix}"
            if form == "parquet":
                write_parquet(table, path)
            elif form == "csv":
                path.write_text(as_csv(table), "utf-8", newline="")
            else:
                made = as_json([table]) if form == "json" else as_markdown([table])
                path.write_text(made, "utf-8")
            yield path
        if form == "parquet" and evidence is not None and evidence.is_file():
            if EXCHANGES in names or not names:
                with Evidence(evidence, masked=True) as store:
                    write_exchanges(store, folder / f"{EXCHANGES}.parquet")
                yield folder / f"{EXCHANGES}.parquet"
        elif EXCHANGES in names:
            raise HarnessError(f"{evidence}: no evidence, so no {EXCHANGES}")
    except OSError as error:
        raise HarnessError(f"{folder}: {error.strerror}: name another folder") from None


# --- forms ----------------------------------------------------------------------------------------


def as_json(chosen: Iterable[Table]) -> str:
    """One object: a table's name to its rows, each an object."""
    value = {
        table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        for table in chosen
    }
    return json.dumps(value, indent=1, ensure_ascii=True) + "\n"


def as_csv(table: Table) -> str:
    """RFC 4180; a cell that a spreadsheet would take for a formula is led by an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(table.columns)
    writer.writerows([_cell(value) for value in row] for row in table.rows)
    return valid_unicode(out.getvalue())


def _cell(value: Value) -> Value:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = value.replace("\0", "\\x00")
        return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
    return value


def as_markdown(chosen: Iterable[Table]) -> str:
    """A heading and a table each; numbers to the right."""
    parts = []
    for table in chosen:
        lines = [f"## {table.name}: {table.title}", ""]
        if not table.rows:
            lines += ["nothing", ""]
        else:
            numbers = [
                all(isinstance(row[at], int | float | None) for row in table.rows)
                for at in range(len(table.columns))
            ]
            lines.append(_row(table.columns))
            lines.append(_row(["--:" if number else "---" for number in numbers], plain=True))
            lines += [_row(row) for row in table.rows]
            lines.append("")
        parts.append("\n".join(lines))
    return "\n".join(parts)


def _row(cells: Sequence[Value], *, plain: bool = False) -> str:
    return f"| {' | '.join(str(c) if plain else _text(c) for c in cells)} |"


def _text(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return markdown(value) if isinstance(value, str) else str(value)


def write_parquet(table: Table, path: Path) -> None:
    """One table to one Parquet file.

    :raises HarnessError: pyarrow is not installed.
    """
    arrow, parquet = _arrow()
    columns = {
        name: _column(arrow, [row[at] for row in table.rows])
        for at, name in enumerate(table.columns)
    }
    parquet.write_table(arrow.table(columns), path)


def _column(arrow: Any, values: list[Value]) -> Any:
    """One column in one type: whatever is not all numbers or all truth values is text."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return arrow.array(values, arrow.bool_())
    if known and all(isinstance(value, int) and not isinstance(value, bool) for value in known):
        return arrow.array(values, arrow.int64())
    if known and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in known
    ):
        return arrow.array([v if v is None else float(v) for v in values], arrow.float64())
    texts = [v if v is None else valid_unicode(str(v)) for v in values]
    return arrow.array(texts, arrow.string())


def write_exchanges(evidence: Evidence, path: Path) -> int:
    """Every exchange of a run to one Parquet file, in batches; returns how many.

    :raises HarnessError: pyarrow is not installed.
    """
    arrow, parquet = _arrow()
    kinds = {
        "server": arrow.string(), "case": arrow.string(), "family": arrow.string(),
        "delivery": arrow.string(), "attempt": arrow.int32(), "outcome": arrow.string(),
        "end": arrow.string(), "first_us": arrow.int64(), "end_us": arrow.int64(),
        "sent_octets": arrow.int64(), "sent": arrow.binary(), "received": arrow.binary(),
        "machine_dropped": arrow.bool_(),
    }  # fmt: skip
    wanted = arrow.schema(list(kinds.items()))
    written = 0
    with parquet.ParquetWriter(path, wanted) as writer:
        for batch in _batches(evidence):
            writer.write_table(
                arrow.table(
                    {
                        name: arrow.array(
                            [who if name == "server" else getattr(one, name) for who, one in batch],
                            kind,
                        )
                        for name, kind in kinds.items()
                    }
                )
            )
            written += len(batch)
    return written


def _batches(evidence: Evidence) -> Iterator[list[tuple[str, Any]]]:
    held: list[tuple[str, Any]] = []
    for server in evidence.servers():
        for exchange in evidence.exchanges(server):
            held.append((server, exchange))
            if len(held) == _BATCH:
                yield held
                held = []
    if held:
        yield held


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise HarnessError(
            "Parquet needs pyarrow: pip install 'httpmark[parquet]', or take --csv"
        ) from None
    return pyarrow, pyarrow.parquet
