"""The only reader of /proc: its files as text, and which process descends from which. Linux only.

It imports light parts of the standard library and nothing else: the supervisor, which runs without
this package, loads it by its path.
"""

from __future__ import annotations

import contextlib
import enum
import os
from collections.abc import Iterable, Iterator
from io import BufferedReader

ROOT = "/proc"


class Stat(enum.IntEnum):
    """Fields of /proc/PID/stat (proc_pid_stat(5)), counted from the one after the command's name.

    The name may hold spaces and brackets, so counting starts after its last bracket.
    """

    PARENT = 1
    USER_TICKS = 11
    SYSTEM_TICKS = 12
    WAITED_USER_TICKS = 13  # of children that ended and were waited for
    WAITED_SYSTEM_TICKS = 14
    START_TICKS = 19  # since boot


def path(*names: str | int) -> str:
    return "/".join([ROOT, *map(str, names)])


def text(*names: str | int) -> str:
    """A file's text, as ``text(pid, "status")`` or ``text("net", "tcp")``.

    :raises OSError: it is not there (the process ended) or may not be read.
    """
    with open(path(*names), encoding="utf-8", errors="replace") as file:
        return file.read()


def text_if_there(*names: str | int) -> str | None:
    """The same without the space around it; None where it cannot be read."""
    try:
        return text(*names).strip()
    except OSError:
        return None


def lines(*names: str | int) -> Iterator[str]:
    """A file's lines one by one: tables of connections have a hundred thousand.

    :raises OSError: as :func:`text`, when the first line is asked for.
    """
    with open(path(*names), encoding="utf-8", errors="replace") as file:
        yield from file


def opened(*names: str | int) -> BufferedReader:
    """A file opened for its bytes; the caller closes it.

    :raises OSError: as :func:`text`.
    """
    return open(path(*names), "rb")


def write(value: str, *names: str | int) -> None:
    """Write a value to a file, as ``write("5", pid, "clear_refs")``.

    :raises OSError: the process ended, or the file may not be written.
    """
    with open(path(*names), "w", encoding="ascii") as file:
        file.write(value)


def link(*names: str | int) -> str:
    """What a symbolic link leads to.

    :raises OSError: as :func:`text`.
    """
    return os.readlink(path(*names))


def names_in(*names: str | int) -> list[str]:
    """The names in a folder: threads in ``(pid, "task")``, descriptors in ``(pid, "fd")``.

    :raises OSError: as :func:`text`.
    """
    return os.listdir(path(*names))


def names_in_if_there(*names: str | int) -> list[str]:
    """The same; none where the folder cannot be read."""
    try:
        return names_in(*names)
    except OSError:
        return []


def open_files(pid: int) -> Iterator[str]:
    """What the descriptors of a process lead to, as ``socket:[INODE]``.

    :raises OSError: the process ended, or its descriptors may not be seen.
    """
    for name in names_in(pid, "fd"):
        try:
            what = link(pid, "fd", name)
        except OSError:
            continue  # closed meanwhile
        yield what


def process_ids() -> list[int]:
    """The processes that live now and that we may see."""
    return [int(name) for name in names_in() if name.isdigit()]


def stat_fields(pid: int) -> list[str]:
    """The fields of a process's ``stat``, to be looked up by :class:`Stat`.

    :raises OSError: the process ended.
    """
    return text(pid, "stat").rpartition(")")[2].split()


def _parent(pid: int) -> int | None:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(stat_fields(pid)[Stat.PARENT])
    return None


def tree(roots: Iterable[int]) -> list[int]:
    """The processes ``roots`` and all their descendants that live now, in ascending order."""
    queue = [pid for pid in roots if os.path.exists(path(pid))]
    if not queue:
        return []
    children: dict[int, list[int]] = {}
    for pid in process_ids():
        if (parent := _parent(pid)) is not None:
            children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    while queue:
        pid = queue.pop()
        if pid not in found:
            found.add(pid)
            queue += children.get(pid, [])
    return sorted(found)


def descendants(root: int) -> list[int]:
    """The processes below ``root`` that live now, without it, in ascending order."""
    return [pid for pid in tree([root]) if pid != root]


def topmost(pids: Iterable[int]) -> list[int]:
    """Those processes whose parent is none of them: their trees hold the others."""
    known = set(pids)
    parents = {pid: _parent(pid) for pid in sorted(known)}
    return [pid for pid, parent in parents.items() if parent is not None and parent not in known]
