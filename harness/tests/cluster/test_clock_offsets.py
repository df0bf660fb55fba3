"""The offset of a clock is known as well as the shortest round trip is short."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpmark.harness.cluster.clock_offsets import RoundTrip, instant_ns, offset

delays = st.floats(0, 1)


@given(st.floats(-5, 5), st.lists(st.tuples(delays, delays), min_size=1, max_size=9))
def test_the_truth_lies_within_the_bound(truth: float, ways: list[tuple[float, float]]) -> None:
    trips = []
    now = 1000.0
    for there, back in ways:
        trips.append(RoundTrip(now, now + there + truth, now + there + back))
        now += there + back + 1
    found = offset(trips)
    assert abs(found.seconds - truth) <= found.bound_s + 1e-9
    assert found.round_trip_s == pytest.approx(min(there + back for there, back in ways), abs=1e-9)


def test_a_slow_trip_between_quick_ones_changes_nothing() -> None:
    quick = [RoundTrip(at, at + 2.001, at + 0.002) for at in (1.0, 2.0)]
    slow = RoundTrip(3.0, 8.9, 9.0)
    assert offset([*quick, slow]) == offset(quick)
    assert offset(quick).seconds == pytest.approx(2.0)


def test_a_thousand_clocks_begin_as_close_together_as_they_are_known() -> None:
    """Clocks up to 10 s off, asked all at once over ways that differ there and back."""
    chance = random.Random(19)
    begin_s, begun, bounds = 2_000_000.0, [], []
    for _ in range(1000):
        truth = chance.uniform(-10, 10)
        trips = []
        for turn in range(9):
            there, back = chance.uniform(0.0001, 0.004), chance.expovariate(500)
            sent = 1_999_000.0 + turn
            trips.append(RoundTrip(sent, sent + there + truth, sent + there + back))
        found = offset(trips)
        begun.append(instant_ns(begin_s, found) / 1e9 - truth)  # by our clock
        bounds.append(found.bound_s)
    assert all(
        abs(at - begin_s) <= bound + 1e-6 for at, bound in zip(begun, bounds, strict=True)
    )  # fmt: skip
    assert max(begun) - min(begun) <= 2 * max(bounds) + 1e-6 < 0.02
