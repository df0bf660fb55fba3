"""Findings to JUnit XML: a suite per server and suite, a case per finding."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence

from httpmark.harness.gate.findings import Finding, Status
from httpmark.harness.http.printable import xml
from httpmark.harness.judging.score_text import rounded_down
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.model.verdicts import SuiteResult

SYSTEM_OUT_CHARACTERS_MAX = 4096


def junit(run: Run, found: Sequence[Finding]) -> str:
    """JUnit XML.

    A warning passes, with its text in ``system-out``; what is undecided, does not apply, or fails
    as the baseline lists it, is skipped with the reason.
    """
    root = ElementTree.Element("testsuites", name="httpmark")
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        groups.setdefault((finding.server, finding.suite), []).append(finding)
    totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    servers = {server.name: server for server in run.servers}
    for (name, suite), members in groups.items():
        numbers = _numbers(members)
        for kind, number in numbers.items():
            totals[kind] += number
        server = servers.get(name)
        result = server.compliance.suites.get(suite) if server else None
        element = ElementTree.SubElement(
            root,
            "testsuite",
            name=xml(f"{name} {suite}"),
            timestamp=xml(run.started.removesuffix("Z")),
            time=f"{result.wall_seconds if result else 0.0:.3f}",
        )
        for kind, number in numbers.items():
            element.set(kind, str(number))
        _properties(element, run, server, result)
        for finding in members:
            _testcase(element, finding)
    for kind, number in totals.items():
        root.set(kind, str(number))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _numbers(members: Iterable[Finding]) -> dict[str, int]:
    status = [finding.status for finding in members]
    return {
        "tests": len(status),
        "failures": status.count(Status.FAILED),
        "errors": status.count(Status.UNUSABLE),
        "skipped": sum(word in _SKIPPED for word in status),
    }


_SKIPPED = {
    Status.UNDECIDED: "inconclusive",
    Status.NOT_APPLICABLE: "not applicable",
    Status.EXPECTED: "expected failure",
}


def _properties(
    element: ElementTree.Element, run: Run, server: ServerResult | None, suite: SuiteResult | None
) -> None:
    pairs = {
        "catalogue_version": run.catalogue_version,
        "environment": str(run.environment.get("fingerprint", "not recorded")),
    }
    if server is not None:
        pairs |= {"version": server.version or "unknown", "runtime": server.runtime or "none"}
    if suite is not None and suite.score_percent is not None:
        pairs["score_percent"] = f"{rounded_down(suite.score_percent):.1f}"
    for load in server.load if server is not None else ():
        cost = load.cpu_ns_per_request.server
        pairs[f"{load.profile}.cpu_ns_per_request"] = (
            "not measured" if cost is None else f"{cost:g}"
        )
        pairs[f"{load.profile}.bottleneck"] = load.bottleneck.value
    holder = ElementTree.SubElement(element, "properties")
    for name, value in pairs.items():
        ElementTree.SubElement(holder, "property", name=xml(name), value=xml(value))


def _testcase(element: ElementTree.Element, finding: Finding) -> None:
    case = ElementTree.SubElement(
        element,
        "testcase",
        classname=xml(finding.clause or finding.suite),
        name=xml(finding.id),
        time="0",
    )
    status = finding.status
    if status in _SKIPPED:
        why = (
            finding.excuse.words
            if status is Status.EXPECTED and finding.excuse
            else finding.message
        )
        ElementTree.SubElement(case, "skipped", message=xml(f"{_SKIPPED[status]}: {why}"))
    elif status in (Status.FAILED, Status.UNUSABLE):
        failed = status is Status.FAILED
        trouble = ElementTree.SubElement(
            case,
            "failure" if failed else "error",
            message=xml(finding.message),
            type=finding.level.value if failed else "unusable",
        )
        reproducers = ("to send it by hand:", *finding.reproducers) * bool(finding.reproducers)
        trouble.text = xml("\n".join((finding.title, *finding.details, *reproducers)))
    spoken = []
    if status is Status.WARNED:
        spoken += [f"reported, {finding.level.value}: {finding.message}", finding.title]
        spoken += finding.details
    if finding.wire and finding.fails:
        spoken.append(finding.wire)
    if spoken:
        out = ElementTree.SubElement(case, "system-out")
        out.text = xml("\n".join(spoken))[:SYSTEM_OUT_CHARACTERS_MAX]
