"""How long a run over many servers still takes, from how long those took that are done."""

from __future__ import annotations

import time
from collections.abc import Callable

_FEWEST = 4  # servers: with fewer, the lines of progress say enough


class Remaining:
    """Estimates what is left of ``total`` servers.

    Those that were done before, in an earlier sitting, take no time and say nothing about the rest.
    """

    def __init__(self, total: int, *, now: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._done = 0
        self._now = now
        self._last = now()
        self._took: list[float] = []

    def after_one(self) -> str | None:
        """What to say after one more server; None where there is nothing to say."""
        now = self._now()
        self._done += 1
        if now - self._last >= 1:
            self._took.append(now - self._last)
        self._last = now
        left = self._total - self._done
        if self._total < _FEWEST or not left or not self._took:
            return None
        mean_s = sum(self._took) / len(self._took)
        return (
            f"{self._done} of {self._total} servers have had the suites; "
            f"{told(mean_s * left)} left for the others, at this pace"
        )


def told(seconds: float) -> str:
    """A duration as one says it: ``about 40 s``, ``about 12 min``, ``about 2.5 h``."""
    if seconds < 90:
        return f"about {max(10, round(seconds, -1)):.0f} s"
    if seconds < 90 * 60:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"
