"""A plan to samples: fresh server per sample, interleaved blocks, the null server in each block.

A *sample* is one window against a freshly started server. A *block* holds one sample of every
server in random order, the null server among them, so that drift of the machine falls on all
alike and each server has a null beside it to be compared with (load.md 4.3).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from httpmark.harness import resources, statistics
from httpmark.harness.engines import Engine, Measured, Target
from httpmark.harness.model import (
    Bottleneck,
    Cost,
    LoadPlan,
    LoadResult,
    LoadSample,
    Memory,
    Unusable,
)

REDOS_MAX = 2


class Placement(msgspec.Struct, frozen=True):
    """Which processors the server and the generator run on; None where there is only one."""

    server: frozenset[int] | None
    client: frozenset[int] | None


def placement(plan: LoadPlan) -> Placement:
    """Disjoint processors for both ends, the server's first; unpinned where that cannot be."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < plan.workers + plan.threads:
        return Placement(None, None)
    return Placement(frozenset(usable[: plan.workers]), frozenset(usable[-plan.threads :]))


class Started(Protocol):
    """A server that answers."""

    @property
    def address(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def cgroup(self) -> str | None: ...

    def pids(self) -> list[int]: ...

    def alive(self) -> bool: ...

    def exit_reason(self) -> str: ...


class Contestant(msgspec.Struct, frozen=True):
    """A server in the race, and how to start it afresh for one sample."""

    name: str
    start: Callable[[LoadPlan, Placement], AbstractContextManager[Started]]
    is_null: bool = False


class Race:
    """All samples of one profile over several servers. Results so far are always to be had."""

    def __init__(
        self,
        plan: LoadPlan,
        engine: Engine,
        contestants: Sequence[Contestant],
        *,
        rounds: int,
        duration_s: float,
        seed: int,
    ) -> None:
        self.plan = plan
        self.engine = engine
        self.contestants = list(contestants)
        self.rounds = rounds
        self.duration_s = duration_s
        self.seed = seed
        self.samples: dict[str, list[LoadSample]] = {c.name: [] for c in contestants}
        self.memory: dict[str, list[Memory]] = {c.name: [] for c in contestants}
        self.redone: dict[str, int] = {c.name: 0 for c in contestants}
        self.died: dict[str, str] = {}

    def run(self) -> Iterator[tuple[str, int]]:
        """Take the samples; yields (server, round) after each, so that a caller shows progress."""
        order = random.Random(f"{self.seed}/{self.plan.name}")
        for block in range(1, self.rounds + 1):
            names = [c for c in self.contestants if c.name not in self.died]
            order.shuffle(names)
            taken: list[tuple[Contestant, int, Measured, float | None]] = []
            for position, contestant in enumerate(names):
                measured, steal = self._sample(contestant)
                if measured is not None:
                    taken.append((contestant, position, measured, steal))
                yield contestant.name, block
            null = next((m for c, _, m, _ in taken if c.is_null), None)
            for contestant, position, measured, steal in taken:
                self.samples[contestant.name].append(
                    self._judged(contestant, measured, steal, null, block, position)
                )

    def _sample(self, contestant: Contestant) -> tuple[Measured | None, float | None]:
        """One window, taken again while it starves, at most :data:`REDOS_MAX` times more."""
        place = placement(self.plan)
        measured: Measured | None = None
        steal: float | None = None
        for attempt in range(1 + REDOS_MAX):
            if attempt:
                self.redone[contestant.name] += 1
            try:
                with contestant.start(self.plan, place) as server:
                    pids = tuple(server.pids())
                    clock = resources.cpu_clock()
                    measured = self.engine.measure(
                        self.plan,
                        Target(server.address, server.port, pids),
                        duration_s=self.duration_s,
                        cpus=place.client,
                    )
                    steal = resources.steal_ratio(clock, resources.cpu_clock())
                    if not server.alive():
                        raise Unusable(server.exit_reason())
                    memory = resources.memory(server.pids(), cgroup=server.cgroup)
                    if memory is not None:
                        held = msgspec.structs.replace(
                            memory, connections_held=measured.established or 0
                        )
                        self.memory[contestant.name].append(held)
            except Unusable as error:
                self.died[contestant.name] = str(error)
                return None, None
            if not _starved(measured, steal):
                break
        return measured, steal

    def _judged(
        self,
        contestant: Contestant,
        measured: Measured,
        steal: float | None,
        null: Measured | None,
        block: int,
        position: int,
    ) -> LoadSample:
        rate = measured.requests / measured.seconds if measured.seconds else 0.0
        bottleneck, why = statistics.bottleneck(
            statistics.Signs(
                errors=sum(measured.errors.values()),
                connections_wanted=self.plan.connections,
                connections_established=measured.established,
                requests_per_second=rate,
                null_requests_per_second=null.requests / null.seconds if null else None,
                server_on_cpu_ratio=measured.server_on_cpu_ratio,
                client_on_cpu_ratio=measured.client_on_cpu_ratio,
                run_delay_ratio=measured.run_delay_ratio,
                steal_ratio=steal,
                littles_law_ratio=measured.littles_law_ratio,
                server_cpu_demand=self._demand(measured, rate),
                is_null=contestant.is_null,
            )
        )
        return LoadSample(
            round=block,
            order=position,
            requests=measured.requests,
            seconds=measured.seconds,
            requests_per_second=rate,
            cpu_ns_per_request=Cost(measured.server_ns_per_request, measured.client_ns_per_request),
            littles_law_ratio=measured.littles_law_ratio,
            bottleneck=bottleneck,
            bottleneck_why=why,
            errors=measured.errors,
            server_on_cpu_ratio=measured.server_on_cpu_ratio,
            client_on_cpu_ratio=measured.client_on_cpu_ratio,
            run_delay_ratio=measured.run_delay_ratio,
            latency_us=measured.latency_us,
            latency_reason=measured.latency_reason,
            histogram=measured.histogram,
            redo=self.redone[contestant.name] > 0,
        )

    def _demand(self, measured: Measured, rate: float) -> float | None:
        """Cost times throughput as a share of the server's processors; None where it has all."""
        cost = measured.server_ns_per_request
        if cost is None or placement(self.plan).server is None:
            return None
        return cost * rate / 1e9 / self.plan.workers

    def results(self) -> dict[str, LoadResult]:
        """Every server's samples folded, with ranks of cost where intervals separate."""
        null = next((c.name for c in self.contestants if c.is_null), None)
        return {
            name: fold(
                self.plan,
                self.engine.name,
                samples,
                null_samples=self.samples[null] if null and null != name else [],
                redone=self.redone[name],
                seed=self.seed,
                died=self.died.get(name),
            )
            for name, samples in self.samples.items()
            if samples or name in self.died
        }


def _starved(measured: Measured, steal: float | None) -> bool:
    return (
        measured.run_delay_ratio is not None and measured.run_delay_ratio > statistics.RUN_DELAY_MAX
    ) or (steal is not None and steal > statistics.STEAL_MAX)


def _median_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def fold(
    plan: LoadPlan,
    engine: str,
    samples: Sequence[LoadSample],
    *,
    null_samples: Sequence[LoadSample] = (),
    redone: int = 0,
    seed: int = 0,
    died: str | None = None,
) -> LoadResult:
    """Samples of one server as one result: medians, the interval of cost, what may be ranked."""
    sound = [sample for sample in samples if not sample.errors]
    costs = [
        sample.cpu_ns_per_request.server
        for sample in sound
        if sample.cpu_ns_per_request.server is not None
    ]
    interval = statistics.bootstrap(costs, seed=seed) if costs else None
    bottleneck, why = _common(samples)
    errors: dict[str, int] = {}
    for sample in samples:
        for name, count in sample.errors.items():
            errors[name] = errors.get(name, 0) + count
    null_cost = {s.round: s.cpu_ns_per_request.server for s in null_samples if not s.errors}
    pairs = [
        (cost, base)
        for sample in sound
        if (cost := sample.cpu_ns_per_request.server) is not None
        and (base := null_cost.get(sample.round)) is not None
    ]
    ranked = bool(samples) and bottleneck is Bottleneck.SERVER
    middle = sorted(sound, key=lambda sample: sample.requests_per_second)
    typical = middle[len(middle) // 2] if middle else None
    return LoadResult(
        profile=plan.name,
        connections=plan.connections,
        depth=plan.depth,
        engine=engine,
        requests_per_second=_median_of([sample.requests_per_second for sample in samples]),
        cpu_ns_per_request=Cost(
            _median_of(costs), _median_of([s.cpu_ns_per_request.client for s in sound])
        ),
        bottleneck=bottleneck,
        bottleneck_why=why,
        ranked=ranked,
        ranked_reason="the server was the bottleneck in every sample"
        if ranked
        else f"a lower bound: bottleneck {bottleneck} ({why})",
        littles_law_ratio=_median_of([sample.littles_law_ratio for sample in samples]),
        interval_95=interval,
        interval_reason=None
        if interval
        else f"{len(costs)} sound samples; an interval needs {statistics.SAMPLES_FOR_INTERVAL_MIN}",
        rounds=len(samples),
        redone=redone,
        errors=errors,
        histogram=typical.histogram if typical else None,
        histogram_reason=None
        if typical and typical.histogram
        else (typical.latency_reason if typical else "no sample without errors"),
        cost_over_null=statistics.paired_ratio([a for a, _ in pairs], [b for _, b in pairs])
        if pairs
        else None,
        samples=tuple(samples),
        reason=died,
    )


def _common(samples: Sequence[LoadSample]) -> tuple[Bottleneck, str]:
    """The verdict all samples share; else the worst for a claim, with how many said so."""
    if not samples:
        return Bottleneck.UNKNOWN, "no sample"
    verdicts = [sample.bottleneck for sample in samples]
    if len(set(verdicts)) == 1:
        return verdicts[0], samples[len(samples) // 2].bottleneck_why
    for verdict in (
        Bottleneck.BROKEN,
        Bottleneck.STARVED,
        Bottleneck.CLIENT,
        Bottleneck.NETWORK,
        Bottleneck.NONE,
        Bottleneck.UNKNOWN,
    ):
        if verdict in verdicts:
            sample = samples[verdicts.index(verdict)]
            return (
                verdict,
                f"{verdicts.count(verdict)} of {len(verdicts)} samples: {sample.bottleneck_why}",
            )
    raise AssertionError(verdicts)


def with_ranks(
    results: dict[str, LoadResult], *, excluded: dict[str, str]
) -> dict[str, LoadResult]:
    """Rank cost over servers of one profile.

    :param excluded: servers that may not be ranked, with the reason (a control, not scored).
    """
    intervals = {
        name: result.interval_95
        for name, result in results.items()
        if name not in excluded and not result.errors
    }
    ranks = statistics.ranks(intervals)
    ranked = {}
    for name, result in results.items():
        rank = ranks.get(name)
        ranked[name] = msgspec.structs.replace(
            result,
            cost_rank=rank,
            cost_rank_reason=None
            if rank is not None
            else excluded.get(name)
            or ("answers were wrong under load" if result.errors else result.interval_reason),
        )
    return ranked
