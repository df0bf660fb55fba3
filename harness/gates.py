"""A run to what a CI job reads: an exit code, JUnit XML, SARIF, a GitHub summary, a badge.

Everything comes from the same :func:`findings`, so that no two outputs can disagree. A run holds
counts per family, not each request's verdict, so a finding is a family (or the positive controls,
or the score), never one of its 61,692 requests: those stand in ``evidence.sqlite``.
"""

from __future__ import annotations

import enum
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from httpmark.harness.model import (
    Family,
    HarnessError,
    Level,
    Run,
    SeedFamily,
    ServerResult,
    SuiteResult,
)

RULESETS = ("rfc", "seed")
INCONCLUSIVE = ("warn", "fail", "pass")

PASSED, FAILED, UNUSABLE, UNDECIDED, NOTHING = 0, 1, 3, 4, 5

SUMMARY_OCTETS_MAX = 1024 * 1024  # GitHub aborts a larger step summary
ANNOTATIONS_MAX = 10  # of each kind, per step
SYSTEM_OUT_CHARACTERS_MAX = 4096
FINGERPRINT = "httpmarkFinding/v1"

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class Said(enum.StrEnum):
    """What a finding says of its subject."""

    PASSED = "passed"
    WARNED = "warned"  # a SHOULD not met: reported, gates nothing
    FAILED = "failed"
    UNDECIDED = "undecided"  # the run cannot tell
    UNUSABLE = "unusable"  # nothing could be judged at all


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing a gate looks at, and what the run says of it."""

    server: str
    suite: str
    id: str  # a family's id, or "controls", "must", "score", "server"
    title: str
    level: Level
    clause: str
    said: Said
    message: str
    details: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What stays the same from run to run."""
        return f"{self.server}/{self.suite}/{self.id}"


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate asks for; the words are those of ``httpmark check``."""

    ruleset: str = "rfc"
    fail_under: float | None = None
    inconclusive: str = "warn"

    def __post_init__(self) -> None:
        if self.ruleset not in RULESETS:
            raise HarnessError(
                f"--ruleset {self.ruleset}: this version judges by {' or '.join(RULESETS)}"
            )
        if self.inconclusive not in INCONCLUSIVE:
            raise HarnessError(f"--inconclusive {self.inconclusive}: {', '.join(INCONCLUSIVE)}")


# --- findings -----------------------------------------------------------------------------------


def findings(
    run: Run, *, gate: Gate | None = None, families: Mapping[str, Family] | None = None
) -> tuple[Finding, ...]:
    """Everything the run lets a gate say, in the run's order.

    :param families: titles, levels and clauses by family id, from the catalogue; a family it does
        not know is a SHOULD without a clause.
    """
    gate = gate or Gate()
    known = families or {}
    found: list[Finding] = []
    for server in run.servers:
        if server.control:
            continue  # a control is there to be measured against, not to be judged
        trouble = server.unavailable or server.died
        if trouble is not None:
            found.append(_of_server(server, trouble))
        for name, suite in server.compliance.suites.items():
            found += _of_suite(server, name, suite, gate, known)
    return tuple(found)


def _of_server(server: ServerResult, trouble: str) -> Finding:
    what = "was not measured" if server.unavailable is not None else "died"
    return Finding(
        server=server.name,
        suite="server",
        id="server",
        title="the server runs",
        level=Level.CTRL,
        clause="",
        said=Said.UNUSABLE,
        message=f"{server.title} {what}: {trouble}",
    )


def _of_suite(
    server: ServerResult, name: str, suite: SuiteResult, gate: Gate, known: Mapping[str, Family]
) -> list[Finding]:
    found: list[Finding] = []

    def add(
        id: str, title: str, level: Level, clause: str, said: Said, message: str, *details: str
    ) -> None:
        found.append(
            Finding(
                server=server.name,
                suite=name,
                id=id,
                title=title,
                level=level,
                clause=clause,
                said=said,
                message=message,
                details=details,
            )
        )

    controls = suite.controls
    if controls is not None and controls.passed + controls.failed:
        total = controls.passed + controls.failed
        add(
            "controls",
            "good requests are accepted",
            Level.CTRL,
            "",
            Said.FAILED if controls.failed else Said.PASSED,
            f"{controls.passed} of {total} good requests were accepted",
            *(
                f"{verdict.case}: wanted {verdict.expected}, got {verdict.actual}"
                for verdict in controls.failures
            ),
        )
    if suite.must is not None:
        failed = suite.must.get("failed", 0)
        add(
            "must",
            "every MUST of the suite",
            Level.MUST,
            "",
            Said.FAILED if failed else Said.PASSED,
            ", ".join(f"{word.replace('_', ' ')} {count}" for word, count in suite.must.items()),
        )
    for id, counts in suite.families.items():
        family = known.get(id)
        said, message = _of_family(counts, gate)
        add(
            id,
            family.title if family else id,
            family.level if family else Level.SHOULD,
            family.clause if family else "",
            said,
            message,
            *(
                (
                    f"rejected {counts.rejected}, closed {counts.closed}, "
                    f"accepted {counts.accepted}, mute {counts.mute}, "
                    f"malformed {counts.malformed}, void {counts.void}",
                )
            ),
            *((family.why,) if family else ()),
        )
    if suite.score_percent is None:
        blocked = controls is not None and controls.failed
        void = sum(counts.void for counts in suite.families.values())
        add(
            "score",
            "the suite has a score",
            Level.CTRL,
            "",
            Said.UNDECIDED if void and not blocked and not server.died else Said.UNUSABLE,
            suite.reason or "no score, and no reason was recorded",
        )
    elif gate.fail_under is not None:
        enough = suite.score_percent >= gate.fail_under
        add(
            "score",
            f"a score of at least {gate.fail_under:g} %",
            Level.MUST,
            "",
            Said.PASSED if enough else Said.FAILED,
            f"{floor(suite.score_percent)} % of the requests were detected, "
            f"{gate.fail_under:g} % asked for",
        )
    return found


def _of_family(counts: SeedFamily, gate: Gate) -> tuple[Said, str]:
    """A family rests on SHOULDs: it warns, and fails only by the ruleset that is its own."""
    let = f"{counts.undetected} of {counts.requests} malformed requests were let through"
    if counts.undetected:
        fails = gate.ruleset == "seed" and gate.fail_under is None
        return (Said.FAILED if fails else Said.WARNED), let
    if counts.void or not counts.requests:
        return Said.UNDECIDED, f"{let}; {counts.void} proved nothing"
    if counts.mute or counts.malformed:
        return (
            Said.WARNED,
            f"{let}, but {counts.mute} were met with silence and {counts.malformed} with octets "
            "that are no HTTP response",
        )
    return Said.PASSED, let


def floor(score: float) -> str:
    """A score with one decimal that never reaches 100 by rounding."""
    return f"{math.floor(score * 10 + 1e-6) / 10:.1f}"


def exit_code(
    run: Run,
    *,
    gate: Gate | None = None,
    families: Mapping[str, Family] | None = None,
    signal: int = 2,
) -> int:
    """The contract's exit code of a run.

    130 or 143 where it was interrupted (``signal`` 2 or 15): partial results gate nothing. Then 5
    where nothing was judged, 3 where a server or its controls made judging impossible, 1 for a
    failed gate, 4 for an undecided one where ``inconclusive`` is ``fail``, else 0.
    """
    gate = gate or Gate()
    if run.interrupted:
        return 128 + signal
    said = {finding.said for finding in findings(run, gate=gate, families=families)}
    if not said:
        return NOTHING
    if Said.UNUSABLE in said:
        return UNUSABLE
    if Said.FAILED in said:
        return FAILED
    if Said.UNDECIDED in said and gate.inconclusive == "fail":
        return UNDECIDED
    return PASSED


# --- JUnit --------------------------------------------------------------------------------------

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _xml(text: str) -> str:
    """Text without what XML 1.0 cannot hold, which is shown as an escape instead."""
    return _NOT_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def junit(run: Run, found: Sequence[Finding]) -> str:
    """JUnit XML: a suite per server and suite, a case per finding.

    A warning passes, with its text in ``system-out``; what is undecided is skipped.
    """
    root = ElementTree.Element("testsuites", name="httpmark")
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        groups.setdefault((finding.server, finding.suite), []).append(finding)
    totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    servers = {server.name: server for server in run.servers}
    for (server, suite), members in groups.items():
        numbers = _tally(members)
        for name, number in numbers.items():
            totals[name] += number
        result = servers[server].compliance.suites.get(suite)
        element = ElementTree.SubElement(
            root,
            "testsuite",
            name=_xml(f"{server} {suite}"),
            timestamp=_xml(run.started.removesuffix("Z")),
            time=f"{result.wall_seconds if result else 0.0:.3f}",
        )
        for name, number in numbers.items():
            element.set(name, str(number))
        _properties(element, run, servers[server], result)
        for finding in members:
            _testcase(element, finding)
    for name, number in totals.items():
        root.set(name, str(number))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _tally(members: Iterable[Finding]) -> dict[str, int]:
    said = [finding.said for finding in members]
    return {
        "tests": len(said),
        "failures": said.count(Said.FAILED),
        "errors": said.count(Said.UNUSABLE),
        "skipped": said.count(Said.UNDECIDED),
    }


def _properties(
    element: ElementTree.Element, run: Run, server: ServerResult, suite: SuiteResult | None
) -> None:
    pairs = {
        "version": server.version or "unknown",
        "runtime": server.runtime or "none",
        "catalogue_version": run.catalogue_version,
        "environment": str(run.environment.get("fingerprint", "not recorded")),
    }
    if suite is not None and suite.score_percent is not None:
        pairs["score_percent"] = floor(suite.score_percent)
    for load in server.load:
        cost = load.cpu_ns_per_request.server
        pairs[f"{load.profile}.cpu_ns_per_request"] = (
            "not measured" if cost is None else f"{cost:g}"
        )
        pairs[f"{load.profile}.bottleneck"] = load.bottleneck.value
    holder = ElementTree.SubElement(element, "properties")
    for name, value in pairs.items():
        ElementTree.SubElement(holder, "property", name=_xml(name), value=_xml(value))


def _testcase(element: ElementTree.Element, finding: Finding) -> None:
    case = ElementTree.SubElement(
        element,
        "testcase",
        classname=_xml(finding.clause or finding.suite),
        name=_xml(finding.id),
        time="0",
    )
    body = "\n".join((finding.title, *finding.details))
    match finding.said:
        case Said.FAILED:
            failure = ElementTree.SubElement(
                case, "failure", message=_xml(finding.message), type=finding.level.value
            )
            failure.text = _xml(body)
        case Said.UNUSABLE:
            error = ElementTree.SubElement(
                case, "error", message=_xml(finding.message), type="unusable"
            )
            error.text = _xml(body)
        case Said.UNDECIDED:
            ElementTree.SubElement(
                case, "skipped", message=_xml(f"inconclusive: {finding.message}")
            )
        case Said.WARNED:
            out = ElementTree.SubElement(case, "system-out")
            text = f"{finding.level.value} not met: {finding.message}\n{body}"
            out.text = _xml(text)[:SYSTEM_OUT_CHARACTERS_MAX]
        case Said.PASSED:
            pass


# --- SARIF --------------------------------------------------------------------------------------


def rfc_link(clause: str) -> str | None:
    """The page of the first clause named: ``RFC 9112 3.2`` to its section."""
    named = re.search(r"RFC (\d+)(?: (\d+(?:\.\d+)*))?", clause)
    if named is None:
        return None
    anchor = f"#section-{named[2]}" if named[2] else ""
    return f"https://www.rfc-editor.org/rfc/rfc{named[1]}.html{anchor}"


def sarif(
    run: Run,
    found: Sequence[Finding],
    *,
    location: str = "README.md",
    with_passed: bool = False,
) -> str:
    """SARIF 2.1.0: a rule per requirement, a result per finding that has something to say.

    :param with_passed: also results of kind ``pass``. GitHub does not look at the kind and would
        raise an alert for each, so they are left out unless asked for; their rules are not.
    :param location: the file, relative to the repository, that results point at: GitHub shows
        only results with a physical location, and a server's answer has none of its own.
    """
    rules: dict[str, dict[str, object]] = {}
    results: list[dict[str, object]] = []
    for finding in found:
        rule_id = f"{finding.suite}/{finding.id}"
        if rule_id not in rules:
            rule: dict[str, object] = {
                "id": rule_id,
                "shortDescription": {"text": finding.title},
                "defaultConfiguration": {"level": _sarif_level(finding.level)},
                "properties": {"level": finding.level.value, "clause": finding.clause},
            }
            link = rfc_link(finding.clause)
            if link:
                rule["helpUri"] = link
            rules[rule_id] = rule
        if finding.said is Said.PASSED and not with_passed:
            continue
        results.append(
            {
                "ruleId": rule_id,
                "ruleIndex": list(rules).index(rule_id),
                **_sarif_kind(finding),
                "message": {
                    "text": "\n".join((f"{finding.server}: {finding.message}", *finding.details))
                },
                "locations": [
                    {
                        "physicalLocation": {
                            "artifactLocation": {"uri": location},
                            "region": {"startLine": 1},
                        },
                        "logicalLocations": [{"fullyQualifiedName": finding.key}],
                    }
                ],
                "partialFingerprints": {FINGERPRINT: finding.key},
            }
        )
    log = {
        "$schema": _SARIF_SCHEMA,
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
                },
                "results": results,
            }
        ],
    }
    return json.dumps(log, indent=1, ensure_ascii=True) + "\n"


def _semantic(version: str) -> str:
    numbers = re.match(r"\d+\.\d+\.\d+", version)
    return numbers[0] if numbers else "0.0.0"


def _sarif_level(level: Level) -> str:
    return {Level.MUST: "error", Level.CTRL: "error", Level.SHOULD: "warning"}.get(level, "note")


def _sarif_kind(finding: Finding) -> dict[str, object]:
    """``level`` stands beside ``kind: fail`` only; elsewhere the standard wants ``none``."""
    match finding.said:
        case Said.PASSED:
            return {"kind": "pass", "level": "none"}
        case Said.UNDECIDED:
            return {"kind": "open", "level": "none"}
        case Said.WARNED:
            return {"kind": "fail", "level": "warning"}
        case Said.FAILED | Said.UNUSABLE:
            return {"kind": "fail", "level": "error"}


# --- GitHub -------------------------------------------------------------------------------------

_WORST_FIRST = (Said.UNUSABLE, Said.FAILED, Said.UNDECIDED, Said.WARNED, Said.PASSED)


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    """Findings by how much they matter to somebody whose job went red."""
    return sorted(found, key=lambda finding: _WORST_FIRST.index(finding.said))


def _markdown(text: str) -> str:
    """Text as text: no markup, no table cell that ends early, no mention of anybody."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    for character in "&<>":
        plain = plain.replace(character, {"&": "&amp;", "<": "&lt;", ">": "&gt;"}[character])
    return re.sub(r"([\\`*_{}\[\]()#+!|~@$])", r"\\\1", plain).replace("\\@", "&#64;")


