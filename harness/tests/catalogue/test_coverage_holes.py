"""The list of holes: what is not listed, and what is listed and covered by now, is a mistake."""

from __future__ import annotations

import msgspec
import pytest

from httpmark.harness.catalogue import coverage_holes
from httpmark.harness.catalogue.coverage_holes import Hole, Listed, Offsets
from httpmark.harness.catalogue.grammar_coverage import BLOCK, Covered, coverage
from httpmark.harness.catalogue.grammar_table import RULES
from httpmark.harness.catalogue.loading import load
from httpmark.harness.model.errors import HarnessError

[ASTERISK] = [rule for rule in RULES if rule.name == "asterisk-form"]
EMPTY = {one.rule.name: one for one in coverage(load(), ())}
ALL = Hole("asterisk-form", "A reason.", ("asterisk: any",), 25, ("*",))
NOWHERE = Offsets("A reason.", {"asterisk-form": (BLOCK, BLOCK)})
RIGHT = Listed((ALL,), (NOWHERE,))


def told(listed: Listed, covered: Covered = EMPTY["asterisk-form"]) -> list[str]:
    return coverage_holes.mistakes([covered], listed)


def covering(deviation: str) -> Covered:
    return msgspec.structs.replace(EMPTY["asterisk-form"], refused=frozenset({deviation}))


def test_a_right_list_has_no_mistakes() -> None:
    assert told(RIGHT) == []


def test_a_hole_that_is_not_listed_is_told_with_its_bytes() -> None:
    listed = Listed(
        (Hole("asterisk-form", "A reason.", ("asterisk: any but deleted",), 24, ("*",)),),
        (NOWHERE,),
    )
    [line] = told(listed)
    assert "asterisk deleted" in line
    assert r"OPTIONS  HTTP/1.1\r\n" in line


def test_a_listed_hole_that_is_covered_is_told() -> None:
    assert told(RIGHT, covering("asterisk deleted")) == [
        "asterisk-form: asterisk deleted: is covered; remove it from the list"
    ]


def test_the_count_of_an_entry_is_checked() -> None:
    listed = Listed((msgspec.structs.replace(ALL, count=24),), (NOWHERE,))
    assert ["makes 25 deviations, not 24" in line for line in told(listed)] == [True]


def test_a_place_or_kind_that_does_not_exist_is_told() -> None:
    texts = (*ALL.deviations, "asterix: any", "asterisk: NULL")
    lines = told(Listed((msgspec.structs.replace(ALL, deviations=texts),), (NOWHERE,)))
    assert ["names no deviation" in line for line in lines] == [True, True]


def test_kinds_are_named_or_left_out() -> None:
    named = Hole("asterisk-form", "A reason.", ("asterisk: NUL DEL deleted",), 3)
    rest = Hole("asterisk-form", "A reason.", ("asterisk: any but NUL DEL deleted",), 22, ("*",))
    assert told(Listed((named, rest), (NOWHERE,))) == []


def test_alternatives_are_listed_by_name() -> None:
    assert any(
        "alternative '*'" in line
        for line in told(Listed((msgspec.structs.replace(ALL, alternatives=()),), (NOWHERE,)))
    )
    filled = msgspec.structs.replace(EMPTY["asterisk-form"], alternatives=frozenset("*"))
    assert any("is no hole; remove it" in line for line in told(RIGHT, filled))


@pytest.mark.parametrize("stated", [(BLOCK, BLOCK - 1), (0, 0)])
def test_missing_offsets_are_counted(stated: tuple[int, int]) -> None:
    listed = Listed((ALL,), (Offsets("A reason.", {"asterisk-form": stated}),))
    assert ["offsets" in line for line in told(listed)] == [True]


def test_a_rule_that_does_not_exist_is_told() -> None:
    listed = Listed((ALL, Hole("asterix", "A reason.")), (NOWHERE,))
    assert told(listed) == ["asterix: there is no such rule; remove it from the list"]


def test_every_reason_of_the_list_is_a_sentence() -> None:
    listed = coverage_holes.read()
    reasons = [hole.reason for hole in listed.hole] + [one.reason for one in listed.offsets]
    assert [one for one in reasons if len(one) < 30 or not one.endswith(".")] == []


def test_a_rule_is_found_by_its_name_in_any_case() -> None:
    assert coverage_holes.rule_named(EMPTY.values(), "host").rule.name == "Host"
    with pytest.raises(HarnessError, match="no rule 'hots': known are method"):
        coverage_holes.rule_named(EMPTY.values(), "hots")
