"""GitHub: budgets kept, no count lost, no word of a server that acts."""

from __future__ import annotations

import re

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest

from httpmark.harness.gate import findings, github
from httpmark.harness.gate.findings import Status
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import Compliance
from httpmark.harness.tests.shared.made_findings import (
    CONTROLS_FAIL,
    MUST_FAILS,
    VOID,
    hostile_run,
    many,
    run_of,
)


@hypothesis.given(st.lists(st.integers(0, 40), min_size=len(Status), max_size=len(Status)))
def test_annotations_keep_the_budget_and_lose_no_count(numbers: list[int]) -> None:
    found = [f for said, number in zip(Status, numbers, strict=True) for f in many(said, number)]
    lines = github.workflow_commands(found)
    for kind, words in (
        ("error", (Status.FAILED, Status.UNUSABLE)),
        ("warning", (Status.WARNED, Status.UNDECIDED)),
    ):
        shown = [line for line in lines if line.startswith(f"::{kind} ")]
        assert len(shown) <= github.ANNOTATIONS_MAX
        more = [int(n[1]) for line in shown if (n := re.search(r"::and (\d+) more$", line))]
        wanted = sum(finding.status in words for finding in found)
        assert len(shown) - len(more) + sum(more) == wanted
    assert len(lines) == len([line for line in lines if re.match(r"::(error|warning) ", line)])


_TRICKY = st.text() | st.text("%025ACD3:,\r\n x")


@hypothesis.given(_TRICKY, _TRICKY)
@hypothesis.example("100%0A", "%3A%2C")
def test_an_annotation_gives_back_every_word(message: str, clause: str) -> None:
    (finding,) = many(Status.FAILED, 1, message)
    (line,) = github.workflow_commands([msgspec.structs.replace(finding, clause=clause)])
    assert not set(line) & {"\r", "\n"}
    title, said = re.fullmatch(r"::error title=([^:,]*)::(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    for escaped, plain in (("%0A", "\n"), ("%0D", "\r"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        title, said = title.replace(escaped, plain), said.replace(escaped, plain)
    assert title == f"MUST {clause}".strip()
    assert said == f"s: t: {message}"


def test_a_summary_keeps_the_budget_and_says_how_many_are_left_out() -> None:
    found = [
        msgspec.structs.replace(finding, title=f"t{at}")
        for at, finding in enumerate(many(Status.FAILED, 4000, "x" * 500))
    ]
    found += many(Status.UNUSABLE, 1)
    text = github.summary(run_of("reference"), found)
    assert len(text.encode()) <= github.SUMMARY_BYTES_MAX
    left = re.search(r"and (\d+) more", text)
    assert left
    rows = [line for line in text.splitlines() if re.match(r"\| (failed|unusable) ", line)]
    assert len(rows) + int(left[1]) == 4001
    assert rows[0].startswith("| unusable"), "worst first"


def test_a_summary_has_one_row_for_a_requirement_however_many_cases_show_it() -> None:
    text = github.summary(run_of("reference"), many(Status.FAILED, 28, "wanted: a 400; got: 200"))
    rows = [line for line in text.splitlines() if line.startswith("| failed")]
    [row] = rows
    assert row.endswith(" | 28 cases and checks fail, such as `failed0`: wanted: a 400; got: 200 |")
    assert text.count("<details>") <= 1


@pytest.mark.parametrize(
    ("run", "headline"),
    [
        (run_of("reference"), "passed"),
        (run_of("go_net_http"), "passed"),
        (run_of("reference", MUST_FAILS), "failed"),
        (run_of("reference", VOID), "inconclusive"),
        (run_of("reference", CONTROLS_FAIL), "could not be judged"),
        (run_of("reference", compliance=Compliance()), "nothing selected"),
    ],
)
def test_the_summary_begins_with_the_verdict(run: Run, headline: str) -> None:
    first = github.summary(run, findings.findings(run)).splitlines()[0]
    assert first == f"## httpmark: {headline}"


def test_hostile_words_break_no_summary_and_command_nothing() -> None:
    run = hostile_run()
    found = findings.findings(run)
    for line in github.workflow_commands(found):
        assert "\n" not in line
        assert "\r" not in line
        assert len(re.findall(r"(?<!%3A%3A)::(?:error|warning) title=", line)) == 1
    text = github.summary(run, found)
    text.encode("utf-8")
    assert "<b>" not in text
    assert not re.search(r"(?<!\\)\]\(http://evil", text)
    assert not re.search(r"(?<![\w&#])@all", text)
    for line in text.splitlines():
        if line.startswith("|") and "&lt;b&gt;" in line:
            assert len(re.findall(r"(?<!\\)\|", line)) in (4, 5), line


@hypothesis.given(st.text("`ab\n<>&\x1b", max_size=40))
def test_no_wire_log_can_leave_its_code_block(wire: str) -> None:
    (finding,) = many(Status.FAILED, 1)
    finding = msgspec.structs.replace(finding, reproducers=("printf x",), wire=wire)
    text = github.summary(run_of("reference"), [finding])
    block = text.partition("</summary>\n\n")[2]
    fence, _, rest = block.partition("text\n")
    assert set(fence) == {"`"}
    inside, closed, after = rest.rpartition(f"\n{fence}\n")
    assert closed
    assert after == "\n</details>\n"
    assert fence not in inside


def test_a_summary_with_long_reproducers_keeps_the_budget() -> None:
    made = [
        msgspec.structs.replace(finding, reproducers=("x" * 4000,))
        for finding in many(Status.FAILED, 400)
    ]
    assert len(github.summary(run_of("reference"), made).encode()) <= github.SUMMARY_BYTES_MAX


def test_a_score_says_what_it_is_of() -> None:
    text = github.summary(run_of("reference", MUST_FAILS), ())
    assert "| seed | 98.0 % | requirements: 98 met, 2 broken |" in text
    text = github.summary(run_of("reference"), ())
    assert "| seed | 100.0 % | 558 rejected, 0 closed, 0 accepted, 0 mute |" in text
