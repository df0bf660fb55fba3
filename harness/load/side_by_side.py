"""Base and head measured in pairs, with the null server in each block, until it is decided."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.load import (
    memory_ladder,
    paired_ratios,
    paired_verdicts,
    scaling,
    statistics,
)
from httpmark.harness.load import races as load_races
from httpmark.harness.load.comparison import (
    CONFIRMED_LEVEL,
    COST,
    LOOKS,
    RATE,
    Comparison,
    Line,
    Options,
    broken_answers,
    line_of,
    samples_redone,
    verdict_of,
    warn_of_many,
)
from httpmark.harness.load.contestants import Contestant, Started
from httpmark.harness.load.engines import by_name, launch
from httpmark.harness.load.paired_verdicts import Gate, Judged
from httpmark.harness.model import progress, run_folder
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.load import Bottleneck, LoadPlan, LoadResult
from httpmark.harness.model.servers import ProcessRecipe, Server
from httpmark.harness.servers import (
    brought,
    build_cache,
    open_connections,
    requested_path,
    running_target,
    sockets,
    starting,
)

_QUICK_WARMUP_S = 0.2
ADDRESS = "127.0.0.1"


class Arm:
    """One side of a comparison: a server of images/, one that is brought as ``NAME=HOW``, a command
    with {port}, or a target."""

    def __init__(self, name: str, text: str, options: Options) -> None:
        self.name = name
        one = brought.read(text, Path.cwd()) if brought.is_named(text) else None
        if one is not None:
            text = options.field.take(one, allow_remote=options.allow_remote)
            url = options.field.server(text).url
            text = url or text
        self.target = running_target.parse(text, allow_remote=options.allow_remote)
        self.path = options.path
        self.found: str | None = None  # instead of a path that is named
        if self.target is not None:
            self.server = self.target.server
            own = self.target.path
            self.path = own if own and options.own_path_first else self.path or own
        elif "{port}" in text:
            self.server = _of_command(name, text, options.path)
        elif " " in text:
            raise HarnessError(f"{text!r}: a command must contain {{port}}, where its port goes")
        elif "/" in text or os.path.isdir(text):
            raise HarnessError(f"{text} is not a run folder: it has no {run_folder.RESULT}")
        else:
            self.server = options.field.server(text)
        self.is_foreign = self.target is not None or one is not None or "{port}" in text
        self.runtime = "address"
        if self.target is None:
            wanted = "process" if "{port}" in text else options.runtime
            self.runtime = starting.for_server(self.server, wanted)

    def prepare(self, say: build_cache.Say) -> None:
        """Build the server where it must be built, or check that the target answers.

        :raises Unusable: it cannot be used.
        """
        if self.target is None:
            starting.prepare(self.server, self.runtime, say=say)
        elif not self.target.alive():
            raise Unusable(self.target.exit_reason())

    def path_for(self, plan: LoadPlan) -> str | None:
        """What is requested instead of a profile's path; a path that was found is that of the
        profiles that ask for nothing special."""
        if self.path is None and plan.path == requested_path.FIRST:
            return self.found
        return self.path

    @contextlib.contextmanager
    def up(self, workers: int, cpus: frozenset[int] | None) -> Iterator[Started]:
        """The server, started for a while; a target runs anyway."""
        if self.target is not None:
            yield self.target
            return
        running = starting.start(
            self.server,
            self.runtime,
            address=ADDRESS,
            port=sockets.free_port(ADDRESS),
            workers=workers,
            cpus=None if cpus is None else ",".join(map(str, sorted(cpus))),
            run_id=secrets.token_hex(3),
        )
        try:
            yield running
        finally:
            running.stop()

    def contestant(self, plan: LoadPlan, *, is_null: bool = False) -> Contestant:
        """One side of a race."""
        return Contestant(
            self.name,
            lambda one, place: self.up(one.workers, place.server),
            is_null,
            path=self.path_for(plan),
            runs_already=self.target is not None,
        )


def settle_paths(arms: Sequence[Arm]) -> None:
    """Let both sides be asked for the same path, if not each names its own.

    A server of images/ answers everywhere. Of the others a path is found that all answer with 2xx.

    :raises Unusable: there is none.
    """
    named = next((arm.path for arm in arms if arm.path is not None), None)
    unknown = [arm for arm in arms if arm.is_foreign and arm.path is None]
    if named is not None or not unknown:
        for arm in arms:
            arm.path = arm.path or named
        return
    with contextlib.ExitStack() as up:
        try:
            running = [up.enter_context(arm.up(1, None)) for arm in unknown]
        except Unusable:
            return  # the first sample says which one does not start

        def worst(path: str) -> int:
            """A status that is none of a 2xx, if one of them gives such a one."""
            came = [requested_path.status(one.address, one.port, path) for one in running]
            return next((code for code in came if not requested_path.accepts(code)), came[0])

        path, refused = requested_path.found(worst)
    if path is None:
        raise Unusable(refused)
    for arm in arms:
        arm.found = path


def _of_command(name: str, text: str, path: str | None) -> Server:
    """A server from a command line; it runs in the folder that httpmark was called in.

    :raises HarnessError: the words cannot be separated: a quote is not closed.
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

    def __init__(self, options: Options, events: progress.Events) -> None:
        self.options = options
        self.events = events
        self.seed = options.seed if options.seed is not None else secrets.randbits(31)
        self.engine = by_name.engine(options.engine, wrk2=options.wrk2)
        self.notes: list[str] = []
        self.plans = plans(options, self.engine, say=self.notes.append)
        self.arms = [Arm("base", options.base, options), Arm("head", options.head, options)]
        self.signal: int | None = None
        self.notes += [
            f"{arm.name} runs already: it is not restarted for each sample"
            for arm in self.arms
            if arm.target is not None
        ]

    def compare(self) -> Comparison:
        """Measure and judge; an interrupted comparison has figures and is inconclusive.

        :raises Unusable: one of them cannot be used, or died.
        """
        for arm in self.arms:
            arm.prepare(self.events.say)
        settle_paths(self.arms)
        null = Arm("null", "null", self.options)
        null.prepare(self.events.say)
        lines = []
        try:
            for plan in self.plans:
                racers = [arm.contestant(plan) for arm in self.arms]
                if cannot := load_races.null_cannot(plan):
                    self.notes.append(f"no null server beside {plan.name}: {cannot}")
                else:
                    racers.append(null.contestant(plan, is_null=True))
                lines += self._plan(plan, racers)
                if self.signal is not None:
                    break
        finally:
            starting.stop_all()
        return Comparison(
            base=self.options.base,
            head=self.options.head,
            how="side by side",
            verdict=verdict_of(lines),
            lines=tuple(lines),
            notes=(*self.notes, *warn_of_many(lines)),
            differences=(),
            seed=self.seed,
            signal=self.signal,
            paths={
                plan.name: tuple(arm.path_for(plan) or plan.path for arm in self.arms)
                for plan in self.plans
                if not plan.requests
            },
        )

    def _plan(self, plan: LoadPlan, contestants: Sequence[Contestant]) -> list[Line]:
        races: list[load_races.Race] = []

        def more(race: load_races.Race, pairs: int) -> None:
            task = f"{plan.name}: pairs {race.blocks + 1} to {pairs}"
            race.rounds = pairs - race.blocks
            self.events.task(task, race.steps)
            for _ in race.run():
                self.events.advance(task, 1)
                reject_unusable(race, plan)
            self.events.done(task, f"{race.blocks} pairs")

        def race(seed: int) -> load_races.Race:
            one = load_races.Race(
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
        except progress.Interrupted as stop:
            if not races:
                raise
            self.signal = stop.signal
            found = cut_short(
                races[0], margins=self.options.margins, seed=self.seed, profiles=len(self.plans)
            )
        if again := sum(sum(one.redone.values()) for one in races):
            self.notes.append(f"{plan.name}: {samples_redone(again)}")
        return found


def reject_unusable(race: load_races.Race, plan: LoadPlan) -> None:
    """Stop a comparison where one side is missing.

    :raises Unusable: one of them died, or could not be loaded.
    """
    for name, why in race.died.items():
        raise Unusable(f"{name} died under {plan.name}: {why}")
    for name, why in race.failed.items():
        raise Unusable(f"{name} could not be loaded with {plan.name}: {why}")


def plans(options: Options, engine: launch.Engine, *, say: Callable[[str], None]) -> list[LoadPlan]:
    """The profiles to compare by, cut to what this machine can carry; default ``pipelined``.

    :param say: gets a line for each profile that was cut, with the reason.
    :raises HarnessError: a profile cannot be compared, or the engine cannot run it.
    """
    known, room = loading.load(), open_connections.connection_room()
    found = []
    for name in options.profiles or ("pipelined",):
        plan, cut = scaling.scaled(known.plan(name), room, cpus=len(os.sched_getaffinity(0)))
        if plan.mode in memory_ladder.MODES:
            raise HarnessError(f"{name} measures memory: compare two run folders instead")
        if plan.tls:
            raise HarnessError(f"{name} needs TLS, which compare does not support: use bench")
        if cannot := engine.cannot(plan):
            raise HarnessError(f"{engine.name} cannot run {name}: {cannot}")
        if cut:
            say(f"{name} is scaled to this machine: {cut}")
        if options.quick:
            # 30 pairs with the null server and 12 to confirm must take less than three minutes.
            warmup_s = min(plan.warmup_s, _QUICK_WARMUP_S)
            plan = msgspec.structs.replace(
                plan, duration_s=plan.quick_duration_s, warmup_s=warmup_s
            )
        found.append(plan)
    return found


def decide(
    profile: str,
    race: Callable[[int], load_races.Race],
    more: Callable[[load_races.Race, int], None],
    *,
    pairs: int,
    margins: dict[str, float],
    seed: int,
    quick: bool = False,
    profiles: int = 1,
) -> list[Line]:
    """Add pairs until every gated metric is decided or the last look is over; then confirm a fail.

    :param race: makes a race of base, head and null from a seed.
    :param more: takes samples until the race has so many blocks.
    :param profiles: how many are compared in all; they share one chance of a false alarm.

    A *fail* must be found twice: a second race of as many pairs must fail too. A ``quick`` one has
    as many pairs as the first look.
    """
    first = race(seed)
    judged: dict[str, Judged] = {}
    results: dict[str, LoadResult] = {}
    for factor, level in LOOKS:
        more(first, round(pairs * factor))
        results = first.results()
        broken = broken_answers(None, results["base"], results["head"])
        if broken is not None:
            return [broken]
        judged = _judge(first, results, margins, level, seed, profiles)
        if all(one.verdict is not Gate.INCONCLUSIVE for one in judged.values()):
            break
    if any(one.verdict is Gate.FAIL for one in judged.values()):
        again = race(seed + 1)
        more(again, round(pairs * LOOKS[0][0]) if quick else first.blocks)
        confirming = again.results()
        broken = broken_answers(None, confirming["base"], confirming["head"])
        if broken is not None:
            return [broken]
        second = _judge(again, confirming, margins, CONFIRMED_LEVEL, seed, profiles)
        judged = {name: _confirmed(one, second.get(name)) for name, one in judged.items()}
    lines = [
        line_of(profile, metric, None, one, one.verdict, one.why) for metric, one in judged.items()
    ]
    if RATE not in judged:
        limit = _limit(results)
        lines.append(line_of(profile, RATE, None, None, None, f"not gated: {limit}"))
    return lines


def _judge(
    race: load_races.Race,
    results: dict[str, LoadResult],
    margins: dict[str, float],
    level: float,
    seed: int,
    profiles: int,
) -> dict[str, Judged]:
    """Judge the cost, and throughput where the server was the bottleneck on both sides."""
    base, head = race.samples["base"], race.samples["head"]
    worse = {COST: paired_ratios.pair_log_ratios(base, head, COST)}
    if results["base"].ranked and results["head"].ranked:
        worse[RATE] = [-log for log in paired_ratios.pair_log_ratios(base, head, RATE)]
    return paired_verdicts.judge_pairs(worse, margins, level=level, seed=seed, shares=profiles)


def cut_short(
    race: load_races.Race, *, margins: dict[str, float], seed: int, profiles: int = 1
) -> list[Line]:
    """The figures of a race that was interrupted; all are inconclusive."""
    results, pairs = race.results(), len(race.samples["head"])
    why = f"interrupted after {pairs} pairs"
    judged = (
        _judge(race, results, margins, CONFIRMED_LEVEL, seed, profiles)
        if pairs >= statistics.SAMPLES_FOR_INTERVAL_MIN
        else {COST: None}
    )
    return [
        line_of(race.plan.name, metric, None, one, Gate.INCONCLUSIVE, why)
        for metric, one in judged.items()
    ]


def _confirmed(first: Judged, second: Judged | None) -> Judged:
    if first.verdict is not Gate.FAIL or (second and second.verdict is Gate.FAIL):
        return first
    return msgspec.structs.replace(
        first, verdict=Gate.INCONCLUSIVE, why="it failed, and a second race did not confirm that"
    )


def _limit(results: dict[str, LoadResult]) -> str:
    for result in results.values():
        if result.bottleneck is not Bottleneck.SERVER:
            return f"bottleneck {result.bottleneck} ({result.bottleneck_why})"
    return "the rate is an offered one"
