"""How long a server goes on doing what a crowd of connections made it do."""

from __future__ import annotations

import time

from httpmark.harness.catalogue.case_builder import patience_ms
from httpmark.harness.firing.targets import Target, asked_at_once
from httpmark.harness.model.exchanges import End, Outcome

_ANSWER_MS = 1000
_KEPT_MS = 100  # after its answer
_KEPT_TIMES = 3
_WAIT_S = 20.0  # a server whose threads are all taken may free them only by its timeouts


class Aftermath:
    """The time in which a server still closes connections because a crowd was there.

    It is over when a plain connection is kept a few times running. A server that kept none before
    the crowd came is not waited for.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._kept_before = False

    def look_before(self) -> None:
        """See whether plain connections are kept; to be called before the crowd comes."""
        self._kept_before = self._keeps() or self._keeps()

    def wait(self) -> None:
        """Wait until it is over, but for a while at most."""
        kept, end_s = 0, time.monotonic() + _WAIT_S
        while self._kept_before and kept < _KEPT_TIMES:
            kept = kept + 1 if self._keeps() else 0
            if time.monotonic() >= end_s:
                self._kept_before = False  # nor will it be waited for again

    def _keeps(self) -> bool:
        wait_ms = patience_ms(_ANSWER_MS, self._target.facts())
        [one] = asked_at_once(self._target, 1, wait_ms, settle_ms=_KEPT_MS)
        return one.outcome is Outcome.ANSWERED and one.end is End.OPEN
