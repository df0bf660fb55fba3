"""What the machine did during a window: CPU time stolen or taken by others, packets lost."""

from __future__ import annotations

import time

import msgspec

from httpmark.harness.load.contestants import Started
from httpmark.harness.servers import cpu_time, network_counters


class MachineUse(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine itself did during a window."""

    steal_ratio: float | None
    retransmit_ratio: float | None
    dropped: dict[str, int]
    strangers_ratio: float | None = None  # of the server's processors, what other programs used


class WindowClocks:
    """The machine's counters as they are now; a call tells what they grew by since.

    :param server: None where it is on another machine.
    :param cpus: the processors that the server was given or may run on; None where that is not
        known.
    :param is_shared: the generator may run on them too, and is not counted as another program.
    """

    def __init__(
        self, server: Started | None, cpus: frozenset[int] | None, *, is_shared: bool = False
    ) -> None:
        self._server, self._cpus, self._is_shared = server, cpus, is_shared
        self._began = time.monotonic_ns()
        self._before = self._not_strangers()
        self._cpu = cpu_time.cpu_clock()
        self._segments = network_counters.segments_sent()
        self._dropped = network_counters.dropped_packets()

    def _not_strangers(self) -> int | None:
        """What others did not use of the server's processors: idle time and its own, ns."""
        if not self._cpus or self._server is None:
            return None
        idle = cpu_time.idle_ns(self._cpus)
        own = None if idle is None else cpu_time.spent_ns(self._server.trees())
        if idle is None or own is None:
            return None
        return idle + own + (cpu_time.own_children_ns() if self._is_shared else 0)

    def _strangers_ratio(self) -> float | None:
        now = self._not_strangers()
        if not self._cpus or now is None or self._before is None:
            return None
        all_of_it = (time.monotonic_ns() - self._began) * len(self._cpus)
        return max(0.0, 1 - (now - self._before) / all_of_it) if all_of_it else None

    def __call__(self) -> MachineUse:
        return MachineUse(
            strangers_ratio=self._strangers_ratio(),
            steal_ratio=cpu_time.steal_ratio(self._cpu, cpu_time.cpu_clock()),
            retransmit_ratio=network_counters.retransmit_ratio(
                self._segments, network_counters.segments_sent()
            ),
            dropped=network_counters.grown(self._dropped, network_counters.dropped_packets()),
        )
