"""Races of base, head and null with scripted costs."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterator

from httpmark.harness.load import (
    comparison,
    placing,
    self_comparison,
)
from httpmark.harness.load import contestants as load_contestants
from httpmark.harness.load import races as load_races
from httpmark.harness.model import progress
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.report import comparison_text
from httpmark.harness.tests.shared.scripted_race import Scripted, Up

PLAN = LoadPlan(name="p", title="t", why="w", connections=4, depth=2, duration_s=1.0)
Cost = Callable[[int], float]


class Machine(Scripted):
    """An engine whose figures follow from how many samples it has taken: noise, drift, a fault."""

    name = "machine"

    def __init__(self, costs: dict[str, Cost], **changes: object) -> None:
        super().__init__({}, **changes)
        self.by_sample = costs

    def cost(self) -> float:
        return self.by_sample[self.up](len(self.order) - 1)


def contestants(machine: Machine, *names: str) -> list[load_contestants.Contestant]:
    def contestant(name: str) -> load_contestants.Contestant:
        @contextlib.contextmanager
        def start(plan: LoadPlan, place: placing.Placement) -> Iterator[Up]:
            machine.up = name
            yield Up(name)

        return load_contestants.Contestant(name, start, name == "null")

    return [contestant(name) for name in names]


def noisy(mean: float, sd: float, seed: int) -> Cost:
    draw = random.Random(seed)
    return lambda _: mean * math.exp(draw.gauss(0, sd))


def text_of(found: list[comparison.AgainstItself]) -> str:
    """What is printed of A/A runs, whatever the terminal's width."""
    return " ".join(" ".join(comparison_text.lines(found)).split())


class Stopped(Machine):
    """Somebody presses Ctrl-C while this sample is taken."""

    def __init__(self, costs: dict[str, Cost], *, at: int) -> None:
        super().__init__(costs)
        self.at = at

    def cost(self) -> float:
        if len(self.order) > self.at:
            raise progress.Interrupted(130)
        return super().cost()


def stopped(at: int) -> load_races.Race:
    machine = Stopped({"base": noisy(100, 0.02, 1), "head": noisy(100, 0.02, 2)}, at=at)
    return load_races.Race(
        PLAN, machine, contestants(machine, "base", "head"), rounds=3, duration_s=1.0, seed=3
    )


def against_itself(base: Cost, head: Cost, *, comparisons: int = 10) -> comparison.AgainstItself:
    machine = Machine({"base": base, "head": head})
    race = load_races.Race(
        PLAN, machine, contestants(machine, "base", "head"), rounds=12, duration_s=1.0, seed=3
    )
    return self_comparison.against_itself(
        "a", PLAN, race, lambda: None, comparisons=comparisons, pairs=12, margin=0.03, seed=3
    )
