"""The progress of what is asked again, as a task of its own: it may take longer than the rest."""

from __future__ import annotations

from collections.abc import Callable

from httpmark.harness.model.progress import Events


class AgainProgress:
    """Counts the cases that are asked again, round by round. Without any it says nothing."""

    def __init__(self, events: Events, task: str) -> None:
        self._events = events
        self._task = f"{task}, asked again"
        self._sent = 0
        self._begun = False

    def begin(self, total: int) -> Callable[[int], None]:
        """So many cases will be asked again; returns what counts them."""
        if total:
            self._begun = True
            self._events.task(self._task, total)
        return self._count

    def _count(self, number: int) -> None:
        self._sent += number
        if self._begun:
            self._events.advance(self._task, number)

    def done(self) -> None:
        """Say how many requests were sent again."""
        if self._begun:
            self._begun = False
            self._events.done(self._task, f"{self._sent:,} request{'' if self._sent == 1 else 's'}")
