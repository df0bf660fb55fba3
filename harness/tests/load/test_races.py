"""Races: interleaved, null in each block, starved samples taken again, the dead not hidden."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable

import msgspec
import pytest

from httpmark.harness.load import paired_ratios, placing, races, ranking, sampling
from httpmark.harness.load.engines import launch
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import Bottleneck, LoadMode, LoadResult
from httpmark.harness.report import load_text, number_format
from httpmark.harness.servers import cpu_time, network_counters
from httpmark.harness.tests.shared.scripted_race import NOBODY, PLAN, fold_of, race, run


@pytest.fixture(autouse=True)
def _who_else_ran_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine did during the windows of these tests must not change their samples."""
    monkeypatch.setattr(cpu_time, "idle_ns", lambda cpus: None)
    monkeypatch.setattr(cpu_time, "cpu_clock", lambda: (0, 0))


def test_what_a_server_lets_go_of_is_accounted_for() -> None:
    made, engine = race({"a": [100.0] * 3})
    run(made)
    assert engine.accounted == {(NOBODY,)}


def test_every_block_holds_every_server_once() -> None:
    made, engine = race({"a": [80.0] * 6, "b": [200.0] * 6, "null": [35.0] * 6}, rounds=6)
    run(made)
    blocks = [engine.order[i : i + 3] for i in range(0, 18, 3)]
    assert all(sorted(block) == ["a", "b", "null"] for block in blocks)
    assert len({tuple(block) for block in blocks}) > 1, "the order never changed"


def test_the_order_follows_the_seed() -> None:
    orders = []
    for _ in range(2):
        made, engine = race({"a": [80.0] * 5, "b": [90.0] * 5, "null": [35.0] * 5}, rounds=5)
        run(made)
        orders.append(engine.order)
    assert orders[0] == orders[1]


def test_cost_is_the_median_with_its_interval_and_its_ratio_to_null() -> None:
    made, _ = race({"a": [70.0, 72.0, 76.0], "null": [35.0, 36.0, 38.0]})
    result = run(made)["a"]
    assert result.cpu_ns_per_request.server is not None
    assert round(result.cpu_ns_per_request.server) == 72
    # Student's t over the logarithms of 70, 72 and 76: what three figures can tell.
    assert result.interval_95 == pytest.approx((65.46, 80.57), abs=0.01)
    assert result.cost_over_null is not None
    assert round(result.cost_over_null, 3) == 2.0
    assert result.bottleneck is Bottleneck.SERVER
    assert result.ranked


def test_without_null_throughput_is_not_ranked() -> None:
    made, _ = race({"a": [80.0] * 3})
    result = run(made)["a"]
    assert result.bottleneck is Bottleneck.UNKNOWN
    assert not result.ranked
    assert "lower bound" in result.ranked_reason


def test_a_null_without_a_window_is_no_yardstick() -> None:
    made, _ = race({"a": [80.0] * 3, "null": [35.0] * 3}, null={"requests": 0, "seconds": 0.0})
    assert run(made)["a"].bottleneck is Bottleneck.UNKNOWN


def test_as_fast_as_null_is_the_generators_limit() -> None:
    made, _ = race({"a": [36.0] * 3, "null": [35.0] * 3})
    assert run(made)["a"].bottleneck is Bottleneck.CLIENT


def test_one_bad_sample_spoils_the_claim() -> None:
    made, _ = race({"a": [80.0, 80.0, 36.0], "null": [35.0] * 3})
    result = run(made)["a"]
    assert not result.ranked
    assert "1 of 3 samples" in result.bottleneck_why


def test_a_starved_sample_is_taken_again_and_counted() -> None:
    made, engine = race({"a": [80.0] * 9, "null": [35.0] * 3}, a={"run_delay_ratio": 0.5})
    result = run(made)["a"]
    assert engine.order.count("a") == 3 * (1 + races.REDOS_MAX)
    assert result.redone == 3 * races.REDOS_MAX
    assert result.bottleneck is Bottleneck.STARVED
    assert result.rounds == 3


