"""The progress of the cuts of a suite's messages, as a task of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable

from httpmark.harness.model.progress import Events
from httpmark.harness.model.verdicts import Deliveries


class CutProgress:
    """Tells how many cuts were sent. Without cuts it says nothing."""

    def __init__(self, events: Events, task: str) -> None:
        self._events = events
        self._task = f"{task}, in pieces"
        self._begun = False

    def begin(self, total: int) -> Callable[[int], None]:
        """So many cuts will be sent; returns what is called after each."""
        self._begun = True
        self._events.task(self._task, total)
        return functools.partial(self._events.advance, self._task)

    def done(self, told: Deliveries | None) -> None:
        """Say how many messages were answered differently."""
        if self._begun and told is not None:
            cuts, differing = sum(told.fired.values()), len(told.disagreements)
            shown = (
                f"{differing} of {told.messages} messages were answered differently in some of "
                f"{cuts} deliveries"
            )
            self._events.done(self._task, shown)
