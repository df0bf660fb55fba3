"""Findings by requirement: every broken one is shown, and security comes first."""

from __future__ import annotations

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.gate import broken_requirements, findings
from httpmark.harness.gate.broken_requirements import Summary
from httpmark.harness.gate.findings import Finding, Status
from httpmark.harness.judging.delivery_comparison import NOT_EARLY
from httpmark.harness.model.cases import Level
from httpmark.harness.model.verdicts import (
    Compliance,
    Deliveries,
    Disagreement,
    SuiteResult,
    Tally,
    Verdict,
    Word,
)
from httpmark.harness.tests.shared.judged_cases import (
    ACCEPTED,
    PASSED,
    SILENT,
    Said,
    check_of,
)
from httpmark.harness.tests.shared.made_findings import run_of

KNOWN = loading.load()


def summary_of(*suites: dict[str, Said]) -> Summary:
    run, found = check_of(*suites)
    (one,) = broken_requirements.summaries(run, found, KNOWN)
    return one


def test_every_broken_requirement_has_an_example() -> None:
    """Each binding designed case alone: what is counted as broken is shown."""
    for family in KNOWN.families.values():
        if family.generated or not family.level.is_binding or family.suite in ("seed", "found"):
            continue
        one = summary_of({family.id: ACCEPTED})
        assert one.broken, family.id
        assert all(group.found for group in one.broken), family.id
        assert not one.others, family.id


def test_security_comes_first_then_must_then_controls() -> None:
    one = summary_of(
        {"post-chunked": ACCEPTED, "host-missing": ACCEPTED, "content-length-plus-sign": ACCEPTED}
    )
    kinds = [(group.smuggling, group.level) for group in one.broken]
    assert kinds[0] == (True, Level.MUST)
    assert kinds[1:] == sorted(kinds[1:], key=lambda kind: kind[1] is Level.CTRL)
    assert not any(smuggling for smuggling, _ in kinds[1:])


def test_the_example_can_be_used_for_smuggling_if_any_can() -> None:
    one = summary_of(
        {
            "content-length-minus-sign": (Word.FAIL, "431; closed"),
            "content-length-plus-sign": ACCEPTED,
        }
    )
    (group,) = one.broken
    assert [found.id for found in group.found] == [
        "content-length-plus-sign",
        "content-length-minus-sign",
    ]
    assert group.why == KNOWN.families["content-length-plus-sign"].why


def failing(id: str, outcome: str, expected: str) -> Finding:
    family = KNOWN.families[id]
    return Finding(
        server="s", suite=family.suite, id=id, title=family.title, level=family.level, clause="",
        status=Status.FAILED, message="", family=id, outcome=outcome, expected=expected,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("id", "outcome", "expected", "can"),
    [
        ("content-length-plus-sign", "200; the next request gets 200", "R400C", True),
        ("content-length-plus-sign", "200; closed | 400; closed", "R400C", True),
        ("content-length-plus-sign", "431; closed", "R400C", False),
        ("content-length-plus-sign", "431; the next request gets 200", "R400C", False),
        ("content-length-plus-sign", "400; the next request wrongly gets 200", "R400C", True),
        ("content-length-plus-sign", "closed without a byte", "R400C", False),
        ("content-length-plus-sign", "silence until the deadline", "R400C", False),
        # The valid one is refused: nobody reads it at two lengths.
        ("content-length-leading-zero", "400; closed", "ACC; content hello", False),
        ("content-length-leading-zero", "200; the next request gets 200", "ACC; empty", False),
        ("content-length-octal-looking", "200; the next request wrongly gets 400", "ACC", True),
        ("content-length-octal-looking", "200; the next request is not answered", "ACC", True),
        ("smuggle-content-request", "200, 200; left open", "ONE; sync", True),
        ("smuggle-content-request", "400; closed", "ONE; sync", False),
        # Neither of the suite nor marked: whatever it answers.
        ("host-missing", "200; the next request wrongly gets 200", "R400", False),
        ("post-chunked", "200, 200; the next request is not answered", "ACC", False),
    ],
)
def test_only_what_the_catalogue_marks_and_the_server_took_can_be_used_for_smuggling(
    id: str, outcome: str, expected: str, can: bool
) -> None:
    assert broken_requirements.can_smuggle(failing(id, outcome, expected), KNOWN.families) is can


def test_a_check_on_every_answer_of_the_suite_smuggling_is_no_smuggling() -> None:
    tally = Tally(
        words={Level.MUST: {Word.FAIL: 3}},
        failures=(Verdict("smuggle-content-request", Word.FAIL, "x", "405", None, Level.MUST),),
        failure_modes={"200; the next request wrongly gets 200": 3},
    )
    suite = SuiteResult(
        score_percent=0.0, answers={"RESP-22": tally}, requirements={"allow-sent": Word.FAIL}
    )
    run = run_of("reference", compliance=Compliance({"smuggling": suite}))
    (one,) = broken_requirements.summaries(run, findings.findings(run), KNOWN)
    (group,) = one.broken
    assert (group.id, group.smuggling) == ("allow-sent", False)
    assert [found.id for found in group.found] == ["RESP-22"]


def test_what_shows_no_requirement_is_told_apart() -> None:
    cut = Disagreement(
        case="host-missing", level=Level.MUST, count=3, deliveries=("bytes",), what="400"
    )
    run, _ = check_of({"host-missing": PASSED})
    (server,) = run.servers
    suite = msgspec.structs.replace(
        server.compliance.suites["rfc"],
        deliveries=Deliveries(messages=1, fired={"bytes": 1}, disagreements=(cut,)),
    )
    run = run_of("reference", compliance=Compliance({"rfc": suite}))
    (one,) = broken_requirements.summaries(
        run, findings.findings(run, families=KNOWN.families), KNOWN
    )
    assert one.broken == ()
    assert [group.found[0].id for group in one.others] == ["host-missing-delivery"]


def test_an_answer_that_comes_too_early_breaks_its_requirement() -> None:
    row = next(row for row in KNOWN.requirements if NOT_EARLY in row.cases)
    tally = Tally(words={row.level: {Word.FAIL: 1}})
    suite = SuiteResult(
        score_percent=0.0, answers={NOT_EARLY: tally}, requirements={row.id: Word.FAIL}
    )
    run = run_of("reference", compliance=Compliance({"rfc": suite}))
    (one,) = broken_requirements.summaries(run, findings.findings(run), KNOWN)
    assert [found.id for group in one.broken for found in group.found] == [NOT_EARLY]


def test_what_a_case_permits_is_no_recommendation_that_is_not_followed() -> None:
    id = "chunk-size-minus"
    assert summary_of({id: (Word.WARN, "200; closed")}).missed == ()
    (group,) = summary_of({id: ACCEPTED}).missed
    assert (group.id, group.smuggling) == ("chunk-grammar", True)


def test_what_is_open_says_why_in_a_word() -> None:
    one = summary_of(
        {
            "host-missing": SILENT,
            "host-query": (Word.NOT_APPLICABLE, "needs static: declare the capability static"),
            "fold-space": (Word.NOT_APPLICABLE, "needs BASE-04, which is not accepted (501)"),
            "content-length-word": (
                Word.NOT_APPLICABLE,
                "the target declares no limit content_bytes: declare limits.content_bytes",
            ),
        }
    )
    assert [row.why for row in one.undecided] == ["silence until the deadline"]
    known = {row.requirement.id: row.why for row in one.not_applicable}
    assert known["host-invalid"] == "static"
    assert known["obs-fold"] == "post-chunked"
    assert known["length-invalid"] == "limits.content_bytes"
