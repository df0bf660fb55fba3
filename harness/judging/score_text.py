"""How a score is written: in the terminal, on the page and in every file."""

from __future__ import annotations

import math


def rounded_down(percent: float) -> float:
    """A score with one decimal, rounded down, as a number for programs."""
    return math.floor(percent * 10 + 1e-6) / 10


def score_text(percent: float) -> str:
    """The same for people. Rounding never makes it 100 or 0."""
    return "< 0.1" if 0 < percent < 0.1 else f"{rounded_down(percent):.1f}"
