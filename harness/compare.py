"""Base against head: two run folders, or two servers measured side by side until it is decided.

Side by side, base and head stand next to each other in randomised pairs, so that what befalls the
machine befalls both; pairs are added at fixed looks while the answer is open (load.md 4.3, 4.4).
Two folders were measured at different times: only figures relative to the null server of their own
blocks are compared, and only where both come from the same environment.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from httpmark.harness import (
    catalogue,
    engines,
    environment,
    ladder,
    load,
    plain,
    resources,
    run,
    runtime,
    servers,
    standing,
    statistics,
    wire,
)
from httpmark.harness.model import (
    Bottleneck,
    HarnessError,
    LoadPlan,
    LoadResult,
    LoadSample,
    NothingSelected,
    ProcessRecipe,
    Run,
    Server,
    ServerResult,
    Unusable,
)
from httpmark.harness.statistics import Drift, Gate, Judged

COST, RATE, MEMORY = "cpu_ns_per_request", "requests_per_second", "bytes_per_connection"
ALIVE = "alive"  # of a server that died before there was anything else to compare
# Higher is worse for costs; throughput is turned round before it is judged.
MARGINS = {COST: 0.03, RATE: 0.05, MEMORY: 0.02}
# Pairs at each look, over those of the first, and the level of its intervals: wider while there
# is another look, as stopping at the first good one would bring false alarms back.
LOOKS = ((1.0, 0.99), (5 / 3, 0.99), (2.5, 0.95))
PAIRS_MIN = 12
_CONFIRMED_LEVEL = 0.95
# load.md 4.4: more gated figures than these leave too little chance for each.
GATED_MAX = 5
_QUICK_WARMUP_S = 0.2
# Of an A/A run's pairs, how often the whole gate is played over them, and how many it takes.
DRAWN_GATES = 300
DRAWN_FROM_MIN = 60
_ADDRESS = "127.0.0.1"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared, and how sure the answer must be."""

    base: str
    head: str
    profiles: tuple[str, ...] = ()
    margin: float | None = None  # of the cost; the default is that of MARGINS
    pairs: int = PAIRS_MIN
    force: bool = False
    quick: bool = False
    runtime: str = "auto"
    path: str | None = None
    engine: str = "native"
    wrk2: str | None = None
    seed: int | None = None
    allow_remote: bool = False

    @property
    def margins(self) -> dict[str, float]:
        return {**MARGINS, COST: MARGINS[COST] if self.margin is None else self.margin}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one profile: what base and head were, and the verdict."""

    profile: str
    metric: str
    server: str | None
    judged: Judged | None
    verdict: Gate | None  # None: not gated
    why: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome; ``verdict`` is the worst of all lines that are gated."""

    base: str
    head: str
    how: str  # "side by side" or "two runs"
    verdict: Gate
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    differences: tuple[str, ...]  # of the environments
    seed: int
    signal: int | None = None  # that interrupted it: what was measured until then


class AgainstItself(msgspec.Struct, frozen=True, kw_only=True):
    """An A/A run of one profile: what this machine can tell apart."""

    server: str
    profile: str
    comparisons: int  # those that had pairs enough to say anything
    wanted: int
    unjudged: int = 0  # those that had not, as answers were wrong
    redone: int = 0  # samples that starved and were taken again
    pairs_each: int
    false_alarms: int  # comparisons whose gate failed, of one server with itself
    apart: int  # whose interval excluded 1; a twentieth is to be expected
    deviation: float | None  # of the pairs' log-ratios of cost
    detectable: dict[str, float | None]  # ratio, by number of pairs
    drawn_alarms: int | None  # of DRAWN_GATES gates played over these pairs; None: too few pairs
    drift: Drift | None  # of the cost over the run
    slot: tuple[float, float] | None  # second over first of a pair, 95 % interval
    fit: bool
    why: str
    signal: int | None = None  # that interrupted it: whole comparisons until then


def verdict_of(lines: Sequence[Line]) -> Gate:
    """The worst verdict of what is gated.

    :raises NothingSelected: nothing is gated.
    """
    found = {line.verdict for line in lines if line.verdict is not None}
    for word in (Gate.FAIL, Gate.INCONCLUSIVE, Gate.PASS):
        if word in found:
            return word
    raise NothingSelected("nothing to compare: the two have no server and profile in common")


