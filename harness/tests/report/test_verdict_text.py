"""What a check prints: the verdict first, nothing cut, as wide as it may be."""

from __future__ import annotations

import string

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.gate import conclusion
from httpmark.harness.gate.findings import Finding, Status
from httpmark.harness.model.cases import Facts, Level
from httpmark.harness.model.verdicts import Word
from httpmark.harness.report import verdict_text
from httpmark.harness.report.verdict_text import Judged, Line, Style
from httpmark.harness.tests.shared.judged_cases import (
    ACCEPTED,
    PASSED,
    SILENT,
    Said,
    check_of,
)
from httpmark.harness.tests.shared.made_findings import HOSTILE, hostile_run, many

BINDING = [
    one.id
    for one in loading.load().families.values()
    if one.level.is_binding and one.suite == "rfc" and not one.generated
]
LINE = "httpmark replay content-length-plus-sign 127.0.0.1:8080"
FACTS = Facts(host="127.0.0.1:8080", address="127.0.0.1", port=8080, path="/")


def judged(cases: dict[str, Said], **changes: object) -> Judged:
    run, found = check_of(cases)
    found = tuple(
        msgspec.structs.replace(one, reproducers=(LINE,), sent="GET / HTTP/1.1") for one in found
    )
    code = conclusion.exit_code(run, found)
    made = Judged(run=run, found=found, code=code, facts={"reference": FACTS})
    return msgspec.structs.replace(made, **changes)


def texts(one: Judged, width: int = 80) -> list[str]:
    return [line.text for line in verdict_text.verdict_lines(one, width=width)]


def test_the_first_line_is_the_verdict_and_the_last_the_gate() -> None:
    lines = verdict_text.verdict_lines(judged({"host-missing": ACCEPTED}))
    assert lines[0] == Line("Breaks 1 of 1 requirement.", Style.BAD)
    assert lines[-1].text == "GATE failed, exit code 1; cases and checks: 1 failed"
    good = verdict_text.verdict_lines(judged({"host-missing": PASSED}))
    assert good[0] == Line("Meets the 1 requirement.", Style.GOOD)


