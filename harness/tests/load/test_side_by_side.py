"""Compare: three answers on synthetic figures, folders of two runs, commands side by side."""

from __future__ import annotations

import contextlib
import json
import math
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.command import compare_runs
from httpmark.harness.load import (
    comparison,
    paired_verdicts,
    placing,
    self_comparison,
    side_by_side,
    statistics,
)
from httpmark.harness.load import contestants as load_contestants
from httpmark.harness.load import races as load_races
from httpmark.harness.load.engines import by_name, launch
from httpmark.harness.load.paired_verdicts import Gate
from httpmark.harness.model import progress, run_folder
from httpmark.harness.model.errors import HarnessError, NothingSelected, Unusable
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.model.memory import BytesPerConnection, Memory
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.report import comparison_text
from httpmark.harness.servers import open_connections
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.command_process import start as command_of
from httpmark.harness.tests.shared.scripted_race import Scripted, Up, fold_of

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


def decided(
    base: Cost,
    head: Cost,
    changes: dict[str, object] | None = None,
    *,
    quick: bool = False,
    profiles: int = 1,
) -> tuple[dict[str, comparison.Line], list[int]]:
    machine = Machine({"base": base, "head": head, "null": noisy(30, 0.01, 9)}, **(changes or {}))
    racers = contestants(machine, "base", "head", "null")
    looks: list[int] = []

    def race(seed: int) -> load_races.Race:
        return load_races.Race(PLAN, machine, racers, rounds=1, duration_s=1.0, seed=seed)

    def more(one: load_races.Race, count: int) -> None:
        looks.append(count)
        one.rounds = count - one.blocks
        list(one.run())

    lines = side_by_side.decide(
        "p",
        race,
        more,
        pairs=12,
        margins=comparison.MARGINS,
        seed=1,
        quick=quick,
        profiles=profiles,
    )
    return {line.metric: line for line in lines}, looks


def unsaid(line: str) -> None:
    raise AssertionError(line)


def test_a_profile_that_is_cut_to_the_machine_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_connections, "connection_room", lambda: {"descriptors": 100})
    said: list[str] = []
    [plan] = side_by_side.plans(
        comparison.Options(base="a", head="b"), by_name.engine("native"), say=said.append
    )
    assert plan.connections == 100
    assert said == [
        "pipelined is scaled to this machine: 100 instead of 512 connections: the hard limit of "
        "descriptors of a process (ulimit -Hn)"
    ]


def test_what_is_alike_passes_at_the_first_look() -> None:
    lines, looks = decided(noisy(100, 0.01, 1), noisy(100, 0.01, 2))
    assert lines[comparison.COST].verdict is Gate.PASS
    assert lines[comparison.RATE].verdict is Gate.PASS
    assert looks == [12]


def test_what_is_worse_fails_and_is_found_twice() -> None:
    lines, looks = decided(noisy(100, 0.01, 1), noisy(110, 0.01, 2))
    assert lines[comparison.COST].verdict is Gate.FAIL
    assert lines[comparison.RATE].verdict is Gate.FAIL
    assert looks == [12, 12], "a fail is confirmed by a race of its own"


def test_a_quick_gate_never_takes_more_than_its_three_minutes() -> None:
    # Worse, and so noisy that the third look finds it: the longest way there is.
    lines, looks = decided(noisy(100, 0.06, 1), noisy(109, 0.06, 2), quick=True)
    assert looks == [12, 20, 30, 12]
    assert lines[comparison.COST].verdict in (Gate.FAIL, Gate.INCONCLUSIVE)
    samples = 3 * (30 + 12)
    [plan] = side_by_side.plans(
        comparison.Options(base="a", head="b", quick=True), by_name.engine("native"), say=unsaid
    )
    start_and_stop_s = 0.2  # of a server, as measured on two busy cores
    assert samples * (plan.duration_s + plan.warmup_s + start_and_stop_s) < 180


def test_what_is_better_passes() -> None:
    lines, _ = decided(noisy(100, 0.01, 1), noisy(60, 0.01, 2))
    assert lines[comparison.COST].verdict is Gate.PASS
    judged = lines[comparison.COST].judged
    assert judged is not None
    assert judged.ratio == pytest.approx(0.6, rel=0.02)


