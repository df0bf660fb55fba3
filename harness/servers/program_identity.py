"""Which program a process runs."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from httpmark.harness.servers import proc_files


def program(pids: Iterable[int]) -> tuple[tuple[str, ...], str | None] | None:
    """The command line of the first process that lives, and the SHA-256 of what it executes.

    None where none lives or may be seen. The home folder of the user is written as ``~``.
    """
    home = os.path.expanduser("~")
    for pid in pids:
        with contextlib.suppress(OSError):
            words = proc_files.text(pid, "cmdline")
            if not words:
                continue  # a zombie has none
            told = (word.replace(home, "~") if home != "/" else word for word in words.split("\0"))
            digest = None
            with contextlib.suppress(OSError), proc_files.opened(pid, "exe") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            return tuple(told)[:-1], digest
    return None


def digest(path: str | None) -> str | None:
    """The SHA-256 of a file; None where there is none, or it may not be read."""
    with contextlib.suppress(OSError):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else None
    return None
