"""`httpmark report`: write the report of a stored run again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from httpmark.harness.command import options, printing


def _formats() -> Iterable[str]:
    from httpmark.harness.command import outputs

    return ("page", "scoreboard", *outputs.FORMATS)


@click.command("report")
@options.run
@click.option(
    "--format",
    "form",
    type=options.ChoiceOf(_formats),
    default="page",
    help="The format: the HTML page, the text of the scoreboard, or one that a CI job reads.",
)
@options.file(
    "--out",
    "out",
    "Write into this file.  [default: RUN/report.html for the page, else print]",
)
@click.option("--json", "as_json", is_flag=True, help="Print every table as JSON.")
def command(folder: Path, form: str, out: Path | None, as_json: bool) -> None:
    """Write the report of a stored run again, in any format.

    RUN is a run folder, or 'latest' for the newest one in httpmark-runs. No server is needed.

    \b
    Examples:
      httpmark report latest
      httpmark report latest --format sarif --out results.sarif
    """
    from httpmark.harness.command import outputs, stored_runs
    from httpmark.harness.model import run_folder

    printing.note(run_folder.without_digests(folder))
    result = run_folder.read(folder)
    if form == "page" and not as_json:
        printing.echo(stored_runs.draw(folder, result, out=out))
        return
    if form == "scoreboard" and not as_json:
        text = outputs.scoreboard_text(folder, result)
    else:
        text = outputs.render("tables" if as_json else form, outputs.stored(folder, result))
    if out is None:
        printing.echo(text, nl=False)
    else:
        outputs.write(out, text)
        printing.echo(out)