def test_noise_adds_pairs_and_in_the_end_is_called_noise() -> None:
    lines, looks = decided(noisy(100, 0.15, 1), noisy(103, 0.15, 2))
    assert lines[comparison.COST].verdict is Gate.INCONCLUSIVE
    assert looks == [12, 20, 30]


def test_a_fail_that_does_not_come_again_is_inconclusive() -> None:
    # Head is bad for as long as the first race lasts: 12 blocks of 3 samples.
    def head(taken: int) -> float:
        return 130.0 if taken < 36 else 100.0

    lines, _ = decided(noisy(100, 0.01, 1), head)
    assert lines[comparison.COST].verdict is Gate.INCONCLUSIVE
    assert "did not confirm" in lines[comparison.COST].why


def test_drift_that_hits_both_is_no_regression() -> None:
    def drifting(seed: int) -> Cost:
        draw = random.Random(seed)
        return lambda taken: 100 * 1.01**taken * math.exp(draw.gauss(0, 0.01))

    lines, _ = decided(drifting(1), drifting(2))
    assert lines[comparison.COST].verdict is Gate.PASS


def test_wrong_answers_fail_at_once() -> None:
    cost = noisy(100, 0.01, 1)
    lines, looks = decided(cost, cost, {"head": {"errors": {"body": 3}}})
    assert lines[comparison.COST].verdict is Gate.FAIL
    assert "3 body" not in lines[comparison.COST].why  # of all samples together
    assert "body" in lines[comparison.COST].why
    assert looks == [12]
    wrong = {"errors": {"body": 3}}
    both, _ = decided(cost, cost, {"head": wrong, "base": wrong})
    assert both[comparison.COST].verdict is Gate.INCONCLUSIVE


def test_wrong_answers_in_the_race_that_confirms_fail_too() -> None:
    """They came late; but they came: no statistics may swallow them."""
    machine = Machine(
        {"base": noisy(100, 0.01, 1), "head": noisy(110, 0.01, 2), "null": noisy(30, 0.01, 9)}
    )
    racers, races = contestants(machine, "base", "head", "null"), []

    def race(seed: int) -> load_races.Race:
        races.append(load_races.Race(PLAN, machine, racers, rounds=1, duration_s=1.0, seed=seed))
        if len(races) == 2:
            machine.changes = {"head": {"errors": {"body": 1}}}
        return races[-1]

    def more(one: load_races.Race, count: int) -> None:
        one.rounds = count - one.blocks
        list(one.run())

    lines = side_by_side.decide("p", race, more, pairs=12, margins=comparison.MARGINS, seed=1)
    assert len(races) == 2
    assert [(line.verdict, line.why) for line in lines] == [
        (Gate.FAIL, "errors under load: 12 body")
    ]


def test_throughput_that_the_generator_limits_is_not_gated() -> None:
    lines, _ = decided(noisy(36, 0.01, 1), noisy(36, 0.01, 2))
    assert lines[comparison.RATE].verdict is None
    assert "not gated: bottleneck client" in lines[comparison.RATE].why


def test_several_metrics_share_their_chance_of_a_false_alarm() -> None:
    """Holm: what would fail alone need not fail beside others."""
    draw = random.Random(1)
    logs = [0.048 + draw.gauss(0, 0.024) for _ in range(14)]
    margins = dict.fromkeys(("a", "b", "c", "d", "e"), 0.03)
    alone = paired_verdicts.judge_pairs({"a": logs}, margins, level=0.95, seed=1)
    calm = [draw.gauss(0, 0.001) for _ in range(14)]
    beside = paired_verdicts.judge_pairs(
        {"a": logs, **dict.fromkeys("bcde", calm)}, margins, level=0.95, seed=1
    )
    assert alone["a"].verdict is Gate.FAIL
    assert beside["a"].verdict is Gate.INCONCLUSIVE
    assert beside["b"].verdict is Gate.PASS