@pytest.mark.parametrize(
    ("changes", "strangers", "starves"),
    [
        ({"run_delay_ratio": 0.5}, 0.0, False),
        ({"run_delay_ratio": 0.5}, 0.3, True),
        ({"run_delay_ratio": 0.01}, 0.3, False),
        ({"run_delay_ratio": 0.5, "client_run_delay_ratio": 0.5}, 0.0, True),
    ],
)
@pytest.mark.parametrize("runs_already", [False, True])
def test_a_server_that_waits_for_itself_alone_does_not_starve(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, float], strangers: float, starves: bool,
    runs_already: bool,
) -> None:  # fmt: skip
    """Go has more threads than one processor; that the others wait is its own doing."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})

    def each(share: float) -> Callable[..., int]:
        grown = itertools.count(0, round(share * 1_000_000_000))
        return lambda *_: next(grown)

    made, _ = race({"a": [80.0] * 9, "null": [35.0] * 9}, a=changes)
    if runs_already:
        # It has both processors, and the generator beside it is no stranger.
        made.contestants = [msgspec.structs.replace(made.contestants[0], runs_already=True)]
    left = (1 - strangers) * (2 if runs_already else 1)
    parts = 3 if runs_already else 2
    monkeypatch.setattr(time, "monotonic_ns", each(1.0))
    monkeypatch.setattr(cpu_time, "cpu_ns", each(left / parts))
    monkeypatch.setattr(cpu_time, "idle_ns", each(left / parts))
    monkeypatch.setattr(cpu_time, "own_children_ns", each(left / parts))
    result = run(made)["a"]
    assert (result.bottleneck is Bottleneck.STARVED) is starves
    assert (result.redone > 0) is starves


@pytest.mark.parametrize("runs_already", [False, True])
def test_a_target_that_runs_already_has_the_processors_it_has(
    monkeypatch: pytest.MonkeyPatch, runs_already: bool
) -> None:
    """It is not pinned, so nobody knows who else ran; of three CPUs it was given one at most."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    asked: list[object] = []
    monkeypatch.setattr(cpu_time, "idle_ns", asked.append)
    # 300 ns each and 10 million a second.
    busy = {"requests": 10_000_000, "server_ns_per_request": 300.0, "server_on_cpu_ratio": 3.0}
    made, _ = race({"a": [80.0] * 3, "null": [35.0] * 3}, a=busy)
    made.contestants[0] = msgspec.structs.replace(made.contestants[0], runs_already=runs_already)
    result = run(made)["a"]
    assert not result.ranked
    assert result.bottleneck is Bottleneck.UNKNOWN
    assert "more CPUs than it was given" in result.bottleneck_why
    assert len(asked) == 4 * 3


def test_a_machine_that_starves_all_samples_is_not_asked_thrice_for_ever() -> None:
    starved = {"run_delay_ratio": 0.5}
    made, engine = race({"a": [80.0] * 30, "null": [35.0] * 30}, rounds=4, a=starved, null=starved)
    result = run(made)["a"]
    # Three samples in a row were taken three times, the other five once.
    assert len(engine.order) == races.FUTILE_MAX * (1 + races.REDOS_MAX) + 5
    assert (result.rounds, result.bottleneck) == (4, Bottleneck.STARVED)
    assert sum(made.redone.values()) == races.FUTILE_MAX * races.REDOS_MAX


