"""The sentences of a verdict: correct for none, one and many, and the same everywhere."""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.catalogue import loading, undeclared
from httpmark.harness.gate import (
    baseline,
    broken_requirements,
    conclusion,
    findings,
    github,
    verdict_sentences,
)
from httpmark.harness.gate.findings import Finding, Gate, Status
from httpmark.harness.gate.verdict_sentences import counted, listed
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import Compliance, Word
from httpmark.harness.tests.shared.judged_cases import (
    ACCEPTED,
    PASSED,
    SILENT,
    Said,
    check_of,
    suite_of_cases,
)
from httpmark.harness.tests.shared.made_findings import CONTROLS_FAIL, mixed, run_of
from httpmark.harness.tests.shared.made_run import made_run

LENGTH = '"An invalid Content-Length gets 400 and a close"'
OVERFLOW = '"Huge lengths do not overflow"'


def said(*suites: dict[str, Said]) -> tuple[str, ...]:
    run, found = check_of(*suites)
    return verdict_sentences.sentences(run, found, conclusion.exit_code(run, found))


@pytest.mark.parametrize(
    ("cases", "wanted"),
    [
        ({"host-missing": PASSED}, ("Meets the 1 requirement.",)),
        ({"host-missing": PASSED, "host-query": PASSED}, ("Meets all 2 requirements.",)),
        ({"host-missing": ACCEPTED}, ("Breaks 1 of 1 requirement.",)),
        (
            {"host-missing": ACCEPTED, "host-query": PASSED},
            ("Breaks 1 of 2 requirements.",),
        ),
        (
            {"host-missing": ACCEPTED, "host-query": ACCEPTED, "bad": PASSED},
            ("Breaks 2 of 3 requirements.",),
        ),
        (
            {"content-length-plus-sign": ACCEPTED},
            ("Breaks 1 of 1 requirement.", f"It can be used for request smuggling: {LENGTH}."),
        ),
        (
            {"content-length-plus-sign": ACCEPTED, "host-missing": ACCEPTED},
            (
                "Breaks 2 of 2 requirements.",
                f"1 of them can be used for request smuggling: {LENGTH}.",
            ),
        ),
        (
            {"content-length-plus-sign": ACCEPTED, "content-length-2-64": ACCEPTED},
            (
                "Breaks 2 of 2 requirements.",
                f"All 2 can be used for request smuggling: {LENGTH} and {OVERFLOW}.",
            ),
        ),
        (
            {"host-missing": SILENT, "host-query": PASSED},
            ("Breaks none of 2 requirements. 1 is undecided.", verdict_sentences._ADVICE),
        ),
        (
            {"host-missing": SILENT, "host-query": SILENT, "bad": ACCEPTED},
            ("Breaks 1 of 3 requirements. 2 are undecided.",),
        ),
        (
            {"host-missing": (Word.NOT_APPLICABLE, "needs tls")},
            ("None of 1 requirement applies.",),
        ),
        (
            {"host-missing": PASSED, "chunk-size-minus": (Word.FAIL, "400; closed")},
            (
                "Meets the 1 requirement.",
                "Does not follow 1 of 1 recommendation; this does not fail the gate.",
            ),
        ),
        (
            {"host-missing": PASSED, "chunk-size-minus": ACCEPTED},
            (
                "Meets the 1 requirement.",
                "Does not follow 1 of 1 recommendation; this does not fail the gate.",
                "It can be used for request smuggling: "
                '"Chunks outside the grammar are refused, and the connection is closed".',
            ),
        ),
    ],
)
def test_a_verdict_reads_well_for_none_one_and_many(
    cases: dict[str, Said], wanted: tuple[str, ...]
) -> None:
    named = {"fold-space" if id == "bad" else id: one for id, one in cases.items()}
    assert said(named) == wanted


def test_a_requirement_of_two_suites_is_counted_once() -> None:
    both = ({"content-length-plus-sign": ACCEPTED}, {"smuggle-content-length-nul": ACCEPTED})
    assert said(*both)[0] == "Breaks 1 of 1 requirement."


def test_the_figures_are_those_of_the_exit_code_and_of_a_comparison() -> None:
    run, found = check_of({"host-missing": ACCEPTED, "host-query": PASSED})
    assert conclusion.failed_requirements(run) == (1, 2)
    assert conclusion.exit_code(run, found) == 1


def test_the_markdown_summary_and_the_annotations_begin_with_the_same_sentences() -> None:
    run, found = check_of({"content-length-plus-sign": ACCEPTED, "host-missing": PASSED})
    told = conclusion.conclusion(run, found, 1)
    assert told.headline == told.sentences[0] == "Breaks 1 of 2 requirements."
    summary = github.summary(run, found, code=1)
    for one in told.sentences:
        assert one.replace('"', "").split(":")[0] in summary
    first, *_ = github.workflow_commands(found, verdict=told.sentences)
    assert first == f"::notice title=httpmark::{' '.join(told.sentences)}"
    assert "notice" not in "".join(github.workflow_commands(found))


