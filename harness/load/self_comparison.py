"""A/A runs: one server compared with itself, which tells what this machine can tell apart."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

from httpmark.harness.load import races as load_races
from httpmark.harness.load import statistics
from httpmark.harness.load.comparison import (
    CONFIRMED_LEVEL,
    COST,
    LOOKS,
    PAIRS_MIN,
    AgainstItself,
    Options,
)
from httpmark.harness.load.engines import by_name
from httpmark.harness.load.side_by_side import ADDRESS, Arm, plans, reject_unusable
from httpmark.harness.load.statistics import Gate
from httpmark.harness.model import progress
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan, LoadSample
from httpmark.harness.servers import (
    sockets,
    starting,
)

# Of an A/A run's pairs, how often the whole gate is played over them, and how many it takes.
DRAWN_GATES = 300
DRAWN_FROM_MIN = 60


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
    logs = load_races.pair_log_ratios(base, head, COST)
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
    race: load_races.Race,
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
                reject_unusable(race, plan)
            base, head = race.samples["base"][-pairs:], race.samples["head"][-pairs:]
            found.append(_with_itself(base, head, margin=margin, seed=seed, number=number))
    except progress.Interrupted as stop:
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
            alarms += verdict(drawn(count), CONFIRMED_LEVEL) is Gate.FAIL
    return alarms


def run_against_itself(
    options: Options, events: progress.Events, *, comparisons: int
) -> list[AgainstItself]:
    """Start ``options.base`` over and over as both sides of an A/A run.

    :raises Unusable: it cannot be used, died, or answered wrongly.
    """
    seed = options.seed if options.seed is not None else secrets.randbits(31)
    engine = by_name.engine(options.engine, wrk2=options.wrk2)
    chosen = plans(options, engine, say=events.say)
    arms = [Arm(name, options.base, options) for name in ("base", "head")]
    arms[0].prepare(events.say)
    port = sockets.free_port(ADDRESS)
    found = []
    for plan in chosen:
        race = load_races.Race(
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
            starting.stop_all()
        events.done(task, "fit" if one.fit else f"unfit: {one.why}")
        found.append(one)
        if one.signal is not None:
            break
    return found
