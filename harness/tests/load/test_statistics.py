"""Intervals, ranks and the verdict on a sample, on synthetic inputs with known answers."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from httpmark.harness.load import statistics


def test_an_interval_needs_three_values_and_repeats_with_its_seed() -> None:
    assert statistics.bootstrap([1.0, 2.0], seed=1) is None
    values = [random.Random(7).gauss(100, 5) for _ in range(12)]
    interval = statistics.bootstrap(values, seed=1)
    assert interval is not None
    assert interval == statistics.bootstrap(values, seed=1)
    low, high = interval
    assert min(values) <= low <= statistics.median(values) <= high <= max(values)


def test_the_interval_covers_the_truth_about_as_often_as_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 1000)
    draw = random.Random(3)
    hits = 0
    for trial in range(60):
        values = [draw.gauss(100, 10) for _ in range(15)]
        low, high = statistics.bootstrap(values, seed=trial) or (0, 0)
        hits += low <= 100 <= high
    assert 51 <= hits <= 60


def test_a_wider_level_gives_a_wider_interval() -> None:
    values = [float(v) for v in (1, 4, 9, 16, 25, 36, 49, 64)]
    narrow = statistics.bootstrap(values, level=0.5, seed=1)
    wide = statistics.bootstrap(values, level=0.99, seed=1)
    assert narrow is not None
    assert wide is not None
    assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]


@pytest.mark.parametrize("count", [3, 5, 6, 9, 15])
def test_the_interval_that_ranks_covers_what_it_says(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 300)
    draw, misses = random.Random(count), 0
    for trial in range(400):
        costs = [100 * math.exp(draw.gauss(0, 0.2)) for _ in range(count)]
        low, high = statistics.interval_of_cost(costs, seed=trial) or (0.0, 0.0)
        misses += not low <= 100 <= high
        assert low <= statistics.median(costs) * 1.0000001
        assert high >= statistics.median(costs) * 0.9999999
    assert misses <= 34  # 5 in 100, of 400: over three standard errors


def test_an_interval_of_cost_needs_three_figures() -> None:
    assert statistics.interval_of_cost([1.0, 2.0], seed=1) is None
    assert statistics.interval_of_cost([], seed=1) is None
    same = statistics.interval_of_cost([5.0] * 7, seed=1)
    assert same == pytest.approx((5.0, 5.0))


def test_paired_ratios_cancel_a_drift_that_hits_both() -> None:
    drift = [1.0, 1.5, 0.7, 2.0]
    ratio = statistics.paired_ratio([d * 60 for d in drift], [d * 30 for d in drift])
    assert ratio == pytest.approx(2.0)
    assert statistics.paired_ratio([], []) is None


def test_littles_law() -> None:
    ratio = statistics.littles_law_ratio(
        requests_per_second=1000, mean_latency_s=0.064, in_flight=64
    )
    assert ratio == pytest.approx(1.0)
    assert (
        statistics.littles_law_ratio(requests_per_second=0, mean_latency_s=1, in_flight=1) is None
    )


def test_theil_sen_is_exact_on_a_line_and_deaf_to_one_wild_point_in_five() -> None:
    line = [(float(x), 3.0 * x + 7.0) for x in (1, 2, 5, 10, 18)]
    assert statistics.theil_sen(line) == pytest.approx((3.0, 7.0))
    wild = [*line[:2], (5.0, 900.0), *line[3:]]
    found = statistics.theil_sen(wild)
    assert found is not None
    assert found[0] == pytest.approx(3.0, rel=0.05)
    assert statistics.theil_sen([(1.0, 1.0)]) is None
    assert statistics.theil_sen([(1.0, 1.0), (1.0, 2.0)]) is None


def test_the_trimmed_mean_drops_both_ends() -> None:
    assert statistics.trimmed_mean([1e9, *[5.0] * 8, -1e9]) == 5.0
    assert statistics.trimmed_mean([1.0, 2.0]) == 1.5


def test_log_ratios_leave_out_what_has_no_logarithm() -> None:
    assert statistics.log_ratios([2.0, 0.0, 3.0], [1.0, 1.0, 0.0]) == [pytest.approx(math.log(2))]


def test_what_can_be_detected_shrinks_with_pairs_and_grows_with_noise() -> None:
    assert statistics.detectable_ratio(0.04, 1) is None
    twelve, thirty = (statistics.detectable_ratio(0.04, n) for n in (12, 30))
    assert twelve is not None
    assert thirty is not None
    assert thirty < twelve
    assert twelve == pytest.approx(1.0372, abs=1e-3)


def test_what_is_called_detectable_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 300)
    draw, hits, pairs, sd = random.Random(5), 0, 20, 0.04
    shift = math.log(statistics.detectable_ratio(sd, pairs) or 0)
    for trial in range(200):
        logs = [draw.gauss(shift, sd) for _ in range(pairs)]
        low, _ = statistics.interval(logs, level=0.95, seed=trial) or (0, 0)
        hits += low > 0
    assert 144 <= hits <= 176  # 80 in 100, and four standard errors less, or three more


def test_drift_is_found_and_noise_is_not_drift() -> None:
    draw = random.Random(11)
    drifting = [80.0 * 1.01**i * draw.gauss(1, 0.02) for i in range(24)]
    found = statistics.drift(drifting)
    assert found is not None
    assert found.is_clear
    assert found.ratio == pytest.approx(1.01**23, rel=0.05)
    false_alarms = 0
    for _ in range(200):
        still = statistics.drift([draw.gauss(80, 3) for _ in range(24)])
        assert still is not None
        false_alarms += still.is_clear
    assert false_alarms <= 7
    assert statistics.drift([1.0] * 7) is None
    equal = statistics.drift([1.0] * 9)
    assert equal is not None
    assert not equal.is_clear


@pytest.mark.parametrize(
    ("probability", "freedom", "quantile"),
    [(0.975, 1, 12.7062), (0.975, 2, 4.30265), (0.975, 11, 2.20099), (0.995, 19, 2.86093),
     (0.8, 11, 0.87553), (0.975, 1000, 1.96234)],
)  # fmt: skip
def test_students_t_is_that_of_the_tables(
    probability: float, freedom: int, quantile: float
) -> None:
    assert statistics.student_t(probability, freedom) == pytest.approx(quantile, rel=1e-4)


@pytest.mark.parametrize("pairs", [3, 5, 6, 8, 12, 20, 30])
def test_intervals_of_few_pairs_cover_what_they_say(
    pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 300)
    draw, misses = random.Random(pairs), 0
    for trial in range(400):
        logs = [draw.gauss(0, 0.04) for _ in range(pairs)]
        low, high = statistics.interval(logs, level=0.95, seed=trial) or (0.0, 0.0)
        misses += not low <= 0 <= high
    assert 6 <= misses <= 34  # 5 in 100, of 400: over three standard errors each way


def test_the_interval_of_a_skewed_sample_leans_with_it() -> None:
    draw = random.Random(2)
    values = [draw.lognormvariate(0, 1) for _ in range(25)]
    low, high = statistics.interval(values, level=0.95, seed=1) or (0.0, 0.0)
    centre = statistics.trimmed_mean(values)
    assert high - centre > centre - low
    same = statistics.interval([3.0] * 25, level=0.95, seed=1)
    assert same == (3.0, 3.0)
    assert statistics.interval([1.0, 2.0], level=0.95, seed=1) is None


def test_the_binomial_tail() -> None:
    assert statistics.binomial_tail(0, 10, 0.05) == pytest.approx(1.0)
    assert statistics.binomial_tail(10, 10, 0.5) == pytest.approx(2**-10)
    assert statistics.binomial_tail(7, 40, 0.05) < 0.01 < statistics.binomial_tail(6, 40, 0.05)


@pytest.mark.parametrize("trials", [40, 300])
def test_none_of_many_leaves_the_share_of_the_closed_form(trials: int) -> None:
    # (1 - p)^n = 0.05 solved for p
    assert statistics.share_at_most(0, trials) == pytest.approx(1 - 0.05 ** (1 / trials))
    assert statistics.share_at_most(trials, trials) == pytest.approx(1)


@settings(deadline=None)  # a busy machine is no slow function
@given(trials=st.integers(2, 200), data=st.data())
def test_at_the_largest_possible_share_so_few_are_rare(trials: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, trials - 1))
    share = statistics.share_at_most(hits, trials)
    assert 1 - statistics.binomial_tail(hits + 1, trials, share) == pytest.approx(0.05, abs=1e-6)
