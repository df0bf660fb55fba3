"""docs/findings.md: its tables are those of its data; each failure is listed, read or unread."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.report import field_findings
from httpmark.harness.report.field_findings import Example, Field, Reading, Readings

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "findings.md"
READINGS = DOCS / "findings_readings.toml"


@pytest.fixture(scope="module", name="found")
def _found() -> Field:
    return msgspec.json.decode(PAGE.with_suffix(".json").read_bytes(), type=Field)


@pytest.fixture(scope="module", name="read")
def _read() -> tuple[Reading, ...]:
    read = msgspec.toml.decode(READINGS.read_bytes(), type=Readings).reading
    ids = [one.requirement for one in read]
    assert ids == sorted(set(ids))
    assert all(one.why.strip() for one in read)
    return read


def kind(one: Example) -> str:
    """What came, without what it was compared with."""
    return one.came.split(" (")[0].split(";")[0]


def shown(found: Field) -> set[tuple[str, str]]:
    return {(one.requirement, kind(one)) for server in found.servers for one in server.broken}


def kinds(read: tuple[Reading, ...]) -> set[tuple[str, str]]:
    return {(one.requirement, came) for one in read for came in (*one.came, *one.unread)}


def test_the_tables_are_those_of_the_data(found: Field) -> None:
    page = PAGE.read_text("utf-8")
    assert field_findings.placed(page, found) == page


def test_each_failure_is_listed_as_read_or_unread(found: Field, read: tuple[Reading, ...]) -> None:
    unread = sorted(shown(found) - kinds(read))
    assert not unread, f"read these against their clauses, then add them to {READINGS.name}"


def test_what_is_doubtful_is_that_of_the_readings(found: Field, read: tuple[Reading, ...]) -> None:
    doubtful = {
        (one.requirement, server.name) for server in found.servers for one in server.doubtful
    }
    assert doubtful == {(one.requirement, name) for one in read for name in one.doubtful}
    broken = {(one.requirement, server.name) for server in found.servers for one in server.broken}
    assert not doubtful & broken


def test_no_reading_is_of_what_nobody_does(found: Field, read: tuple[Reading, ...]) -> None:
    assert sorted(kinds(read) - shown(found)) == []


def test_each_failure_has_a_case_that_shows_it_again(found: Field) -> None:
    known = loading.load()
    rows = {row.id for row in known.requirements}
    for server in found.servers:
        for one in server.broken:
            assert one.requirement in rows or "/" in one.requirement, one
            assert known.select([one.case]), one