def test_profiles_share_their_chance_of_a_false_alarm_too() -> None:
    """What fails as the only profile need not fail as one of many; what is plain, does."""
    draw = random.Random(1)
    logs = [0.044 + draw.gauss(0, 0.024) for _ in range(14)]
    plain = [0.3 + draw.gauss(0, 0.02) for _ in range(12)]
    for shares, verdict in ((1, Gate.FAIL), (12, Gate.INCONCLUSIVE)):
        judged = paired_verdicts.judge_pairs(
            {"a": logs}, {"a": 0.03}, level=0.9, seed=1, shares=shares
        )
        assert judged["a"].verdict is verdict
        judged = paired_verdicts.judge_pairs(
            {"a": plain}, {"a": 0.03}, level=0.99, seed=1, shares=shares
        )
        assert judged["a"].verdict is Gate.FAIL
    asked: list[object] = []
    judge = paired_verdicts.judge_pairs

    def heard(*words: object, **named: object) -> dict[str, paired_verdicts.Judged]:
        asked.append(named["shares"])
        return judge(*words, **named)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paired_verdicts, "judge_pairs", heard)
        decided(noisy(100, 0.01, 1), noisy(110, 0.01, 2), profiles=7)
    assert asked == [7, 7], "the race that confirms shares as well"


def test_a_gate_seldom_fails_a_server_against_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 500)
    draw = random.Random(8)
    verdicts = [
        paired_verdicts.judge_pairs(
            {"a": [draw.gauss(0, 0.04) for _ in range(12)]}, {"a": 0.03}, level=0.99, seed=trial
        )["a"].verdict
        for trial in range(300)
    ]
    assert verdicts.count(Gate.FAIL) <= 1


# --- exit codes --------------------------------------------------------------------------------


def outcome(*verdicts: Gate | None) -> comparison.Comparison:
    lines = tuple(
        comparison.Line(profile="p", metric="m", server=None, judged=None, verdict=v, why="")
        for v in verdicts
    )
    return comparison.Comparison(
        base="a", head="b", how="two runs", verdict=comparison.verdict_of(lines), lines=lines,
        notes=(), differences=(), seed=1,
    )  # fmt: skip


def test_the_worst_line_decides_and_the_exit_code_says_so() -> None:
    assert comparison.exit_code(outcome(Gate.PASS, None), inconclusive="fail") == 0
    assert comparison.exit_code(outcome(Gate.PASS, Gate.INCONCLUSIVE), inconclusive="warn") == 0
    assert comparison.exit_code(outcome(Gate.PASS, Gate.INCONCLUSIVE), inconclusive="pass") == 0
    assert comparison.exit_code(outcome(Gate.PASS, Gate.INCONCLUSIVE), inconclusive="fail") == 4
    assert comparison.exit_code(outcome(Gate.INCONCLUSIVE, Gate.FAIL), inconclusive="pass") == 1
    with pytest.raises(NothingSelected):
        outcome(None)


# --- A/A ---------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _few_gates_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_comparison, "DRAWN_GATES", 3)


def against_itself(base: Cost, head: Cost, *, comparisons: int = 10) -> comparison.AgainstItself:
    machine = Machine({"base": base, "head": head})
    race = load_races.Race(
        PLAN, machine, contestants(machine, "base", "head"), rounds=12, duration_s=1.0, seed=3
    )
    return self_comparison.against_itself(
        "a", PLAN, race, lambda: None, comparisons=comparisons, pairs=12, margin=0.03, seed=3
    )


def text_of(found: list[comparison.AgainstItself]) -> str:
    """What is printed of A/A runs, whatever the terminal's width."""
    return " ".join(" ".join(comparison_text.lines(found)).split())


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
    monkeypatch.setattr(statistics, "RESAMPLES", 500)
    monkeypatch.setattr(self_comparison, "DRAWN_GATES", 300)
    calm = against_itself(noisy(100, 0.02, 1), noisy(100, 0.02, 2))
    assert calm.drawn_alarms == 0
    assert "0 failed: at most 1.0% false alarms" in text_of([calm])
    few = against_itself(noisy(100, 0.02, 1), noisy(100, 0.02, 2), comparisons=4)
    assert few.drawn_alarms is None
    assert "false alarms" not in text_of([few])


def test_gates_that_are_played_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 500)
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


def test_a_comparison_fits_the_terminal(tmp_path: Path) -> None:
    base, head = (stored(tmp_path / name, cost=90, seed=1) for name in ("a" * 60, "b" * 60))
    for line in comparison_text.lines(
        compare_runs.folders(comparison.Options(base=base, head=head, seed=1))
    ):
        assert len(line) <= 80 or " " not in line.strip(), line
    calm = against_itself(noisy(100, 0.02, 1), noisy(100, 0.02, 2), comparisons=2)
    for line in comparison_text.lines([calm]):
        assert len(line) <= 80, line


