"""How long work tells its caller how far it is, and how it is interrupted."""

from __future__ import annotations

from typing import Protocol

SIGNALLED = 128  # and the signal's number is the exit code of who was interrupted


class Interrupted(BaseException):
    """SIGINT or SIGTERM; ``code`` is the exit code, 130 or 143."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    @property
    def signal(self) -> int:
        return self.code - SIGNALLED


class Events(Protocol):
    """How a run speaks: lines, and tasks that advance."""

    def say(self, line: str) -> None: ...

    def task(self, name: str, total: int) -> None: ...

    def advance(self, name: str, by: int) -> None: ...

    def done(self, name: str, result: str) -> None: ...
