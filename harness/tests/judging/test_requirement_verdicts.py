"""Verdicts on requirements: which failures decide, and which are only closes."""

from __future__ import annotations

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.judging import family_tally, requirement_verdicts
from httpmark.harness.model.cases import Level, Requirement
from httpmark.harness.model.verdicts import SuiteResult, Tally, Verdict, Word


@pytest.mark.parametrize(("unanswered", "only_closed"), [(True, True), (False, False)])
def test_a_close_at_a_level_that_is_not_counted_excuses_no_failure(
    unanswered: bool, only_closed: bool
) -> None:
    must, should = (
        next(f for f in loading.load().families.values() if f.level is level and not f.generated)
        for level in (Level.MUST, Level.SHOULD)
    )
    row = Requirement(id="row", clause="", level=Level.MUST, title="", cases=(must.ref, should.ref))
    tallies = {
        family.id: family_tally.tally(
            [Verdict(family.id, Word.FAIL, "", "", None, family.level, closed_unanswered=closed)]
        )
        for family, closed in ((must, unanswered), (should, True))
    }
    found = requirement_verdicts.requirements([row], [must, should], tallies, {})
    assert found["row"] == (Level.MUST, Word.FAIL, only_closed)


def test_whatever_fails_the_gate_breaks_a_requirement_that_is_counted() -> None:
    """A binding failure of any family, alone, is counted: no gate is red with nothing broken."""
    known = loading.load()
    levels = {family.id: {family.level} for family in known.families.values()}
    for id, rule in known.rules.items():
        levels[id] |= {one.level for one in rule.classes if one.level is not None}
    uncounted = []
    for family in known.families.values():
        for level in levels[family.id]:
            if family.suite in ("seed", "found") or not level.is_binding:
                continue
            alone = {family.id: Tally(words={level: {Word.FAIL: 1}})}
            rows = requirement_verdicts.requirements(known.requirements, [family], alone, {})
            if not requirement_verdicts.must(rows)["failed"]:
                uncounted.append((family.id, level))
    assert uncounted == []


def test_a_requirement_is_as_good_as_in_its_worst_suite() -> None:
    suites = [
        SuiteResult(score_percent=None, requirements={"a": Word.PASS, "b": Word.FAIL}),
        SuiteResult(score_percent=None, requirements={"a": Word.VOID, "c": Word.WARN}),
    ]
    assert requirement_verdicts.merged(suites) == {"a": Word.VOID, "b": Word.FAIL, "c": Word.WARN}


def test_cases_of_no_row_make_a_row_with_a_title_and_other_names_make_none() -> None:
    known = loading.load()
    families = list(known.families.values())
    rows = requirement_verdicts.rows(
        known.requirements, families, ("bare-cr", "rfc-path-mid/must", "host/info", "gone")
    )
    assert [row.id for row in rows[len(known.requirements) :]] == ["rfc-path-mid/must", "host/info"]
    assert rows[-2].title == "Bytes that no path may hold, inside it"
    assert (rows[-1].title, rows[-1].level) == ("Other cases of HOST", Level.INFO)
    assert requirement_verdicts.has_level(rows[-2], known.families["path_octet_middle"])
    assert not requirement_verdicts.has_level(rows[-1], known.families["host-userinfo"])
