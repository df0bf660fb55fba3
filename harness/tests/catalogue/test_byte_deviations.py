"""Every one-byte deviation of a sample is made, is invalid, and is found again in other bytes."""

from __future__ import annotations

import re

import pytest

from httpmark.harness.catalogue.byte_deviations import Deviation, Part, Search, searches
from httpmark.harness.catalogue.grammar_rules import GrammarRule
from httpmark.harness.catalogue.grammar_table import RULES
from httpmark.harness.http import grammar

LINE = re.compile(rb"[A-Z]+=[0-9]{1,3};")
PARTS = (
    Part("name", b"ABC", of=frozenset(range(0x41, 0x5B))),
    Part("equals", b"="),
    Part("", b"12", around=b"[0-9]+"),
    Part("end", b";"),
)


def deviations(found: list[Search]) -> dict[str, Deviation]:
    return {one.text: one for search in found for one in search.found.values()}


def by_hand() -> set[bytes]:
    """All deviations of the sample that are not valid, with each of the 256 bytes."""
    sample = b"ABC=12;"
    made = set()
    for at in (0, 1, 2, 3, 6):
        head, own, tail = sample[:at], sample[at : at + 1], sample[at + 1 :]
        made |= {head + tail, head + own + own + tail}
        made |= {head + bytes((octet,)) + tail for octet in range(256)}
    return {one for one in made if not LINE.fullmatch(one)}


def test_every_deviation_of_every_byte_is_found_and_named() -> None:
    found = list(searches(PARTS, LINE))
    missed = [
        line
        for line in by_hand()
        if not any(
            (match := search.pattern.fullmatch(line)) and match[1] in search.found
            for search in found
        )
    ]
    assert missed == []


def test_a_valid_line_is_no_deviation() -> None:
    lines = [b"ABC=12;", b"A=1;", b"ABCDEF=999;", b"AAB=12;", b"BC=12;"]
    named = [
        line
        for line in lines
        for search in searches(PARTS, LINE)
        if (match := search.pattern.fullmatch(line)) and match[1] in search.found
    ]
    assert named == []


def test_a_part_that_repeats_stands_for_all_its_lengths() -> None:
    texts = []
    for line in (b"QRSTU-V=7;", b"-V=7;", b"QR-=7;"):
        for search in searches(PARTS, LINE):
            if (match := search.pattern.fullmatch(line)) and match[1] in search.found:
                texts.append(search.found[match[1]].text)
    assert texts == [
        "name.middle replaced by sign",
        "name.first replaced by sign",
        "name.last replaced by sign",
    ]


def test_a_part_that_gets_too_long_is_found_doubled() -> None:
    valid = re.compile(rb"<[0-9]{3}>")
    parts = (
        Part("", b"<", around=b"<"),
        Part("number", b"123", of=grammar.DIGIT),
        Part("", b">", around=b">"),
    )
    found = deviations(list(searches(parts, valid)))
    assert found["number.first doubled"].octets == b"<1123>"
    hits = [one for one in searches(parts, valid) if one.pattern.fullmatch(b"<4567>")]
    assert "doubled" in {text.kind for one in hits for text in one.found.values()}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_deviations_of_a_rule_are_invalid_and_find_themselves(rule: GrammarRule) -> None:
    """Some bytes are a deviation in two ways (``X0 y`` lacks a colon at 0, or at the space): then
    the place is right."""
    for parts in rule.samples.values():
        found = list(searches(parts, rule.valid))
        for one in deviations(found).values():
            assert not rule.valid.fullmatch(one.octets), one
            assert any(
                (match := search.pattern.fullmatch(one.octets))
                and search.found[match[1]].place == one.place
                for search in found
            ), one


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_sample_is_valid_for_its_own_patterns(rule: GrammarRule) -> None:
    for name, parts in rule.samples.items():
        sample = b"".join(part.octets for part in parts)
        assert rule.valid.fullmatch(sample), name
        assert re.fullmatch(b"".join(part.pattern for part in parts), sample), name
