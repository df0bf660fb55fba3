"""What can go wrong outside the server under test, and the exit code that says so."""

from __future__ import annotations

import errno

MAKE_ROOM = "free some space there, or name another place"

# --- what can go wrong, and the exit code that says so ---------------------------------------


class HarnessError(Exception):
    """The user's file or command is wrong: says where, what, and what to do. Exit code 2."""

    exit_code = 2


class Unusable(HarnessError):
    """The environment or the target cannot be used (did not start, not reachable, controls fail).

    Exit code 3.
    """

    exit_code = 3


class NoRoom(Unusable):
    """A file of our own cannot be written: its disk is full, or the system has another reason."""


def not_written(path: object, error: OSError) -> NoRoom:
    """What to say of a file that could not be written."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    mend = f": {MAKE_ROOM}" if is_full else ""
    return NoRoom(f"{path}: {error.strerror}{mend}")


class ServerDied(Unusable):
    """A server did not start or went away: its own fault, told beside its name; others go on."""


class NothingSelected(HarnessError):
    """The selection is empty. Exit code 5."""

    exit_code = 5