def exit_code(found: Comparison | Sequence[AgainstItself], *, inconclusive: str) -> int:
    """The contract's exit code; ``inconclusive`` is ``pass``, ``warn`` or ``fail``.

    An A/A run is a gate of its own: 1 where the machine is unfit.
    """
    parts = [found] if isinstance(found, Comparison) else found
    for part in parts:
        if part.signal is not None:
            return run.SIGNALLED + part.signal
    if not isinstance(found, Comparison):
        return 0 if all(one.fit for one in found) else 1
    if found.verdict is Gate.INCONCLUSIVE:
        return 4 if inconclusive == "fail" else 0
    return 1 if found.verdict is Gate.FAIL else 0


def measure(options: Options, events: run.Events) -> Comparison:
    """Compare two run folders, or measure two servers side by side.

    :raises HarnessError: one is a folder and the other is not; folders of different environments.
    :raises Unusable: a server cannot be used, or died.
    """
    are_folders = [is_folder(options.base), is_folder(options.head)]
    if all(are_folders):
        return folders(options)
    if any(are_folders):
        other = options.head if are_folders[0] else options.base
        raise HarnessError(
            f"{other} is no run folder, and one can only be compared with another run folder"
        )
    return SideBySide(options, events).compare()


# --- two run folders --------------------------------------------------------------------------


def is_folder(text: str) -> bool:
    """Whether a word names a run folder."""
    return os.path.isfile(os.path.join(text, run.RESULT))


def folders(options: Options) -> Comparison:
    """Compare two stored runs.

    :raises HarnessError: their environments differ, and it is not forced.
    """
    base, head = run.read(Path(options.base)), run.read(Path(options.head))
    differences = _differences(base, head)
    if differences and not options.force:
        raise HarnessError(
            f"the environments differ ({'; '.join(differences[:3])}"
            f"{'; ...' if len(differences) > 3 else ''}): measure both on one machine, or --force"
        )
    seed = options.seed if options.seed is not None else head.seed
    heads = {server.name: server for server in head.servers}
    known = catalogue.load().plans
    of_memory = not options.profiles or any(
        name in known and known[name].mode in ladder.MODES for name in options.profiles
    )
    found: list[Line | _Ratios] = []
    for server in base.servers:
        if server.control:
            continue
        other = heads.get(server.name)
        for result in server.load:
            if not options.profiles or result.profile in options.profiles:
                found.append(_of_results(server, other, result, seed))
        if of_memory:
            found += _of_memory(server, other, options.margins[MEMORY])
        died = other.died if other else None
        if died and not server.died and not any(one.server == server.name for one in found):
            found.append(_line("run", ALIVE, server.name, None, Gate.FAIL, f"head died: {died}"))
    lines = _all_judged(found, options.margins[COST], seed)
    notes = ["two runs at different times: figures are relative to null in their own blocks"]
    for name, one in (("base", base), ("head", head)):
        if one.interrupted:
            notes.append(f"{name} was interrupted: it is compared as far as it went")
        if one.quick and base.quick != head.quick:
            notes.append(f"{name} was quick and the other was not: its windows are shorter")
    notes += _many(lines)
    if differences:
        notes.insert(0, "the environments differ, and it was forced: the figures may mean nothing")
    return Comparison(
        base=options.base,
        head=options.head,
        how="two runs",
        verdict=verdict_of(lines),
        lines=tuple(lines),
        notes=tuple(notes),
        differences=tuple(differences),
        seed=seed,
    )


def _differences(base: Run, head: Run) -> list[str]:
    """What makes figures of two runs incomparable: the machines, and how servers ran on them."""
    heads = {server.name: server.runtime for server in head.servers if server.runtime}
    both = [s for s in base.servers if s.runtime and s.name in heads]
    found = environment.differences(base.environment, head.environment)
    found += [
        f"{server.name} ran as: {server.runtime}, {heads[server.name]}"
        for server in both
        if server.runtime != heads[server.name]
    ]
    if any(server.runtime == heads[server.name] == "docker" for server in both):
        found += environment.docker_differences(base.environment, head.environment)
    return found


def _key(result: LoadResult) -> tuple[object, ...]:
    return result.profile, result.engine, result.connections, result.depth


def _lacking(
    server: ServerResult, other: ServerResult | None, profile: str, metric: str, why: str
) -> Line:
    """What base has and head has not is never passed over: a death fails, the rest is not known."""
    verdict = Gate.INCONCLUSIVE
    if other is None:
        why = "head has no such server"
    elif other.unavailable:
        why = f"head has not measured it: {other.unavailable}"
    elif other.died and server.died:
        why = f"it died in both; head: {other.died}"
    elif other.died:
        verdict, why = Gate.FAIL, f"head died: {other.died}"
    return _line(profile, metric, server.name, None, verdict, why)


