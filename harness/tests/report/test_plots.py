"""Drawings as data: marks stand where figures put them, and what is not drawn has its reason."""

from __future__ import annotations

import itertools
import math

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest

from httpmark.harness.model.load import LoadMode
from httpmark.harness.model.run import Run
from httpmark.harness.report import plots
from httpmark.harness.tests.shared.made_run import (
    MANNERS,
    OCTET_FAMILIES,
    complete_run,
    held,
    open_result,
    with_server,
)

NAMES = ("reference", "null", "go_net_http", "rust_hyper", "nginx")


def run_of(*names: str) -> Run:
    return complete_run(names or NAMES, only=OCTET_FAMILIES)


# --- ratios -------------------------------------------------------------------------------------


def test_a_forest_is_of_cost_alone_and_in_the_order_of_ratios() -> None:
    forests = plots.forests(run_of())
    assert [(one.profile, one.base) for one in forests] == [
        ("pipelined", "reference"),
        ("keepalive", "reference"),
    ]
    for forest in forests:
        ratios = [row.pair.ratio for row in forest.rows]
        assert [row.server.name for row in forest.rows][-1] == "nginx", "no ratio stands last"
        known = [ratio for ratio in ratios if ratio is not None]
        assert known == sorted(known)
        assert all(row.pair.metric == "cpu_ns_per_request" for row in forest.rows)


def test_marks_lie_within_their_interval_and_one_where_it_belongs() -> None:
    forest = plots.forests(run_of())[0]
    for row in forest.rows:
        if row.pair.interval_95 is None:
            assert (row.x, row.low, row.high) == (None, None, None)
            continue
        assert row.x is not None
        assert row.low is not None
        assert row.high is not None
        assert 0 <= row.low < row.x < row.high <= 100
        assert (row.pair.interval_95[0] > 1) == (row.low > forest.one)
        assert (row.pair.interval_95[1] < 1) == (row.high < forest.one)
    assert (forest.one, "1×") in forest.ticks


@hypothesis.given(st.floats(1e-3, 1e3), st.floats(1.001, 1e4))
def test_an_axis_of_ratios_has_few_ticks_in_order(low: float, over: float) -> None:
    pair = msgspec.structs.replace(
        run_of("reference", "null").paired[0], ratio=low * over**0.5, interval_95=(low, low * over)
    )
    run = msgspec.structs.replace(run_of("reference", "null"), paired=(pair,))
    forest = plots.forests(run)[0]
    places = [at for at, _ in forest.ticks]
    assert places == sorted(places)
    assert len(places) <= 12
    assert 0 <= forest.one <= 100


def test_a_run_without_pairs_has_no_forest() -> None:
    assert plots.forests(msgspec.structs.replace(run_of(), paired=())) == ()


# --- latency ------------------------------------------------------------------------------------


def test_only_open_loops_have_a_spectrum() -> None:
    assert [one.profile for one in plots.spectra(run_of())] == ["open_10k"]


def test_a_line_never_falls_and_ends_at_the_slowest() -> None:
    [spectrum] = plots.spectra(run_of())
    assert spectrum.chart is not None
    assert [line.server.name for line in spectrum.chart.lines] == list(NAMES)
    for line in spectrum.chart.lines:
        points = [tuple(map(float, point.split(","))) for point in line.points.split()]
        assert [x for x, _ in points] == sorted(x for x, _ in points)
        heights = [y for _, y in points]
        assert heights == sorted(heights, reverse=True), "upwards is less"
        assert points[0][0] == 0
        assert all(0 <= x <= 95 and 0 <= y <= 100 for x, y in points)
    labels = [tick.label for tick in spectrum.chart.across]
    assert labels == ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]
    assert [tick.label for tick in spectrum.chart.up][:2] == ["10 µs", "100 µs"]


