"""Changes as Markdown for a pull request: short, what is broken first, and nobody's markup."""

from __future__ import annotations

import re

from httpmark.harness.gate import pull_request
from httpmark.harness.gate.run_changes import Change, Changes, Kind
from httpmark.harness.model.cases import Level
from httpmark.harness.tests.shared.made_findings import HOSTILE

COUNTS = ((3, 61), (4, 61))
LINE = "httpmark replay host-missing http://127.0.0.1:8080/"


def change(kind: Kind, id: str = "host-missing", **given: object) -> Change:
    states = {
        Kind.NEWLY_BROKEN: ("passed", "failed"),
        Kind.NEWLY_MENDED: ("failed", "passed"),
        Kind.NEWLY_WARNED: ("passed", "warned"),
        Kind.NO_LONGER_ASKED: ("failed", "not asked"),
        Kind.UNDECIDED: ("undecided", "failed"),
        Kind.FIRST_ASKED: ("not asked", "failed"),
        Kind.STILL_FAILING: ("failed", "failed"),
    }
    base, head = states[kind]
    words = {
        "kind": kind, "server": "target", "suite": "rfc", "id": id, "title": "no field at all",
        "level": Level.MUST, "clause": "RFC 9112 3.2", "base": base, "head": head,
        "message": "wanted: a 400; got: 200", "reproducers": (LINE,),
    }  # fmt: skip
    return Change(**{**words, **given})  # type: ignore[arg-type]


def text(*ones: Change, **given: object) -> str:
    found = Changes(changes=ones, requirements=COUNTS, **given)  # type: ignore[arg-type]
    return pull_request.text(found, base="runs/a", head="runs/b")


def test_what_is_newly_broken_stands_first_with_its_line() -> None:
    told = text(*(change(kind, f"id-{kind.name}") for kind in Kind), differs=("the catalogues",))
    lines = told.splitlines()
    assert lines[0].startswith("## httpmark: 1 newly broken, 1 newly mended, 1 still failing, ")
    assert "requirements broken: 3 of 61 in base, 4 of 61 in head" in lines[2]
    assert "These runs differ:" in lines[4]
    assert "the catalogues" in lines[4]
    (broken,) = (line for line in lines if line.startswith("**Newly broken:**"))
    assert "[RFC 9112 3.2](https://www.rfc-editor.org/rfc/rfc9112.html#section-3.2)" in broken
    assert f"\n```text\n{LINE}\n```\n" in told
    assert told.count(LINE) == 1, "only what is newly broken needs a line"
    places = [told.index(f"id-{kind.name}") for kind in Kind]
    assert min(places) == places[list(Kind).index(Kind.NEWLY_BROKEN)]
    assert "undecided in base, failed in head" in told
    assert len(lines) < 45


def test_a_long_list_is_folded_and_stays_short() -> None:
    for kind in Kind:
        told = text(*(change(kind, f"id-{number}") for number in range(500)))
        assert len(told) < 12_000, kind
        assert len(told.splitlines()) < 100, kind
        assert told.count("<details>") == told.count("</details>"), kind
        assert "more" in told, kind


def test_of_many_each_clause_has_an_example() -> None:
    ones = [
        change(Kind.NEWLY_BROKEN, f"id-{n}", clause="RFC 9112 3.2" if n < 40 else "RFC 9112 6.3")
        for n in range(50)
    ]
    told = text(*ones)
    assert told.count("**Newly broken:**") == 10
    assert "section-6.3" in told
    assert re.findall(r"`(id-\d+)`\n\nwanted", told) == [f"id-{n}" for n in (*range(9), 40)]
    names = re.findall(r"`(id-\d+)`", told)
    assert sorted(names) == sorted(one.id for one in ones), "each is named once"


def test_nothing_to_tell_is_told_in_three_lines() -> None:
    told = text()
    assert told.startswith("## httpmark: 0 newly broken, 0 newly mended, 0 still failing\n")
    assert len([line for line in told.splitlines() if line]) == 3


def test_what_did_not_fail_is_counted_and_not_listed() -> None:
    told = text(*(change(Kind.NO_LONGER_ASKED, f"id-{n}", base="passed") for n in range(7)))
    assert "**No longer asked, did not fail in base:** 7" in told
    assert "id-3" not in told


def test_a_hostile_answer_does_not_write_the_comment() -> None:
    told = text(
        *(change(kind, HOSTILE, title=HOSTILE, message=HOSTILE, server=HOSTILE,
                 reproducers=(HOSTILE,)) for kind in Kind),
        differs=(HOSTILE,), notes=(HOSTILE,),
    )  # fmt: skip
    assert "\x1b" not in told
    assert not re.search(r"^::error", told, re.MULTILINE)
    plain = re.sub(r"(?s)(`{3,})text\n.*?\1|`[^`]*`", "", told)
    assert "<b>" not in plain
    assert not re.search(r"(?<!\\)\]\(http://evil", plain)
    assert "@all" not in plain
