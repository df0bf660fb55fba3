"""Compare: three answers on synthetic figures, folders of two runs, commands side by side."""

from __future__ import annotations

import json
import math
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from httpmark.harness.command import compare_runs
from httpmark.harness.load import (
    comparison,
    paired_verdicts,
    self_comparison,
    side_by_side,
    statistics,
)
from httpmark.harness.load import races as load_races
from httpmark.harness.load.engines import by_name
from httpmark.harness.load.paired_verdicts import Gate
from httpmark.harness.model import progress
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.servers import brought, open_connections
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.command_process import start as command_of
from httpmark.harness.tests.shared.made_comparison import (
    PLAN,
    Cost,
    Machine,
    contestants,
    noisy,
    stopped,
)


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


@pytest.fixture(autouse=True)
def _two_thousand_draws_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """For figures as far apart as these; the intervals themselves have tests of their own."""
    monkeypatch.setattr(statistics, "RESAMPLES", 2000)


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


@pytest.mark.process
def test_two_commands_side_by_side(server: Callable[[int], str], tmp_path: Path) -> None:
    words = ("--profile", "keepalive", "--quick", "--pairs", "3", "--seed", "1", "--json")
    # Head does away with base's idle work, which shows on the busiest day.
    code, out, errors = command(
        "compare", server(2000), server(0), *words, cwd=tmp_path, timeout=280
    )
    assert code == 0, errors
    found = json.loads(out)
    assert found["verdict"] == "pass"
    cost = next(line for line in found["lines"] if line["metric"] == "cpu_ns_per_request")
    assert cost["judged"]["ratio"] < 0.7
    assert cost["judged"]["pairs"] >= 3


@pytest.mark.process
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


@pytest.mark.process
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


@pytest.mark.process
def test_a_side_that_dies_is_said(tmp_path: Path) -> None:
    code, _, errors = command(
        "compare", "sh -c 'exit 7 {port}'", "reference", "--quick", cwd=tmp_path
    )
    assert code == 3
    assert "base died under pipelined" in errors
    assert "exit code 7" in errors


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


@pytest.mark.process
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
    assert errors.splitlines()[-1] == "httpmark: interrupted; the results until then are above"
    assert "interrupted after 3 pairs" in " ".join(out.split())
    assert "verdict: inconclusive" in out
    assert "interrupted after 3 pairs" in (tmp_path / "j.xml").read_text("utf-8")


def test_a_side_may_be_brought_as_a_run_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    both = comparison.Options(base="old=./server -p {port}", head="new=http://127.0.0.1:9/")
    old = side_by_side.Arm("base", both.base, both)
    assert old.server.name == "old"
    assert old.server.process is not None
    assert old.server.process.start == (
        "env", "-C", str(tmp_path), str(program), "-p", "{port}",
    )  # fmt: skip
    assert old.is_foreign
    new = side_by_side.Arm("head", both.head, both)
    assert new.target is not None
    assert (new.target.address, new.target.port) == ("127.0.0.1", 9)
    with pytest.raises(HarnessError, match="another server is called old"):
        side_by_side.Arm("head", "old=./other -p {port}", both)


def test_a_command_that_sets_a_variable_names_no_server() -> None:
    words = "WORKERS=1 ./server --port {port}"
    assert not brought.is_named(words)
    assert brought.is_named("mine=./server --port {port}")
    arm = side_by_side.Arm("base", words, comparison.Options(base=words, head=words))
    assert arm.server.name == "base"