def machine(
    monkeypatch: pytest.MonkeyPatch, *, dropped: int = 0, again: int = 0, stolen: int = 0
) -> None:
    """A machine whose counters grow by so much in every window, of 1000 ticks and 100,000 segments.

    One look in two is at a window's end.
    """
    looks = {"cpu": 0, "segments": 0, "dropped": 0}

    def so_far(name: str, each: int) -> int:
        looks[name] += 1
        return (looks[name] // 2) * each

    monkeypatch.setattr(
        cpu_time, "cpu_clock", lambda: (so_far("cpu", stolen), looks["cpu"] // 2 * 1000)
    )
    monkeypatch.setattr(
        network_counters, "segments_sent",
        lambda: (so_far("segments", again), looks["segments"] // 2 * 100_000),
    )  # fmt: skip
    monkeypatch.setattr(
        network_counters, "dropped_packets", lambda: {"ListenDrops": so_far("dropped", dropped)}
    )


def test_what_the_machine_did_meanwhile_is_in_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, stolen=10, dropped=3, again=50)
    made, _ = race({"a": [80.0] * 3, "null": [35.0] * 3})
    sample = run(made)["a"].samples[0]
    assert sample.steal_ratio == pytest.approx(0.01)
    assert sample.retransmit_ratio == pytest.approx(0.0005)
    assert sample.machine_dropped == {"ListenDrops": 3}
    assert sample.bottleneck is Bottleneck.SERVER, "kept connections lost nothing by it"


def test_a_stolen_window_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, stolen=30)
    made, _ = race({"a": [80.0] * 9, "null": [35.0] * 9})
    assert run(made)["a"].bottleneck is Bottleneck.STARVED
    assert sum(made.redone.values()) == races.FUTILE_MAX * races.REDOS_MAX


def test_segments_that_are_sent_again_are_the_networks_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine(monkeypatch, again=200)
    result = fold_of({"a": [80.0] * 3, "null": [35.0] * 3})["a"]
    assert result.bottleneck is Bottleneck.NETWORK
    assert not result.ranked
    assert "0.2% of all segments were sent again" in result.bottleneck_why


def test_connects_that_the_kernel_dropped_break_a_churn(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, dropped=7)
    made, _ = race({"a": [80.0] * 3, "null": [35.0] * 3})
    made.plan = msgspec.structs.replace(made.plan, mode=LoadMode.CHURN)
    result = run(made)["a"]
    assert result.bottleneck is Bottleneck.BROKEN
    assert "ListenDrops 7" in result.bottleneck_why


def test_samples_with_errors_give_no_cost() -> None:
    made, _ = race({"a": [80.0] * 3, "null": [35.0] * 3}, a={"errors": {"body": 2}})
    result = run(made)["a"]
    assert result.cpu_ns_per_request.server is None
    assert result.errors == {"body": 6}
    assert result.bottleneck_why == "errors under load: 2 body"
    assert result.bottleneck is Bottleneck.BROKEN
    ranked = ranking.with_ranks({"a": result}, excluded={})["a"]
    assert ranked.cost_rank is None
    assert ranked.cost_rank_reason == "answers were wrong under load"


def test_a_broken_sample_counts_for_nothing_even_without_an_error() -> None:
    costs = {"a": [80.0] * 3, "b": [90.0] * 3, "null": [35.0] * 3}
    results = fold_of(costs, a={"established": 3})
    broken = results["a"]
    assert (broken.errors, broken.bottleneck) == ({}, Bottleneck.BROKEN)
    assert "3 of 4 connections" in broken.bottleneck_why
    assert broken.cpu_ns_per_request.server is None
    ranked = ranking.with_ranks(results, excluded={"null": "a control"})
    assert (ranked["a"].cost_rank, ranked["b"].cost_rank) == (None, 1)
    assert "0 samples without errors" in (ranked["a"].cost_rank_reason or "")
    pairs = paired_ratios.paired(results, base="b", leave_out={"null"}, seed=1)
    assert {(pair.head, pair.ratio) for pair in pairs} == {("a", None)}


def test_a_rate_that_the_cost_contradicts_is_not_ranked_and_the_cost_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    costs = {"a": [80.0] * 3, "b": [90.0] * 3, "null": [35.0] * 3}
    results = fold_of(costs, a={"requests": 20_000_000})  # at 80 ns each, of one second
    assert results["a"].bottleneck is Bottleneck.UNKNOWN
    assert "160% of the server's CPUs" in results["a"].bottleneck_why
    ranked = ranking.with_ranks(results, excluded={"null": "a control"})
    assert not ranked["a"].ranked
    assert (ranked["a"].cost_rank, ranked["b"].cost_rank) == (1, 2)


def test_a_broken_null_is_no_yardstick_of_cost() -> None:
    results = fold_of({"a": [80.0] * 3, "null": [35.0] * 3}, null={"established": 3})
    assert results["a"].cost_over_null is None
    assert [sample.null_cpu_ns_per_request for sample in results["a"].samples] == [None] * 3


def test_who_was_not_measured_to_the_end_has_no_rank() -> None:
    made, engine = race({"a": [80.0] * 4, "b": [90.0] * 4, "null": [35.0] * 4}, rounds=4)
    measure, taken = engine.measure, itertools.count(1)

    def failing(*words: object, **named: object) -> launch.Measured:
        if engine.up == "a" and next(taken) == 4:
            raise Unusable("httpmark-load: no connection could be opened")
        return measure(*words, **named)  # type: ignore[arg-type]

    engine.measure = failing  # type: ignore[method-assign]
    ranked = ranking.with_ranks(run(made), excluded={"null": "a control"})
    assert ranked["a"].interval_95 is not None
    assert (ranked["a"].cost_rank, ranked["b"].cost_rank) == (None, 1)
    assert not ranked["a"].ranked
    for reason in (ranked["a"].cost_rank_reason, ranked["a"].ranked_reason):
        assert reason == "not measured to the end: httpmark-load: no connection could be opened"


@pytest.mark.parametrize(
    ("kind", "again"), [("body", 0), ("date", 0), ("lost", 0), ("timeout", 2), ("connect", 2)]
)
def test_a_wrong_answer_is_kept_however_starved_the_sample(kind: str, again: int) -> None:
    """Taken again it would be gone; what a lack of CPU explains is the machine's, and is."""
    wrong = {"run_delay_ratio": 0.5, "errors": {kind: 1}}
    made, _ = race({"a": [80.0] * 3, "null": [35.0] * 3}, rounds=1, a=wrong)
    result = run(made)["a"]
    assert result.errors == {kind: 1}
    assert result.bottleneck is Bottleneck.BROKEN
    assert result.redone == again


def test_a_server_whose_processes_are_not_seen_has_a_reason_and_no_cost() -> None:
    unseen = {"server_ns_per_request": None, "server_on_cpu_ratio": None}
    result = fold_of({"a": [80.0] * 3, "null": [35.0] * 3}, a=unseen)["a"]
    assert result.cpu_ns_per_request.server is None
    assert result.interval_reason == "no CPU time: the server's processes cannot be seen from here"
    lost = {"server_ns_per_request": None, "cost_reason": "a process of the server has ended"}
    told = run(race({"a": [80.0] * 3}, a=lost)[0])["a"]
    assert told.samples[0].cost_reason == "a process of the server has ended"
    assert told.interval_reason == "no CPU time: a process of the server has ended"


def test_requests_without_an_answer_are_in_the_sample_and_no_rate_of_the_server() -> None:
    slow = {"unanswered": 1_000_000}  # of 12.5 million that were answered
    result = fold_of({"a": [80.0] * 3, "null": [35.0] * 3}, a=slow)["a"]
    assert [sample.unanswered for sample in result.samples] == [1_000_000] * 3
    assert result.bottleneck is Bottleneck.UNKNOWN
    assert "7% of the requests were unanswered" in result.bottleneck_why
    assert not result.ranked
    assert result.interval_95 is not None, "what they cost is in the CPU time: it flatters nobody"


def test_a_server_that_does_not_start_is_told_and_left_out() -> None:
    made, engine = race({"a": [80.0] * 3, "b": [1.0], "null": [35.0] * 3}, fails="b")
    results = run(made)
    assert made.died == {"b": "did not start: no reason"}
    assert results["b"].reason == "did not start: no reason"
    assert "b" not in engine.order
    assert results["a"].rounds == 3


def test_a_load_that_cannot_be_laid_on_is_no_death() -> None:
    made, engine = race({"a": [80.0] * 3, "b": [90.0] * 3, "null": [35.0] * 3})
    measure = engine.measure

    def picky(*words: object, **named: object) -> launch.Measured:
        if engine.up == "b":
            raise Unusable("no TLS with it")
        return measure(*words, **named)  # type: ignore[arg-type]

    engine.measure = picky  # type: ignore[method-assign]
    results = run(made)
    assert made.died == {}
    assert made.failed == {"b": "no TLS with it"}
    assert results["b"].reason == "no TLS with it"
    assert results["a"].rounds == 3


def test_results_are_to_be_had_at_any_time() -> None:
    made, _ = race({"a": [80.0] * 3, "null": [35.0] * 3})
    assert made.results() == {}
    running = made.run()
    for _ in range(3):
        next(running)
    assert made.results()["a"].rounds == 1
    assert made.results()["a"].interval_95 is None
    assert "an interval needs 3" in (made.results()["a"].interval_reason or "")


def test_ranks_leave_out_controls_and_say_why() -> None:
    made, _ = race({"a": [80.0, 81.0, 82.0], "b": [90.0, 91.0, 92.0], "null": [35.0] * 3})
    ranked = ranking.with_ranks(run(made), excluded={"null": "a control"})
    assert (ranked["a"].cost_rank, ranked["b"].cost_rank) == (1, 2)
    assert ranked["null"].cost_rank is None
    assert ranked["null"].cost_rank_reason == "a control"


def test_who_may_not_be_ranked_has_no_rank_of_throughput_either() -> None:
    made, _ = race({"a": [80.0] * 3, "b": [90.0] * 3, "null": [35.0] * 3})
    results = run(made)
    assert results["a"].ranked
    out = ranking.with_ranks(results, excluded={"a": "not ranked: 3 MUSTs failed"})
    assert out["b"].ranked
    assert not out["a"].ranked
    assert out["a"].ranked_reason == out["a"].cost_rank_reason == "not ranked: 3 MUSTs failed"
    again = ranking.with_ranks(out, excluded={})
    assert again["a"].ranked, "judged again, it is ranked again"
    assert again["a"].ranked_reason == results["a"].ranked_reason
    # What it served is its own limit: a figure, and no lower bound.
    told = number_format.result_throughput(out["a"])
    assert (told.text, told.ranked) == ("12.5 M", False)
    assert told.why == "not ranked: 3 MUSTs failed"


def test_an_open_loop_offers_each_server_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = msgspec.structs.replace(PLAN, mode=LoadMode.OPEN, rate_of_capacity=0.5)
    made, engine = race(
        {"a": [100.0] * 4, "null": [50.0] * 4}, a={"saturated": False}, null={"saturated": False}
    )
    made.plan = plan
    monkeypatch.setattr(races, "Native", lambda: engine)
    result = run(made)["a"]
    assert engine.rates[:2] == [None, None]  # capacity, in a closed loop
    offered = dict(zip(engine.order[2:], engine.rates[2:], strict=True))
    assert offered == {"a": 5e6, "null": 1e7}
    assert result.bottleneck is Bottleneck.NONE
    assert not result.ranked
    assert result.ranked_reason == "an offered rate is not a throughput"
    assert made.steps == 8


def open_race(
    monkeypatch: pytest.MonkeyPatch, a: dict[str, object]
) -> tuple[races.Race, dict[str, LoadResult]]:
    """A race at half of what each server is found to reach, and its results."""
    made, engine = race({"a": [100.0] * 9, "null": [50.0] * 9}, rounds=1, a=a)
    made.plan = msgspec.structs.replace(PLAN, mode=LoadMode.OPEN, rate_of_capacity=0.5)
    monkeypatch.setattr(races, "Native", lambda: engine)
    return made, run(made)


def test_servers_that_are_compared_are_offered_the_same_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What one look for a capacity is off by must not be in every pair."""
    made, engine = race({"a": [100.0] * 2, "b": [125.0] * 2, "null": [500.0] * 2}, rounds=1)
    made.plan = msgspec.structs.replace(PLAN, mode=LoadMode.OPEN, rate_of_capacity=0.5)
    made.one_rate = True
    monkeypatch.setattr(races, "Native", lambda: engine)
    run(made)
    assert engine.rates == [None] * 3 + [4e6] * 3, "half of what b reaches, whatever null does"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, None),
        ({"server_on_cpu_ratio": 0.4}, "the server was only on CPU 40%"),
        ({"server_on_cpu_ratio": None}, "the server's CPU time was not known"),
        ({"run_delay_ratio": 0.5}, "the server got too little CPU"),
    ],
)
def test_a_rate_that_is_a_share_of_less_than_the_capacity_says_so(
    changes: dict[str, object], why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, results = open_race(monkeypatch, a=changes)
    told = results["a"].latency_reason or ""
    assert (f"a share of a lower bound: {why} while" in told) is (why is not None)
    assert "lower bound" not in (results["null"].latency_reason or "")


def test_wrong_answers_while_the_capacity_is_looked_for_are_not_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, results = open_race(monkeypatch, a={"errors": {"body": 2}})
    assert made.failed == {"a": "its capacity could not be measured: errors under load: 2 body"}
    assert results["a"].reason == made.failed["a"]
    assert "null" not in results, "there is nothing to hold against it"


def test_an_open_loop_that_is_answered_late_still_adds_up() -> None:
    if placing.placement(PLAN).server is None:
        pytest.skip("with one processor nothing is said of shares")
    # 150 us each and 10,000 a second due: the server worked half as long again after the window.
    late = {"requests": 10_000, "server_ns_per_request": 150_000.0}
    for mode, saturated, wanted in (
        (LoadMode.OPEN, True, Bottleneck.SERVER),
        (LoadMode.CLOSED, None, Bottleneck.UNKNOWN),
    ):
        made, _ = race({"a": [80.0] * 3, "null": [35.0] * 3}, a={**late, "saturated": saturated})
        made.plan = msgspec.structs.replace(made.plan, mode=mode)
        assert run(made)["a"].bottleneck is wanted


def test_a_generator_that_is_late_says_so() -> None:
    times = {"mean": 1.0, "p50": 1.0, "p99": 250.0}
    made, _ = race(
        {"a": [100.0] * 3, "null": [50.0] * 3},
        a={"saturated": False, "lag_us": times, "latency_us": times},
    )
    made.plan = msgspec.structs.replace(PLAN, mode=LoadMode.OPEN, rate=10.0)
    result = run(made)["a"]
    assert result.latency_us == times
    assert "late" in (result.latency_reason or "")
    assert "250 us" in (result.latency_reason or "")


def test_a_closed_loop_has_no_latency_of_the_server() -> None:
    made, _ = race({"a": [100.0] * 3, "null": [50.0] * 3}, a={"latency_us": {"p50": 3.0}})
    result = run(made)["a"]
    assert result.latency_us is None
    assert "saturated closed loop" in (result.latency_reason or "")


def test_a_race_goes_on_in_another_order_with_blocks_that_count_on() -> None:
    made, engine = race({"a": [80.0] * 8, "b": [90.0] * 8, "null": [35.0] * 8}, rounds=4)
    list(made.run())
    list(made.run())
    assert made.blocks == 8
    times = [sample.started or "" for sample in made.samples["a"]]
    assert times == sorted(times)
    assert all(time.endswith("+00:00") for time in times)
    assert [sample.round for sample in made.samples["a"]] == list(range(1, 9))
    assert engine.order[:12] != engine.order[12:]


def test_only_the_sample_that_was_taken_again_is_called_so() -> None:
    made, _ = race({"a": [80.0] * 5, "null": [35.0] * 3})
    starving = iter([True, False, False, False])
    real = sampling.starved
    sampling.starved = lambda measured, machine: (
        measured.server_ns_per_request == 80.0 and next(starving)
    )
    try:
        list(made.run())
    finally:
        sampling.starved = real
    assert [sample.redo for sample in made.samples["a"]].count(True) == 1


def test_pairs_are_compared_within_their_blocks() -> None:
    made, _ = race({"a": [70.0, 140.0, 35.0], "b": [77.0, 154.0, 38.5], "null": [20.0, 40.0, 10.0]})
    pairs = {
        (pair.head, pair.metric): pair
        for pair in paired_ratios.paired(run(made), base="a", leave_out={"null"}, seed=1)
    }
    cost = pairs["b", "cpu_ns_per_request"]
    assert cost.ratio == pytest.approx(1.1, rel=1e-6)  # the drift falls on both
    assert cost.interval_95 == pytest.approx((1.1, 1.1), rel=1e-6)
    assert cost.pairs == 3
    assert ("null", "cpu_ns_per_request") not in pairs


def test_throughput_is_paired_only_where_the_server_was_the_limit() -> None:
    made, _ = race({"a": [80.0] * 3, "b": [36.0] * 3, "null": [35.0] * 3})
    results = run(made)
    found = paired_ratios.paired(results, base="a", leave_out={"null"}, seed=1)
    rates = [pair for pair in found if pair.metric == "requests_per_second"]
    assert rates[0].ratio is None
    assert rates[0].reason == "the server was not the bottleneck on both sides"
    lines = load_text.paired_lines(found)
    assert "  b: req/s not compared: the server was not the bottleneck on both sides" in lines
    assert any(line.split()[:3] == ["b", "cost", "0.450"] for line in lines)
    assert paired_ratios.paired(results, base="z", seed=1) == ()
