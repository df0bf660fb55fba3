"""Folders for the time of a command, below the one for temporary files.

Each name says whose it is, by process id and start time, so that what a killed command left is
removed when the next one starts.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from httpmark.harness.servers import proc_files

_NAME = re.compile(r"httpmark-.*-(\d+)-(\d+)-(\d+)-\w+")


@contextlib.contextmanager
def folder(what: str) -> Iterator[Path]:
    """A folder that is removed at the end.

    :param what: goes into its name.
    """
    made = make(what)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def make(what: str) -> Path:
    """A folder that the caller removes.

    :raises OSError: there is no room for it.
    """
    pid = os.getpid()
    owner = f"{_namespace()}-{pid}-{_started(pid)}"
    return Path(tempfile.mkdtemp(prefix=f"httpmark-{what}-{owner}-"))


def sweep() -> list[Path]:
    """Remove what processes left that are no more; the folders that were removed.

    A process of another container may share the folder, but cannot be looked at: what is its own
    stays. So does what belongs to another user.
    """
    removed = []
    own = _namespace()
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            named = _NAME.fullmatch(entry.name)
            if named is None or not entry.is_dir(follow_symlinks=False):
                continue
            namespace, pid, started = map(int, named.groups())
            with contextlib.suppress(OSError):
                is_ours = entry.stat(follow_symlinks=False).st_uid == os.getuid()
                if is_ours and namespace == own and _started(pid) != started:
                    shutil.rmtree(entry.path)
                    removed.append(Path(entry.path))
    return removed


def _remove_own() -> None:
    """At the end of this process: Ctrl-C may have come before who made a folder knew it."""
    owner = f"-{_namespace()}-{os.getpid()}-{_started(os.getpid())}-"
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if owner in entry.name and _NAME.fullmatch(entry.name):
                shutil.rmtree(entry.path, ignore_errors=True)


def _started(pid: int) -> int | None:
    """When a process started, in ticks since boot; None of one that is no more."""
    with contextlib.suppress(OSError):
        return int(proc_files.stat_fields(pid)[proc_files.Stat.START_TICKS])
    return None


def _namespace() -> int:
    """The number of the namespace that process ids belong to."""
    return os.stat(proc_files.path("self", "ns", "pid")).st_ino


# After servers are stopped, which still use theirs: what is registered last is called first.
atexit.register(_remove_own)
