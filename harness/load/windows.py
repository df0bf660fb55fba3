"""One window of one server: started, loaded and stopped, here or elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from httpmark.harness.load import refusals, sampling
from httpmark.harness.load.contestants import Contestant, Started
from httpmark.harness.load.engines.launch import Engine, Target
from httpmark.harness.load.placing import Placement, placement
from httpmark.harness.load.sampling import Taken
from httpmark.harness.load.window_clocks import WindowClocks
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.servers import cpu_time, memory_use


class NotLoaded(Unusable):
    """A server that lives and could not be loaded; the statuses that came instead of a 2xx."""

    def __init__(self, told: str, statuses: Mapping[str, int]) -> None:
        super().__init__(told)
        self.statuses = dict(statuses)


class Taker(Protocol):
    """Who takes windows."""

    def __call__(
        self, contestant: Contestant, plan: LoadPlan, engine: Engine, duration_s: float
    ) -> Taken:
        """Start a server and measure one window.

        :raises NotLoaded: it lives and could not be loaded.
        :raises Unusable: it did not start, or died.
        """
        ...


def taken_here(contestant: Contestant, plan: LoadPlan, engine: Engine, duration_s: float) -> Taken:
    """A window on this machine (:class:`Taker`)."""
    place = placement(plan)
    with contestant.start(plan, place) as server:
        try:
            found = _measured(contestant, server, plan, engine, place, duration_s)
        except Unusable as error:
            if not server.alive():
                raise Unusable(server.exit_reason()) from None
            statuses = error.statuses if isinstance(error, refusals.Refused) else {}
            raise NotLoaded(str(error), statuses) from None
        if not server.alive():
            raise Unusable(server.exit_reason())
        memory = memory_use.memory(server.pids(), cgroup=server.cgroup)
        return msgspec.structs.replace(found, memory=memory)


def _measured(
    contestant: Contestant,
    server: Started,
    plan: LoadPlan,
    engine: Engine,
    place: Placement,
    duration_s: float,
) -> Taken:
    """One window of a server that is up.

    :raises Unusable: the engine gave no result, or the server refused what it was asked.
    """
    trees = tuple(server.trees())
    target = Target(server.address, server.port, trees, server.tls_port, contestant.path)
    refusals.ask_first(plan, target)
    runs_already = contestant.runs_already
    clocks = WindowClocks(
        server,
        cpu_time.affinity(server.pids()) if runs_already else place.server,
        is_shared=runs_already,
    )
    measured = engine.measure(plan, target, duration_s=duration_s, cpus=place.client)
    refusals.reject(plan, target, measured)
    machine = clocks()
    return Taken(
        measured=sampling.excused(measured, machine),
        machine=machine,
        is_pinned=place.server is not None,
    )
