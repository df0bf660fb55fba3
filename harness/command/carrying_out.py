"""What `run` and `bench` share: one run, its scoreboard and its exit code."""

from __future__ import annotations

from shlex import quote

from httpmark.harness.command import printing, progress_display, run_options, run_session
from httpmark.harness.command.printing import print_json
from httpmark.harness.load import refusals
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.progress import Interrupted
from httpmark.harness.model.run import ServerResult
from httpmark.harness.report import scoreboard


def carry_out(options: run_options.Options, *, as_json: bool) -> None:
    """Carry a run out and print its result.

    :raises Unusable: a server that was named could not be used to the end, or its load measured
        nothing.
    """
    with progress_display.display() as events:
        runner = run_session.Runner(options, events)
        try:
            result = runner.run()
        except Interrupted:
            if options.asked is not None:
                events.say(f"to carry it on: httpmark run --resume {quote(str(runner.folder))}")
            raise
    if as_json:
        print_json(result)
    else:
        printing.echo(scoreboard.scoreboard(result))
        printing.echo(f"\nreport: {runner.folder / run_folder.REPORT}")
    wanted = {*options.servers, *(target.name for target in options.targets)}
    named = [server for server in result.servers if server.name in wanted]
    why = [f"{server.name}: {told}" for server in named if (told := _unusable(server))]
    if why:
        raise Unusable(why[0] + (f" (and {len(why) - 1} more)" if why[1:] else ""))


def _unusable(server: ServerResult) -> str | None:
    """Why a server could not be used to the end."""
    loads = [told for load in server.load if (told := refusals.of_result(load))]
    return server.unavailable or server.died or next(iter(loads), None)
