"""`httpmark findings`: what a run over many servers found, by server and by rule."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from httpmark.harness.command import options, printing
from httpmark.harness.command.printing import print_json
from httpmark.harness.command.run_argument import RunFolder
from httpmark.harness.model.errors import HarnessError

if TYPE_CHECKING:
    from httpmark.harness.report.field_findings import Field


@click.command("findings")
@options.run
@click.option(
    "--with",
    "others",
    metavar="RUN",
    multiple=True,
    type=RunFolder(),
    help="Add the servers of this run of the same suites; they stand in the place of those of the "
    "same name. Repeatable.",
)
@options.file(
    "--page",
    "page",
    "Put the tables into this Markdown page, in the place of those that it has, and their data "
    "beside it, as PAGE with .json. What PAGE_readings.toml calls doubtful does not count.",
)
@options.json_flag
def command(folder: Path, others: tuple[Path, ...], page: Path | None, as_json: bool) -> None:
    """Show what a run over many servers found.

    Prints three tables as Markdown: each server with the requirements that it breaks, the worst
    first; each rule with the servers that break it; and each message that servers read in two ways,
    so that one of them before another may let a request through. RUN is a run folder, or 'latest'.

    \b
    Examples:
      httpmark findings latest
      httpmark findings latest --page docs/findings.md
      httpmark findings field --with latest --page docs/findings.md
    """
    from httpmark.harness.report import field_findings

    found = _found((folder, *others))
    if page is not None:
        found = field_findings.without_doubtful(found, doubtful(page))
        try:
            text = field_findings.placed(page.read_text("utf-8"), found)
            page.with_suffix(".json").write_bytes(msgspec.json.encode(found) + b"\n")
            page.write_text(text, "utf-8")
        except OSError as error:
            raise HarnessError(f"{page}: {error.strerror}") from None
        except ValueError as error:
            raise HarnessError(f"{page}: {error}") from None
        printing.echo(page)
    elif as_json:
        print_json(found)
    else:
        printing.echo(field_findings.markdown(found), nl=False)


def _found(folders: tuple[Path, ...]) -> Field:
    """What one or several runs found together.

    :raises HarnessError: they are not of the same suites.
    """
    from httpmark.harness.catalogue import loading
    from httpmark.harness.command import outputs
    from httpmark.harness.gate import broken_requirements
    from httpmark.harness.judging.evidence import Evidence
    from httpmark.harness.model import run_folder
    from httpmark.harness.report import field_findings, field_splits

    known = loading.load()
    stored = [outputs.stored(one, run_folder.read(one)) for one in folders]
    asked = [(sorted(one.run.suites), one.run.quick) for one in stored]
    for other, suites in zip(folders, asked, strict=True):
        if suites != asked[0]:
            raise HarnessError(f"{other}: not a run of the suites of {folders[0]}")
    run, owner = field_findings.together([one.run for one in stored])
    summaries = [
        summary
        for number, one in enumerate(stored)
        for summary in broken_requirements.summaries(one.run, one.found, known)
        if owner[summary.server] == number
    ]
    with contextlib.ExitStack() as files:
        evidence = [
            files.enter_context(Evidence(one.evidence, masked=True))
            if one.evidence is not None and one.evidence.is_file()
            else None
            for one in stored
        ]
        read = {
            name: told
            for name in field_findings.judged(run)
            if (told := evidence[owner[name]]) is not None
        }
        splits = field_splits.splits(known, read)
    return field_findings.field(run, summaries, splits)


def doubtful(page: Path) -> dict[str, tuple[str, ...]]:
    """By requirement, the servers of which the readings beside a page say that its failure is
    doubtful; nothing where there are no readings.

    :raises HarnessError: the file cannot be read.
    """
    from httpmark.harness.catalogue import toml_files
    from httpmark.harness.report.field_findings import Readings

    file = page.with_name(f"{page.stem}_readings.toml")
    if not file.exists():
        return {}
    tables = toml_files.parsed_toml(file, str(file))
    try:
        read = msgspec.convert(tables, Readings)
    except msgspec.ValidationError as error:
        raise HarnessError(f"{file}: {error}") from None
    return {one.requirement: one.doubtful for one in read.reading}
