"""A plan to samples: fresh server per sample, interleaved blocks, the null server in each block.

A *sample* is one window against a freshly started server. A *block* holds one sample of every
server in random order, the null server among them, so that drift of the machine falls on all
alike and each server has a null beside it to be compared with (load.md 4.3).
"""

from __future__ import annotations

import datetime
import ipaddress
import math
import os
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from httpmark.harness.load import statistics
from httpmark.harness.load.engines.launch import Engine, Measured, Target
from httpmark.harness.load.engines.native import Native
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import (
    Bottleneck,
    Cost,
    LoadMode,
    LoadPlan,
    LoadResult,
    LoadSample,
    PairedRatio,
)
from httpmark.harness.model.memory import Memory
from httpmark.harness.servers import cpu_time, memory_use, network_counters

REDOS_MAX = 2
# So many samples one behind the other that starved to the end: taking again does not help here.
FUTILE_MAX = 3
# Errors that a lack of CPU explains; any other is the server's, however long anybody waited.
_OF_TIME = frozenset(("connect", "timeout"))
# Above it an open loop's latencies hold too much of the generator's own (reference-server.md 4).
LAG_P99_US_MAX = 100.0


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


def null_cannot(plan: LoadPlan) -> str | None:
    """What of a plan the null server cannot serve, in words; None where it serves all of it."""
    if any(request.chunked or request.method == "HEAD" for request in plan.requests):
        return "it knows no HEAD and no chunks"
    return None


def scaled(plan: LoadPlan, room: dict[str, int], *, cpus: int) -> tuple[LoadPlan, str | None]:
    """A plan that fits this machine, and in words what was cut and why; None where nothing was.

    :param room: connections by what limits them (:func:`open_connections.connection_room`).
    :param cpus: processors that both ends share.
    """
    cuts = []
    wanted = max((plan.connections, *plan.ladder))
    sources = 1
    if plan.bind:
        sources = max(1, ipaddress.ip_network(plan.bind, strict=False).num_addresses - 2)
    limits = {**room, "ports": room.get("ports", wanted) * sources}
    name, most = min(limits.items(), key=lambda limit: limit[1])
    if wanted > most:
        cuts.append(f"{most:,} instead of {wanted:,} connections: {_LIMITS[name]}")
        plan = msgspec.structs.replace(
            plan,
            connections=min(plan.connections, most),
            ladder=_lowered(plan.ladder, most),
            quick_ladder=_lowered(plan.quick_ladder, most),
        )
    asked = plan.workers + plan.threads
    if asked > max(cpus, 2):
        workers = max(1, round(cpus * plan.workers / asked))
        threads = max(1, cpus - workers)
        cuts.append(
            f"{workers} + {threads} threads instead of {plan.workers} + {plan.threads}: "
            f"{cpus} processors for both ends"
        )
        plan = msgspec.structs.replace(plan, workers=workers, threads=threads)
    return plan, "; ".join(cuts) or None


_LIMITS = {
    "descriptors": "the hard limit of descriptors of a process (ulimit -Hn)",
    "ports": "net.ipv4.ip_local_port_range from one source address",
    "connection tracking": "room in net.netfilter.nf_conntrack_max",
    "memory": "memory that is available",
}


