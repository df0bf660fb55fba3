"""GitLab's code quality report: the keys it wants, and a fingerprint that outlives a run."""

from __future__ import annotations

import json

import jsonschema
import msgspec

from httpmark.harness.gate import findings, gitlab
from httpmark.harness.gate.findings import Status
from httpmark.harness.model.run import Run
from httpmark.harness.tests.shared.made_findings import hostile_run, many, mixed

ISSUE = {
    "type": "object",
    "properties": {
        "description": {"type": "string", "minLength": 1},
        "check_name": {"type": "string", "minLength": 1},
        "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
        "location": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "pattern": "^[^./]"},
                "lines": {"type": "object", "properties": {"begin": {"type": "integer"}}},
            },
            "required": ["path", "lines"],
        },
    },
    "required": ["description", "check_name", "fingerprint", "severity", "location"],
}


def test_every_finding_against_a_server_is_one_issue() -> None:
    made = [finding for status in Status for finding in many(status, 2)]
    issues = json.loads(gitlab.code_quality(made))
    jsonschema.Draft202012Validator({"type": "array", "items": ISSUE}).validate(issues)
    assert [issue["severity"] for issue in issues] == [
        "minor", "minor", "info", "info", "critical", "critical", "blocker", "blocker"
    ]  # fmt: skip
    prints = [issue["fingerprint"] for issue in issues]
    assert len(set(prints)) == len(prints)


def test_the_fingerprint_is_of_the_subject() -> None:
    def prints(run: Run) -> list[str]:
        found = findings.findings(run)
        return [issue["fingerprint"] for issue in json.loads(gitlab.code_quality(found))]

    assert prints(mixed()) == prints(msgspec.structs.replace(mixed(), id="other"))
    assert prints(mixed())


def test_what_the_baseline_lists_points_there() -> None:
    excuse = findings.Excuse(state="unchanged", reason="r", file="known.toml", line=12)
    (finding,) = many(Status.EXPECTED, 1)
    (issue,) = json.loads(
        gitlab.code_quality([msgspec.structs.replace(finding, excuse=excuse)])
    )  # fmt: skip
    assert issue["location"] == {"path": "known.toml", "lines": {"begin": 12}}


def test_hostile_words_are_only_words() -> None:
    text = gitlab.code_quality(findings.findings(hostile_run()))
    assert text.isascii()
    json.loads(text)
