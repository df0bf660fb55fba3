"""A damaged evidence file is told in one line, wherever in it the damage is."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model import digests
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.verdicts import Verdict, Word


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of a version that kept no digests."""
    file = tmp_path / "e.sqlite"
    with Evidence(file, create=True) as evidence:
        evidence.add(
            "one", [Exchange("a", "f", b"GET", b"OK", Outcome.ANSWERED, End.CLOSED, 12, 34, 5)]
        )
        evidence.set_facts("one", Facts(host="h", port=80, path="/"))
        evidence.observe("one", Verdict("a", Word.FAIL, "why", "what came"))
        evidence.agree("one", {("a", "octets"): 3})
    digests.forget(file)
    return file


def change(path: Path, statement: str) -> None:
    base = sqlite3.connect(path, isolation_level=None)
    base.execute(statement)
    base.close()


def read_all(path: Path, *, masked: bool) -> None:
    with Evidence(path, masked=masked) as evidence:
        for server in evidence.servers():
            evidence.families(server)
            evidence.facts(server)
            evidence.observed(server)
            evidence.agreed(server, "a")
            evidence.holds(server, "whole")
            evidence.planned("f")
            list(evidence.doubtful(server))
            list(evidence.exchanges(server, family="f", case="a"))
        list(evidence.answers())


def test_a_whole_one_is_read(path: Path) -> None:
    read_all(path, masked=True)
    read_all(path, masked=False)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE exchange SET outcome = 99",
        "UPDATE exchange SET ending = -1",
        "UPDATE exchange SET ending = 'x'",
        "UPDATE exchange SET end_us = 'soon'",
        "UPDATE exchange SET end_us = 1.5",
        "UPDATE exchange SET first_us = x'00'",
        "UPDATE exchange SET timeline = 'x'",
        "UPDATE exchange SET ended_s = 'x'",
        "UPDATE exchange SET delivery = x'ff'",
        "UPDATE octets SET value = 'text'",
        "UPDATE octets SET value = 7",
        "UPDATE item SET slug = x'ff'",
        "UPDATE server SET name = x'ff'",
        "UPDATE facts SET value = 7",
        "UPDATE observed SET value = 'text'",
        "UPDATE agreed SET cuts = 'many'",
    ],
)
def test_a_value_of_another_kind_is_damage(path: Path, statement: str) -> None:
    change(path, statement)
    with pytest.raises(Unusable, match=r"damaged: a row of .* is not as it was written") as caught:
        read_all(path, masked=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("UPDATE facts SET value = x'5b5d'", "damaged: Expected `object`"),
        ("UPDATE observed SET value = x'7b'", "damaged: Input data was truncated"),
        ("UPDATE item SET family = CAST(x'ff' AS TEXT)", "damaged: Could not decode to UTF-8"),
        ("UPDATE server SET name = CAST(x'ff' AS TEXT)", "damaged: Could not decode to UTF-8"),
        ("ALTER TABLE agreed RENAME COLUMN cuts TO other", "is this an evidence file"),
        ("ALTER TABLE facts RENAME COLUMN value TO other", "is this an evidence file"),
    ],
)
@pytest.mark.parametrize("masked", [True, False])
def test_what_cannot_be_read_is_one_line(
    path: Path, statement: str, why: str, masked: bool
) -> None:
    change(path, statement)
    with pytest.raises(HarnessError, match=why) as caught:
        read_all(path, masked=masked)
    assert "\n" not in str(caught.value)