def _lowered(ladder: tuple[int, ...], most: int) -> tuple[int, ...]:
    """The rungs that fit; where fewer than two do, all of them in proportion."""
    fits = tuple(rung for rung in ladder if rung <= most)
    if len(fits) >= 2 or not ladder:
        return fits
    return tuple(max(1, rung * most // ladder[-1]) for rung in ladder)


class _Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine itself did during a window."""

    steal_ratio: float | None
    retransmit_ratio: float | None
    dropped: dict[str, int]
    strangers_ratio: float | None = None  # of the server's processors, what others than it took


class _Clocks:
    """Read the machine's counters now, and what they grew by when called.

    :param cpus: the processors that the server was given, or may run on; None where that is not
        known.
    :param is_shared: the generator may run on them, too, and is no stranger.
    """

    def __init__(
        self, server: Started, cpus: frozenset[int] | None, *, is_shared: bool = False
    ) -> None:
        self._server, self._cpus, self._is_shared = server, cpus, is_shared
        self._began = time.monotonic_ns()
        self._before = self._not_strangers()
        self._cpu = cpu_time.cpu_clock()
        self._segments = network_counters.segments_sent()
        self._dropped = network_counters.dropped_packets()

    def _not_strangers(self) -> int | None:
        """What strangers did not take of the server's processors: idle time, and its own."""
        if not self._cpus:
            return None
        idle, own = cpu_time.idle_ns(self._cpus), cpu_time.spent_ns(self._server.trees())
        if idle is None or own is None:
            return None
        return idle + own + (cpu_time.own_children_ns() if self._is_shared else 0)

    def _strangers_ratio(self) -> float | None:
        now = self._not_strangers()
        if not self._cpus or now is None or self._before is None:
            return None
        all_of_it = (time.monotonic_ns() - self._began) * len(self._cpus)
        return max(0.0, 1 - (now - self._before) / all_of_it) if all_of_it else None

    def __call__(self) -> _Machine:
        return _Machine(
            strangers_ratio=self._strangers_ratio(),
            steal_ratio=cpu_time.steal_ratio(self._cpu, cpu_time.cpu_clock()),
            retransmit_ratio=network_counters.retransmit_ratio(
                self._segments, network_counters.segments_sent()
            ),
            dropped=network_counters.grown(self._dropped, network_counters.dropped_packets()),
        )


class Started(Protocol):
    """A server that answers."""

    @property
    def address(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def cgroup(self) -> str | None: ...

    def pids(self) -> list[int]: ...

    def trees(self) -> list[int]: ...

    def alive(self) -> bool: ...

    def exit_reason(self) -> str: ...


class Contestant(msgspec.Struct, frozen=True):
    """A server in the race, and how to start it afresh for one sample."""

    name: str
    start: Callable[[LoadPlan, Placement], AbstractContextManager[Started]]
    is_null: bool = False
    tls_port: int | None = None
    path: str | None = None  # instead of the plan's
    standing: bool = False  # it runs already: on which processors, and how many, is not ours to say


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
        one_rate: bool = False,
    ) -> None:
        """:param one_rate: a share of capacity is that of the slowest but null, for all alike: what
        one look for it was off by would else be in each of a server's samples."""
        self.plan = plan
        self.one_rate = one_rate
        self.engine = engine
        self.contestants = list(contestants)
        self.rounds = rounds
        self.duration_s = duration_s
        self.seed = seed
        if isinstance(engine, Native):
            engine.seed = seed
        self.samples: dict[str, list[LoadSample]] = {c.name: [] for c in contestants}
        self.memory: dict[str, list[Memory]] = {c.name: [] for c in contestants}
        self.redone: dict[str, int] = {c.name: 0 for c in contestants}
        self.died: dict[str, str] = {}
        self.failed: dict[str, str] = {}  # it lives, yet this load could not be laid on it
        self.scaled: str | None = None
        self.blocks = 0
        self._order = random.Random(f"{seed}/{plan.name}")
        self._rates: dict[str, float] = {}
        self._doubts: dict[str, str] = {}  # why a server's rate is a share of less than it can do
        self._futile = 0

    @property
    def steps(self) -> int:
        """How many times :meth:`run` yields when nobody dies."""
        finding = self.plan.rate_of_capacity is not None
        return (self.rounds + finding) * len(self.contestants)

    def run(self) -> Iterator[tuple[str, int]]:
        """Take the samples; yields (server, round) after each, so that a caller shows progress.

        Called again, it takes as many blocks more, in an order that goes on from the last.
        """
        if self.plan.rate_of_capacity is not None and not self._rates:
            yield from self._find_rates(self.plan.rate_of_capacity)
        for _ in range(self.rounds):
            self.blocks += 1
            block = self.blocks
            names = [c for c in self.contestants if c.name not in self.died | self.failed]
            self._order.shuffle(names)
            taken: list[tuple[Contestant, int, Measured, _Machine, bool, str]] = []
            for position, contestant in enumerate(names):
                redone = self.redone[contestant.name]
                started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
                plan = msgspec.structs.replace(
                    self.plan, rate=self._rates.get(contestant.name, self.plan.rate)
                )
                found = self._sample(contestant, plan, self.engine)
                if found is not None:
                    redo = self.redone[contestant.name] > redone
                    taken.append((contestant, position, *found, redo, started))
                yield contestant.name, block
            null = next((m for c, _, m, *_ in taken if c.is_null), None)
            judged = [
                (contestant, redo, started,
                 self._judged(contestant, measured, machine, null, block, position))
                for contestant, position, measured, machine, redo, started in taken
            ]  # fmt: skip
            has_null = any(c.is_null and sample.is_sound for c, _, _, sample in judged)
            for contestant, redo, started, sample in judged:
                beside = sample.null_cpu_ns_per_request if has_null else None
                self.samples[contestant.name].append(
                    msgspec.structs.replace(
                        sample, redo=redo, started=started, null_cpu_ns_per_request=beside
                    )
                )

    def _find_rates(self, share: float) -> Iterator[tuple[str, int]]:
        """What each server reaches in a closed loop, once; an open loop then offers a share."""
        closed = msgspec.structs.replace(
            self.plan, mode=LoadMode.CLOSED, rate_of_capacity=None, rate=None
        )
        for contestant in self.contestants:
            name, found = contestant.name, self._sample(contestant, closed, Native())
            if found is not None and (wrong := found[0].errors):
                self.failed[name] = f"no capacity to take a share of: {_told(wrong)}"
            elif found is not None and found[0].requests and found[0].seconds:
                self._rates[name] = share * found[0].requests / found[0].seconds
                if doubt := _doubt(*found):
                    self._doubts[name] = doubt
            elif found is not None:
                self.failed[name] = "no capacity to take a share of: nothing answered"
            yield name, 0
        judged = [self._rates[c.name] for c in self.contestants
                  if c.name in self._rates and not c.is_null]  # fmt: skip
        if self.one_rate and judged:
            self._rates = dict.fromkeys(self._rates, min(judged))

    def _sample(
        self, contestant: Contestant, plan: LoadPlan, engine: Engine
    ) -> tuple[Measured, _Machine] | None:
        """One window, taken again while it starves, at most :data:`REDOS_MAX` times more.

        A wrong answer is not taken again: no lack of CPU makes one.

        Of what was taken again only the last is kept, and it starved itself where all did. A
        machine on which :data:`FUTILE_MAX` in a row did is not asked again until one does not.
        """
        place = placement(self.plan)
        found: tuple[Measured, _Machine] | None = None
        for attempt in range(1 + (REDOS_MAX if self._futile < FUTILE_MAX else 0)):
            if attempt:
                self.redone[contestant.name] += 1
            try:
                with contestant.start(plan, place) as server:
                    trees = tuple(server.trees())
                    clocks = _Clocks(
                        server,
                        cpu_time.affinity(server.pids()) if contestant.standing else place.server,
                        is_shared=contestant.standing,
                    )
                    target = Target(
                        server.address, server.port, trees, contestant.tls_port, contestant.path
                    )
                    try:
                        measured = engine.measure(
                            plan, target, duration_s=self.duration_s, cpus=place.client
                        )
                    except Unusable as error:
                        if not server.alive():
                            raise Unusable(server.exit_reason()) from None
                        self.failed[contestant.name] = str(error)
                        return None
                    found = measured, clocks()
                    if not server.alive():
                        raise Unusable(server.exit_reason())
                    memory = memory_use.memory(server.pids(), cgroup=server.cgroup)
                    if memory is not None:
                        held = msgspec.structs.replace(
                            memory, connections_held=measured.established or 0
                        )
                        self.memory[contestant.name].append(held)
            except Unusable as error:
                self.died[contestant.name] = str(error)
                return None
            if not _starved(*found):
                self._futile = 0
                return found
            if found[0].errors.keys() - _OF_TIME:
                return found
        self._futile += 1
        return found

    def _judged(
        self,
        contestant: Contestant,
        measured: Measured,
        machine: _Machine,
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
                null_requests_per_second=null.requests / null.seconds
                if null and null.seconds
                else None,
                server_on_cpu_ratio=measured.server_on_cpu_ratio,
                client_on_cpu_ratio=measured.client_on_cpu_ratio,
                run_delay_ratio=_run_delay(measured, machine),
                steal_ratio=machine.steal_ratio,
                retransmit_ratio=machine.retransmit_ratio,
                # Only where connections are opened in the window is a lost one in its figures.
                lost_connects=machine.dropped if self.plan.mode is LoadMode.CHURN else {},
                littles_law_ratio=measured.littles_law_ratio,
                server_cpu_demand=None if contestant.standing else self._demand(measured, rate),
                is_null=contestant.is_null,
                saturated=measured.saturated,
                unanswered_ratio=None
                if measured.unanswered is None
                else measured.unanswered / max(1, measured.requests + measured.unanswered),
            )
        )
        if bottleneck is Bottleneck.BROKEN and measured.errors:
            why = _told(measured.errors)
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
            run_delay_ratio=_run_delay(measured, machine),
            latency_us=measured.latency_us,
            latency_reason=measured.latency_reason,
            histogram=measured.histogram,
            rate_offered=measured.rate_offered,
            service_us=measured.service_us,
            lag_us=measured.lag_us,
            saturated=measured.saturated,
            unanswered=measured.unanswered,
            null_cpu_ns_per_request=null.server_ns_per_request
            if null and not null.errors and not contestant.is_null
            else None,
            connections_per_second=measured.connections_per_second,
            connect_us=measured.connect_us,
            handshake_us=measured.handshake_us,
            tls=measured.tls,
            context_switches_per_request=Cost(
                measured.server_switches_per_request, measured.client_switches_per_request
            ),
            instructions_per_request=Cost(
                measured.server_instructions_per_request, measured.client_instructions_per_request
            ),
            steal_ratio=machine.steal_ratio,
            retransmit_ratio=machine.retransmit_ratio,
            machine_dropped=machine.dropped,
            cost_reason=measured.cost_reason,
        )

    def _demand(self, measured: Measured, rate: float) -> float | None:
        """Cost times throughput as a share of the server's processors; None where it has all.

        An open loop counts what was due in the window, and the cost of answering it after: there
        the product says nothing.
        """
        cost = measured.server_ns_per_request
        if cost is None or self.plan.mode is LoadMode.OPEN or placement(self.plan).server is None:
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
                died=self.died.get(name) or self.failed.get(name),
                scaled=self.scaled,
                doubt=self._doubts.get(name),
            )
            for name, samples in self.samples.items()
            if samples or name in self.died | self.failed
        }


