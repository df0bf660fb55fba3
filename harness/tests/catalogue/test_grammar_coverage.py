"""What the catalogue covers of the grammar, against the list of holes that is kept with it."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from httpmark.harness.catalogue import coverage_holes, grammar_coverage, loading
from httpmark.harness.catalogue.grammar_coverage import Covered

FILE = """
suite = "rfc"
family = "XX"
title = "made for a test"

[[case]]
id = "xx-one"
ref = "XX-01"
title = "one"
level = "{level}"
clause = "RFC 9112 3"
why = "A test."
canary = "none"
place = "hello"
send = '{send}'
pass = "{expected}"
"""


@functools.cache
def whole() -> tuple[Covered, ...]:
    return grammar_coverage.coverage(loading.load())


def covered(tmp_path: Path, send: str, expected: str, level: str = "MUST") -> dict[str, Covered]:
    """What one case covers."""
    folder = tmp_path / "scenarios"
    folder.mkdir()
    text = FILE.format(send=send, expected=expected, level=level)
    (folder / "made.toml").write_text(text, "utf-8")
    found = grammar_coverage.coverage(loading.load(folder))
    return {one.rule.name: one for one in found}


def refused(found: dict[str, Covered]) -> set[str]:
    return {f"{name}: {text}" for name, one in found.items() for text in one.refused}


def test_the_list_of_holes_is_right() -> None:
    assert coverage_holes.mistakes(whole(), coverage_holes.read()) == []


def test_without_one_family_there_are_holes_that_no_one_listed() -> None:
    known = loading.load()
    small = {family.id for family in known.families.values() if family.count < 1000}
    without = grammar_coverage.coverage(known, small - {"method_octet"})
    told = coverage_holes.mistakes(without, coverage_holes.read())
    holes = [one for one in told if one.startswith("method: method.middle replaced by")]
    assert len(holes) >= 10, told
    assert any(r'quote: no case has G"T /abc HTTP/1.1\r\n refused' in one for one in holes), told


@pytest.mark.parametrize(
    ("send", "deviations"),
    [
        (r"GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", {"method: method.middle replaced by separator"}),
        (r"GET / HTTP/1..1\r\nHost: a\r\n\r\n", {"HTTP-version: version.7 doubled"}),
        (r"GET / HTTP1.1\r\nHost: a\r\n\r\n", {"HTTP-version: version.5 deleted"}),
        (
            r"GET / HTTP/1.1\r\nHost: a\r\nX-Y : z\r\n\r\n",
            {"field-line: name.last replaced by space"},
        ),
        (
            r"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7:z]\r\n\r\n",
            {"IPv6address: group 8 replaced by g-z"},
        ),
        (
            r"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1_0\r\n\r\n",
            {"Content-Length: length.middle replaced by mark"},
        ),
        (
            r"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunled\r\n\r\n0\r\n\r\n",
            {"Transfer-Encoding: chunked.5 replaced by g-z"},
        ),
        (
            r"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naX\n0\r\n\r\n",
            {"end of chunk-data: data end.1 replaced by g-z"},
        ),
    ],
)
def test_a_case_covers_the_deviation_that_it_has_refused(
    tmp_path: Path, send: str, deviations: set[str]
) -> None:
    assert deviations <= refused(covered(tmp_path, send, "REJ"))


@pytest.mark.parametrize(
    ("send", "expected", "level"),
    [
        (r"GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", "ACC", "MUST"),  # not refused
        (r"GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", "EITHER", "MUST"),
        (r"GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", "REJ", "INFO"),  # not judged
        (r"GE(T / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", "REJ", "MUST"),  # refused for two reasons
        (r"GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", "ACC > REJ", "MUST"),
    ],
)
def test_what_is_not_refused_for_the_deviation_alone_does_not_cover_it(
    tmp_path: Path, send: str, expected: str, level: str
) -> None:
    assert refused(covered(tmp_path, send, expected, level)) == set()


def test_an_alternative_is_covered_where_it_is_accepted_and_at_its_offset(tmp_path: Path) -> None:
    found = covered(tmp_path, r"GET /a?b HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "ACC")
    assert found["origin-form"].alternatives == {"query"}
    assert {"elided first", "port"} == found["IPv6address"].alternatives
    assert found["IPv6address"].accepted_at == {19}
    assert found["HTTP-version"].alternatives == {"1.1"}


def test_an_alternative_of_a_refused_message_is_not_covered(tmp_path: Path) -> None:
    found = covered(tmp_path, r"GET /a?b HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "REJ")
    assert found["origin-form"].alternatives == frozenset()
