"""The verdict of a comparison and its exit code."""

from __future__ import annotations

import pytest

from httpmark.harness.load import (
    comparison,
)
from httpmark.harness.load.paired_verdicts import Gate
from httpmark.harness.model.errors import NothingSelected


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