def _run_delay(measured: Measured, machine: _Machine) -> float | None:
    """How long an end waited for a processor that somebody else had, as a share of the window.

    A server of more threads than processors also waits for itself, which is no lack of the
    machine: its wait counts up to what others than it took of its processors.
    """
    delay, strangers = measured.run_delay_ratio, machine.strangers_ratio
    if delay is None or strangers is None:
        return delay
    return max(min(delay, strangers), measured.client_run_delay_ratio or 0.0)


def _doubt(measured: Measured, machine: _Machine) -> str | None:
    """Why what a server reached in a closed loop may be less than it can; None where it is not."""
    busy = measured.server_on_cpu_ratio
    if _starved(measured, machine):
        why = "it starved"
    elif busy is None:
        why = "its CPU could not be seen"
    elif busy < statistics.SERVER_BUSY_MIN:
        why = f"it was on CPU {busy:.0%}"
    else:
        return None
    return f"the rate is a share of a lower bound: {why} while its capacity was looked for"


def _starved(measured: Measured, machine: _Machine) -> bool:
    delay, steal = _run_delay(measured, machine), machine.steal_ratio
    return (delay is not None and delay > statistics.RUN_DELAY_MAX) or (
        steal is not None and steal > statistics.STEAL_MAX
    )


def _told(errors: Mapping[str, int]) -> str:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(errors.items()))
    return f"errors under load: {kinds}"


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
    scaled: str | None = None,
    doubt: str | None = None,
) -> LoadResult:
    """Samples of one server as one result: medians, the interval of cost, what may be ranked.

    :param doubt: of an open loop whose rate is a share of a capacity: why it may be too low.
    """
    sound = [sample for sample in samples if sample.is_sound]
    costs = [
        sample.cpu_ns_per_request.server
        for sample in sound
        if sample.cpu_ns_per_request.server is not None
    ]
    interval = statistics.interval_of_cost(costs, seed=seed)
    bottleneck, why = _common(samples)
    errors: dict[str, int] = {}
    for sample in samples:
        for name, count in sample.errors.items():
            errors[name] = errors.get(name, 0) + count
    null_cost = {s.round: s.cpu_ns_per_request.server for s in null_samples if s.is_sound}
    pairs = [
        (cost, base)
        for sample in sound
        if (cost := sample.cpu_ns_per_request.server) is not None
        and (base := null_cost.get(sample.round)) is not None
    ]
    is_open = plan.mode is LoadMode.OPEN
    ranked, ranked_reason = _rate_ranks(bool(samples), plan.mode, bottleneck, why)
    middle = sorted(sound, key=lambda sample: sample.requests_per_second)
    typical = middle[len(middle) // 2] if middle else None
    instructions = _median_cost([sample.instructions_per_request for sample in sound])
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
        ranked_reason=ranked_reason,
        littles_law_ratio=_median_of([sample.littles_law_ratio for sample in samples]),
        interval_95=interval,
        interval_reason=None if interval else _no_interval(sound, len(costs)),
        rounds=len(samples),
        redone=redone,
        errors=errors,
        histogram=typical.histogram if typical else None,
        histogram_reason=None
        if typical and typical.histogram
        else (typical.latency_reason if typical else "no sound sample"),
        cost_over_null=statistics.paired_ratio([a for a, _ in pairs], [b for _, b in pairs])
        if pairs
        else None,
        samples=tuple(samples),
        reason=died,
        mode=plan.mode,
        scaled=scaled,
        rate_offered=_median_of([sample.rate_offered for sample in samples]),
        latency_us=_median_times([s.latency_us for s in sound]) if is_open else None,
        latency_reason="; ".join(filter(None, (_latency_reason(plan, sound), doubt))) or None,
        service_us=_median_times([sample.service_us for sample in sound]),
        lag_us=_median_times([sample.lag_us for sample in sound]),
        connections_per_second=_median_of([s.connections_per_second for s in sound]),
        handshake_us=_median_times([sample.handshake_us for sample in sound]),
        tls=typical.tls if typical else None,
        context_switches_per_request=_median_cost(
            [sample.context_switches_per_request for sample in sound]
        ),
        instructions_per_request=instructions,
        instructions_reason=None
        if instructions.server is not None
        else "this machine has no hardware counters"
        if not cpu_time.has_counters()
        else "the engine counts none, or perf_event_paranoid forbids it",
    )


