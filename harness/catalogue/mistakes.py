"""Mistakes in scenario files: all of them are collected, and each names file, entry and key."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from httpmark.harness.model.errors import HarnessError

MISTAKES_MAX = 20
"""More than that nobody mends in one go."""


class Mistakes(HarnessError):
    """All that is wrong with scenario files; ``lines`` holds one complaint each."""

    def __init__(self, lines: Sequence[str]) -> None:
        rest = len(lines) - MISTAKES_MAX
        more = (f"and {rest} more mistakes",) if rest > 0 else ()
        self.lines = (*lines[:MISTAKES_MAX], *more)
        super().__init__("\n".join(self.lines))


class Collected:
    """Collects complaints, so that one mistake does not hide the next."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        try:
            yield
        except Mistakes as error:
            self.lines += error.lines
        except HarnessError as error:
            self.lines.append(str(error))

    def done(self) -> None:
        """Pass on what was noted.

        :raises Mistakes: something was.
        """
        if self.lines:
            raise Mistakes(list(dict.fromkeys(self.lines)))