def test_who_comes_second_pays_is_found() -> None:
    # Odd samples are second in their pair.
    found = against_itself(
        lambda taken: 100 + 4.0 * (taken % 2) + 0.1 * (taken % 7),
        lambda taken: 100 + 4.0 * (taken % 2) + 0.1 * (taken % 5),
    )
    assert found.slot is not None
    assert found.slot[0] > 0.03
    assert "order matters" in text_of([found])


# --- two run folders ---------------------------------------------------------------------------


def stored(
    folder: Path, *, cost: float, seed: int, resident: float = 100.0, fingerprint: str = "f",
    null: bool = True, **changes: object,
) -> str:  # fmt: skip
    """A run folder of one server, twelve rounds, on a machine of its own speed."""
    draw = random.Random(seed)
    pace = draw.uniform(0.5, 2.0)  # two runs are never as fast as each other
    costs = {"a": [cost * pace * math.exp(draw.gauss(0, 0.01)) for _ in range(12)]}
    if null:
        costs["null"] = [30 * pace * math.exp(draw.gauss(0, 0.01)) for _ in range(12)]
    result = fold_of(costs, rounds=12, **changes)["a"]
    memory = Memory(
        vmpeak_kb=1, vmhwm_kb=1, pss_kb=1,
        bytes_per_connection=BytesPerConnection(None, resident, None),
    )  # fmt: skip
    server = ServerResult(
        name="a", title="a", language="C", version=None, runtime="process", load=(result,),
        memory=memory,
    )  # fmt: skip
    made = Run(
        schema_version="1.0", catalogue_version="c", harness_version="0", id="x", started="now",
        finished="then", interrupted=False, quick=False, seed=seed, suites=(), profiles=("p",),
        environment={"fingerprint": fingerprint, "kernel": fingerprint}, servers=(server,),
    )  # fmt: skip
    folder.mkdir()
    run_folder.write(made, folder)
    return str(folder)


def of_folders(base: str, head: str, **changes: object) -> dict[str, comparison.Line]:
    options = comparison.Options(base=base, head=head, seed=1, **changes)  # type: ignore[arg-type]
    return {line.metric: line for line in compare_runs.folders(options).lines}


def test_two_runs_are_compared_by_what_they_cost_over_null(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1)
    alike = stored(tmp_path / "alike", cost=90, seed=2)
    worse = stored(tmp_path / "worse", cost=110, seed=3)
    assert of_folders(base, alike)[comparison.COST].verdict is Gate.PASS
    assert of_folders(base, worse)[comparison.COST].verdict is Gate.FAIL
    assert of_folders(worse, base)[comparison.COST].verdict is Gate.PASS
    wide = of_folders(base, worse, margin=0.5)
    assert wide[comparison.COST].verdict is Gate.PASS


def test_a_head_that_holds_fewer_connections_does_not_pass_by_the_slope_of_those(
    tmp_path: Path,
) -> None:
    base, head = (stored(tmp_path / name, cost=90, seed=1, resident=1000) for name in "ab")
    for folder, held, reason in ((base, 20_000, None), (head, 5_000, "the server held 5,000")):
        memory = run_folder.read(Path(folder)).servers[0].memory
        assert memory is not None
        changed(
            folder, memory=msgspec.structs.replace(memory, connections_held=held, reason=reason)
        )
    line = of_folders(base, head)[comparison.MEMORY]
    assert line.verdict is Gate.INCONCLUSIVE
    assert line.why == "head held 5,000 connections, base 20,000: the server held 5,000"
    assert of_folders(head, base)[comparison.MEMORY].verdict is Gate.PASS


def test_runs_that_were_cut_short_or_quick_say_so(tmp_path: Path) -> None:
    base, head = (stored(tmp_path / name, cost=90, seed=1) for name in "ab")
    run_folder.write(
        msgspec.structs.replace(run_folder.read(Path(head)), quick=True, interrupted=True),
        Path(head),
    )
    notes = compare_runs.folders(comparison.Options(base=base, head=head, seed=1)).notes
    assert "head was interrupted: only what it measured is compared" in notes
    assert "head was a quick run and the other was not: its windows are shorter" in notes
    alike = compare_runs.folders(comparison.Options(base=head, head=head, seed=1)).notes
    assert not any("quick" in note for note in alike)


