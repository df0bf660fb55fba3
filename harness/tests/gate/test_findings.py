"""What a gate concludes from a run: findings and exit codes."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.gate import conclusion, findings, github
from httpmark.harness.gate.findings import Finding, Gate, Status
from httpmark.harness.model.cases import Family, Level
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.run import Conclusion, Run
from httpmark.harness.model.verdicts import (
    Compliance,
    Controls,
    Deliveries,
    Disagreement,
    SeedFamily,
    SuiteResult,
    Tally,
    Verdict,
    Word,
)
from httpmark.harness.tests.shared.made_findings import (
    CONTROLS_FAIL,
    MUST_FAILS,
    VOID,
    run_of,
    suite_of,
)


def code_of(run: Run, gate: Gate | None = None) -> int:
    return conclusion.exit_code(run, findings.findings(run, gate=gate), gate=gate)


# --- exit codes ---------------------------------------------------------------------------------


def test_a_clean_server_passes() -> None:
    assert code_of(run_of("reference")) == 0
    assert code_of(run_of("reference"), gate=Gate(fail_under=100, ruleset="seed")) == 0


def test_a_should_warns_and_fails_only_by_its_own_ruleset_or_a_floor() -> None:
    run = run_of("go_net_http")
    assert code_of(run) == 0
    assert code_of(run, gate=Gate(ruleset="seed")) == 1
    score = run.servers[0].compliance.suites["seed"].score_percent
    assert score is not None
    assert code_of(run, gate=Gate(fail_under=score + 0.001)) == 1
    assert code_of(run, gate=Gate(fail_under=score)) == 0
    assert code_of(run, gate=Gate(ruleset="seed", fail_under=score)) == 0


def test_a_failed_must_fails() -> None:
    assert code_of(run_of("reference", MUST_FAILS)) == 1


def test_failed_controls_are_no_score_and_no_verdict() -> None:
    assert code_of(run_of("reference", CONTROLS_FAIL)) == 3
    assert code_of(run_of("reference", CONTROLS_FAIL), gate=Gate(fail_under=0)) == 3


@pytest.mark.parametrize("trouble", ["unavailable", "died"])
def test_a_server_that_is_not_there_is_unusable(trouble: str) -> None:
    assert code_of(run_of("reference", **{trouble: "exit code 139"})) == 3


# The score is the only MUST of this suite.
@pytest.mark.parametrize(("policy", "code"), [("warn", 4), ("pass", 0), ("fail", 4)])
def test_lost_packets_are_undecided_and_never_a_failure(policy: str, code: int) -> None:
    assert code_of(run_of("reference", VOID), gate=Gate(inconclusive=policy)) == code


def verdicts_of(level: Level, passed: int, void: int) -> SuiteResult:
    """A suite of designed cases of one level."""
    words = [Word.PASS] * passed + [Word.VOID] * void
    return SuiteResult(
        score_percent=100.0,
        cases={
            f"c{n}": Verdict(f"c{n}", word, "", "", None, level) for n, word in enumerate(words)
        },
    )


@pytest.mark.parametrize(
    ("level", "passed", "void", "code"),
    [
        (Level.MUST, 95, 5, 0),
        (Level.MUST, 94, 6, 4),
        (Level.MUST, 19, 838, 4),
        (Level.CTRL, 999, 1, 4),
        (Level.SHOULD, 0, 100, 0),
    ],
)
def test_a_gate_that_is_mostly_undecided_is_not_green(
    level: Level, passed: int, void: int, code: int
) -> None:
    run = run_of("reference", verdicts_of(level, passed, void))
    found = findings.findings(run)
    assert conclusion.exit_code(run, found) == code
    assert conclusion.exit_code(run, found, gate=Gate(inconclusive="fail")) == 4
    assert conclusion.exit_code(run, found, gate=Gate(inconclusive="pass")) == 0
    if code:
        last = conclusion.last_line(found, code, interrupted=False)
        assert last.startswith("GATE inconclusive, exit code 4; cases and checks: ")
        said = conclusion.conclusion(run, found, code).sentences
        assert said[-1].startswith("Run the check again while the machine does nothing else")


def test_a_failure_outweighs_what_is_undecided() -> None:
    both = Compliance({"seed": VOID, "rfc": MUST_FAILS})
    run = run_of("reference", compliance=both)
    assert code_of(run, gate=Gate(inconclusive="fail")) == 1


def test_an_interrupted_run_gates_nothing() -> None:
    run = msgspec.structs.replace(run_of("reference", MUST_FAILS), interrupted=True)
    assert code_of(run) == 130
    assert conclusion.exit_code(run, findings.findings(run), signal=15) == 143
    assert "gates not evaluated" in github.summary(run, findings.findings(run))


def test_nothing_selected_is_not_success() -> None:
    assert code_of(run_of("reference", compliance=Compliance())) == 5
    assert code_of(msgspec.structs.replace(run_of("reference"), servers=())) == 5


def test_a_control_server_is_not_judged() -> None:
    assert findings.findings(run_of("null")) == ()


@pytest.mark.parametrize("option", [{"ruleset": "browser"}, {"inconclusive": "maybe"}])
def test_a_word_no_gate_knows_is_a_usage_error(option: dict[str, str]) -> None:
    with pytest.raises(HarnessError, match=next(iter(option.values()))):
        Gate(**option)  # type: ignore[arg-type]


def test_silence_alone_is_a_warning_although_it_counts_as_detected() -> None:
    mute = SeedFamily(175, 0, 0, 0, 0, 175)
    suite = msgspec.structs.replace(
        suite_of("reference"), families={"path_byte": mute}, score_percent=100.0
    )
    found = next(f for f in findings.findings(run_of("reference", suite)) if f.id == "path_byte")
    assert found.status is Status.WARNED
    assert "175 got no answer" in found.message


def judged(
    word: Word, level: Level = Level.MUST, actual: str = "200; the next request is answered"
) -> Verdict:
    return Verdict("length-two", word, "REJ", actual, None, level)


def case_finding(verdict: Verdict, family: Family | None = None) -> Finding:
    suite = SuiteResult(score_percent=50.0, must={"failed": 1}, cases={"length-two": verdict})
    run = run_of("reference", compliance=Compliance({"rfc": suite}))
    known = {"length-two": family} if family else {}
    (found,) = findings.findings(run, families=known)
    return found


@pytest.mark.parametrize(
    ("word", "level", "status"),
    [
        (Word.PASS, Level.MUST, Status.PASSED),
        (Word.WARN, Level.MUST, Status.WARNED),
        (Word.FAIL, Level.MUST, Status.FAILED),
        (Word.FAIL, Level.CTRL, Status.FAILED),
        (Word.FAIL, Level.SHOULD, Status.WARNED),
        (Word.FAIL, Level.SEC, Status.WARNED),
        (Word.VOID, Level.MUST, Status.UNDECIDED),
        (Word.UNSTABLE, Level.MUST, Status.UNDECIDED),
        (Word.NOT_APPLICABLE, Level.MUST, Status.NOT_APPLICABLE),
    ],
)
def test_a_case_says_what_its_verdict_and_level_make_of_it(
    word: Word, level: Level, status: Status
) -> None:
    assert case_finding(judged(word, level)).status is status


def test_a_case_names_its_number_its_clause_and_how_it_fails() -> None:
    family = Family(
        id="length-two",
        ref="CL-30",
        suite="rfc",
        title="two lengths",
        level=Level.MUST,
        clause="9112/6.3",
        why="because",
        judged_by="expectation",
        count=1,
        generated=False,
        contested="some read it otherwise",
    )
    found = case_finding(judged(Word.FAIL), family)
    assert (found.ref, found.clause, found.title) == ("CL-30", "9112/6.3", "two lengths")
    assert found.outcome == "200; the next request is answered"
    assert (found.failures, found.witness) == (1, "length-two")
    assert found.contested
    assert "contested: some read it otherwise" in found.details
    passed = case_finding(judged(Word.PASS), family)
    assert (passed.outcome, passed.failures, passed.witness) == ("", 0, "")


@pytest.mark.parametrize(
    ("words", "said", "failures"),
    [
        ({Level.MUST: {Word.PASS: 9}}, Status.PASSED, 0),
        ({Level.MUST: {Word.PASS: 9, Word.FAIL: 2}}, Status.FAILED, 2),
        ({Level.MUST: {Word.PASS: 9}, Level.SHOULD: {Word.FAIL: 3}}, Status.WARNED, 3),
        ({Level.MUST: {Word.PASS: 9, Word.VOID: 1}}, Status.UNDECIDED, 0),
        ({Level.MUST: {Word.PASS: 9, Word.UNSTABLE: 1, Word.FAIL: 1}}, Status.FAILED, 1),
        ({Level.MUST: {Word.NOT_APPLICABLE: 9}}, Status.NOT_APPLICABLE, 0),
        ({}, Status.UNDECIDED, 0),
    ],
)
def test_a_generated_family_is_one_finding_with_its_count(
    words: dict[Level, dict[Word, int]], said: Status, failures: int
) -> None:
    tally = Tally(words=words, failures=(judged(Word.FAIL),) if failures else ())
    suite = SuiteResult(score_percent=50.0, generated={"length_octet": tally})
    (found,) = findings.findings(run_of("reference", compliance=Compliance({"rfc": suite})))
    assert (found.status, found.failures) == (said, failures)
    assert found.requests == sum(sum(count.values()) for count in words.values())
    assert found.witness == ("length-two" if failures else "")


def test_a_check_on_every_answer_is_a_finding_with_its_own_clause() -> None:
    tally = Tally(words={Level.MUST: {Word.PASS: 9, Word.FAIL: 1}}, failures=(judged(Word.FAIL),))
    suite = SuiteResult(score_percent=50.0, answers={"RESP-01": tally})
    (found,) = findings.findings(run_of("reference", compliance=Compliance({"rfc": suite})))
    assert (found.id, found.clause, found.level) == ("RESP-01", "RFC 9112 4", Level.MUST)
    assert (found.status, found.failures, found.witness) == (Status.FAILED, 1, "length-two")


@pytest.mark.parametrize(
    ("level", "status"), [(Level.MUST, Status.FAILED), (Level.SHOULD, Status.WARNED)]
)
def test_an_answer_that_depends_on_how_the_bytes_are_cut_is_a_finding(
    level: Level, status: Status
) -> None:
    cut = Disagreement(case="length-two", level=level, count=3, deliveries=("bytes",), what="400")
    suite = SuiteResult(
        score_percent=50.0,
        cases={"length-two": judged(Word.PASS)},
        deliveries=Deliveries(messages=1, fired={"bytes": 1}, disagreements=(cut,)),
    )
    whole, pieces = findings.findings(run_of("reference", compliance=Compliance({"rfc": suite})))
    assert whole.status is Status.PASSED
    assert pieces.status is status
    assert pieces.id == "length-two-delivery"
    assert "3 deliveries of length-two got another answer" in pieces.message


def test_everything_a_gate_can_find_can_be_listed() -> None:
    families = loading.load().families
    listable = findings.listable(families)
    assert set(families) <= set(listable)
    assert "RESP-01" in listable
    delivered = next(family for family in families.values() if family.deliver)
    assert f"{delivered.id}-delivery" in listable
    assert not {id for id in families if id.endswith("-delivery")}, "no case may be called so"


def test_a_selection_without_a_must_has_no_score_and_that_is_no_trouble() -> None:
    suite = SuiteResult(score_percent=None, cases={"length-two": judged(Word.PASS, Level.SHOULD)})
    assert code_of(run_of("reference", compliance=Compliance({"rfc": suite}))) == 0
    unanswered = msgspec.structs.replace(suite, reason="not scored: a plain request is refused")
    assert code_of(run_of("reference", compliance=Compliance({"rfc": unanswered}))) == 3


def test_requirements_and_cases_are_counted_apart() -> None:
    must = {"passed": 39, "failed": 23, "warned": 0, "void": 0, "unstable": 0, "not_applicable": 9}
    verdict = Verdict("length-two", Word.FAIL, "R400", "200; closed", level=Level.MUST)
    suite = SuiteResult(score_percent=62.9, must=must, cases={"length-two": verdict})
    run = run_of("reference", compliance=Compliance({"rfc": suite}))
    found = findings.findings(run)
    code = conclusion.exit_code(run, found)
    assert conclusion.conclusion(run, found, code) == Conclusion(
        exit_code=1,
        headline="Breaks 23 of 62 requirements.",
        counts="cases and checks: 1 failed",
        sentences=("Breaks 23 of 62 requirements.",),
    )
    assert conclusion.failed_requirements(run) == (23, 62)
    assert conclusion.last_line(found, code, interrupted=False) == (
        "GATE failed, exit code 1; cases and checks: 1 failed"
    )


@pytest.mark.parametrize(
    ("changes", "headline"),
    [
        ({}, "Meets all 62 requirements."),
        ({"interrupted": True}, "The run was interrupted: the gate was not evaluated."),
    ],
)
def test_what_passes_says_so(changes: dict[str, object], headline: str) -> None:
    must = {"passed": 60, "failed": 0, "warned": 2, "void": 0, "unstable": 0, "not_applicable": 9}
    verdict = Verdict("length-two", Word.PASS, "R400", "400; closed", level=Level.MUST)
    suite = SuiteResult(score_percent=100.0, must=must, cases={"length-two": verdict})
    run = run_of("reference", compliance=Compliance({"rfc": suite}))
    run = msgspec.structs.replace(run, **changes)
    found = findings.findings(run)
    assert conclusion.conclusion(run, found, conclusion.exit_code(run, found)).headline == headline


def test_a_page_without_a_verdict_says_why() -> None:
    run = run_of("reference", compliance=Compliance({"rfc": SuiteResult(
        score_percent=None, reason="not scored: a plain request is not accepted")}))  # fmt: skip
    found = findings.findings(run)
    assert conclusion.conclusion(run, found, 3).headline == (
        "Could not be judged: a plain request is not accepted."
    )


_counts = st.integers(0, 400)


@hypothesis.given(
    detected=_counts, undetected=_counts, mute=_counts, void=_counts, failed=_counts, under=_counts
)
@hypothesis.settings(deadline=None)
def test_the_exit_code_follows_from_the_findings(
    detected: int, undetected: int, mute: int, void: int, failed: int, under: int
) -> None:
    family = SeedFamily(detected, undetected, detected, 0, undetected, mute, void=void)
    scored = not void and not failed and detected + undetected
    suite = SuiteResult(
        score_percent=100 * detected / (detected + undetected) if scored else None,
        families={"path_byte": family},
        controls=Controls(10, failed),
    )
    run = run_of("reference", suite)
    gate = Gate(fail_under=min(under, 100), inconclusive="fail")
    said = {finding.status for finding in findings.findings(run, gate=gate)}
    code = code_of(run, gate=gate)
    assert (code == 0) == (said <= {Status.PASSED, Status.WARNED})
    assert (code == 3) == (Status.UNUSABLE in said)
    if failed:
        assert code == 3
    elif void:
        assert code == 4
    elif scored:
        assert code == (100 * detected / (detected + undetected) < min(under, 100))


@pytest.mark.parametrize(
    ("clause", "link"),
    [
        ("RFC 9112 3.2", "https://www.rfc-editor.org/rfc/rfc9112.html#section-3.2"),
        ("RFC 3986 3.3, RFC 9112 3.2", "https://www.rfc-editor.org/rfc/rfc3986.html#section-3.3"),
        ("9112/6.3", "https://www.rfc-editor.org/rfc/rfc9112.html#section-6.3"),
        ("RFC 9110", "https://www.rfc-editor.org/rfc/rfc9110.html"),
        ("good practice", None),
    ],
)
def test_a_clause_leads_to_its_section(clause: str, link: str | None) -> None:
    assert findings.rfc_link(clause) == link