def summary(run: Run, found: Sequence[Finding], *, code: int | None = None) -> str:
    """A GitHub step summary in Markdown, worst first, within GitHub's budget."""
    said = [finding.said for finding in found]
    counts = ", ".join(f"{said.count(word)} {word.value}" for word in _WORST_FIRST if word in said)
    lines = [
        f"## httpmark: {_headline(said, interrupted=run.interrupted)}",
        "",
        f"{counts or 'nothing was judged'}{f' · exit code {code}' if code is not None else ''} · "
        f"catalogue `{_code(run.catalogue_version)}`{' · quick' if run.quick else ''}",
        "",
    ]
    scores = [
        (server, name, suite)
        for server in run.servers
        for name, suite in server.compliance.suites.items()
    ]
    if scores:
        lines += ["| server | suite | score | rejected | closed | accepted | mute |"]
        lines += ["|---|---|--:|--:|--:|--:|--:|"]
        for server, name, suite in scores:
            score = "none" if suite.score_percent is None else f"{floor(suite.score_percent)} %"
            totals = [
                sum(int(getattr(family, word)) for family in suite.families.values())
                for word in ("rejected", "closed", "accepted", "mute")
            ]
            cells = " | ".join(f"{total:,}" if suite.families else "–" for total in totals)
            lines.append(f"| {_markdown(server.title)} | {_markdown(name)} | {score} | {cells} |")
        lines.append("")
    if found:
        lines += ["| | requirement | what was seen |", "|---|---|---|"]
    rows = []
    for finding in worst_first(found):
        link = rfc_link(finding.clause)
        clause = _markdown(finding.clause)
        where = f" ([{clause}]({link}))" if link else f" ({clause})" if clause else ""
        rows.append(
            f"| {finding.said.value} | {finding.level.value}: {_markdown(finding.title)}{where} | "
            f"{_markdown(finding.server)}: {_markdown(finding.message)} |"
        )
    return _within("\n".join(lines) + "\n", rows, SUMMARY_OCTETS_MAX)


