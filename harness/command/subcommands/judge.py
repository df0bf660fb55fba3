"""`httpmark judge`: judge a stored run again."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from httpmark.harness.command import options, printing
from httpmark.harness.command.printing import print_json


@click.command("judge")
@options.run
@click.option(
    "--second-opinion",
    is_flag=True,
    help="List the answers that the parser h11 reads differently, and change nothing.",
)
@click.option(
    "--from-evidence",
    is_flag=True,
    help="Make the result anew of the evidence alone, where it is missing or damaged. What was "
    "measured under load is lost.",
)
@options.json_flag
def command(folder: Path, second_opinion: bool, from_evidence: bool, as_json: bool) -> None:
    """Judge a stored run again from its evidence.

    RUN is a run folder, or 'latest' for the newest one in httpmark-runs. Its result and its report
    are replaced. No server is needed.
    """
    if second_opinion:
        _compare_with_h11(folder, as_json=as_json)
        return
    from httpmark.harness.command import outputs, stored_runs
    from httpmark.harness.model import run_folder

    printing.note(run_folder.without_digests(folder))
    # A folder without a log, as of an older version, is left without one.
    has_log = (folder / run_folder.LOG).is_file()
    with run_folder.held(folder) if has_log else contextlib.nullcontext():
        result = stored_runs.rejudge(folder, from_evidence=from_evidence)
        run_folder.write(result, folder)
        stored_runs.draw(folder, result)
    if as_json:
        print_json(result)
    else:
        printing.echo(outputs.scoreboard_text(folder, result))


def _compare_with_h11(folder: Path, *, as_json: bool) -> None:
    from httpmark.harness.http import printable
    from httpmark.harness.judging import second_reader
    from httpmark.harness.judging.evidence import Evidence
    from httpmark.harness.model import run_folder

    with Evidence(folder / run_folder.EVIDENCE, masked=True) as evidence:
        found = second_reader.disagreements(evidence)
    if as_json:
        print_json({"disagreements": found})
        return
    for one in found:
        printing.echo(f"{one.exchanges:8,} {one.server}: ours {one.ours}; h11 {one.h11}")
        printing.echo(f"{'':9}{printable.escaped(one.received[:120])}")
    printing.echo(f"Our reader and h11 differ in {len(found)} kinds of answers")
