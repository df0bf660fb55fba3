"""How long work tells its caller how far it is, and how it is interrupted."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Protocol

SIGNALLED = 128  # and the signal's number is the exit code of who was interrupted


class Interrupted(BaseException):
    """SIGINT or SIGTERM.

    :param code: the exit code, 130 or 143.
    :param told: what became of the results; empty: a run folder holds them, or nothing does.
    """

    def __init__(self, code: int, told: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.told = told

    @property
    def signal(self) -> int:
        return self.code - SIGNALLED


class _Held:
    """Interruptions that wait for the end of a block."""

    def __init__(self) -> None:
        self.blocks = 0  # that are open, one in another
        self.waiting: Interrupted | None = None


_held = _Held()


def interrupt(code: int) -> None:
    """Interrupt the main thread, now or at the end of what is :func:`undisturbed`.

    :raises Interrupted: with this code.
    """
    stop = Interrupted(code)
    if _held.blocks:
        _held.waiting = stop
        return
    raise stop


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold an interruption off until the block has ended: what it writes is whole.

    Only the main thread is interrupted, so in another one this does nothing.

    :raises Interrupted: at the end of the block, where one came meanwhile.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _held.blocks += 1
    try:
        yield
    finally:
        _held.blocks -= 1
        if not _held.blocks and (stop := _held.waiting) is not None:
            _held.waiting = None
            raise stop


class Events(Protocol):
    """How a run speaks: lines, and tasks that advance."""

    def say(self, line: str) -> None: ...

    def task(self, name: str, total: int) -> None: ...

    def advance(self, name: str, by: int) -> None: ...

    def done(self, name: str, result: str) -> None: ...
