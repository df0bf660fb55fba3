"""`httpmark findings`: what a run over many servers found, by server and by rule."""

from __future__ import annotations

from pathlib import Path

import click

from httpmark.harness.command import options, printing
from httpmark.harness.command.printing import print_json
from httpmark.harness.model.errors import HarnessError


@click.command("findings")
@options.run
@options.file(
    "--page",
    "page",
    "Put the tables into this Markdown page, in the place of those that it has, and their data "
    "beside it, as PAGE with .json.",
)
@options.json_flag
def command(folder: Path, page: Path | None, as_json: bool) -> None:
    """Show what a run over many servers found.

    Prints three tables as Markdown: each server with the requirements that it breaks, the worst
    first; each rule with the servers that break it; and each message that servers read in two ways,
    so that one of them before another may let a request through. RUN is a run folder, or 'latest'.

    \b
    Examples:
      httpmark findings latest
      httpmark findings latest --page docs/findings.md
    """
    import msgspec

    from httpmark.harness.catalogue import loading
    from httpmark.harness.command import outputs
    from httpmark.harness.gate import broken_requirements
    from httpmark.harness.judging.evidence import Evidence
    from httpmark.harness.judging.message_readings import Split
    from httpmark.harness.model import run_folder
    from httpmark.harness.report import field_findings, field_splits

    stored = outputs.stored(folder, run_folder.read(folder))
    known = loading.load()
    summaries = broken_requirements.summaries(stored.run, stored.found, known)
    splits: tuple[Split, ...] = ()
    if stored.evidence is not None and stored.evidence.is_file():
        with Evidence(stored.evidence, masked=True) as evidence:
            splits = field_splits.splits(known, evidence, field_findings.judged(stored.run))
    found = field_findings.field(stored.run, summaries, splits)
    if page is not None:
        try:
            text = field_findings.placed(page.read_text("utf-8"), found)
            page.with_suffix(".json").write_bytes(
                msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"
            )
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