class _Ratios(msgspec.Struct, frozen=True):
    """Log-ratios of cost that are to be judged, together with all others of a comparison."""

    server: str
    profile: str
    logs: list[float]


def _all_judged(found: Sequence[Line | _Ratios], margin: float, seed: int) -> list[Line]:
    """One judgement over all figures of two runs: they share one chance of a false alarm."""
    worse = {str(at): one.logs for at, one in enumerate(found) if isinstance(one, _Ratios)}
    judged = statistics.judge_pairs(
        worse, dict.fromkeys(worse, margin), level=_CONFIRMED_LEVEL, seed=seed
    )
    return [
        one
        if isinstance(one, Line)
        else _line(
            one.profile, COST, one.server, judged[str(at)], judged[str(at)].verdict,
            judged[str(at)].why,
        )
        for at, one in enumerate(found)
    ]  # fmt: skip


def _many(lines: Sequence[Line]) -> list[str]:
    """A word of warning where more is gated at once than a gate can bear (load.md 4.4)."""
    count = sum(line.judged is not None and line.verdict is not None for line in lines)
    if count <= GATED_MAX:
        return []
    return [
        f"{count} gated figures share one chance of a false alarm, so small changes seldom show: "
        f"name fewer with --profile; {GATED_MAX} are a good gate"
    ]


def _of_results(
    server: ServerResult, other: ServerResult | None, base: LoadResult, seed: int
) -> Line | _Ratios:
    head = next((r for r in other.load if _key(r) == _key(base)), None) if other else None
    if head is None:
        shape = f"{base.connections:,} connections x depth {base.depth:,} by {base.engine}"
        why = f"head has not measured it with {shape}"
        return _lacking(server, other, base.profile, COST, why)
    if head.reason and not base.reason:
        return _lacking(server, other, base.profile, COST, f"head: {head.reason}")
    broken = _broken(server.name, base, head)
    if broken is not None:
        return broken
    logs = [_over_null(result) for result in (head, base)]
    if not all(logs):
        why = "no null server beside the samples, or no cost: two runs cannot be compared"
        return _line(base.profile, COST, server.name, None, Gate.INCONCLUSIVE, why)
    return _Ratios(server.name, base.profile, statistics.unpaired(logs[0], logs[1], seed=seed))


def _over_null(result: LoadResult) -> list[float]:
    sound = [sample for sample in result.samples if sample.is_sound]
    pairs = [
        (cost, null)
        for sample in sound
        if (cost := sample.cpu_ns_per_request.server) is not None
        and (null := sample.null_cpu_ns_per_request) is not None
    ]
    return statistics.log_ratios([a for a, _ in pairs], [b for _, b in pairs])


def _broken(server: str | None, base: LoadResult, head: LoadResult) -> Line | None:
    """Wrong answers are no matter of statistics: a head that has them fails at once."""
    if not head.errors:
        return None
    told = ", ".join(f"{count} {name}" for name, count in sorted(head.errors.items()))
    if base.errors:
        why = f"both had errors under load; head: {told}"
        return _line(base.profile, COST, server, None, Gate.INCONCLUSIVE, why)
    return _line(base.profile, COST, server, None, Gate.FAIL, f"errors under load: {told}")


def _of_memory(server: ServerResult, other: ServerResult | None, margin: float) -> list[Line]:
    """The slopes of resident memory: next to free of noise, so the margin alone decides."""
    before, after = _resident(server), _resident(other) if other else None
    if before is None:
        return []
    if after is None:
        told = other and (other.memory.reason if other.memory else other.memory_reason)
        why = f"head has no slope: {told or 'it climbed no ladder'}"
        return [_lacking(server, other, "memory", MEMORY, why)]
    assert server.memory is not None
    assert other is not None
    assert other.memory is not None
    held, holds = server.memory.connections_held, other.memory.connections_held
    if holds < ladder.HELD_MIN * held:
        reason = other.memory.reason or "no word why"
        why = f"head held {holds:,} connections, base {held:,}: {reason}"
        return [_line("memory", MEMORY, server.name, None, Gate.INCONCLUSIVE, why)]
    allowed = max(before * (1 + margin), before + 64)  # below a cache line it is no change
    verdict = Gate.FAIL if after > allowed else Gate.PASS
    why = f"{before:,.0f} and {after:,.0f} bytes"
    return [_line("memory", MEMORY, server.name, None, verdict, why)]


