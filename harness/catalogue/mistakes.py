"""Mistakes in scenario files: all of them are collected, and each names file, entry and key."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from httpmark.harness.model.errors import HarnessError

MISTAKES_MAX = 20
"""How many mistakes are listed; the rest are counted."""


class Mistakes(HarnessError):
    """All that is wrong with scenario files; ``lines`` holds one complaint each."""

    def __init__(self, lines: Sequence[str]) -> None:
        rest = len(lines) - MISTAKES_MAX
        more = (f"and {rest} more mistakes",) if rest > 0 else ()
        self.lines = (*lines[:MISTAKES_MAX], *more)
        super().__init__("\n".join(self.lines))


class Collected:
    """Collects mistakes, so that one does not hide the next."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Note a :class:`HarnessError` that is raised inside, and go on after the block."""
        try:
            yield
        except Mistakes as error:
            self.lines += error.lines
        except HarnessError as error:
            self.lines.append(str(error))

    def done(self) -> None:
        """Raise what was noted, each mistake once.

        :raises Mistakes: something was noted.
        """
        if self.lines:
            raise Mistakes(list(dict.fromkeys(self.lines)))
