"""Ends a server that takes so much memory that the machine would be lost.

Its death is told as what it is: the server is ended by httpmark, and how much it held is said.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable

from httpmark.harness.servers import proc_files

_LOOK_S = 1.0
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
_GIB_KB = 1 << 20
SHARE = 0.5  # of the machine's memory


def bound_kb() -> int:
    """What all processes of one server may hold, in kB: half of the machine's memory."""
    pages = os.sysconf("SC_PHYS_PAGES")
    return int(pages * _PAGE_KB * SHARE)


def held_kb(pids: Iterable[int]) -> int:
    """What processes hold in memory now, in kB, without pages of files: these are shared."""
    pages = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError):
            _, resident, of_files = proc_files.text(pid, "statm").split()[:3]
            pages += int(resident) - int(of_files)
    return pages * _PAGE_KB


class MemoryGuard:
    """Looks after one server until it is stopped. ``told`` is why it ended the server, or empty.

    :param pids: its processes that live now.
    :param most_kb: what they may hold together, in kB; None is :func:`bound_kb`.
    """

    def __init__(self, pids: Callable[[], list[int]], *, most_kb: int | None = None) -> None:
        self.told = ""
        self._pids = pids
        self._most_kb = bound_kb() if most_kb is None else most_kb
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="memory guard")
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_S):
            pids = self._pids()
            held = held_kb(pids)
            if held <= self._most_kb:
                continue
            self.told = (
                f"ended by httpmark: it held {_gib(held)} of memory, and one server may hold "
                f"{_gib(self._most_kb)}"
            )
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            return


def _gib(kilobytes: int) -> str:
    return f"{kilobytes / _GIB_KB:.1f} GiB"