def test_a_failure_says_why_what_was_wanted_what_came_and_how_to_see_it_again() -> None:
    came = "200, 200; the next request is not answered (2 answers instead of 1)"
    lines = texts(judged({"content-length-plus-sign": (Word.FAIL, came)}))
    at = lines.index("Broken, and can be used for request smuggling")
    assert lines[at + 1 : at + 11] == [
        " 1. An invalid Content-Length gets 400 and a close",
        "    MUST, RFC 9112 6.3",
        "    why      Many number parsers take a sign; the grammar does not.",
        "    example  content-length-plus-sign: a plus sign",
        "    sent     GET / HTTP/1.1",
        "    wanted   a 400",
        "    came     200, 200 (2 answers instead of 1)",
        "    then     the next request is not answered",
        f"    again    {LINE}",
        "",
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_that_came_is_cut_and_only_lines_to_copy_are_longer(width: int) -> None:
    came = "200; " + "a reason that goes on, " * 40 + "to its end"
    one = judged({"content-length-plus-sign": (Word.FAIL, came)})
    lines = texts(one, width)
    told = " ".join(" ".join(lines).split())
    assert "to its end" in told
    assert "[...]" not in told
    assert told.count("a reason that goes on,") == 40
    assert all(len(line) <= width or LINE in line for line in lines)


def test_names_of_cases_are_not_broken_at_a_hyphen() -> None:
    told = "\n".join(texts(judged(dict.fromkeys(BINDING, ACCEPTED))))
    assert not [line for line in told.splitlines() if line.endswith("-")]


def test_many_broken_requirements_have_a_line_each_after_the_first_ten() -> None:
    lines = texts(judged(dict.fromkeys(BINDING, ACCEPTED)))
    numbered = [line for line in lines if line[:2].strip().isdigit() and line[2:4] == ". "]
    (first, *_) = lines
    assert first.startswith(f"Breaks {len(numbered)} of {len(numbered)} requirements.")
    assert sum("    wanted   " in line for line in lines) == verdict_text._DETAILED_MAX
    assert "The page shows each of them with its bytes." in lines


def test_what_is_open_has_one_line_each() -> None:
    lines = texts(
        judged(
            {
                "host-missing": SILENT,
                "fold-space": (Word.NOT_APPLICABLE, "needs static: declare it"),
                "host-query": PASSED,
            }
        )
    )
    assert "Requirements: 1 met, 0 broken, 1 undecided, 1 not applicable." in lines
    assert sum(line.startswith("Undecided: 1 requirement: ") for line in lines) == 1
    assert "Not applicable: 1 requirement. They need static (1)." in lines
    assert "Score: rfc 100.0 %." in lines


def test_the_target_is_told_as_it_was_found() -> None:
    lines = texts(judged({"host-missing": PASSED}))
    at = lines.index("The target")
    assert lines[at + 1] == "    address  http://127.0.0.1:8080/"
    assert lines[at + 2] == "    path     GET /, Host: 127.0.0.1:8080"


def test_a_generated_family_says_how_many_requests_fail() -> None:
    one = judged({"content-length-plus-sign": ACCEPTED})
    found = tuple(
        msgspec.structs.replace(f, requests=76, failures=12, witness="length-2b") for f in one.found
    )
    lines = texts(msgspec.structs.replace(one, found=found))
    assert "    how many 12 of 76 requests" in lines
    assert "    such as  length-2b" in lines


def test_a_smaller_request_stands_below_the_line_to_copy() -> None:
    one = judged({"content-length-plus-sign": ACCEPTED})
    small = "19 of 31 bytes do the same:\nprintf 'x' | nc 127.0.0.1 8080"
    found = tuple(msgspec.structs.replace(f, fewest=small) for f in one.found)
    lines = texts(msgspec.structs.replace(one, found=found))
    at = lines.index(f"    again    {LINE}")
    assert lines[at + 1 : at + 3] == [
        "    smaller  19 of 31 bytes do the same:",
        "             printf 'x' | nc 127.0.0.1 8080",
    ]


def test_what_the_baseline_lists_has_no_details() -> None:
    one = judged({"content-length-plus-sign": ACCEPTED})
    found = tuple(msgspec.structs.replace(f, status=Status.EXPECTED) for f in one.found)
    lines = texts(msgspec.structs.replace(one, found=found, code=0))
    assert "Broken, as the baseline lists it" in lines
    assert not any("wanted" in line for line in lines)


def test_what_belongs_to_no_requirement_is_shown_with_its_message() -> None:
    one = judged({"host-missing": PASSED})
    extra = [
        msgspec.structs.replace(finding, server="reference", title="a title", message="a message")
        for finding in many(Status.FAILED, 1)
    ]
    lines = texts(msgspec.structs.replace(one, found=(*one.found, *extra), code=1))
    at = lines.index("Also fails the gate")
    assert lines[at + 1] == " 1. a title"
    assert "    seen     a message" in lines[at:]


def test_no_word_of_a_server_acts_on_the_terminal() -> None:
    finding = Finding(
        server="reference", suite="rfc", id="host-missing", title=HOSTILE, level=Level.MUST,
        clause=HOSTILE, status=Status.FAILED, message=HOSTILE, expected=HOSTILE, actual=HOSTILE,
        reproducers=(HOSTILE,), fewest=HOSTILE, sent=HOSTILE, witness=HOSTILE,
    )  # fmt: skip
    made = Judged(run=hostile_run(), found=(finding,), code=1)
    lines = verdict_text.verdict_lines(made)
    printable = set(string.printable) - set("\t\n\r\x0b\x0c")
    assert all(set(line.text) <= printable for line in lines)
