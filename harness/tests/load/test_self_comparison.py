"""A server against itself: a machine that can tell servers apart, and one that cannot."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import msgspec
import pytest

from httpmark.harness.load import (
    comparison,
    self_comparison,
    statistics,
)
from httpmark.harness.load import races as load_races
from httpmark.harness.load.engines import launch
from httpmark.harness.model import progress
from httpmark.harness.model.errors import Unusable
from httpmark.harness.servers import cpu_time
from httpmark.harness.tests.shared.made_comparison import (
    PLAN,
    Cost,
    Machine,
    against_itself,
    contestants,
    noisy,
    stopped,
    text_of,
)


@pytest.fixture(autouse=True)
def _few_gates_are_drawn_and_no_process_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_time, "idle_ns", lambda cpus: None)
    monkeypatch.setattr(self_comparison, "DRAWN_GATES", 3)
    monkeypatch.setattr(statistics, "RESAMPLES", 500)


def test_a_quiet_machine_is_fit_and_says_what_it_can_show() -> None:
    found = against_itself(noisy(100, 0.02, 1), noisy(100, 0.02, 2))
    assert found.fit
    assert found.false_alarms == 0
    assert found.deviation == pytest.approx(0.02 * math.sqrt(2), rel=0.2)
    shown = found.detectable["12"]
    assert shown is not None
    assert 1.015 < shown < 1.04
    assert found.drift is not None
    assert not found.drift.is_clear
    text = text_of([found])
    assert "fit: a server does not differ from itself" in text
    assert "8 times in 10" in text
    assert comparison.exit_code([found], inconclusive="warn") == 0


def test_a_drift_of_the_machine_is_told_and_pairs_cancel_it() -> None:
    def drifting(seed: int) -> Cost:
        draw = random.Random(seed)
        return lambda taken: 100 * 1.002**taken * math.exp(draw.gauss(0, 0.02))

    found = against_itself(drifting(1), drifting(2))
    assert found.drift is not None
    assert found.drift.is_clear
    assert found.drift.ratio == pytest.approx(1.002**239, rel=0.1)
    assert found.fit, found.why
    assert "the machine drifted" in text_of([found])


def test_a_drift_of_one_side_makes_the_machine_unfit() -> None:
    draw = random.Random(5)

    def head(taken: int) -> float:
        return 100 * 1.0015**taken * math.exp(draw.gauss(0, 0.01))

    found = against_itself(noisy(100, 0.01, 1), head)
    assert found.false_alarms > 0
    assert not found.fit
    assert "UNFIT" in text_of([found])
    assert comparison.exit_code([found], inconclusive="pass") == 1


def test_too_many_intervals_apart_are_more_than_chance() -> None:
    # Within the margin, so no gate fails; yet a server that is always 2 % dearer is not itself.
    found = against_itself(noisy(100, 0.005, 1), noisy(102, 0.005, 2))
    assert found.false_alarms == 0
    assert found.apart == 10
    assert not found.fit


def test_the_whole_gate_is_played_over_the_pairs_of_an_a_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(self_comparison, "DRAWN_GATES", 300)
    calm = against_itself(noisy(100, 0.02, 1), noisy(100, 0.02, 2))
    assert calm.drawn_alarms == 0
    assert "0 failed: at most 1.0% false alarms" in text_of([calm])
    few = against_itself(noisy(100, 0.02, 1), noisy(100, 0.02, 2), comparisons=4)
    assert few.drawn_alarms is None
    assert "false alarms" not in text_of([few])


def test_gates_that_are_played_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_comparison, "DRAWN_GATES", 300)
    # Without a margin half of all draws are worse, and one of many is so far enough.
    monkeypatch.setattr(self_comparison, "LOOKS", ((0.5, 0.5),))
    monkeypatch.setattr(self_comparison, "CONFIRMED_LEVEL", 0.5)
    draw = random.Random(2)
    alarms = self_comparison._drawn_alarms(
        [draw.gauss(0, 0.05) for _ in range(120)], margin=0.0, seed=1
    )
    assert alarms is not None
    assert 5 < alarms < 60


def test_comparisons_without_pairs_are_not_counted_among_those_that_held() -> None:
    """What could not be judged is no evidence for a machine."""
    errors: Iterator[dict[str, int]] = iter([{}] * 4 + [{"status": 1}] * 8)

    class Breaking(Machine):
        def measure(self, *words: object, **named: object) -> launch.Measured:
            found = super().measure(*words, **named)  # type: ignore[arg-type]
            if self.up == "head":
                return msgspec.structs.replace(found, errors=next(errors))
            return found

    machine = Breaking({"base": lambda _: 100.0, "head": lambda _: 100.0})
    race = load_races.Race(
        PLAN, machine, contestants(machine, "base", "head"), rounds=4, duration_s=1.0, seed=3
    )
    found = self_comparison.against_itself(
        "a", PLAN, race, lambda: None, comparisons=3, pairs=4, margin=0.03, seed=3
    )
    assert (found.comparisons, found.unjudged) == (1, 2)
    text = text_of([found])
    assert "1 comparisons of 4 pairs" in text
    assert "2 more had too few samples without errors to be judged" in text


def test_samples_that_were_taken_again_are_counted() -> None:
    starving = iter([0.5, *[0.0] * 20])

    class Starving(Machine):
        def measure(self, *words: object, **named: object) -> launch.Measured:
            found = super().measure(*words, **named)  # type: ignore[arg-type]
            waited = next(starving)
            return msgspec.structs.replace(
                found, run_delay_ratio=waited, client_run_delay_ratio=waited
            )

    machine = Starving({"base": lambda _: 100.0, "head": lambda _: 100.0})
    race = load_races.Race(
        PLAN, machine, contestants(machine, "base", "head"), rounds=4, duration_s=1.0, seed=3
    )
    found = self_comparison.against_itself(
        "a", PLAN, race, lambda: None, comparisons=1, pairs=4, margin=0.03, seed=3
    )
    assert found.redone == 1
    assert "1 samples got too little CPU and were taken again" in text_of([found])


def test_who_comes_second_pays_is_found() -> None:
    # Odd samples are second in their pair.
    found = against_itself(
        lambda taken: 100 + 4.0 * (taken % 2) + 0.1 * (taken % 7),
        lambda taken: 100 + 4.0 * (taken % 2) + 0.1 * (taken % 5),
    )
    assert found.slot is not None
    assert found.slot[0] > 0.03
    assert "order matters" in text_of([found])


def test_an_interrupted_a_a_run_is_of_its_whole_comparisons() -> None:
    def asked(at: int) -> comparison.AgainstItself:
        return self_comparison.against_itself(
            "a", PLAN, stopped(at), lambda: None, comparisons=9, pairs=3, margin=0.03, seed=3
        )

    found = asked(4 * 6 + 5)
    assert (found.comparisons, found.wanted, found.signal) == (4, 9, 2)
    assert "4 comparisons of 3 pairs" in text_of([found])
    assert "interrupted: 9 comparisons were wanted" in text_of([found])
    assert comparison.exit_code([found], inconclusive="pass") == 130
    with pytest.raises(progress.Interrupted):
        asked(5)


def test_an_a_a_run_of_wrong_answers_is_none() -> None:
    costs: dict[str, Cost] = {"base": lambda _: 100.0, "head": lambda _: 100.0}
    machine = Machine(costs, head={"errors": {"status": 1}})
    race = load_races.Race(
        PLAN, machine, contestants(machine, "base", "head"), rounds=3, duration_s=1.0, seed=3
    )
    with pytest.raises(Unusable, match="too few samples without errors"):
        self_comparison.against_itself(
            "a", PLAN, race, lambda: None, comparisons=1, pairs=3, margin=0.03, seed=3
        )
