"""What a CI job reads: the outputs agree with each other, with their formats and their budgets."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import hypothesis
import hypothesis.strategies as st
import jsonschema
import msgspec
import pytest

from httpmark.harness import catalogue, gates
from httpmark.harness.gates import Finding, Gate, Said
from httpmark.harness.model import (
    Compliance,
    Controls,
    Family,
    HarnessError,
    Level,
    Run,
    SeedFamily,
    SuiteResult,
    Verdict,
    Word,
)

from .made_run import RULES, made_run, with_server

OCTET_FAMILIES = tuple(name for name in RULES if name.endswith("byte"))
HOSTILE = "x<b>&\"'|]]>\x00\x1b[31m\u2028\ud800%0A::error::`@all` [a](http://evil)\n::error::y"


def run_of(name: str, suite: SuiteResult | None = None, /, **changes: object) -> Run:
    """A run of one server of the made run, perhaps with another result of its suite."""
    run = made_run((name,), only=OCTET_FAMILIES)
    run = msgspec.structs.replace(run, servers=run.servers[:1])
    if suite is not None:
        changes["compliance"] = Compliance({"seed": suite})
    return with_server(run, name, **changes)


def suite_of(name: str) -> SuiteResult:
    return run_of(name).servers[0].compliance.suites["seed"]


def families() -> dict[str, Family]:
    return catalogue.load().families


CONTROLS_FAIL = msgspec.structs.replace(
    suite_of("reference"),
    score_percent=None,
    reason="not scored: 3 of 345 positive controls failed",
    controls=Controls(342, 3, (Verdict("control_hello", Word.FAIL, "2xx", "404 Not Found"),)),
)
VOID = msgspec.structs.replace(
    suite_of("reference"),
    score_percent=None,
    reason="not scored: 2 of 558 requests have no valid outcome",
    families={
        **suite_of("reference").families,
        "path_byte": SeedFamily(173, 0, 173, 0, 0, 0, void=2),
    },
)
MUST_FAILS = SuiteResult(score_percent=98.0, must={"passed": 98, "failed": 2, "void": 0})


# --- exit codes ---------------------------------------------------------------------------------


def test_a_clean_server_passes() -> None:
    assert gates.exit_code(run_of("reference")) == 0
    assert gates.exit_code(run_of("reference"), gate=Gate(fail_under=100, ruleset="seed")) == 0


def test_a_should_warns_and_fails_only_by_its_own_ruleset_or_a_floor() -> None:
    run = run_of("go_net_http")
    assert gates.exit_code(run) == 0
    assert gates.exit_code(run, gate=Gate(ruleset="seed")) == 1
    score = run.servers[0].compliance.suites["seed"].score_percent
    assert score is not None
    assert gates.exit_code(run, gate=Gate(fail_under=score + 0.001)) == 1
    assert gates.exit_code(run, gate=Gate(fail_under=score)) == 0
    assert gates.exit_code(run, gate=Gate(ruleset="seed", fail_under=score)) == 0


def test_a_failed_must_fails() -> None:
    assert gates.exit_code(run_of("reference", MUST_FAILS)) == 1


def test_failed_controls_are_no_score_and_no_verdict() -> None:
    assert gates.exit_code(run_of("reference", CONTROLS_FAIL)) == 3
    assert gates.exit_code(run_of("reference", CONTROLS_FAIL), gate=Gate(fail_under=0)) == 3


@pytest.mark.parametrize("trouble", ["unavailable", "died"])
def test_a_server_that_is_not_there_is_unusable(trouble: str) -> None:
    assert gates.exit_code(run_of("reference", **{trouble: "exit code 139"})) == 3


@pytest.mark.parametrize(("policy", "code"), [("warn", 0), ("pass", 0), ("fail", 4)])
def test_lost_packets_are_undecided_and_never_a_failure(policy: str, code: int) -> None:
    assert gates.exit_code(run_of("reference", VOID), gate=Gate(inconclusive=policy)) == code


def test_a_failure_outweighs_what_is_undecided() -> None:
    both = Compliance({"seed": VOID, "rfc": MUST_FAILS})
    run = run_of("reference", compliance=both)
    assert gates.exit_code(run, gate=Gate(inconclusive="fail")) == 1


def test_an_interrupted_run_gates_nothing() -> None:
    run = msgspec.structs.replace(run_of("reference", MUST_FAILS), interrupted=True)
    assert gates.exit_code(run) == 130
    assert gates.exit_code(run, signal=15) == 143
    assert "gates not evaluated" in gates.summary(run, gates.findings(run))


def test_nothing_selected_is_not_success() -> None:
    assert gates.exit_code(run_of("reference", compliance=Compliance())) == 5
    assert gates.exit_code(msgspec.structs.replace(run_of("reference"), servers=())) == 5


def test_a_control_server_is_not_judged() -> None:
    assert gates.findings(run_of("null")) == ()


@pytest.mark.parametrize("option", [{"ruleset": "hardened"}, {"inconclusive": "maybe"}])
def test_a_word_no_gate_knows_is_a_usage_error(option: dict[str, str]) -> None:
    with pytest.raises(HarnessError, match=next(iter(option.values()))):
        Gate(**option)  # type: ignore[arg-type]


def test_silence_alone_is_a_warning_although_it_counts_as_detected() -> None:
    mute = SeedFamily(175, 0, 0, 0, 0, 175)
    suite = msgspec.structs.replace(
        suite_of("reference"), families={"path_byte": mute}, score_percent=100.0
    )
    found = next(f for f in gates.findings(run_of("reference", suite)) if f.id == "path_byte")
    assert found.said is Said.WARNED
    assert "175 were met with silence" in found.message


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
    said = {finding.said for finding in gates.findings(run, gate=gate)}
    code = gates.exit_code(run, gate=gate)
    assert (code == 0) == (said <= {Said.PASSED, Said.WARNED})
    assert (code == 3) == (Said.UNUSABLE in said)
    if failed:
        assert code == 3
    elif void:
        assert code == 4
    elif scored:
        assert code == (100 * detected / (detected + undetected) < min(under, 100))


# --- JUnit --------------------------------------------------------------------------------------


def mixed() -> Run:
    """A run with something of every kind."""
    run = made_run(("reference", "go_net_http", "rust_hyper", "null"), only=OCTET_FAMILIES)
    run = with_server(run, "rust_hyper", compliance=Compliance({"seed": VOID, "rfc": MUST_FAILS}))
    return with_server(run, "reference", compliance=Compliance({"seed": CONTROLS_FAIL}))


def test_junit_counts_what_it_holds_and_each_finding_is_one_case() -> None:
    run = mixed()
    found = gates.findings(run, families=families())
    root = ElementTree.fromstring(gates.junit(run, found))
    assert root.tag == "testsuites"
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped", "tests": "testcase"}
    for element in (root, *root.iter("testsuite")):
        for attribute, tag in kinds.items():
            assert element.get(attribute) == str(sum(1 for _ in element.iter(tag)))
    assert sum(1 for _ in root.iter("testcase")) == len(found)
    said = [finding.said for finding in found]
    assert len(list(root.iter("failure"))) == said.count(Said.FAILED) > 0
    assert len(list(root.iter("error"))) == said.count(Said.UNUSABLE) > 0
    assert len(list(root.iter("skipped"))) == said.count(Said.UNDECIDED) > 0
    assert len(list(root.iter("system-out"))) == said.count(Said.WARNED) > 0
    for case in root.iter("testcase"):
        assert len([child for child in case if child.tag != "properties"]) <= 1


def test_junit_has_the_order_and_attributes_that_readers_expect() -> None:
    root = ElementTree.fromstring(gates.junit(mixed(), gates.findings(mixed())))
    for suite in root:
        assert suite.tag == "testsuite"
        assert {"name", "tests", "failures", "errors", "skipped", "time"} <= set(suite.keys())
        assert suite[0].tag == "properties"
        assert {child.tag for child in suite} == {"properties", "testcase"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
        names = [(case.get("classname"), case.get("name")) for case in suite.iter("testcase")]
        assert len(set(names)) == len(names)


def test_junit_names_the_clause() -> None:
    run = run_of("go_net_http")
    text = gates.junit(run, gates.findings(run, families=families()))
    case = next(
        case for case in ElementTree.fromstring(text).iter("testcase")
        if case.get("name") == "field_name_byte"
    )  # fmt: skip
    assert case.get("classname") == "RFC 9110 5.1, 5.6.2"


def hostile_run() -> Run:
    verdict = Verdict(HOSTILE, Word.FAIL, HOSTILE, HOSTILE)
    suite = msgspec.structs.replace(
        CONTROLS_FAIL, reason=HOSTILE, controls=Controls(1, 1, (verdict,))
    )
    return run_of("reference", suite, title=HOSTILE, version=HOSTILE, runtime=HOSTILE, died=HOSTILE)


def test_hostile_words_break_no_format() -> None:
    run = hostile_run()
    found = gates.findings(run)
    xml = gates.junit(run, found)
    xml.encode("utf-8")
    root = ElementTree.fromstring(xml)
    assert {element.tag for element in root.iter()} <= {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error",
        "skipped", "system-out",
    }  # fmt: skip
    json.loads(gates.sarif(run, found))
    for line in gates.workflow_commands(found):
        assert "\n" not in line
        assert "\r" not in line
        assert len(re.findall(r"(?<!%3A%3A)::(?:error|warning) title=", line)) == 1
    text = gates.summary(run, found)
    text.encode("utf-8")
    assert "<b>" not in text
    assert "](http://evil" not in text
    assert not re.search(r"(?<![\w&#])@all", text)
    for line in text.splitlines():
        if line.startswith("|") and "&lt;b&gt;" in line:
            assert len(re.findall(r"(?<!\\)\|", line)) in (4, 8), line


# --- SARIF --------------------------------------------------------------------------------------

# What SARIF 2.1.0 says of the properties used here; nothing else may stand there.
_TEXT = {"type": "string", "minLength": 1}
_MESSAGE = {
    "type": "object",
    "properties": {"text": _TEXT},
    "required": ["text"],
    "additionalProperties": False,
}
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _array(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


_RULE = _object(
    ["id"],
    id=_TEXT,
    shortDescription=_MESSAGE,
    helpUri={"type": "string", "pattern": "^https://www\\.rfc-editor\\.org/rfc/rfc\\d+\\.html"},
    defaultConfiguration=_object(["level"], level=_LEVEL),
    properties={"type": "object"},
)
_RESULT = _object(
    ["message", "ruleId", "locations", "partialFingerprints"],
    ruleId=_TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    level=_LEVEL,
    message=_MESSAGE,
    locations=_array(
        _object(
            ["physicalLocation"],
            physicalLocation=_object(
                ["artifactLocation"],
                artifactLocation=_object(["uri"], uri=_TEXT),
                region=_object(["startLine"], startLine={"type": "integer", "minimum": 1}),
            ),
            logicalLocations=_array(_object([], fullyQualifiedName=_TEXT)),
        ),
        minItems=1,
    ),
    partialFingerprints={"type": "object", "additionalProperties": _TEXT},
)
SARIF = _object(
    ["version", "runs"],
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"const": "2.1.0"},
    runs=_array(
        _object(
            ["tool"],
            tool=_object(
                ["driver"],
                driver=_object(
                    ["name"],
                    name=_TEXT,
                    version=_TEXT,
                    semanticVersion={"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
                    rules=_array(_RULE, uniqueItems=True),
                ),
            ),
            automationDetails=_object(["id"], id=_TEXT),
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            invocations=_array(
                _object(
                    ["executionSuccessful"],
                    executionSuccessful={"type": "boolean"},
                    startTimeUtc=_TIME,
                    endTimeUtc=_TIME,
                )
            ),
            properties={"type": "object"},
            results=_array(_RESULT),
        )
    ),
)


@pytest.mark.parametrize("with_passed", [False, True])
def test_sarif_keeps_to_the_standard(with_passed: bool) -> None:
    run = mixed()
    found = gates.findings(run, families=families())
    log = json.loads(gates.sarif(run, found, with_passed=with_passed))
    jsonschema.Draft202012Validator(SARIF).validate(log)
    (only,) = log["runs"]
    rules = only["tool"]["driver"]["rules"]
    for result in only["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        # SARIF 3.27.10: a level other than none only beside kind fail
        assert (result["kind"] == "fail") == (result["level"] != "none")
    shown = [finding for finding in found if with_passed or finding.said is not Said.PASSED]
    assert len(only["results"]) == len(shown)
    prints = [result["partialFingerprints"][gates.FINGERPRINT] for result in only["results"]]
    assert len(set(prints)) == len(prints)


def test_sarif_says_warning_for_should_and_error_for_must() -> None:
    found = gates.findings(mixed(), families=families())
    log = json.loads(gates.sarif(mixed(), found))
    levels = {
        result["partialFingerprints"][gates.FINGERPRINT]: result["level"]
        for result in log["runs"][0]["results"]
    }
    assert levels["go_net_http/seed/path_byte"] == "warning"
    assert levels["rust_hyper/rfc/must"] == "error"
    assert levels["rust_hyper/seed/path_byte"] == "none"


def test_fingerprints_do_not_depend_on_the_run() -> None:
    def prints(run: Run) -> set[str]:
        log = json.loads(gates.sarif(run, gates.findings(run)))
        return {r["partialFingerprints"][gates.FINGERPRINT] for r in log["runs"][0]["results"]}

    other = msgspec.structs.replace(mixed(), id="other", started="2027-01-01T00:00:00Z")
    assert prints(mixed()) == prints(other)


@pytest.mark.parametrize(
    ("clause", "link"),
    [
        ("RFC 9112 3.2", "https://www.rfc-editor.org/rfc/rfc9112.html#section-3.2"),
        ("RFC 3986 3.3, RFC 9112 3.2", "https://www.rfc-editor.org/rfc/rfc3986.html#section-3.3"),
        ("RFC 9110", "https://www.rfc-editor.org/rfc/rfc9110.html"),
        ("good practice", None),
    ],
)
def test_a_clause_leads_to_its_section(clause: str, link: str | None) -> None:
    assert gates.rfc_link(clause) == link


# --- GitHub -------------------------------------------------------------------------------------


def many(said: Said, number: int, message: str = "m") -> list[Finding]:
    return [
        Finding(
            server="s",
            suite="rfc",
            id=f"{said.value}{at}",
            title="t",
            level=Level.MUST,
            clause="RFC 9112 3",
            said=said,
            message=message,
        )
        for at in range(number)
    ]


@hypothesis.given(st.lists(st.integers(0, 40), min_size=5, max_size=5))
def test_annotations_keep_the_budget_and_lose_no_count(numbers: list[int]) -> None:
    found = [f for said, number in zip(Said, numbers, strict=True) for f in many(said, number)]
    lines = gates.workflow_commands(found)
    for kind, words in (
        ("error", (Said.FAILED, Said.UNUSABLE)),
        ("warning", (Said.WARNED, Said.UNDECIDED)),
    ):
        shown = [line for line in lines if line.startswith(f"::{kind} ")]
        assert len(shown) <= gates.ANNOTATIONS_MAX
        more = [int(n[1]) for line in shown if (n := re.search(r"::and (\d+) more$", line))]
        wanted = sum(finding.said in words for finding in found)
        assert len(shown) - len(more) + sum(more) == wanted
    assert len(lines) == len([line for line in lines if re.match(r"::(error|warning) ", line)])


_TRICKY = st.text() | st.text("%025ACD3:,\r\n x")


@hypothesis.given(_TRICKY, _TRICKY)
@hypothesis.example("100%0A", "%3A%2C")
def test_an_annotation_gives_back_every_word(message: str, clause: str) -> None:
    (finding,) = many(Said.FAILED, 1, message)
    (line,) = gates.workflow_commands([msgspec.structs.replace(finding, clause=clause)])
    assert not set(line) & {"\r", "\n"}
    title, said = re.fullmatch(r"::error title=([^:,]*)::(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    for escaped, plain in (("%0A", "\n"), ("%0D", "\r"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        title, said = title.replace(escaped, plain), said.replace(escaped, plain)
    assert title == f"MUST {clause}".strip()
    assert said == f"s: t: {message}"


def test_a_summary_keeps_the_budget_and_says_how_many_are_left_out() -> None:
    found = many(Said.FAILED, 4000, "x" * 500) + many(Said.UNUSABLE, 1)
    text = gates.summary(run_of("reference"), found)
    assert len(text.encode()) <= gates.SUMMARY_OCTETS_MAX
    left = re.search(r"and (\d+) more", text)
    assert left
    rows = [line for line in text.splitlines() if re.match(r"\| (failed|unusable) ", line)]
    assert len(rows) + int(left[1]) == 4001
    assert rows[0].startswith("| unusable"), "worst first"


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
    first = gates.summary(run, gates.findings(run)).splitlines()[0]
    assert first == f"## httpmark: {headline}"


# --- badge --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "message", "colour"),
    [
        (run_of("reference"), "seed: 558/558 detected", "brightgreen"),
        (run_of("go_net_http"), "seed: 277/558 detected", "yellow"),
        (run_of("reference", MUST_FAILS), "98/100 MUST", "red"),
        (run_of("reference", CONTROLS_FAIL), "seed: not scored", "lightgrey"),
        (run_of("reference", compliance=Compliance()), "not measured", "lightgrey"),
    ],
)
def test_a_badge_carries_counts_and_never_a_bare_percentage(
    run: Run, message: str, colour: str
) -> None:
    found = json.loads(gates.badge(run, run.servers[0].name))
    assert found == {
        "schemaVersion": 1,
        "label": "HTTP/1.1",
        "message": message,
        "color": colour,
    }


def test_a_badge_of_silence_is_not_green() -> None:
    suite = SuiteResult(score_percent=100.0, families={"x": SeedFamily(9, 0, 0, 0, 0, 9)})
    assert json.loads(gates.badge(run_of("reference", suite), "reference"))["color"] == "yellow"


def test_a_badge_of_nobody_names_who_there_is() -> None:
    with pytest.raises(HarnessError, match="it has reference"):
        gates.badge(run_of("reference"), "nginx")
