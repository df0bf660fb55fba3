"""A run to a badge: the JSON that shields' endpoint reads."""

from __future__ import annotations

import json

from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.model.verdicts import Deliveries, SuiteResult

# The colour of a badge is that of its worst suite.
_WORST_FIRST = ("red", "lightgrey", "yellow", "brightgreen")
_NONE = Deliveries(messages=0, fired={})


def badge(run: Run, server: str) -> str:
    """A badge for shields' endpoint: counts of every suite, never a bare percentage.

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
    suites = list(server.compliance.suites.items())
    # Suites that bind come first. A published corpus rests on SHOULDs and comes after them.
    suites.sort(key=lambda item: item[1].must is None)
    told = [(f"{name} {text}", colour) for name, one in suites for text, colour in [_suite(one)]]
    if not told:
        return "not measured", "lightgrey"
    colours = {colour for _, colour in told} | ({"red"} if server.died else set())
    return ", ".join(text for text, _ in told), min(colours, key=_WORST_FIRST.index)


def _suite(suite: SuiteResult) -> tuple[str, str]:
    """The counts of one suite, and its colour."""
    must = suite.must or {}
    cut = any(one.level.is_binding for one in (suite.deliveries or _NONE).disagreements)
    broken = bool(must.get("failed", 0)) or cut
    if suite.score_percent is None and suite.reason is not None:
        return "not scored", "red" if broken else "lightgrey"
    if suite.must is not None:
        # As score.percent counts: what is only permitted is kept, what is unstable is not.
        good = must.get("passed", 0) + must.get("warned", 0)
        applicable = good + must.get("failed", 0) + must.get("unstable", 0)
        if not applicable:
            return "without a MUST", "red" if broken else "lightgrey"
        colour = "red" if broken else "brightgreen" if good == applicable else "yellow"
        return f"{good}/{applicable} MUST", colour
    families = suite.families.values()
    detected = sum(family.detected for family in families)
    requests = sum(family.requests for family in families)
    if not requests:
        return "not scored", "lightgrey"
    ended = sum(family.rejected + family.closed for family in families)
    return f"{detected:,}/{requests:,} detected", "brightgreen" if ended == requests else "yellow"
