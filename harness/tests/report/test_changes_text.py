"""Changes as a table: in the width, what is broken in full, the rest counted."""

from __future__ import annotations

from httpmark.harness.model.verdicts import Word
from httpmark.harness.report import changes_text
from httpmark.harness.tests.shared.made_checks import CASE, changed, check, suite


def lines(base: dict[str, Word], head: dict[str, Word], **given: object) -> list[str]:
    found = changed(check(suite(base)), check(suite(head)), **given)
    return changes_text.lines(found, base="runs/a", head="runs/b")


def test_what_is_newly_broken_is_told_in_full_and_first() -> None:
    told = lines(
        {CASE: Word.PASS, "mended": Word.FAIL, "same": Word.FAIL, "gone": Word.PASS},
        {CASE: Word.FAIL, "mended": Word.PASS, "same": Word.FAIL},
    )
    assert told[0].startswith("1 newly broken, 1 newly mended, 1 still failing, 1 no longer asked.")
    at = told.index("newly broken (1)")
    assert told[at + 1].split() == [CASE, "MUST", "passed", "failed"]
    assert told[at + 2] == "    no field at all (RFC 9112 3.2)"
    assert told[at + 3] == "    wanted: a 400; got: 200"
    assert at < told.index("still failing (1)") < told.index("newly mended (1)")
    assert told[told.index("no longer asked (1)") + 1] == "  1 did not fail in either run"


def test_why_runs_may_not_be_comparable_stands_above_the_table() -> None:
    told = lines({CASE: Word.PASS}, {CASE: Word.FAIL}, differs=("the catalogues",), notes=("n",))
    assert told.index("  differs: the catalogues") < told.index("newly broken (1)")
    assert told[-1] == "  n"


def test_many_changes_fit_the_width_and_are_counted() -> None:
    names = [f"{'long-' * 12}{number}" for number in range(60)]
    told = lines(dict.fromkeys(names, Word.FAIL), dict.fromkeys(names, Word.FAIL))
    assert all(len(line) <= 80 for line in told)
    assert "  and 48 more: see --json" in told
    broken = lines(dict.fromkeys(names, Word.PASS), dict.fromkeys(names, Word.FAIL))
    assert sum(" passed " in line for line in broken) == 60, "each newly broken one is named"
    assert sum(line.startswith("    wanted:") for line in broken) == 12


def test_two_equal_runs_have_no_table() -> None:
    told = lines({CASE: Word.PASS}, {CASE: Word.PASS})
    assert not any("level" in line for line in told)
