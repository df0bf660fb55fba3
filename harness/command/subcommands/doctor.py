"""`httpmark doctor`: what this machine can measure."""

from __future__ import annotations

import click

from httpmark.harness.command import options, printing
from httpmark.harness.command.printing import print_json


@click.command("doctor")
@options.json_flag
def command(as_json: bool) -> None:
    """Show what this machine can measure and what it lacks.

    Each line about something that is missing ends with the command that mends it.
    """
    from httpmark.harness.command import doctor

    found = doctor.doctor()
    if as_json:
        print_json({"binaries": doctor.executables(), "checks": found})
        return
    printing.echo("\n".join(doctor.lines(found)))