def _resident(server: ServerResult) -> float | None:
    per = server.memory.bytes_per_connection if server.memory else None
    return per.resident if per else None


def _line(
    profile: str,
    metric: str,
    server: str | None,
    judged: Judged | None,
    verdict: Gate | None,
    why: str,
) -> Line:
    return Line(
        profile=profile, metric=metric, server=server, judged=judged, verdict=verdict, why=why
    )


# --- side by side -----------------------------------------------------------------------------


class Arm:
    """One side of a comparison: a server of images/, a command with {port}, or a target."""

    def __init__(self, name: str, text: str, options: Options) -> None:
        self.name = name
        self.standing = standing.parse(text, allow_remote=options.allow_remote)
        self.path = options.path
        if self.standing is not None:
            self.server = self.standing.server
            self.path = self.path or self.standing.path
        elif "{port}" in text:
            self.server = _of_command(name, text, options.path)
        elif " " in text:
            raise HarnessError(f"{text!r}: a command must say where its port goes: {{port}}")
        elif "/" in text or os.path.isdir(text):
            raise HarnessError(f"{text}: no run folder: there is no {run.RESULT} in it")
        else:
            self.server = servers.server(text)
        self.runtime = "address"
        if self.standing is None:
            wanted = "process" if "{port}" in text else options.runtime
            self.runtime = runtime.for_server(self.server, wanted)

    def prepare(self, say: runtime.Say) -> None:
        """Build what has to be built, or see that the target answers.

        :raises Unusable: it cannot be used.
        """
        if self.standing is None:
            runtime.prepare(self.server, self.runtime, say=say)
        elif not self.standing.alive():
            raise Unusable(self.standing.exit_reason())

    def contestant(self, port: int, *, is_null: bool = False) -> load.Contestant:
        @contextlib.contextmanager
        def start(plan: LoadPlan, place: load.Placement) -> Iterator[load.Started]:
            if self.standing is not None:
                yield self.standing
                return
            cpus = None if place.server is None else ",".join(map(str, sorted(place.server)))
            running = runtime.start(
                self.server,
                self.runtime,
                address=_ADDRESS,
                port=port,
                workers=plan.workers,
                cpus=cpus,
                run_id=secrets.token_hex(3),
            )
            try:
                yield running
            finally:
                running.stop()

        return load.Contestant(
            self.name, start, is_null, path=self.path, standing=self.standing is not None
        )