def test_what_so_many_pairs_can_show_is_printed(tmp_path: Path) -> None:
    base, head = (
        stored(tmp_path / name, cost=90, seed=seed) for name, seed in (("a", 1), ("b", 2))
    )
    found = compare_runs.folders(comparison.Options(base=base, head=head, seed=1))
    judged = next(line.judged for line in found.lines if line.metric == comparison.COST)
    assert judged is not None
    assert judged.detectable is not None
    told = f"these pairs show a change of {judged.detectable - 1:.1%} or more 8 times in 10"
    assert told in " ".join(" ".join(comparison_text.lines(found)).split())


def test_memory_is_compared_by_its_slope(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1, resident=1000)
    more = stored(tmp_path / "more", cost=90, seed=2, resident=4000)
    assert of_folders(base, more)[comparison.MEMORY].verdict is Gate.FAIL
    assert of_folders(more, base)[comparison.MEMORY].verdict is Gate.PASS


def test_runs_without_null_are_inconclusive(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1, null=False)
    head = stored(tmp_path / "head", cost=300, seed=2, null=False)
    line = of_folders(base, head)[comparison.COST]
    assert line.verdict is Gate.INCONCLUSIVE
    assert "no null server" in line.why


def test_different_environments_are_refused_unless_forced(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1, fingerprint="one")
    head = stored(tmp_path / "head", cost=90, seed=2, fingerprint="other")
    with pytest.raises(HarnessError, match=r"kernel: one, other.*--force"):
        of_folders(base, head)
    forced = compare_runs.folders(comparison.Options(base=base, head=head, force=True))
    assert forced.differences == ("kernel: one, other",)
    shown = comparison_text.lines(forced)
    assert "--force was given" in "\n".join(shown)
    assert shown.index("  differs: kernel: one, other") < next(
        number for number, line in enumerate(shown) if comparison.COST in line
    ), "what it is worth stands above the figures"


def test_a_container_is_not_compared_with_a_process(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1)
    head = stored(tmp_path / "head", cost=90, seed=2)
    as_docker(tmp_path / "head", {"version": "20.10", "runc": "1.1"})
    with pytest.raises(HarnessError, match="a ran as: process, docker"):
        of_folders(base, head)
    as_docker(tmp_path / "base", {"version": "20.10", "runc": "1.0"})
    with pytest.raises(HarnessError, match=r"docker\.runc: 1\.0, 1\.1"):
        of_folders(base, head)
    as_docker(tmp_path / "base", {"version": "20.10", "runc": "1.1"})
    assert of_folders(base, head)[comparison.COST].verdict is Gate.PASS


def as_docker(folder: Path, facts: dict[str, str]) -> None:
    """Let a stored run have had its server in a container of this daemon."""
    made = run_folder.read(folder)
    server = msgspec.structs.replace(made.servers[0], runtime="docker")
    run_folder.write(
        msgspec.structs.replace(
            made, servers=(server,), environment={**made.environment, "docker": facts}
        ),
        folder,
    )


def test_a_head_with_errors_fails(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1)
    head = stored(tmp_path / "head", cost=90, seed=2, a={"errors": {"order": 1}})
    assert of_folders(base, head)[comparison.COST].verdict is Gate.FAIL


def changed(folder: str, **changes: object) -> str:
    """Change the one server of a stored run."""
    made = run_folder.read(Path(folder))
    server = msgspec.structs.replace(made.servers[0], **changes)
    run_folder.write(msgspec.structs.replace(made, servers=(server,)), Path(folder))
    return folder


@pytest.mark.parametrize(
    ("changes", "verdict", "said"),
    [
        ({"died": "exit code 139"}, Gate.FAIL, "head died: exit code 139"),
        ({}, Gate.INCONCLUSIVE, "head did not measure "),
        ({"unavailable": "no cargo"}, Gate.INCONCLUSIVE, "not measure it: no cargo"),
        ({"name": "b"}, Gate.INCONCLUSIVE, "head does not have this server"),
    ],
)
def test_what_head_lacks_is_never_passed_over(
    changes: dict[str, object], verdict: Gate, said: str, tmp_path: Path
) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1)
    head = changed(stored(tmp_path / "head", cost=90, seed=2), load=(), memory=None, **changes)
    lines = of_folders(base, head)
    for metric in (comparison.COST, comparison.MEMORY):
        assert lines[metric].verdict is verdict
        assert lines[metric].server == "a"
        assert said in lines[metric].why
    code, out, _ = command("compare", base, head, "--inconclusive", "fail", cwd=tmp_path)
    assert code == (1 if verdict is Gate.FAIL else 4)
    assert f"verdict: {verdict}" in out


