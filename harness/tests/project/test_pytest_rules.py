"""The order of the tests for several workers, each of which gets the next part of the list."""

from __future__ import annotations

from typing import cast

import pytest

from httpmark.harness.tests.shared import pytest_rules


class Item:
    def __init__(self, name: str, *, first: bool = False, shared: bool = False) -> None:
        self.name, self.first = name, first
        self.fixturenames = ["finished"] if shared else []

    def get_closest_marker(self, name: str) -> object:
        return self.first if name == "first" else None


def parts(items: list[Item], workers: int) -> list[str]:
    """What each worker gets to begin with, by the first letters of the names."""
    ordered = pytest_rules.ordered(cast(list[pytest.Item], items), workers)
    assert sorted(one.name for one in ordered) == sorted(one.name for one in items)
    names = [one.name[0] for one in ordered]
    found = []
    for left in range(workers, 0, -1):
        size = len(names) // left
        found.append("".join(names[:size]))
        del names[:size]
    return found


def test_what_takes_long_begins_each_part() -> None:
    items = [Item(f"quick {number}") for number in range(10)]
    items += [Item(f"long {number}", first=True) for number in range(4)]
    items += [Item(f"shared {number}", shared=True, first=number == 1) for number in range(2)]
    assert parts(items, 1) == ["ssllllqqqqqqqqqq"]
    assert parts(items, 2) == ["ssqqqqqq", "llllqqqq"]
    assert parts(items, 4) == ["ssqq", "llqq", "lqqq", "lqqq"]


def test_a_part_that_is_too_small_for_its_long_tests_loses_none() -> None:
    assert parts([Item("long 1", first=True), Item("long 2", first=True)], 4) == ["", "", "l", "l"]
    assert parts([], 4) == ["", "", "", ""]
