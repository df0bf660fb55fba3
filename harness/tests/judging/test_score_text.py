"""A score reads the same wherever it is written, and rounding does not flatter it."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import pytest

from httpmark.harness.judging.score_text import score_text


@hypothesis.given(st.floats(0, 100))
def test_a_score_reaches_100_and_0_only_where_it_is(score: float) -> None:
    written = score_text(score)
    assert (written == "100.0") == (score >= 100 - 1e-6)
    assert (written == "0.0") == (score == 0)


@pytest.mark.parametrize(
    ("score", "written"),
    [(0.0, "0.0"), (0.04, "< 0.1"), (0.1, "0.1"), (63.19, "63.1"), (100.0, "100.0")],
)
def test_a_score_has_one_decimal_rounded_down(score: float, written: str) -> None:
    assert score_text(score) == written