def _no_interval(sound: Sequence[LoadSample], costs: int) -> str:
    """Why there is no interval of the cost."""
    if sound and not costs:
        unseen = "the server's processes cannot be seen from here"
        return f"no CPU time: {sound[0].cost_reason or unseen}"
    return f"{costs} sound samples; an interval needs {statistics.SAMPLES_FOR_INTERVAL_MIN}"


def _rate_ranks(
    measured: bool, mode: LoadMode, bottleneck: Bottleneck, why: str
) -> tuple[bool, str]:
    """Whether requests per second may be ranked, and why or why not."""
    if mode is LoadMode.OPEN:
        return False, "an offered rate is no throughput"
    if measured and bottleneck is Bottleneck.SERVER:
        return True, "the server was the bottleneck in every sample"
    return False, f"a lower bound: bottleneck {bottleneck} ({why})"


def _median_cost(costs: Sequence[Cost | None]) -> Cost:
    known = [cost for cost in costs if cost is not None]
    return Cost(
        _median_of([cost.server for cost in known]), _median_of([cost.client for cost in known])
    )


def _median_times(times: Sequence[dict[str, float] | None]) -> dict[str, float] | None:
    """The median of each figure over the samples that have all of them."""
    known = [figures for figures in times if figures is not None]
    if not known:
        return None
    return {name: statistics.median([figures[name] for figures in known]) for name in known[0]}