def _of_command(name: str, text: str, path: str | None) -> Server:
    """A server from a command line; it runs in the folder that httpmark was called in.

    :raises HarnessError: the words cannot be told apart.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise HarnessError(f"{text!r}: {error}") from None
    return Server(
        name=name,
        title=name,
        language="unknown",
        version="",
        homepage="",
        capabilities=("hello",),
        ready_path=path or "/hello",
        process=ProcessRecipe(start=("env", "-C", os.getcwd(), *words)),
        source=os.getcwd(),
    )


class SideBySide:
    """Base and head in pairs, with null in each block, until the looks are used up."""

    def __init__(self, options: Options, events: run.Events) -> None:
        self.options = options
        self.events = events
        self.seed = options.seed if options.seed is not None else secrets.randbits(31)
        self.engine = engines.engine(options.engine, wrk2=options.wrk2)
        self.notes: list[str] = []
        self.plans = plans(options, self.engine, say=self.notes.append)
        self.arms = [Arm("base", options.base, options), Arm("head", options.head, options)]
        self.signal: int | None = None
        self.notes += [
            f"{arm.name} runs already: it is not started afresh for each sample"
            for arm in self.arms
            if arm.standing is not None
        ]

    def compare(self) -> Comparison:
        """Measure and judge; interrupted, what the pairs until then say, and no verdict.

        :raises Unusable: one of them cannot be used, or died.
        """
        port = wire.free_port(_ADDRESS)
        for arm in self.arms:
            arm.prepare(self.events.say)
        contestants = [arm.contestant(port) for arm in self.arms]
        null = Arm("null", "null", msgspec.structs.replace(self.options, path=None))
        null.prepare(self.events.say)
        contestants.append(null.contestant(port, is_null=True))
        lines = []
        try:
            for plan in self.plans:
                racers = contestants
                if cannot := load.null_cannot(plan):
                    self.notes.append(f"no null server beside {plan.name}: {cannot}")
                    racers = [one for one in contestants if not one.is_null]
                lines += self._plan(plan, racers)
                if self.signal is not None:
                    break
        finally:
            runtime.stop_all()
        return Comparison(
            base=self.options.base,
            head=self.options.head,
            how="side by side",
            verdict=verdict_of(lines),
            lines=tuple(lines),
            notes=(*self.notes, *_many(lines)),
            differences=(),
            seed=self.seed,
            signal=self.signal,
        )

    def _plan(self, plan: LoadPlan, contestants: Sequence[load.Contestant]) -> list[Line]:
        races: list[load.Race] = []

        def more(race: load.Race, pairs: int) -> None:
            task = f"{plan.name}: pairs {race.blocks + 1} to {pairs}"
            race.rounds = pairs - race.blocks
            self.events.task(task, race.steps)
            for _ in race.run():
                self.events.advance(task, 1)
                _see_off(race, plan)
            self.events.done(task, f"{race.blocks} pairs")

        def race(seed: int) -> load.Race:
            one = load.Race(
                plan, self.engine, contestants, rounds=1, duration_s=plan.duration_s, seed=seed,
                one_rate=True,
            )  # fmt: skip
            races.append(one)
            return one

        try:
            found = decide(
                plan.name, race, more, pairs=self.options.pairs, margins=self.options.margins,
                seed=self.seed, quick=self.options.quick, profiles=len(self.plans),
            )  # fmt: skip
        except run.Interrupted as stop:
            if not races:
                raise
            self.signal = stop.signal
            found = cut_short(
                races[0], margins=self.options.margins, seed=self.seed, profiles=len(self.plans)
            )
        if again := sum(sum(one.redone.values()) for one in races):
            self.notes.append(f"{plan.name}: {_redone(again)}")
        return found


def _see_off(race: load.Race, plan: LoadPlan) -> None:
    """No comparison without both.

    :raises Unusable: one of them died, or could not be loaded.
    """
    for name, why in race.died.items():
        raise Unusable(f"{name} died under {plan.name}: {why}")
    for name, why in race.failed.items():
        raise Unusable(f"{name} could not be loaded with {plan.name}: {why}")


def plans(
    options: Options, engine: engines.Engine, *, say: Callable[[str], None]
) -> list[LoadPlan]:
    """The profiles to compare by, as this machine can carry them; the default is ``pipelined``.

    :param say: is told what was cut of a profile that is too large for this machine, and why.
    :raises HarnessError: one is no race, or the engine cannot do it.
    """
    known, room = catalogue.load(), resources.connection_room()
    found = []
    for name in options.profiles or ("pipelined",):
        plan, cut = load.scaled(known.plan(name), room, cpus=len(os.sched_getaffinity(0)))
        if plan.mode in ladder.MODES:
            raise HarnessError(f"{name} measures memory, once: compare two run folders instead")
        if plan.tls:
            raise HarnessError(f"{name} needs TLS, which compare does not offer: use bench")
        if cannot := engine.cannot(plan):
            raise HarnessError(f"{engine.name} cannot lay on {name}: {cannot}")
        if cut:
            say(f"{name} is scaled to this machine: {cut}")
        if options.quick:
            # 30 pairs with null beside them and 12 to confirm have to fit into three minutes.
            warmup_s = min(plan.warmup_s, _QUICK_WARMUP_S)
            plan = msgspec.structs.replace(
                plan, duration_s=plan.quick_duration_s, warmup_s=warmup_s
            )
        found.append(plan)
    return found


def decide(
    profile: str,
    race: Callable[[int], load.Race],
    more: Callable[[load.Race, int], None],
    *,
    pairs: int,
    margins: dict[str, float],
    seed: int,
    quick: bool = False,
    profiles: int = 1,
) -> list[Line]:
    """Add pairs until every gated metric is decided, at most to the last look; then confirm.

    :param race: makes a race of base, head and null from a seed.
    :param more: takes samples until the race has so many blocks.
    :param profiles: how many are compared in all; they share one chance of a false alarm.

    A *fail* has to be found twice: a second race of as many pairs must say so, too; of as many as
    the first look where it has to be ``quick``.
    """
    first = race(seed)
    judged: dict[str, Judged] = {}
    results: dict[str, LoadResult] = {}
    for factor, level in LOOKS:
        more(first, round(pairs * factor))
        results = first.results()
        broken = _broken(None, results["base"], results["head"])
        if broken is not None:
            return [broken]
        judged = _judge(first, results, margins, level, seed, profiles)
        if all(one.verdict is not Gate.INCONCLUSIVE for one in judged.values()):
            break
    if any(one.verdict is Gate.FAIL for one in judged.values()):
        again = race(seed + 1)
        more(again, round(pairs * LOOKS[0][0]) if quick else first.blocks)
        confirming = again.results()
        broken = _broken(None, confirming["base"], confirming["head"])
        if broken is not None:
            return [broken]
        second = _judge(again, confirming, margins, _CONFIRMED_LEVEL, seed, profiles)
        judged = {name: _confirmed(one, second.get(name)) for name, one in judged.items()}
    lines = [
        _line(profile, metric, None, one, one.verdict, one.why) for metric, one in judged.items()
    ]
    if RATE not in judged:
        limit = _limit(results)
        lines.append(_line(profile, RATE, None, None, None, f"not gated: {limit}"))
    return lines


def _judge(
    race: load.Race,
    results: dict[str, LoadResult],
    margins: dict[str, float],
    level: float,
    seed: int,
    profiles: int,
) -> dict[str, Judged]:
    """Cost always; throughput only where the server was the limit on both sides."""
    base, head = race.samples["base"], race.samples["head"]
    worse = {COST: load.pair_log_ratios(base, head, COST)}
    if results["base"].ranked and results["head"].ranked:
        worse[RATE] = [-log for log in load.pair_log_ratios(base, head, RATE)]
    return statistics.judge_pairs(worse, margins, level=level, seed=seed, shares=profiles)


def cut_short(
    race: load.Race, *, margins: dict[str, float], seed: int, profiles: int = 1
) -> list[Line]:
    """What the pairs of a race that was interrupted say; nothing is decided by them."""
    results, pairs = race.results(), len(race.samples["head"])
    why = f"interrupted after {pairs} pairs"
    judged = (
        _judge(race, results, margins, _CONFIRMED_LEVEL, seed, profiles)
        if pairs >= statistics.SAMPLES_FOR_INTERVAL_MIN
        else {COST: None}
    )
    return [
        _line(race.plan.name, metric, None, one, Gate.INCONCLUSIVE, why)
        for metric, one in judged.items()
    ]


def _confirmed(first: Judged, second: Judged | None) -> Judged:
    if first.verdict is not Gate.FAIL or (second and second.verdict is Gate.FAIL):
        return first
    return msgspec.structs.replace(
        first, verdict=Gate.INCONCLUSIVE, why="a fail that a second race did not confirm"
    )


def _limit(results: dict[str, LoadResult]) -> str:
    for result in results.values():
        if result.bottleneck is not Bottleneck.SERVER:
            return f"bottleneck {result.bottleneck} ({result.bottleneck_why})"
    return "it is an offered rate"


# --- a server against itself ------------------------------------------------------------------


class _WithItself(NamedTuple):
    """One comparison of an A/A run."""

    failed: bool
    bounds: tuple[float, float] | None  # of the log-ratio of cost, 95 %
    logs: list[float]
    by_order: list[float]  # second over first of a pair; none where a pair is lacking


def _with_itself(
    base: Sequence[LoadSample],
    head: Sequence[LoadSample],
    *,
    margin: float,
    seed: int,
    number: int,
) -> _WithItself:
    logs = load.pair_log_ratios(base, head, COST)
    judged = statistics.judge_pairs({COST: logs}, {COST: margin}, level=0.95, seed=seed)[COST]
    return _WithItself(
        failed=judged.verdict is Gate.FAIL,
        bounds=statistics.interval(logs, level=0.95, seed=seed + number),
        logs=logs,
        by_order=[log if one.order else -log for one, log in zip(head, logs, strict=True)]
        if len(logs) == len(head)
        else [],
    )


def against_itself(
    name: str,
    plan: LoadPlan,
    race: load.Race,
    advance: Callable[[], None],
    *,
    comparisons: int,
    pairs: int,
    margin: float,
    seed: int,
) -> AgainstItself:
    """An A/A run: ``comparisons`` of one server, called base and head, with itself.

    Unfit is a machine on which one of the gates failed, or on which more intervals than chance
    allows (one in a hundred at the binomial's tail) say that a server differs from itself.
    Interrupted, it is of the comparisons that were whole.

    :raises Interrupted: before there was any.
    :raises Unusable: too few sound samples.
    """
    signal: int | None = None
    found: list[_WithItself] = []
    try:
        for number in range(comparisons):
            race.rounds = pairs
            for _ in race.run():
                advance()
                _see_off(race, plan)
            base, head = race.samples["base"][-pairs:], race.samples["head"][-pairs:]
            found.append(_with_itself(base, head, margin=margin, seed=seed, number=number))
    except run.Interrupted as stop:
        if not any(one.bounds for one in found):
            raise
        signal = stop.signal
    judged = [one.bounds for one in found if one.bounds]
    if not judged:
        raise Unusable(f"{name}: too few sound samples for an A/A run")
    apart = sum(not low <= 0 <= high for low, high in judged)
    false_alarms = sum(one.failed for one in found)
    logs = [log for one in found for log in one.logs]
    by_order = [log for one in found for log in one.by_order]
    deviation = statistics.deviation(logs)
    costs = [
        cost
        for block in zip(race.samples["base"], race.samples["head"], strict=True)
        for sample in sorted(block, key=lambda sample: sample.order)
        if sample.is_sound and (cost := sample.cpu_ns_per_request.server) is not None
    ]
    drift = statistics.drift(costs)
    slot = statistics.interval(by_order, level=0.95, seed=seed)
    too_often = statistics.binomial_tail(apart, len(judged), 0.05) < 0.01
    why = "a server does not differ from itself"
    if false_alarms:
        why = f"{false_alarms} of {len(judged)} gates failed a server against itself"
    elif too_often:
        why = f"{apart} of {len(judged)} intervals say that a server differs from itself"
    return AgainstItself(
        server=name,
        profile=plan.name,
        comparisons=len(judged),
        wanted=comparisons,
        unjudged=len(found) - len(judged),
        redone=sum(race.redone.values()),
        pairs_each=pairs,
        false_alarms=false_alarms,
        apart=apart,
        deviation=deviation,
        detectable={
            str(count): statistics.detectable_ratio(deviation, count)
            for count in (round(pairs * factor) for factor, _ in LOOKS)
        },
        drawn_alarms=_drawn_alarms(logs, margin=margin, seed=seed),
        drift=drift,
        slot=slot,
        fit=not false_alarms and not too_often,
        why=why,
        signal=signal,
    )


def _drawn_alarms(logs: Sequence[float], *, margin: float, seed: int) -> int | None:
    """How many of :data:`DRAWN_GATES` gates fail that are played over the pairs of an A/A run.

    A gate is all of :func:`decide` at its default: three looks, and a race that confirms. It gets
    pairs that followed each other, so that what lasted longer than a pair is in them; which side
    was called base is tossed anew for each, as nothing told them apart.
    """
    if len(logs) < DRAWN_FROM_MIN:
        return None
    draw = random.Random(seed)

    def drawn(count: int) -> list[float]:
        first = draw.randrange(len(logs))
        return [draw.choice((-1, 1)) * logs[(first + i) % len(logs)] for i in range(count)]

    def verdict(pairs: Sequence[float], level: float) -> Gate:
        return statistics.judge_pairs({COST: pairs}, {COST: margin}, level=level, seed=seed)[
            COST
        ].verdict

    alarms = 0
    for _ in range(DRAWN_GATES):
        pairs = drawn(round(PAIRS_MIN * LOOKS[-1][0]))
        for factor, level in LOOKS:
            count = round(PAIRS_MIN * factor)
            found = verdict(pairs[:count], level)
            if found is not Gate.INCONCLUSIVE:
                break
        if found is Gate.FAIL:
            alarms += verdict(drawn(count), _CONFIRMED_LEVEL) is Gate.FAIL
    return alarms


def run_against_itself(
    options: Options, events: run.Events, *, comparisons: int
) -> list[AgainstItself]:
    """Start ``options.base`` over and over as both sides of an A/A run.

    :raises Unusable: it cannot be used, died, or answered wrongly.
    """
    seed = options.seed if options.seed is not None else secrets.randbits(31)
    engine = engines.engine(options.engine, wrk2=options.wrk2)
    chosen = plans(options, engine, say=events.say)
    arms = [Arm(name, options.base, options) for name in ("base", "head")]
    arms[0].prepare(events.say)
    port = wire.free_port(_ADDRESS)
    found = []
    for plan in chosen:
        race = load.Race(
            plan,
            engine,
            [arm.contestant(port) for arm in arms],
            rounds=options.pairs,
            duration_s=plan.duration_s,
            seed=seed,
            one_rate=True,
        )
        task = f"{plan.name}: {options.base} against itself"
        events.task(task, 2 * options.pairs * comparisons)
        try:
            one = against_itself(
                options.base, plan, race, lambda task=task: events.advance(task, 1),  # type: ignore[misc]
                comparisons=comparisons, pairs=options.pairs, margin=options.margins[COST],
                seed=seed,
            )  # fmt: skip
        finally:
            runtime.stop_all()
        events.done(task, "fit" if one.fit else f"unfit: {one.why}")
        found.append(one)
        if one.signal is not None:
            break
    return found


# --- for the terminal -------------------------------------------------------------------------


def lines(found: Comparison | Sequence[AgainstItself], *, width: int = 80) -> list[str]:
    """A comparison, or A/A runs, as text of a width; only words that are longer stand out of it."""
    said = (
        _lines(found)
        if isinstance(found, Comparison)
        else [line for one in found for line in _itself_lines(one)]
    )
    return [
        part
        for line in said
        for part in plain.wrapped(
            line.strip(), width, indent=line[: len(line) - len(line.lstrip())], whole=True
        )
    ]


def _lines(found: Comparison) -> list[str]:
    out = [f"{found.how}: {found.base} -> {found.head}"]
    # Above the figures: whoever forced a comparison reads first what it is worth.
    out += [f"  differs: {difference}" for difference in found.differences]
    out.append("")
    for line in found.lines:
        name = " ".join(word for word in (line.server, line.profile, line.metric) if word)
        word = line.verdict.value if line.verdict else "-"
        out.append(f"{word:<13} {name}: {figures(line.judged)}{line.why}{_shown(line.judged)}")
    out += [f"  {note}" for note in found.notes]
    return [*out, "", f"verdict: {found.verdict}"]


def _shown(judged: Judged | None) -> str:
    """What so many pairs as noisy as these can tell at all: of less nothing is said."""
    if judged is None or judged.detectable is None:
        return ""
    return f"; such pairs show {judged.detectable - 1:.1%} and more, 8 times in 10"


def _redone(count: int) -> str:
    return f"{count} samples starved and were taken again"


def figures(judged: Judged | None) -> str:
    """How much worse, with its interval; nothing where there are no figures."""
    if judged is None or judged.ratio is None or judged.interval is None:
        return ""
    low, high = judged.interval
    return (
        f"{judged.ratio:.3f} times as bad ({low:.3f} - {high:.3f} at {judged.level:.0%}, "
        f"{judged.pairs} pairs): "
    )


def _itself_lines(found: AgainstItself) -> list[str]:
    """An A/A run as text."""

    def percent(ratio: float | None) -> str:
        return "?" if ratio is None else f"{ratio - 1:.1%}"

    out = [
        f"{found.server} against itself, {found.profile}: {found.comparisons} comparisons of "
        f"{found.pairs_each} pairs",
        f"  gates that failed: {found.false_alarms}; intervals that exclude 1: {found.apart}",
    ]
    if found.signal is not None:
        out.append(f"  interrupted: {found.wanted} were asked for")
    if found.unjudged:
        out.append(f"  {found.unjudged} more had too few sound samples to be judged")
    if found.redone:
        out.append(f"  {_redone(found.redone)}")
    if found.deviation is not None:
        out.append(f"  a pair's ratio of cost varies by {found.deviation:.1%} (standard deviation)")
    told = ", ".join(f"{percent(ratio)} with {n} pairs" for n, ratio in found.detectable.items())
    out.append(f"  this machine shows a change of cost of {told}, 8 times in 10")
    if found.drawn_alarms is not None:
        most = statistics.share_at_most(found.drawn_alarms, DRAWN_GATES)
        out.append(
            f"  of {DRAWN_GATES} gates of {PAIRS_MIN} pairs and more, drawn from these pairs, "
            f"{found.drawn_alarms} failed: at most {most:.1%} false alarms"
        )
    if found.drift is not None and found.drift.is_clear:
        out.append(
            f"  the machine drifted by {percent(found.drift.ratio)} over the run; pairs cancel it, "
            "two separate runs would not"
        )
    if found.slot is not None and not found.slot[0] <= 0 <= found.slot[1]:
        low, high = found.slot
        out.append(f"  who comes second in a pair costs {low:+.1%} to {high:+.1%}: order matters")
    return [*out, f"  {'fit' if found.fit else 'UNFIT'}: {found.why}"]
