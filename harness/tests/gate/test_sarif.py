"""SARIF: keeps to the standard, and names the same thing the same way from run to run."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import msgspec
import pydantic
import pytest
from pydantic_sarif import model

from httpmark.harness.gate import findings, sarif
from httpmark.harness.gate.findings import Finding, Status
from httpmark.harness.model.run import Run
from httpmark.harness.tests.shared.made_findings import families, hostile_run, many, mixed, run_of

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
    baselineState={"enum": ["new", "unchanged", "updated", "absent"]},
    occurrenceCount={"type": "integer", "minimum": 1},
    suppressions=_array({"type": "object"}),
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
    found = findings.findings(run, families=families())
    log = json.loads(sarif.sarif(run, found, with_passed=with_passed))
    jsonschema.Draft202012Validator(SARIF).validate(log)
    (only,) = log["runs"]
    rules = only["tool"]["driver"]["rules"]
    for result in only["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        # SARIF 3.27.10: a level other than none only beside kind fail
        assert (result["kind"] == "fail") == (result["level"] != "none")
    shown = [finding for finding in found if with_passed or finding.status is not Status.PASSED]
    assert len(only["results"]) == len(shown)
    prints = [result["partialFingerprints"][sarif.FINGERPRINT] for result in only["results"]]
    assert len(set(prints)) == len(prints)


def test_sarif_says_warning_for_should_and_error_for_must() -> None:
    found = findings.findings(mixed(), families=families())
    log = json.loads(sarif.sarif(mixed(), found))
    levels = {
        result["partialFingerprints"][sarif.FINGERPRINT]: result["level"]
        for result in log["runs"][0]["results"]
    }
    assert levels["go_net_http/seed/path_byte"] == "warning"
    assert levels["rust_hyper/rfc/must"] == "error"
    assert levels["rust_hyper/seed/path_byte"] == "none"


def test_fingerprints_do_not_depend_on_the_run() -> None:
    def prints(run: Run) -> set[str]:
        log = json.loads(sarif.sarif(run, findings.findings(run)))
        return {r["partialFingerprints"][sarif.FINGERPRINT] for r in log["runs"][0]["results"]}

    other = msgspec.structs.replace(mixed(), id="other", started="2027-01-01T00:00:00Z")
    assert prints(mixed()) == prints(other)


def official(log: str) -> None:
    """Read a log with models generated from the official schema, which forbid what it forbids."""
    model.StaticAnalysisResultsFormatSarifVersion210JsonSchema.model_validate_json(log)


def excused(said: Status, state: str) -> Finding:
    excuse = findings.Excuse(state=state, reason="known", file="baseline.toml", line=7)
    return msgspec.structs.replace(many(said, 1)[0], excuse=excuse, failures=3)


def test_the_official_schema_accepts_every_kind() -> None:
    made = [finding for status in Status for finding in many(status, 2)]
    made += [excused(Status.EXPECTED, "unchanged"), excused(Status.PASSED, "absent")]
    for with_passed in (False, True):
        official(sarif.sarif(run_of("reference"), made, with_passed=with_passed))
    run = mixed()
    official(sarif.sarif(run, findings.findings(run, families=families())))
    with pytest.raises(pydantic.ValidationError):
        official(sarif.sarif(run, ()).replace('"results"', '"result"'))


def test_the_baseline_state_is_the_ratchet() -> None:
    made = [excused(Status.EXPECTED, "unchanged"), excused(Status.PASSED, "absent")]
    log = json.loads(sarif.sarif(run_of("reference"), [*made, *many(Status.FAILED, 1)]))
    expected, absent, new = log["runs"][0]["results"]
    assert expected["baselineState"] == "unchanged"
    assert expected["suppressions"] == [{"kind": "external", "justification": "known"}]
    assert expected["occurrenceCount"] == 3
    where = expected["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "baseline.toml"
    assert where["region"]["startLine"] == 7
    assert absent["baselineState"] == "absent"
    assert "baselineState" not in new, "no baseline was asked"


def test_no_more_results_than_are_shown_and_the_worst_stay() -> None:
    made = many(Status.WARNED, sarif.RESULTS_MAX) + many(Status.FAILED, 3)
    log = json.loads(sarif.sarif(run_of("reference"), made))["runs"][0]
    assert len(log["results"]) == sarif.RESULTS_MAX
    assert [r["level"] for r in log["results"][-3:]] == ["error"] * 3
    assert log["properties"]["results_left_out"] == 3


def test_hostile_words_break_no_sarif() -> None:
    run = hostile_run()
    official(sarif.sarif(run, findings.findings(run)))
