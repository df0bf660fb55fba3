"""A race whose engine measures what it is told to: no server, no time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import msgspec

from httpmark.harness.load import contestants, placing, races
from httpmark.harness.load.engines import launch
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan, LoadResult

PLAN = LoadPlan(name="p", title="t", why="w", connections=4, depth=2, duration_s=1.0)

NOBODY = 1 << 22  # the kernel gives out smaller numbers: nobody looks for its children


class Up:
    """A server that is up, as a race sees it."""

    address = "127.0.0.1"
    port = 1
    tls_port = None
    cgroup = None

    def __init__(self, name: str) -> None:
        self.name = name

    def pids(self) -> list[int]:
        return [os.getpid()]

    def trees(self) -> list[int]:
        return [NOBODY]

    def alive(self) -> bool:
        return True

    def exit_reason(self) -> str:
        return "it did not end"


class Scripted:
    """An engine that measures what it is told to, in order."""

    name = "scripted"

    def __init__(self, costs: dict[str, list[float]], **changes: object) -> None:
        self.costs = {name: iter(values) for name, values in costs.items()}
        self.changes = changes
        self.up: str = ""
        self.order: list[str] = []
        self.rates: list[float | None] = []
        self.accounted: set[tuple[int, ...]] = set()

    def version(self) -> str:
        return "1"

    def cannot(self, plan: LoadPlan) -> str | None:
        return None

    def cost(self) -> float:
        """CPU ns per request of the next sample of what is up."""
        return next(self.costs[self.up])

    def measure(
        self, plan: LoadPlan, target: launch.Target, *, duration_s: float,
        cpus: frozenset[int] | None,
    ) -> launch.Measured:  # fmt: skip
        self.order.append(self.up)
        self.rates.append(plan.rate)
        self.accounted.add(target.pids)
        cost = self.cost()
        requests = round(1e9 / cost)
        measured = launch.Measured(
            requests=requests, seconds=1.0, errors={}, established=plan.connections,
            server_ns_per_request=cost, client_ns_per_request=30.0, server_on_cpu_ratio=1.0,
            client_on_cpu_ratio=0.1, run_delay_ratio=0.0, littles_law_ratio=1.0,
            latency_us=None, latency_reason="none", histogram=None,
        )  # fmt: skip
        return msgspec.structs.replace(measured, **self.changes.get(self.up, {}))  # type: ignore[arg-type]


def race(
    costs: dict[str, list[float]], *, rounds: int = 3, fails: str = "", **changes: object
) -> tuple[races.Race, Scripted]:
    engine = Scripted(costs, **changes)

    def contestant(name: str) -> contestants.Contestant:
        @contextlib.contextmanager
        def start(plan: LoadPlan, place: placing.Placement) -> Iterator[Up]:
            if name == fails:
                raise Unusable("did not start: no reason")
            engine.up = name
            yield Up(name)

        return contestants.Contestant(name, start, name == "null")

    made = races.Race(
        PLAN, engine, [contestant(name) for name in costs], rounds=rounds, duration_s=1.0, seed=7
    )
    return made, engine


def run(made: races.Race) -> dict[str, LoadResult]:
    list(made.run())
    return made.results()


def fold_of(
    costs: dict[str, list[float]], *, rounds: int = 3, **changes: object
) -> dict[str, LoadResult]:
    """The results of a race with these costs."""
    return run(race(costs, rounds=rounds, fails="", **changes)[0])