def test_a_death_alone_fails_and_one_in_both_does_not(tmp_path: Path) -> None:
    base = changed(stored(tmp_path / "base", cost=90, seed=1), load=(), memory=None)
    head = changed(stored(tmp_path / "head", cost=90, seed=2), died="killed", load=(), memory=None)
    assert of_folders(base, head)[comparison.ALIVE].verdict is Gate.FAIL
    partly = stored(tmp_path / "partly", cost=90, seed=2)
    load_result = run_folder.read(Path(partly)).servers[0].load[0]
    changed(partly, died="killed", load=(msgspec.structs.replace(load_result, reason="killed"),))
    whole = stored(tmp_path / "whole", cost=90, seed=1)
    assert of_folders(whole, partly)[comparison.COST].verdict is Gate.FAIL
    changed(whole, died="killed, too")
    assert of_folders(whole, partly)[comparison.COST].verdict is Gate.INCONCLUSIVE


def test_all_figures_of_two_runs_share_one_chance_of_a_false_alarm(tmp_path: Path) -> None:
    """Alone it fails; of two hundred one such is no wonder."""
    base = stored(tmp_path / "base", cost=90, seed=1)
    head = stored(tmp_path / "head", cost=95.5, seed=8)
    assert of_folders(base, head)[comparison.COST].verdict is Gate.FAIL
    for folder, other in ((base, "x"), (head, "y")):
        made = run_folder.read(Path(folder))
        calm = run_folder.read(Path(stored(tmp_path / other, cost=90, seed=4))).servers[0]
        more = [msgspec.structs.replace(calm, name=f"s{number}") for number in range(200)]
        run_folder.write(
            msgspec.structs.replace(made, servers=(*made.servers, *more)), Path(folder)
        )
    found = compare_runs.folders(comparison.Options(base=base, head=head, seed=1))
    of_a = [line for line in found.lines if (line.server, line.metric) == ("a", comparison.COST)]
    assert [line.verdict for line in of_a] == [Gate.INCONCLUSIVE]
    assert any("201 gated figures share one chance" in note for note in found.notes)


def test_only_the_profiles_that_are_named_are_asked_for(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1)
    head = changed(stored(tmp_path / "head", cost=90, seed=2), memory=None)
    assert set(of_folders(base, head, profiles=("p",))) == {comparison.COST}
    assert set(of_folders(base, head, profiles=("idle_memory",))) == {comparison.MEMORY}


def test_a_long_command_is_no_folder() -> None:
    assert not compare_runs.is_folder("./server --port {port} " + "x" * 5000)


def test_a_folder_goes_with_a_folder(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1)
    options = comparison.Options(base=base, head="reference")
    with pytest.raises(HarnessError, match="only be compared with another one"):
        compare_runs.measure(options, events=None)  # type: ignore[arg-type]


# --- the command -------------------------------------------------------------------------------

SERVER = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
work = int(sys.argv[2])
import selectors
choose = selectors.DefaultSelector()
choose.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in choose.select():
        if key.fileobj is listener:
            choose.register(listener.accept()[0], selectors.EVENT_READ)
            continue
        try:
            got = key.fileobj.recv(65536)
        except OSError:
            got = b""
        if not got:
            choose.unregister(key.fileobj)
            key.fileobj.close()
            continue
        heads = got.count(b"\\r\\n\\r\\n")
        for _ in range(work * heads):
            pass
        key.fileobj.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok" * heads)
