"""Whether a server has room for others while cases wait: plain requests are asked beside them."""

from __future__ import annotations

import threading

import msgspec

from httpmark.harness.catalogue.case_builder import patience_ms
from httpmark.harness.firing.targets import LastAsked, Target, accepts

_ANSWER_MS = 1000  # to answer a plain request
_EVERY_S = 0.2
_ANSWERED_MIN = 4  # fewer show nothing


class RoomForOthers:
    """Asks plain requests, each on a connection of its own, until the block ends.

    Where each of them is answered at once, nobody who waits meanwhile holds the server up: each
    waits because of itself.
    """

    def __init__(self, target: Target) -> None:
        # What another thread notes as asked last is not for this one.
        self._target = msgspec.structs.replace(target, last_asked=LastAsked())
        self._answer_s = patience_ms(_ANSWER_MS, target.facts()) / 1000
        self._is_over = threading.Event()
        self._answered = 0
        self._is_held_up = False
        self._thread = threading.Thread(target=self._ask, name="room-for-others", daemon=True)

    def __enter__(self) -> RoomForOthers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def is_shown(self) -> bool:
        """Whether there was room all the time; to be read when the block has ended."""
        return not self._is_held_up and self._answered >= _ANSWERED_MIN

    def _ask(self) -> None:
        while not self._is_over.wait(_EVERY_S):
            if not accepts(self._target, deadline_s=self._answer_s):
                self._is_held_up = True
                return
            self._answered += 1