def _latency_reason(plan: LoadPlan, sound: Sequence[LoadSample]) -> str | None:
    """Why there is no latency, or what is to be known of it."""
    if plan.mode is not LoadMode.OPEN:
        return "a saturated closed loop: its times follow from the number in flight, not the server"
    if not sound:
        return "no sound sample"
    late = _median_times([sample.lag_us for sample in sound])
    if late is not None and late["p99"] > LAG_P99_US_MAX:
        return f"the generator itself was late: its own lag has a p99 of {late['p99']:.0f} us"
    return sound[0].latency_reason


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
    """Rank cost over servers of one profile; who may not be ranked has none of throughput either.

    :param excluded: servers that may not be ranked, with the reason (a control, not scored).
    """
    intervals = {
        name: result.interval_95
        for name, result in results.items()
        if name not in excluded and not result.errors and not result.reason
    }
    ranks = statistics.ranks(intervals)
    ranked = {}
    for name, result in results.items():
        rank = ranks.get(name)
        may, reason = _rate_ranks(
            result.rounds > 0, result.mode, result.bottleneck, result.bottleneck_why
        )
        barred = excluded.get(name) or (
            f"not measured to the end: {result.reason}" if result.reason else None
        )
        if may and barred:
            may, reason = False, barred
        ranked[name] = msgspec.structs.replace(
            result,
            ranked=may,
            ranked_reason=reason,
            cost_rank=rank,
            cost_rank_reason=None
            if rank is not None
            else barred
            or ("answers were wrong under load" if result.errors else result.interval_reason),
        )
    return ranked


