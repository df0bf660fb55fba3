"""A command under the supervisor, so that it ends when the harness ends (supervisor.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, NamedTuple

from httpmark.harness.model.errors import Unusable

_SUPERVISOR = Path(__file__).resolve().parent / "supervisor.py"


class Command(NamedTuple):
    """A command and where it runs."""

    words: list[str]
    cwd: Path
    env: dict[str, str]
    scratch: Path  # a folder that the supervisor removes where the harness is gone
    grace_s: float = 0.0  # between SIGTERM and SIGKILL
    cpus: frozenset[int] = frozenset()  # empty: not pinned


def supervised(
    command: Command, *, lifeline: int, status: int, log: IO[Any]
) -> subprocess.Popen[bytes]:
    """Run a command under a supervisor, which gets its two ends of the pipes; they are closed here.

    The command ends when the other end of ``lifeline`` is closed, even where Ctrl-C comes before
    this returns. ``status`` gets how it went (supervisor.py).

    :raises Unusable: the supervisor cannot be run.
    """
    cpus = ",".join(map(str, sorted(command.cpus))) or "-"
    try:
        return subprocess.Popen(
            [
                sys.executable, "-I", "-S", str(_SUPERVISOR), str(lifeline), str(status),
                str(command.grace_s), cpus, str(command.scratch), *command.words,
            ],
            cwd=command.cwd, env=command.env, stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, pass_fds=(lifeline, status), start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise Unusable(f"{sys.executable} cannot be run: {error.strerror}") from error
    finally:
        os.close(lifeline)
        os.close(status)
