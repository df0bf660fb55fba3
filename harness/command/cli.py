"""The entry point: the `httpmark` command, its exit codes, and what a user reads when it fails.

Exit codes (docs/contract.md): 0 gates passed, 1 a gate failed, 2 usage, 3 environment or target
unusable, 4 inconclusive, 5 nothing selected, 130 and 143 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import click

from httpmark.harness.catalogue.mistakes import Mistakes
from httpmark.harness.command import error_trace, known_commands, printing
from httpmark.harness.http import masking
from httpmark.harness.http.printable import one_line
from httpmark.harness.model import progress
from httpmark.harness.model.errors import HarnessError


class _Subcommands(click.Group):
    """The commands of :mod:`known_commands`; only the one that runs is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return known_commands.names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return known_commands.load(cmd_name) if cmd_name in known_commands.names() else None


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from httpmark.harness.servers import machine

        printing.echo(f"httpmark, version {machine.version()}")
        context.exit()


@click.group(
    cls=_Subcommands,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def httpmark() -> None:
    """Test HTTP/1.1 servers: do they follow the RFCs, and how fast are they?"""


def _interrupted(number: int, _: FrameType | None) -> NoReturn:
    # What follows is cleaning up, which a second signal must not interrupt.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise progress.Interrupted(progress.SIGNALLED + number)


def _complain(text: str) -> None:
    """One line on standard error, without what a terminal would obey: servers have a say in it."""
    printing.echo(f"httpmark: {' '.join(one_line(masking.text(text)).split())}", err=True)


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f"; see {context.command_path} --help" if context else ""
    return error.format_message().strip().removesuffix(".") + hint


def _unsupported(system: str) -> str | None:
    """Why nothing can run on a system, in the words of ``sys.platform``; None where it can."""
    if system == "linux":
        return None
    return f"it runs on Linux only, and this is {system}; use a Linux machine, a container or WSL 2"


def main() -> None:
    """Run the command line of this process, and exit."""
    if (why := _unsupported(sys.platform)) is not None:
        _complain(why)
        raise SystemExit(3)
    signal.signal(signal.SIGINT, _interrupted)
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        httpmark(prog_name="httpmark", standalone_mode=False)
        code = 0
    except progress.Interrupted as stop:
        _complain("interrupted; the results until then are kept")
        code = stop.code
    except HarnessError as error:
        for line in error.lines if isinstance(error, Mistakes) else (str(error),):
            _complain(line)
        code = error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        printing.echo(error.format_message())
        code = 2
    except click.ClickException as error:
        _complain(_usage(error))
        code = 2
    except click.Abort:
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception:
        # The one boundary: the harness itself is wrong. The trace goes into a file.
        where = error_trace.internal_error(None)
        _complain(f"internal error in httpmark; {where}. Please report it.")
        code = 3
    raise SystemExit(code)
