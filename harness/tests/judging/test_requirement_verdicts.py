"""Verdicts on requirements: which failures decide, and which are only closes."""

from __future__ import annotations

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.judging import family_tally, requirement_verdicts
from httpmark.harness.model.cases import Level, Requirement
from httpmark.harness.model.verdicts import Verdict, Word


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
