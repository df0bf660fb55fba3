"""Ranks by intervals."""

from __future__ import annotations

import pytest

from httpmark.harness.load import ranking


@pytest.mark.parametrize(
    ("intervals", "ranks"),
    [
        (
            {"a": (10, 12), "b": (11, 13), "c": (20, 21), "d": None, "e": (21, 30)},
            {"a": 1, "b": 1, "c": 3, "e": 3},
        ),
        # c overlaps b alone, and whom b overlaps with it ranks alike.
        ({"a": (10, 12), "b": (11, 13), "c": (12.5, 14)}, {"a": 1, "b": 1, "c": 1}),
        ({"hyper": (6560, 8700), "nginx": (7875, 8881)}, {"hyper": 1, "nginx": 1}),
        # A wide one that began early reaches over those between.
        (
            {"a": (1, 100), "b": (2, 3), "c": (5, 6), "d": (101, 102)},
            {"a": 1, "b": 1, "c": 1, "d": 4},
        ),
        ({"a": (1, 2), "b": (2, 3)}, {"a": 1, "b": 1}),
        ({"a": (1, 2), "b": (2.1, 3)}, {"a": 1, "b": 2}),
    ],
)
def test_ranks_are_shared_where_intervals_touch(
    intervals: dict[str, tuple[float, float] | None], ranks: dict[str, int]
) -> None:
    assert ranking.ranks(intervals) == ranks
    assert ranking.ranks(dict(reversed(intervals.items()))) == ranks