"""


@pytest.fixture
def server(tmp_path: Path) -> Callable[[int], str]:
    (tmp_path / "server.py").write_text(SERVER)
    return lambda work: f"{sys.executable} server.py {{port}} {work}"


def test_two_commands_side_by_side(server: Callable[[int], str], tmp_path: Path) -> None:
    words = ("--profile", "keepalive", "--quick", "--pairs", "3", "--seed", "1", "--json")
    # Head does away with base's idle work: that is decided at the first look, even on a busy day.
    code, out, errors = command(
        "compare", server(2000), server(0), *words, cwd=tmp_path, timeout=280
    )
    assert code == 0, errors
    found = json.loads(out)
    assert found["verdict"] == "pass"
    cost = next(line for line in found["lines"] if line["metric"] == "cpu_ns_per_request")
    assert cost["judged"]["ratio"] < 0.7
    assert cost["judged"]["pairs"] == 3


def test_null_is_left_out_where_it_cannot_serve(tmp_path: Path) -> None:
    code, out, errors = command(
        "compare", "reference", "reference", "--profile", "mixed", "--quick", "--pairs", "3",
        "--seed", "1", "--runtime", "process", "--json", cwd=tmp_path, timeout=280,
    )  # fmt: skip
    assert code in (0, 1), errors
    found = json.loads(out)
    assert (
        "no null server beside mixed: it supports neither HEAD nor chunked content"
        in found["notes"]
    )
    cost = next(line for line in found["lines"] if line["metric"] == comparison.COST)
    assert cost["judged"]["pairs"] >= 3


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("a",), 2, "BASE and HEAD, or BASE and --aa N"),
        (("nginy", "reference"), 2, "did you mean nginx"),
        (("./server --fast", "reference"), 2, "{port}"),
        (("/", "reference"), 2, "/ is not a run folder: it has no result.json"),
        (("reference", "null", "--margin", "nan"), 2, "'nan' is not a number"),
        (("reference", "null", "--profile", "idle_memory"), 2, "two run folders"),
        (
            ("reference", "null", "--profile", "open_10k", "--engine", "wrk"),
            2,
            "cannot offer a rate",
        ),
        (("127.0.0.1:1", "127.0.0.1:1"), 3, "is the server running?"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    got, out, errors = command("compare", *words, cwd=tmp_path)
    assert (got, out) == (code, "")
    assert said in errors.strip().splitlines()[-1]


def test_both_sides_get_one_rate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[object] = []

    class Told(load_races.Race):
        def __init__(self, *words: object, **named: object) -> None:
            asked.append(named.get("one_rate"))
            raise Unusable("seen")

    monkeypatch.setattr(load_races, "Race", Told)
    options = comparison.Options(base="null", head="null", runtime="process")
    events = Silent()
    with pytest.raises(Unusable, match="seen"):
        compare_runs.measure(options, events)
    with pytest.raises(Unusable, match="seen"):
        self_comparison.run_against_itself(options, events, comparisons=1)
    assert asked == [True, True]


class Silent:
    """A caller of a run who does not listen."""

    def say(self, line: str) -> None: ...

    def task(self, name: str, total: int) -> None: ...

    def advance(self, name: str, by: int) -> None: ...

    def done(self, name: str, result: str) -> None: ...


def test_a_side_that_dies_is_said(tmp_path: Path) -> None:
    code, _, errors = command(
        "compare", "sh -c 'exit 7 {port}'", "reference", "--quick", cwd=tmp_path
    )
    assert code == 3
    assert "base died under pipelined" in errors
    assert "exit code 7" in errors


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


@pytest.mark.parametrize(("at", "pairs"), [(9, 4), (5, 2), (0, 0)])
def test_an_interrupted_comparison_decides_nothing(at: int, pairs: int) -> None:
    race = stopped(at)
    race.rounds = 9
    with pytest.raises(progress.Interrupted):
        list(race.run())
    lines = side_by_side.cut_short(race, margins=comparison.MARGINS, seed=1)
    assert {(line.verdict, line.why) for line in lines} == {
        (Gate.INCONCLUSIVE, f"interrupted after {pairs} pairs")
    }
    cost = next(line for line in lines if line.metric == comparison.COST)
    assert (cost.judged is not None) == (pairs >= 3)


def test_ctrl_c_prints_what_the_pairs_until_then_say(tmp_path: Path) -> None:
    process = command_of(
        "compare", "null", "null", "--pairs", "3", "--margin", "0.01", "--quick", "--runtime",
        "process", "--junit", "j.xml", cwd=tmp_path,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "3 pairs" in line:
            break
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "httpmark: interrupted; the results until then are kept"
    assert "interrupted after 3 pairs" in " ".join(out.split())
    assert "verdict: inconclusive" in out
    assert "interrupted after 3 pairs" in (tmp_path / "j.xml").read_text("utf-8")


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