def _within(head: str, rows: Sequence[str], octets_max: int) -> str:
    """Head and as many rows as fit, and how many more there are."""
    text, size = [head], len(head.encode("utf-8"))
    for at, row in enumerate(rows):
        size += len(row.encode("utf-8")) + 1
        if size > octets_max - 100:
            text.append(f"\nand {len(rows) - at} more\n")
            break
        text.append(row + "\n")
    return "".join(text)


def _code(text: str) -> str:
    return "".join(character for character in text if character.isprintable()).replace("`", "'")


def _headline(said: Sequence[Said], *, interrupted: bool) -> str:
    if interrupted:
        return "interrupted, gates not evaluated"
    for word, headline in (
        (Said.UNUSABLE, "could not be judged"),
        (Said.FAILED, "failed"),
        (Said.UNDECIDED, "inconclusive"),
    ):
        if word in said:
            return headline
    return "passed" if said else "nothing selected"


def workflow_commands(found: Sequence[Finding]) -> tuple[str, ...]:
    """GitHub workflow commands: at most ten errors and ten warnings, worst first, then how many."""
    kinds = {
        Said.UNUSABLE: "error",
        Said.FAILED: "error",
        Said.UNDECIDED: "warning",
        Said.WARNED: "warning",
    }
    lines: list[str] = []
    for kind in ("error", "warning"):
        chosen = [finding for finding in worst_first(found) if kinds.get(finding.said) == kind]
        shown = chosen if len(chosen) <= ANNOTATIONS_MAX else chosen[: ANNOTATIONS_MAX - 1]
        for finding in shown:
            title = f"{finding.level.value} {finding.clause}".strip()
            message = f"{finding.server}: {finding.title}: {finding.message}"
            lines.append(f"::{kind} title={_property(title)}::{_data(message)}")
        if len(chosen) > len(shown):
            lines.append(f"::{kind} title=httpmark::and {len(chosen) - len(shown)} more")
    return tuple(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# --- badge --------------------------------------------------------------------------------------


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
