"""The entry point: the `httpmark` command, its exit codes, and what a user reads when it fails.

Exit codes (docs/contract.md): 0 gates passed, 1 a gate failed, 2 usage, 3 environment or target
unusable, 4 inconclusive, 5 nothing selected, 130 and 143 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

import click

from httpmark.harness.catalogue.mistakes import Mistakes
from httpmark.harness.command import error_trace, known_commands, printing
from httpmark.harness.http import masking
from httpmark.harness.http.printable import one_line
from httpmark.harness.model import progress, run_folder
from httpmark.harness.model.errors import HarnessError

_AGAIN_S = 0.01  # until an interruption comes again that was lost


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
        printing.echo(f"engines of httpmark-server: {machine.server_engines() or 'not known'}")
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
    from httpmark.harness.servers import scratch_folders

    scratch_folders.sweep()


def _ignore_signals() -> None:
    """What follows is cleaning up, which nothing must interrupt."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)


def _interrupted(number: int, frame: FrameType | None) -> None:
    _ignore_signals()
    _interrupt(progress.SIGNALLED + number, frame)


def _interrupt(code: int, frame: FrameType | None) -> None:
    """Interrupt what a frame does; later, where it is the hook that itself lets no error out."""
    while frame is not None:
        if frame.f_code is _interrupt_again.__code__:
            _interrupt_later(code)
            return
        frame = frame.f_back
    progress.interrupt(code)


def _interrupt_later(code: int) -> None:
    signal.signal(signal.SIGALRM, lambda _, frame: _interrupt(code, frame))
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


def _interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """An interruption that came where Python lets no error out, as in a destructor, comes again."""
    stop = lost.exc_value
    if isinstance(stop, progress.Interrupted):
        _interrupt_later(stop.code)
    else:
        sys.__unraisablehook__(lost)


def _interruption_behind(error: BaseException | None) -> progress.Interrupted | None:
    """The interruption that an error was made of: Python turns one that comes while a class is
    made into a RuntimeError (``__set_name__``)."""
    while error is not None and not isinstance(error, progress.Interrupted):
        error = error.__cause__ or error.__context__
    return error


def _complain(text: str) -> None:
    """One line on standard error, without what a terminal would obey: servers have a say in it."""
    printing.echo(f"httpmark: {' '.join(one_line(masking.text(text)).split())}", err=True)


def _kept() -> str:
    path = run_folder.last_written()
    return "no run folder was written" if path is None else f"the results until then are in {path}"


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
    sys.unraisablehook = _interrupt_again
    try:
        signal.signal(signal.SIGINT, _interrupted)
        signal.signal(signal.SIGTERM, _interrupted)
        code = _carried_out()
        _ignore_signals()
    except progress.Interrupted as stop:
        run_folder.discard_unused()
        _complain(f"interrupted; {stop.told or _kept()}")
        code = stop.code
    raise SystemExit(code)


def _carried_out() -> int | str | None:
    """Run the command line; the exit code. What is wrong is told.

    :raises Interrupted: by a signal.
    """
    try:
        httpmark(prog_name="httpmark", standalone_mode=False)
    except SystemExit as ended:
        return ended.code
    except HarnessError as error:
        run_folder.discard_unused()
        for line in error.lines if isinstance(error, Mistakes) else (str(error),):
            _complain(line)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        printing.echo(error.format_message())
        return 2
    except click.ClickException as error:
        _complain(_usage(error))
        return 2
    except click.Abort:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        if (stop := _interruption_behind(error)) is not None:
            raise stop from None
        # The one boundary: the harness itself is wrong. The trace goes into a file.
        where = error_trace.internal_error(None)
        _complain(f"internal error in httpmark; {where}. Please report it.")
        return 3
    return 0
