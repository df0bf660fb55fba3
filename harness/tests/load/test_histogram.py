"""Stored histograms: read as the HdrHistogram package reads them, and added without loss."""

from __future__ import annotations

import base64
import math
import zlib

import hypothesis
import hypothesis.strategies as st
import pytest
from hdrh.histogram import HdrHistogram

from httpmark.harness.load import histogram

HIGHEST = 3_600_000_000_000
VALUES = st.lists(st.integers(1, HIGHEST), min_size=1, max_size=200)


def stored(values: list[int], digits: int = 3) -> tuple[str, HdrHistogram]:
    made = HdrHistogram(1, HIGHEST, digits)
    for value in values:
        made.record_value(value)
    return made.encode().decode("ascii"), made


@hypothesis.given(VALUES, st.integers(1, 4))
@hypothesis.settings(max_examples=60, deadline=None)
def test_counts_and_percentiles_are_those_of_the_package(values: list[int], digits: int) -> None:
    text, oracle = stored(values, digits)
    found = histogram.read(text)
    assert found.total == oracle.get_total_count() == len(values)
    ranks = sorted({1, len(values), math.ceil(len(values) / 2), math.ceil(len(values) * 0.9)})
    mine = found.percentiles([rank / len(values) for rank in ranks])
    theirs = [oracle.get_value_at_percentile(100 * rank / len(values)) for rank in ranks]
    assert mine == theirs


@hypothesis.given(VALUES, VALUES)
@hypothesis.settings(max_examples=30, deadline=None)
def test_a_sum_is_the_histogram_of_all_values(a: list[int], b: list[int]) -> None:
    found = histogram.merged([stored(a)[0], stored(b)[0]])
    assert found is not None
    assert found.counts == histogram.read(stored(a + b)[0]).counts
    assert found.total == len(a) + len(b)


def test_the_sum_of_none_is_none() -> None:
    assert histogram.merged([]) is None


def test_histograms_of_different_layouts_are_not_added() -> None:
    with pytest.raises(histogram.Unreadable, match="layouts"):
        histogram.merged([stored([5])[0], stored([5], 2)[0]])


GOOD = base64.b64decode(stored([7, 9000])[0])


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"HISTF",
        GOOD[:20],
        GOOD + b"x",
        b"\0" + GOOD[1:],
        GOOD[:4] + (8).to_bytes(4, "big") + zlib.compress(b"")[:8],
        GOOD[:4] + len(zlib.compress(b"x" * 40)).to_bytes(4, "big") + zlib.compress(b"x" * 40),
    ],
)
def test_what_is_no_histogram_is_said_to_be_none(octets: bytes) -> None:
    with pytest.raises(histogram.Unreadable):
        histogram.read(base64.b64encode(octets).decode())


def test_words_are_no_histogram() -> None:
    with pytest.raises(histogram.Unreadable):
        histogram.read("HISTF not base64")
