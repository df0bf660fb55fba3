"""A run to a badge: the JSON that shields' endpoint reads."""

from __future__ import annotations

import json

from httpmark.harness.model import HarnessError, Run, ServerResult


def badge(run: Run, server: str) -> str:
    """A badge for shields' endpoint: counts and the suite, never a bare percentage.

    :raises HarnessError: the run has no such server.
    """
    found = next((entry for entry in run.servers if entry.name == server), None)
    if found is None:
        names = ", ".join(entry.name for entry in run.servers)
        raise HarnessError(f"no server {server} in this run; it has {names}")
    message, colour = _badge_of(found)
    value = {"schemaVersion": 1, "label": "HTTP/1.1", "message": message, "color": colour}
    return json.dumps(value, ensure_ascii=True) + "\n"


def _badge_of(server: ServerResult) -> tuple[str, str]:
    for name, suite in server.compliance.suites.items():
        if suite.score_percent is None:
            return f"{name}: not scored", "lightgrey"
        if suite.must is not None:
            passed, failed = suite.must.get("passed", 0), suite.must.get("failed", 0)
            return f"{passed}/{passed + failed} MUST", "red" if failed else "brightgreen"
        detected = sum(family.detected for family in suite.families.values())
        requests = sum(family.requests for family in suite.families.values())
        ended = sum(family.rejected + family.closed for family in suite.families.values())
        colour = "brightgreen" if ended == requests else "yellow"
        return f"{name}: {detected:,}/{requests:,} detected", colour
    return "not measured", "lightgrey"
