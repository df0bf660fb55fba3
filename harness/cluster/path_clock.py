"""The path from a generator to the server: its round trip before a load, and under it."""

from __future__ import annotations

import statistics
import time

from httpmark.harness.load.sampling import Path
from httpmark.harness.servers import sockets

_TRIPS = 5  # before the load
_EVERY_S = 0.05  # under load
_TRIPS_MAX = 40


class PathClock:
    """Asks for connections, whose handshakes kernels carry out however busy the server is."""

    def __init__(self, address: str, port: int) -> None:
        self._to = (address, port)
        found = [sockets.handshake_s(*self._to) for _ in range(_TRIPS)]
        self._idle_s = min((one for one in found if one is not None), default=None)
        self._loaded_s: list[float] = []
        self._asked = 0
        self._next = 0.0

    def look(self, now: float) -> None:
        """Measure once more under load, where it is time to.

        :param now: of a monotonic clock, seconds.
        """
        if now < self._next or self._asked == _TRIPS_MAX:
            return
        self._asked += 1
        took = sockets.handshake_s(*self._to)
        if took is not None:
            self._loaded_s.append(took)
        self._next = time.monotonic() + _EVERY_S

    def told(self) -> Path | None:
        """What was found; None where nothing answered before the load."""
        if self._idle_s is None:
            return None
        loaded = statistics.median(self._loaded_s) * 1e6 if self._loaded_s else None
        return Path(idle_us=self._idle_s * 1e6, loaded_us=loaded)
