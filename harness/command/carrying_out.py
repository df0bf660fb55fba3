"""What `run` and `bench` share: one run, its scoreboard and its exit code."""

from __future__ import annotations

import click

from httpmark.harness.command import progress_display, run_options, run_session
from httpmark.harness.command.printing import print_json
from httpmark.harness.model import run_folder
from httpmark.harness.report import scoreboard


def carry_out(options: run_options.Options, *, as_json: bool) -> None:
    """Carry a run out and print its result.

    :raises SystemExit: with 3, if a server that was named could not be used to the end.
    """
    with progress_display.display() as events:
        runner = run_session.Runner(options, events)
        result = runner.run()
    if as_json:
        print_json(result)
    else:
        click.echo(scoreboard.scoreboard(result))
        click.echo(f"\nreport: {runner.folder / run_folder.REPORT}")
    wanted = {*options.servers, *(target.name for target in options.targets)}
    named = [server for server in result.servers if server.name in wanted]
    has_no_load = any(load.reason for server in named for load in server.load)
    if has_no_load or any(server.unavailable or server.died for server in named):
        raise SystemExit(3)
