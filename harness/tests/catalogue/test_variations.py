"""What varies: exact counts, the published order, nothing twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from httpmark.harness.catalogue import case_builder, loading, variations
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.http import grammar
from httpmark.harness.model.cases import Case, Facts, Level

PUBLISHED = {
    "path_byte": 175,
    "query_byte": 175,
    "field_name_byte": 178,
    "field_value_byte": 30,
    "path_pct_pair": 61692,
    "query_pct_pair": 61692,
}
KNOWN = loading.load()


def cases(family: str) -> Iterator[Case]:
    return KNOWN.cases(family, Facts(host="h"))


@pytest.mark.parametrize(("family", "count"), PUBLISHED.items())
def test_the_published_families_have_exactly_their_sizes(family: str, count: int) -> None:
    made = list(cases(family))
    assert len(made) == count
    assert len({case.id for case in made}) == count
    assert len({case.sent for case in made}) == count


def test_the_published_families_are_all_there_is_to_score() -> None:
    scored = {f.id: f.count for f in KNOWN.of_suite("seed") if f.level is not Level.CTRL}
    assert scored == PUBLISHED
    assert sum(scored.values()) == 123_942


def test_bytes_come_in_the_order_of_signed_char() -> None:
    first = [case.sent for case in cases("path_byte")]
    assert first[0] == b"GET /hello\x80 HTTP/1.1\r\nHost: h\r\n\r\n"
    assert first[127] == b"GET /hello\xff HTTP/1.1\r\nHost: h\r\n\r\n"
    assert first[128] == b"GET /hello\x00 HTTP/1.1\r\nHost: h\r\n\r\n"
    assert first[-1] == b"GET /hello\x7f HTTP/1.1\r\nHost: h\r\n\r\n"


def test_pairs_with_a_bad_first_byte_come_first() -> None:
    pairs = [case.sent[11:13] for case in cases("path_pct_pair")]
    good = grammar.ALPHANUMERIC
    assert all(pair[0] not in good for pair in pairs[: 194 * 256])
    assert all(pair[0] in good and pair[1] not in good for pair in pairs[194 * 256 :])


def test_each_place_is_the_one_its_family_names() -> None:
    assert next(cases("query_byte")).sent.startswith(b"GET /hello?\x80 HTTP/1.1\r\n")
    assert next(cases("query_pct_pair")).sent.startswith(b"GET /hello?%\x80\x80 HTTP/1.1\r\n")
    assert next(cases("field_name_byte")).sent.endswith(b"\r\n\x80: value\r\n\r\n")
    assert next(cases("field_value_byte")).sent.endswith(b"\r\nname: \x00\r\n\r\n")


def test_the_slug_says_the_bytes() -> None:
    wrong = [
        case.id
        for case in cases("path_pct_pair")
        if case.sent[11:13] != bytes.fromhex("".join(case.id.split("-")[1:]))
    ]
    assert wrong == []


def test_a_control_never_sends_what_a_scored_family_sends() -> None:
    bad = {case.sent for family in PUBLISHED for case in cases(family)}
    controls = [f.id for f in KNOWN.of_suite("seed") if f.level is Level.CTRL]
    good = [case.sent for family in controls for case in cases(family)]
    assert len(good) == 587
    assert bad.isdisjoint(good)


def test_counting_needs_no_cases() -> None:
    rule = Rule(sends=("{pair}",), pairs_outside=grammar.ALPHANUMERIC)
    assert variations.count(rule) == 194 * 256 + 62 * 194


def test_pairs_in_one_set_and_outside_another_come_bad_first_byte_first() -> None:
    rule = Rule(sends=("{pair}",), pairs_within=frozenset(b"AGZ"), pairs_outside=grammar.HEXDIG)
    made = [case.sent for case in case_builder.cases("x", rule, Facts(host="h"))]
    assert made == [b"GA", b"GG", b"GZ", b"ZA", b"ZG", b"ZZ", b"AG", b"AZ"]
    assert variations.count(rule) == len(made)
