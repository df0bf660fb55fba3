"""The requirement ledger: every row can be shown, and every binding case shows one."""

from __future__ import annotations

import fnmatch
import re

import pytest

from httpmark.harness.catalogue import delivery_modes, loading
from httpmark.harness.judging import requirement_verdicts
from httpmark.harness.judging.response_rules.rule_table import RULES
from httpmark.harness.model.cases import Family, Level, Requirement

KNOWN = loading.load()
SHOWS = {row.id: requirement_verdicts.showing(row) for row in KNOWN.requirements}
BINDING = {level for level in Level if level.is_binding}
RANGE = re.compile(r"([A-Z]+)-([0-9]+)\.\.([0-9]+)")
CLAUSE = re.compile(r"RFC [0-9]{4} [0-9A-Z.]+(, (RFC [0-9]{4} )?[0-9A-Z.]+)*")
# Lengths that a server makes itself come back to it from no client of ours (RFC 9110 2.3).
UNSEEN = {"own-lengths-handled"}
DELIVERIES = {f"SEG-{mode.upper()}" for mode in delivery_modes.MODES}


def words(family: Family) -> tuple[str, ...]:
    return (*(family.refs or (family.ref,)), family.group)


def levels(family: Family) -> set[Level]:
    """The level of an entry and of its classes."""
    classes = KNOWN.rules[family.id].classes
    return {family.level, *(one.level for one in classes if one.level is not None)}


def numbers() -> set[str]:
    found = {word for family in KNOWN.families.values() for word in words(family)}
    return found | RULES.keys() | DELIVERIES


def test_rows_have_permanent_names_a_clause_and_a_title_of_their_own() -> None:
    rows = KNOWN.requirements
    assert len({row.id for row in rows}) == len({row.title for row in rows}) == len(rows)
    assert [row.id for row in rows if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", row.id)] == []
    assert [row.clause for row in rows if not CLAUSE.fullmatch(row.clause)] == []
    assert {row.id for row in rows if not row.cases} == UNSEEN


@pytest.mark.parametrize("row", KNOWN.requirements, ids=lambda row: row.id)
def test_what_a_row_names_is_there(row: Requirement) -> None:
    known = numbers()
    wrong: list[str] = []
    for selector in row.cases:
        if match := RANGE.fullmatch(selector):
            wanted = {f"{match[1]}-{n:02d}" for n in range(int(match[2]), int(match[3]) + 1)}
            wrong += sorted(wanted - known) if len(wanted) > 1 else [selector]
        elif not fnmatch.filter(known, selector):
            wrong.append(selector)
    assert wrong == []


def test_every_binding_case_shows_a_requirement() -> None:
    unshown = [
        f"{family.ref} {family.id}"
        for family in KNOWN.families.values()
        if family.suite not in ("seed", "found")
        and levels(family) & BINDING
        and not any(SHOWS[row.id](family.refs or (family.ref,), family.group)
                    for row in KNOWN.requirements)
    ]  # fmt: skip
    assert unshown == []


def test_what_moves_a_boundary_is_marked_in_every_family_of_framing() -> None:
    """A report says of such failures that they can be used for request smuggling."""
    unmarked = [
        family.id
        for family in KNOWN.families.values()
        if family.group in ("CL", "TE", "CHK") and not family.framing
    ]
    assert unmarked == []
    marked = {family.group for family in KNOWN.families.values() if family.framing}
    assert {"HN", "FOLD", "DEV-CL", "DEV-TE", "DEV-CHUNK", "RFC-TE-FINAL"} <= marked
    assert not KNOWN.families["fold-space"].framing


def test_a_designed_case_that_binds_shows_a_requirement_that_binds() -> None:
    unshown = [
        family.id
        for family in KNOWN.families.values()
        if family.suite not in ("seed", "found")
        and family.level in BINDING
        and not any(SHOWS[row.id](family.refs or (family.ref,), family.group)
                    for row in KNOWN.requirements if row.level in BINDING)
    ]  # fmt: skip
    assert unshown == []


def test_every_check_on_answers_shows_a_requirement() -> None:
    shown = {
        number
        for number in RULES
        if any(SHOWS[row.id]((number,), number) for row in KNOWN.requirements)
    }
    assert RULES.keys() - shown == set()


def test_a_must_is_shown_by_a_binding_case_or_check() -> None:
    lame = []
    for row in KNOWN.requirements:
        if row.level not in BINDING or row.id in UNSEEN:
            continue
        by_case = any(
            levels(family) & BINDING and SHOWS[row.id](family.refs or (family.ref,), family.group)
            for family in KNOWN.families.values()
        )
        others = RULES.keys() | DELIVERIES
        by_check = any(SHOWS[row.id]((number,), number) for number in others)
        if not by_case and not by_check:
            lame.append(row.id)
    assert lame == []
