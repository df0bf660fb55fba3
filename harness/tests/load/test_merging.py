"""Several generators' reports become one: exact to the octet, and linear in time."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest
from hdrh.histogram import HdrHistogram

from httpmark.harness.load import histogram, merging
from httpmark.harness.load.engines import native
from httpmark.harness.load.engines.launch import Target
from httpmark.harness.model.load import LoadMode, LoadPlan
from httpmark.harness.tests.shared.made_report import HIGHEST, report_of
from httpmark.harness.tests.shared.native_server import listening

VALUES = st.lists(st.integers(1, HIGHEST), min_size=1, max_size=100)
PLAN = LoadPlan(
    name="p", title="t", why="w", connections=6, depth=4, duration_s=0.3, warmup_s=0.1
)  # fmt: skip


@hypothesis.given(st.lists(VALUES, min_size=1, max_size=5))
@hypothesis.settings(max_examples=60, deadline=None)
def test_the_merged_histogram_is_that_of_one_recorder_octet_by_octet(
    values: list[list[int]],
) -> None:
    every = [value for one in values for value in one]
    found = merging.merged(report_of(one) for one in values)
    recorder = HdrHistogram(1, HIGHEST, 3)
    for value in every:
        recorder.record_value(value)
    assert found["histograms"]["response"] == recorder.encode().decode("ascii")


@hypothesis.given(st.lists(VALUES, min_size=1, max_size=5))
@hypothesis.settings(max_examples=40, deadline=None)
def test_the_merged_figures_are_those_of_one_generator(values: list[list[int]]) -> None:
    whole = report_of([value for one in values for value in one])
    found = merging.merged(report_of(one) for one in values)
    assert found["requests"] == whole["requests"]
    assert found["bytes_received"] == whole["bytes_received"]
    assert found["errors"] == whole["errors"]
    assert found["connections"] == len(values) * whole["connections"]
    told, wanted = found["latency_us"], whole["latency_us"]
    assert told.pop("mean") == pytest.approx(wanted.pop("mean"), rel=2e-5)
    assert told == wanted


def test_the_law_of_little_is_weighed_by_slots() -> None:
    small, large = report_of([5], connections=1), report_of([5], connections=3)
    small["littles_law_ratio"], large["littles_law_ratio"] = 0.2, 1.0
    assert merging.merged([small, large])["littles_law_ratio"] == pytest.approx(0.8)


def test_a_rate_is_the_sum_and_a_share_that_is_not_served_spoils_it() -> None:
    served, not_served = (report_of([5], rate=10.5) for _ in range(2))
    assert merging.merged([served, served])["saturated"] is False
    not_served["saturated"] = True
    found = merging.merged([served, not_served])
    assert (found["rate"], found["saturated"]) == (21.0, True)


def test_loads_that_differ_are_not_merged() -> None:
    with pytest.raises(merging.Differing, match="depth is 2 here and 1 there"):
        merging.merged([report_of([5]), report_of([5], depth=2)])


@pytest.mark.process
@pytest.mark.parametrize("mode", [LoadMode.CLOSED, LoadMode.OPEN])
def test_the_report_of_one_generator_is_its_own_merger(mode: LoadMode) -> None:
    """What the generator writes and what is written here are the same octets."""
    plan = msgspec.structs.replace(PLAN, mode=mode, rate=500.0 if mode is LoadMode.OPEN else None)
    with listening("null") as url:
        port = int(url.rstrip("/").rpartition(":")[2])
        made = native.Native().report(plan, Target("127.0.0.1", port), duration_s=0.3, cpus=None)
    found = merging.merged([made])
    assert found["histograms"] == made["histograms"]
    assert found["latency_us"] == made["latency_us"]
    assert native.read_native(found, plan, has_server=False) == native.read_native(
        made, plan, has_server=False
    )


def _recorded() -> list[dict[str, Any]]:
    """A few reports as they come, some thousand buckets each."""
    return [report_of([(17 + number) * value for value in range(1, 4000)]) for number in range(4)]


@pytest.mark.timed
def test_a_thousand_reports_are_merged_in_linear_time_and_constant_memory() -> None:
    recorded = _recorded()
    spent, held = {}, {}
    for count in (250, 1000):
        began = time.perf_counter()
        found = merging.merged(recorded[number % 4] for number in range(count))
        spent[count] = time.perf_counter() - began
        assert found["requests"] == count * 3999
        assert histogram.read(found["histograms"]["response"]).total == count * 3999
        tracemalloc.start()
        merging.merged(recorded[number % 4] for number in range(count // 10))
        held[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    print(f"1,000 reports merged in {spent[1000]:.1f} s, {held[1000] / 1e6:.1f} MB held at most")
    assert spent[1000] < 8 * spent[250]
    assert held[1000] < 2 * held[250]
