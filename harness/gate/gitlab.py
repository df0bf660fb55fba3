"""Findings to GitLab's code quality report: the JSON that merge requests show beside the diff."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from httpmark.harness.gate.findings import Finding, Status


def code_quality(found: Sequence[Finding], *, location: str = "README.md") -> str:
    """An issue per finding that has something against its subject.

    :param location: the file issues point at, relative to the repository; a finding that the
        baseline lists points at its line there.
    """
    issues = [
        {
            "description": f"{finding.server}: {finding.title}: {finding.message}",
            "check_name": f"{finding.suite}/{finding.id}",
            # Of what is judged, not of this run: GitLab compares branches by it.
            "fingerprint": hashlib.sha256(finding.key.encode("utf-8", "replace")).hexdigest(),
            "severity": _severity(finding),
            "location": {
                "path": (finding.excuse.file if finding.excuse else "") or location,
                "lines": {"begin": finding.excuse.line if finding.excuse else 1},
            },
        }
        for finding in found
        if finding.fails or finding.status is Status.UNUSABLE
    ]
    return json.dumps(issues, indent=1, ensure_ascii=True) + "\n"


def _severity(finding: Finding) -> str:
    if finding.status is Status.UNUSABLE:
        return "blocker"
    if finding.status is Status.EXPECTED:
        return "info"
    if finding.status is Status.WARNED:
        return "minor"
    return "critical" if finding.level.is_binding else "major"