_METRICS: dict[str, Callable[[LoadSample], float | None]] = {
    "cpu_ns_per_request": lambda sample: sample.cpu_ns_per_request.server,
    "requests_per_second": lambda sample: sample.requests_per_second,
}


def pair_log_ratios(
    base: Sequence[LoadSample], head: Sequence[LoadSample], metric: str
) -> list[float]:
    """ln(head / base) of the sound samples that stood in the same block."""
    figure = _METRICS[metric]
    bases = {sample.round: figure(sample) for sample in base if sample.is_sound}
    pairs = [
        (value, against)
        for sample in head
        if sample.is_sound
        and (value := figure(sample)) is not None
        and (against := bases.get(sample.round)) is not None
    ]
    return statistics.log_ratios([a for a, _ in pairs], [b for _, b in pairs])


def paired(
    results: dict[str, LoadResult], *, base: str, leave_out: Collection[str] = (), seed: int
) -> tuple[PairedRatio, ...]:
    """Every server against ``base``, pair by pair within the blocks of one profile.

    Throughput is compared only where both servers were the bottleneck in every sample; of an open
    loop, whose rate is given, not at all.
    """
    if base not in results:
        return ()
    found = []
    for name, result in results.items():
        if name == base or name in leave_out:
            continue
        for metric in _METRICS:
            reason = None
            if metric == "requests_per_second" and result.mode is LoadMode.OPEN:
                continue
            if metric == "requests_per_second" and not (result.ranked and results[base].ranked):
                reason = "not both were limited by the server"
            logs = pair_log_ratios(results[base].samples, result.samples, metric)
            found.append(_paired_ratio(result, metric, base, name, logs, reason, seed))
    return tuple(found)


def _paired_ratio(
    result: LoadResult,
    metric: str,
    base: str,
    head: str,
    logs: list[float],
    reason: str | None,
    seed: int,
) -> PairedRatio:
    interval = ratio = None
    if reason is None and not logs:
        reason = "no pair of sound samples with figures"
    if reason is None:
        ratio = math.exp(statistics.trimmed_mean(logs))
        interval = statistics.interval(logs, level=0.95, seed=seed)
        if interval is None:
            reason = f"{len(logs)} pairs; an interval needs {statistics.SAMPLES_FOR_INTERVAL_MIN}"
    return PairedRatio(
        profile=result.profile,
        engine=result.engine,
        metric=metric,
        base=base,
        head=head,
        ratio=ratio,
        interval_95=(math.exp(interval[0]), math.exp(interval[1])) if interval else None,
        pairs=len(logs),
        detectable=statistics.detectable_ratio(statistics.deviation(logs), len(logs))
        if len(logs) > 1
        else None,
        reason=reason,
    )