def test_a_place_on_the_axis_is_the_percentile_of_the_histogram() -> None:
    [spectrum] = plots.spectra(run_of("reference"))
    assert spectrum.chart is not None
    [line] = spectrum.chart.lines
    places: dict[float, float] = {}
    for point in line.points.split():
        x, y = map(float, point.split(","))
        places[x] = y
    at_99 = next(tick.at for tick in spectrum.chart.across if tick.label == "99 %")
    tens = [tick.at for tick in spectrum.chart.up]
    height = places[at_99]
    value = 10 ** (1 + (tens[0] - height) / (tens[0] - tens[1]))
    assert value == pytest.approx(136, rel=0.02), "the slowest hundredth is of the tail"
    slowest = 10 ** (1 + (tens[0] - min(places.values())) / (tens[0] - tens[1]))
    assert slowest == pytest.approx(1036, rel=0.02)


def test_numbers_at_the_ends_of_lines_stand_apart() -> None:
    run = run_of(*MANNERS)
    [spectrum] = plots.spectra(run)
    ladder = plots.ladder(run)
    assert spectrum.chart is not None
    assert ladder is not None
    assert ladder.chart is not None
    for chart in (spectrum.chart, ladder.chart):
        ends = sorted(line.end[1] for line in chart.lines)
        assert len(ends) == plots.LINES_MAX
        assert all(b - a >= 5.9 for a, b in itertools.pairwise(ends))
        assert ends[-1] <= 100


def test_latency_that_cannot_be_drawn_says_why() -> None:
    late = msgspec.structs.replace(open_result(1.0), latency_reason="the generator was late")
    broken = open_result(1.0)
    broken = msgspec.structs.replace(
        broken,
        samples=tuple(msgspec.structs.replace(one, histogram="HISTF?") for one in broken.samples),
    )
    wrk = msgspec.structs.replace(
        open_result(1.0), latency_us=None, samples=(), histogram_reason="wrk gives none"
    )
    run = run_of("reference", "null", "nginx")
    for name, load in (("reference", late), ("null", broken), ("nginx", wrk)):
        run = with_server(run, name, load=(load,))
    [spectrum] = plots.spectra(run)
    assert [name for name, _ in spectrum.notes] == ["reference", "null", "nginx"]
    assert dict(spectrum.notes)["nginx"] == "not drawn: wrk gives none"
    assert "no histogram" in dict(spectrum.notes)["null"]
    assert spectrum.chart is not None
    assert [line.server.name for line in spectrum.chart.lines] == ["reference"]


def test_a_saturated_loop_is_never_drawn() -> None:
    closed = msgspec.structs.replace(open_result(1.0), mode=LoadMode.CLOSED, latency_us=None)
    run = with_server(run_of("reference"), "reference", load=(closed,))
    assert plots.spectra(run) == ()


# --- memory -------------------------------------------------------------------------------------


def test_lines_of_memory_have_the_slope_of_the_table() -> None:
    run = run_of("reference", "null", "nginx")
    found = plots.ladder(run)
    assert found is not None
    assert found.chart is not None
    slopes = []
    for line in found.chart.lines:
        (x0, y0), (x1, y1) = (tuple(map(float, p.split(","))) for p in line.points.split())
        assert x0 == 0
        assert y0 == 100
        assert line.dots[-1][0] == pytest.approx(x1)
        assert line.dots[-1][1] == pytest.approx(y1, abs=0.5)
        slopes.append((y0 - y1) / x1)
    assert slopes[1] / slopes[0] == pytest.approx(1500 / 600, rel=0.02)
    assert slopes[2] / slopes[0] == pytest.approx(2400 / 600, rel=0.02)


def test_a_ladder_that_gave_no_slope_says_why() -> None:
    short = msgspec.structs.replace(
        held(600), bytes_per_connection=None, reason="the server held 10 of 500 connections"
    )
    run = with_server(run_of("reference", "null"), "null", memory=short)
    found = plots.ladder(run)
    assert found is not None
    assert found.notes == (("null", "not drawn: the server held 10 of 500 connections"),)
    run = with_server(run, "reference", memory=short)
    found = plots.ladder(run)
    assert found is not None
    assert found.chart is None
    run = with_server(with_server(run, "reference", memory=None), "null", memory=None)
    assert plots.ladder(run) is None


@hypothesis.given(st.floats(1e-6, 1e9))
def test_a_step_is_round_and_no_less(least: float) -> None:
    step = plots.round_step(least)
    assert least * (1 - 1e-6) <= step <= least * 2.6
    assert round(step / 10 ** math.floor(math.log10(step * 1.0000001)), 6) in (1, 2, 5)
