"""`httpmark export`: the tables of a stored run, for other tools."""

from __future__ import annotations

from pathlib import Path

import click

from httpmark.harness.command import options, printing


@click.command("export")
@options.run
@click.option(
    "--table",
    "names",
    multiple=True,
    metavar="NAME",
    help="Export this table. Repeatable.  [default: all tables]",
)
@click.option(
    "--markdown", "form", flag_value="markdown", default=True, show_default=False,
    help="Write Markdown. This is the default.",
)  # fmt: skip
@click.option("--csv", "form", flag_value="csv", help="Write CSV, a file per table.")
@click.option("--json", "form", flag_value="json", help="Write JSON; a table is a list of objects.")
@click.option(
    "--parquet",
    "form",
    flag_value="parquet",
    help="Write Parquet, a file per table; also of every exchange. Needs pyarrow.",
)
@options.file(
    "--out",
    "out",
    "Write a file per table into this folder.  [default: print Markdown, JSON and a single CSV "
    "table, else RUN/tables]",
)
def command(folder: Path, names: tuple[str, ...], form: str, out: Path | None) -> None:
    """Export the tables of a stored run.

    RUN is a run folder, or 'latest' for the newest one in httpmark-runs. No server is needed.

    \b
    Examples:
      httpmark export latest --csv
      httpmark export latest --json --table findings
    """
    from httpmark.harness.command import outputs
    from httpmark.harness.model import run_folder
    from httpmark.harness.report import export_formats

    stored = outputs.stored(folder, run_folder.read(folder))
    evidence = folder / run_folder.EVIDENCE
    out = out or export_formats.folder_of(folder, names, form)
    if out is None:
        text = export_formats.printed(stored.run, stored.found, names, form, evidence=evidence)
        printing.echo(text, nl=False)
        return
    for path in export_formats.export(
        stored.run, stored.found, names, form, out, evidence=evidence
    ):
        printing.echo(path)
