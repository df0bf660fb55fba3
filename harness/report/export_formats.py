"""The tables of a run as Markdown, CSV, JSON or Parquet, as one text or as files in a folder."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from httpmark.harness.gate.findings import Finding
from httpmark.harness.http.printable import markdown, valid_unicode
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.run import Run
from httpmark.harness.report.export_tables import Table, Value, tables

EXCHANGES = "exchanges"
"""The table that only Parquet can hold: every exchange of the evidence."""

FOLDER = "tables"
"""Where tables go that cannot be printed, in the run folder, where no other is named."""

_BATCH = 20_000


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
            raise HarnessError(
                f"{evidence}: no evidence in this run, so there are no {EXCHANGES} to export"
            )
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
            lines += ["(no rows)", ""]
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
            "Parquet needs pyarrow: pip install 'httpmark[parquet]', or use --csv"
        ) from None
    return pyarrow, pyarrow.parquet