def excused(*ids: str, strict: bool = False) -> tuple[Run, tuple[Finding, ...]]:
    run, found = check_of({"host-missing": ACCEPTED, "host-query": ACCEPTED, "fold-space": PASSED})
    held = baseline.empty(Path("known.toml"))
    listed_ = {finding.id: "" for finding in found}
    failing = [
        msgspec.structs.replace(one, status=Status.FAILED, outcome="200", failures=1)
        for one in found
        if one.id in ids
    ]
    held, _ = baseline.changed(held, failing, update=False, growth="known", known=listed_)
    today = datetime.date(2026, 1, 1)
    return run, baseline.hold(found, held, today=today, strict=strict)


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        (("host-missing",), "The baseline lists 1 of them."),
        (("host-missing", "host-query"), "The baseline lists all 2."),
        (
            ("fold-space",),
            "The baseline lists 1 failure that is gone: remove it, or run check with --update.",
        ),
    ],
)
def test_what_the_baseline_lists_is_said(ids: tuple[str, ...], wanted: str) -> None:
    run, found = excused(*ids)
    told = verdict_sentences.sentences(run, found, conclusion.exit_code(run, found))
    assert told[:2] == ("Breaks 2 of 3 requirements.", wanted)


def test_what_fails_besides_requirements_comes_first_if_none_is_broken() -> None:
    gate = Gate(fail_under=100)
    suite = suite_of_cases({"host-missing": PASSED})
    suite = msgspec.structs.replace(suite, score_percent=50.0)
    run = run_of("reference", compliance=Compliance({"rfc": suite}))
    found = findings.findings(run, gate=gate)
    assert verdict_sentences.sentences(run, found, 1) == (
        "Fails the gate: 50.0 % of the requirements are met; --fail-under asks for 100 %.",
        "Meets the 1 requirement.",
    )


def test_published_families_say_how_many_requests_are_detected() -> None:
    run = run_of("go_net_http")
    (only,) = verdict_sentences.sentences(run, findings.findings(run), 0)
    assert only.startswith("Detects ")
    assert only.endswith(" malformed requests.")


def test_what_could_not_be_judged_accuses_nobody() -> None:
    run = run_of("reference", CONTROLS_FAIL)
    told = verdict_sentences.sentences(run, findings.findings(run), 3)
    assert told == ("Could not be judged: 3 of 345 positive controls failed.",)


def test_a_run_without_servers_says_that_nothing_was_judged() -> None:
    run = msgspec.structs.replace(run_of("reference"), servers=())
    assert verdict_sentences.sentences(run, (), 5) == ("Nothing was judged.",)


def test_each_of_several_servers_is_named() -> None:
    run = mixed()
    told = verdict_sentences.sentences(run, findings.findings(run), 3)
    titles = [server.title for server in run.servers if not server.control]
    assert [one.split(":")[0] for one in told if one.split(":")[0] in titles] == titles


def test_an_interrupted_run_says_so_first() -> None:
    run = msgspec.structs.replace(made_run(("reference",)), interrupted=True)
    first, *_ = verdict_sentences.sentences(run, findings.findings(run), 130)
    assert first == "The run was interrupted: the gate was not evaluated."


def test_numbers_and_lists_are_written_as_one_reads_them() -> None:
    told = [counted(number, "case") for number in (0, 1, 2, 1000)]
    assert told == ["0 cases", "1 case", "2 cases", "1,000 cases"]
    assert [listed(list("abcde")[:n]) for n in (1, 2, 3, 4, 5)] == [
        "a", "a and b", "a, b and c", "a, b, c and 1 more", "a, b, c and 2 more",
    ]  # fmt: skip


def test_what_no_path_takes_post_for_is_named_with_what_to_add() -> None:
    lacking = (Word.NOT_APPLICABLE, undeclared.NO_POST)
    only = said({"host-missing": PASSED, "content-length-plus-sign": lacking})
    assert only == (
        "Meets the 1 requirement.",
        f"Nothing that was asked takes POST, so 1 requirement was not asked: {LENGTH}. Name a path "
        "that takes POST with --post-path PATH.",
    )
    both = said(
        {
            "host-missing": PASSED,
            "content-length-plus-sign": lacking,
            "content-length-2-63": lacking,
        }
    )
    assert "2 requirements were not asked:" in both[1], both
    assert not any("--post-path" in one for one in said({"host-missing": PASSED}))


def test_what_takes_post_is_not_counted_as_unanswered() -> None:
    run, found = check_of({"content-length-plus-sign": (Word.NOT_APPLICABLE, undeclared.NO_POST)})
    [one] = broken_requirements.summaries(run, found, loading.load())
    assert verdict_sentences.not_applicable(one) == (
        "Not applicable: 1 requirement. They need a path that takes POST (1)."
    )
