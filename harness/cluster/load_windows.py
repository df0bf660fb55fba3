"""Windows of load on a cluster: one server, several generators, one start, one sample."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from httpmark.harness.cluster import server_task
from httpmark.harness.cluster.connecting import Cluster
from httpmark.harness.cluster.load_crew import Roster
from httpmark.harness.cluster.load_turn import Ask, GeneratorsLost, Turn, Waiting
from httpmark.harness.cluster.server_task import Identity
from httpmark.harness.load import bottlenecks
from httpmark.harness.load.contestants import Contestant
from httpmark.harness.load.engines.launch import Engine
from httpmark.harness.load.engines.native import Native
from httpmark.harness.load.sampling import GeneratorWindow, Taken
from httpmark.harness.load.windows import NotLoaded
from httpmark.harness.model.load import LoadPlan

# Of the window: begun further apart than this, the generators did not share it.
START_SPREAD_MAX = 0.05
# At the p99: one of several generators that was so late did not keep its part of the rate.
LAG_BROKEN_US = 10_000.0


class LoadCluster:
    """Takes the windows of a race on a cluster (:class:`httpmark.harness.load.windows.Taker`)."""

    def __init__(
        self,
        cluster: Cluster,
        run: str,
        *,
        say: Callable[[str], None],
        remember: Callable[[str, Identity], None],
    ) -> None:
        """:param say: is told lines of progress.
        :param remember: is told what each server says of itself.
        :raises Unusable: the cluster cannot carry a load."""
        self.roster = Roster(cluster, say)
        self.count = len(self.roster.generators())  # how many take part
        self.runtimes: dict[str, str] = {}  # by server
        self._waiting = Waiting(cluster, f"httpmark-load-{run}", say)
        self._run = run
        self._say = say
        self._remember = remember
        self._windows = 0

    def prepare(self, server: str, runtime: str) -> None:
        """Build a server on the host where it will run.

        :raises Unusable: it cannot be used there.
        """
        self.runtimes[server] = self._waiting.result(
            server_task.prepare, server, runtime, self._waiting.topic, of=self.roster.server
        )

    def __call__(
        self, contestant: Contestant, plan: LoadPlan, engine: Engine, duration_s: float
    ) -> Taken:
        """Take a window; one that a generator broke is taken again without it."""
        without: set[str] = set()
        trouble = ""
        redone = 0
        while True:
            crew = self.roster.crew(plan, self.count, without)
            if crew is None:
                raise NotLoaded(f"no generator is left: {trouble}", {})
            self._windows += 1
            ask = Ask(
                key=f"{self._run}/{self._windows}",
                run=self._run,
                server=contestant.name,
                runtime=self.runtimes[contestant.name],
                path=contestant.path,
                plan=plan,
                duration_s=duration_s,
                seed=(engine.seed if isinstance(engine, Native) else 1) + 1000 * self._windows,
            )
            try:
                taken, identity = Turn(self._waiting, crew, ask).take()
            except GeneratorsLost as lost:
                self.roster.dead |= lost.why.keys()
                trouble = _told(lost.why)
                redone += 1
                self._say(f"{contestant.name}: {trouble}; the sample is taken again without it")
                continue
            self._remember(contestant.name, identity)
            why = troubled(taken.generators, duration_s, taken.clocks_known_to_us or 0.0)
            taken = msgspec.structs.replace(taken, redone=redone)
            if not why:
                return taken
            without |= why.keys()
            left = self.roster.crew(plan, self.count, without)
            if left is None:
                broken = msgspec.structs.replace(taken.measured, broken=_told(why))
                return msgspec.structs.replace(taken, measured=broken)
            redone += 1
            self._say(f"{contestant.name}: {_told(why)}; the sample is taken again without it")


def troubled(
    generators: tuple[GeneratorWindow, ...], duration_s: float, known_to_us: float
) -> dict[str, str]:
    """The generators for which a sample does not count, by name, and why."""
    found = {}
    first_us = min((one.start_late_us for one in generators), default=0.0)
    for one in generators:
        late_us = one.start_late_us - first_us + (2 * known_to_us if len(generators) > 1 else 0)
        delay, lag = one.measured.client_run_delay_ratio, one.measured.lag_us
        steal = one.machine.steal_ratio
        others = [other for other in generators if other is not one]
        is_alone = bool(others) and not any(other.measured.errors for other in others)
        if is_alone and one.measured.errors.get("timeout", 0) >= one.connections:
            found[one.name] = (
                f"was cut off: none of its {one.connections} connections got an answer any more, "
                "and all of the others did"
            )
        elif delay is not None and delay > bottlenecks.RUN_DELAY_MAX:
            found[one.name] = f"starved: it waited for a CPU {delay:.0%} of the time"
        elif steal is not None and steal > bottlenecks.STEAL_MAX:
            found[one.name] = f"starved: the hypervisor of its host took {steal:.0%} of the CPU"
        elif late_us > START_SPREAD_MAX * duration_s * 1e6:
            found[one.name] = f"lagged: it began up to {late_us / 1000:.0f} ms after the first one"
        elif lag is not None and lag["p99"] > LAG_BROKEN_US:
            found[one.name] = f"lagged: it was late by {lag['p99'] / 1000:.0f} ms (p99)"
    return found


def _told(why: dict[str, str]) -> str:
    return "; ".join(f"generator {name} {what}" for name, what in sorted(why.items()))
