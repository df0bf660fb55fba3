"""`httpmark forwarding`: what reaches the origin behind a reverse proxy."""

from __future__ import annotations

from pathlib import Path

import click

from httpmark.harness.command import options, printing
from httpmark.harness.command.printing import print_json
from httpmark.harness.model.errors import HarnessError, Unusable


@click.command("forwarding")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="CASE",
    help="Send this case alone, and print the bytes on both sides. Repeatable.",
)
@options.file("--page", "page", "Write the tables into this file, as Markdown.")
@options.file(
    "--out", "out", "Write forwarding.json into this folder, and the bytes that show each finding."
)
@options.json_flag
def command(
    names: tuple[str, ...],
    cases: tuple[str, ...],
    page: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Show what reaches the origin behind reverse proxies.

    Starts each server NAME as a reverse proxy in front of the reference server, sends it the
    messages of 'rfc' and 'smuggling' one at a time, and judges the bytes that reach the origin.
    Without a NAME it takes all servers whose server.toml has a table [proxy].

    \b
    Exit codes:
      0  the survey was made, whatever it found
      2  usage
      3  no server can be used, or one that you named
      5  nothing was selected

    \b
    Examples:
      httpmark forwarding nginx haproxy
      httpmark forwarding --out forwarding --page forwarding.md
      httpmark forwarding nginx --case forwarded-connection-names-a-field
    """
    from httpmark.harness.command import forwarding_run, painting, progress_display
    from httpmark.harness.report import forwarding_tables

    servers = forwarding_run.chosen(names)
    with progress_display.display() as events:
        found = forwarding_run.surveyed(servers, cases, events=events)
    if out is not None:
        forwarding_run.write(found, out)
    if page is not None:
        try:
            page.write_text(forwarding_tables.page(found.survey), "utf-8")
        except OSError as error:
            raise HarnessError(f"{page}: {error.strerror}") from None
    if as_json:
        print_json(found.survey)
    elif cases:
        for name, heard in found.heard.items():
            for one in heard:
                printing.echo("\n".join((*forwarding_tables.both_sides(name, one), "")))
    else:
        printing.echo("\n".join(forwarding_tables.lines(found.survey, painting.columns())))
    absent = [one for one in found.survey.front_ends if one.unavailable is not None]
    if absent and (names or len(absent) == len(servers)):
        raise Unusable(f"{absent[0].name}: {absent[0].unavailable}")
