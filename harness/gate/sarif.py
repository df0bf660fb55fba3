"""Findings to SARIF 2.1.0, for code scanning: a rule per requirement, a result per finding.

``baselineState`` says what the baseline lists; an expected failure is a suppressed result with the
baseline's reason.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Sequence
from typing import Any

from httpmark.harness.gate.findings import Finding, Status, rfc_link
from httpmark.harness.http.printable import valid_unicode
from httpmark.harness.model.cases import Level
from httpmark.harness.model.run import Run

FINGERPRINT = "httpmarkFinding/v1"
RESULTS_MAX = 5000  # GitHub shows no more of one run

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(
    run: Run,
    found: Sequence[Finding],
    *,
    location: str = "README.md",
    with_passed: bool = False,
) -> str:
    """SARIF 2.1.0.

    :param with_passed: also results of kind ``pass``. GitHub does not look at the kind and would
        raise an alert for each, so they are left out unless asked for; their rules are not.
    :param location: the file, relative to the repository, that results point at: GitHub shows
        only results with a physical location, and a server's answer has none of its own. A
        finding that the baseline lists points at its line there.
    """
    rules: dict[str, dict[str, object]] = {}
    order: dict[str, int] = {}
    results: list[dict[str, object]] = []
    for finding in found:
        rule_id = f"{finding.suite}/{finding.id}"
        if rule_id not in rules:
            order[rule_id] = len(rules)
            rules[rule_id] = _rule(rule_id, finding)
        quiet = finding.status in (Status.PASSED, Status.NOT_APPLICABLE)
        absent = finding.excuse is not None and finding.excuse.state == "absent"
        if quiet and not absent and not with_passed:
            continue
        results.append({"ruleIndex": order[rule_id], **_result(rule_id, finding, location)})
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "httpmark",
                        "semanticVersion": _semantic(run.harness_version),
                        "version": run.harness_version,
                        "rules": list(rules.values()),
                    }
                },
                "automationDetails": {"id": f"httpmark/{run.id}"},
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": not run.interrupted,
                        "startTimeUtc": run.started,
                        **({"endTimeUtc": run.finished} if run.finished else {}),
                    }
                ],
                "properties": {
                    "catalogue_version": run.catalogue_version,
                    "environment": run.environment.get("fingerprint"),
                    "results_left_out": max(0, len(results) - RESULTS_MAX),
                },
                "results": _worst(results),
            }
        ],
    }
    return json.dumps(_clean(log), indent=1, ensure_ascii=True) + "\n"


def _clean(value: Any) -> Any:
    """The value with all its text made valid."""
    if isinstance(value, str):
        return valid_unicode(value)
    if isinstance(value, dict):
        return {name: _clean(inner) for name, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, list) else value


def _worst(results: list[dict[str, object]]) -> list[dict[str, object]]:
    """As many results as are shown, in their order; where there are more, the worst of them."""
    if len(results) <= RESULTS_MAX:
        return results
    weight = ("error", "warning", "note", "none")
    ranked = sorted(range(len(results)), key=lambda at: weight.index(str(results[at]["level"])))
    return [results[at] for at in sorted(ranked[:RESULTS_MAX])]


def _rule(rule_id: str, finding: Finding) -> dict[str, object]:
    rule: dict[str, object] = {
        "id": rule_id,
        "shortDescription": {"text": finding.title},
        "defaultConfiguration": {"level": _level(finding.level)},
        "properties": {
            "level": finding.level.value,
            "clause": finding.clause,
            "ref": finding.ref,
            "contested": finding.contested,
        },
    }
    link = rfc_link(finding.clause)
    if link:
        rule["helpUri"] = link
    return rule


def _result(rule_id: str, finding: Finding, location: str) -> dict[str, object]:
    excuse = finding.excuse
    listed = excuse is not None and bool(excuse.file)
    lines = (f"{finding.server}: {finding.message}", *finding.details, *finding.reproducers)
    result: dict[str, object] = {
        "ruleId": rule_id,
        **_kind(finding),
        "message": {"text": "\n".join(lines)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {
                        "uri": urllib.parse.quote(excuse.file if listed and excuse else location)
                    },
                    "region": {"startLine": excuse.line if listed and excuse else 1},
                },
                "logicalLocations": [{"fullyQualifiedName": finding.key}],
            }
        ],
        "partialFingerprints": {FINGERPRINT: finding.key},
    }
    if excuse is not None:
        result["baselineState"] = excuse.state
    if finding.status is Status.EXPECTED and excuse is not None:
        result["suppressions"] = [{"kind": "external", "justification": excuse.words}]
    if finding.failures > 1:
        result["occurrenceCount"] = finding.failures
    return result


def _semantic(version: str) -> str:
    numbers = re.match(r"\d+\.\d+\.\d+", version)
    return numbers[0] if numbers else "0.0.0"


def _level(level: Level) -> str:
    return {Level.MUST: "error", Level.CTRL: "error", Level.SHOULD: "warning"}.get(level, "note")


def _kind(finding: Finding) -> dict[str, object]:
    """``level`` stands beside ``kind: fail`` only; elsewhere the standard wants ``none``."""
    match finding.status:
        case Status.PASSED:
            return {"kind": "pass", "level": "none"}
        case Status.NOT_APPLICABLE:
            return {"kind": "notApplicable", "level": "none"}
        case Status.UNDECIDED:
            return {"kind": "open", "level": "none"}
        case Status.WARNED:
            return {"kind": "fail", "level": "warning"}
        case Status.FAILED | Status.UNUSABLE | Status.EXPECTED:
            return {"kind": "fail", "level": "error"}
