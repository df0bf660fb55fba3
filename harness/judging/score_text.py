"""How a score is written: in the terminal, on the page and in every file."""

from __future__ import annotations

import math


def score_text(percent: float) -> str:
    """A score with one decimal, rounded down. Rounding never makes it 100 or 0."""
    if 0 < percent < 0.1:
        return "< 0.1"
    return f"{math.floor(percent * 10 + 1e-6) / 10:.1f}"
