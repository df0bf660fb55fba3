"""The order of the tests for several workers, each of which gets the next part of the list, and
what becomes of those that fail beside others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
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


TESTS = """
from pathlib import Path
import pytest
@pytest.mark.parametrize("number", range(5))
def test_it(number):
    assert number >= FAIL or (number >= FAIL_ALWAYS and Path("again").exists())
"""


def outcome(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    # These tests may be run again alone themselves.
    inherited = {name: value for name, value in os.environ.items() if name != "HTTPMARK_ALONE_MAX"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", pytest_rules.__name__, *words], cwd=folder,
        env=inherited | variables, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize(
    ("fail", "always", "code", "said"),
    [
        (2, 0, 0, "failed beside others, and passed alone: 2"),
        (2, 1, 1, "1 failed, 1 passed"),
        (4, 0, 4, "4 tests failed; no more than 3 are run again alone"),
    ],
)
def test_what_failed_beside_others_is_run_again_alone(
    tmp_path: Path, fail: int, always: int, code: int, said: str
) -> None:
    (tmp_path / "pytest.ini").touch()
    text = TESTS.replace("FAIL_ALWAYS", str(always)).replace("FAIL", str(fail))
    (tmp_path / "test_it.py").write_text(text)
    assert outcome(tmp_path).returncode == 1
    (tmp_path / "again").touch()
    done = outcome(
        tmp_path, "--last-failed", "--last-failed-no-failures", "none", HTTPMARK_ALONE_MAX="3"
    )
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout
    assert ("test_it.py::test_it[1]" in done.stdout) is (code != 4)
