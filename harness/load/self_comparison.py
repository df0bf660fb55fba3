"""A/A runs: one server compared with itself, which shows what this machine can tell apart."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

from httpmark.harness.load import paired_ratios, paired_verdicts, statistics
from httpmark.harness.load import races as load_races
from httpmark.harness.load.comparison import (
    CONFIRMED_LEVEL,
    COST,
    LOOKS,
    PAIRS_MIN,
    AgainstItself,
    Options,
)
from httpmark.harness.load.engines import by_name
from httpmark.harness.load.paired_verdicts import Gate
from httpmark.harness.load.side_by_side import Arm, plans, reject_unusable, settle_paths
from httpmark.harness.model import progress
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan, LoadSample
from httpmark.harness.servers import (
    starting,
)

# How often the whole gate is repeated over pairs drawn from an A/A run, and how many pairs the run
# must have for that.
DRAWN_GATES = 300
DRAWN_FROM_MIN = 60
_APART_BY_CHANCE = 0.05  # of 95 % intervals, those that exclude 1 though nothing differs
_CHANCE_MIN = 0.01  # more such intervals than chance gives once in a hundred A/A runs are too many


class _WithItself(NamedTuple):
    """One comparison of an A/A run."""

    failed: bool
    bounds: tuple[float, float] | None  # of the log-ratio of cost, 95 %
    logs: list[float]
    by_order: list[float]  # second over first of a pair; empty where a pair is missing


def _with_itself(
    base: Sequence[LoadSample],
    head: Sequence[LoadSample],
    *,
    margin: float,
    seed: int,
    number: int,
) -> _WithItself:
    logs = paired_ratios.pair_log_ratios(base, head, COST)
    judged = paired_verdicts.judge_pairs({COST: logs}, {COST: margin}, level=0.95, seed=seed)[COST]
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
    race: load_races.Race,
    advance: Callable[[], None],
    *,
    comparisons: int,
    pairs: int,
    margin: float,
    seed: int,
) -> AgainstItself:
    """An A/A run: ``comparisons`` of one server, called base and head, with itself.

    A machine is unfit where one of the gates failed, or where more intervals than chance allows
    (:data:`_CHANCE_MIN`) say that a server differs from itself. An interrupted run counts the
    comparisons that were complete.

    :raises Interrupted: before the first comparison was complete.
    :raises Unusable: too few samples without errors.
    """
    signal: int | None = None
    found: list[_WithItself] = []
    try:
        for number in range(comparisons):
            race.rounds = pairs
            for _ in race.run():
                advance()
                reject_unusable(race, plan)
            base, head = race.samples["base"][-pairs:], race.samples["head"][-pairs:]
            found.append(_with_itself(base, head, margin=margin, seed=seed, number=number))
    except progress.Interrupted as stop:
        if not any(one.bounds for one in found):
            raise
        signal = stop.signal
    judged = [one.bounds for one in found if one.bounds]
    if not judged:
        raise Unusable(f"{name}: too few samples without errors for an A/A run")
    false_alarms = sum(one.failed for one in found)
    apart = sum(not low <= 0 <= high for low, high in judged)
    unfit = _unfit(false_alarms, apart, len(judged))
    logs = [log for one in found for log in one.logs]
    deviation = statistics.deviation(logs)
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
        drift=statistics.drift(_costs_in_order(race)),
        slot=statistics.interval(
            [log for one in found for log in one.by_order], level=0.95, seed=seed
        ),
        fit=unfit is None,
        why=unfit or "a server does not differ from itself",
        signal=signal,
    )


def _unfit(false_alarms: int, apart: int, judged: int) -> str | None:
    """Why this machine cannot tell servers apart; None where it can."""
    if false_alarms:
        return f"{false_alarms} of {judged} gates failed a server against itself"
    if statistics.binomial_tail(apart, judged, _APART_BY_CHANCE) < _CHANCE_MIN:
        return f"{apart} of {judged} intervals say that a server differs from itself"
    return None


def _costs_in_order(race: load_races.Race) -> list[float]:
    """The costs of all samples without errors, in the order in which they were taken."""
    return [
        cost
        for block in zip(race.samples["base"], race.samples["head"], strict=True)
        for sample in sorted(block, key=lambda sample: sample.order)
        if sample.is_sound and (cost := sample.cpu_ns_per_request.server) is not None
    ]


def _drawn_alarms(logs: Sequence[float], *, margin: float, seed: int) -> int | None:
    """How many of :data:`DRAWN_GATES` gates over pairs of an A/A run fail; None: too few pairs.

    A gate is all of :func:`side_by_side.decide` at its default: three looks, and a race that
    confirms. It gets pairs that followed each other, so that disturbances longer than a pair are
    in them. Which side is called base is drawn anew for each pair, as both are the same server.
    """
    if len(logs) < DRAWN_FROM_MIN:
        return None
    draw = random.Random(seed)

    def drawn(count: int) -> list[float]:
        first = draw.randrange(len(logs))
        return [draw.choice((-1, 1)) * logs[(first + i) % len(logs)] for i in range(count)]

    def verdict(pairs: Sequence[float], level: float) -> Gate:
        return paired_verdicts.judge_pairs({COST: pairs}, {COST: margin}, level=level, seed=seed)[
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
            alarms += verdict(drawn(count), CONFIRMED_LEVEL) is Gate.FAIL
    return alarms


def run_against_itself(
    options: Options, events: progress.Events, *, comparisons: int
) -> list[AgainstItself]:
    """Measure ``options.base`` as both sides of an A/A run, for each profile.

    :raises Unusable: it cannot be used, died, or gave wrong answers.
    """
    seed = options.seed if options.seed is not None else secrets.randbits(31)
    engine = by_name.engine(options.engine, wrk2=options.wrk2)
    chosen = plans(options, engine, say=events.say)
    arms = [Arm(name, options.base, options) for name in ("base", "head")]
    arms[0].prepare(events.say)
    settle_paths(arms)
    found = []
    for plan in chosen:
        race = load_races.Race(
            plan,
            engine,
            [arm.contestant(plan) for arm in arms],
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
            starting.stop_all()
        events.done(task, "fit" if one.fit else f"unfit: {one.why}")
        found.append(one)
        if one.signal is not None:
            break
    return found
