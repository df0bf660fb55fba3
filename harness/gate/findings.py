"""A run to findings: each thing that the gate judges, with its status.

Every output for a CI job (junit, sarif, github, gitlab, metrics, badge) is made from the same
findings, so that no two can disagree. A finding is one case, or one generated family: a run
holds its counts, and each of its requests stands in ``evidence.sqlite``.
"""

from __future__ import annotations

import collections
import enum
import re
from collections.abc import Iterable, Mapping
from typing import TypedDict

import msgspec

from httpmark.harness.catalogue import expectation_words
from httpmark.harness.gate import crashes
from httpmark.harness.judging import failure_modes
from httpmark.harness.judging.response_rules.rule_table import RULES
from httpmark.harness.judging.score_text import score_text
from httpmark.harness.model.cases import Family, Level
from httpmark.harness.model.crashes import crash_id
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.model.verdicts import (
    Deliveries,
    SeedFamily,
    SuiteResult,
    Tally,
    Verdict,
    Word,
)

RULESETS = ("rfc", "hardened", "seed", "realistic")
INCONCLUSIVE = ("warn", "fail", "pass")

CUT = "-delivery"  # the finding on the deliveries of a case has the case's id and this


class Status(enum.StrEnum):
    """Whether the subject of a finding is as it should be."""

    PASSED = "passed"
    WARNED = "warned"  # a SHOULD that is not met: reported, does not fail the gate
    EXPECTED = "expected"  # fails as the baseline lists it
    FAILED = "failed"
    UNDECIDED = "undecided"  # the run cannot tell: void, or not the same twice
    NOT_APPLICABLE = "not applicable"  # the server does not offer what it needs
    UNUSABLE = "unusable"  # nothing could be judged at all


class Excuse(msgspec.Struct, frozen=True, kw_only=True):
    """What the baseline says of a finding (see baseline)."""

    state: str  # SARIF's words: new, unchanged, updated, absent
    reason: str = ""
    issue: str = ""
    file: str = ""
    line: int = 1
    told: str = ""  # why it does not excuse the finding, or that the failure is gone

    @property
    def words(self) -> str:
        """The reason, and where it is dealt with."""
        return f"{self.reason} ({self.issue})" if self.issue else self.reason


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the gate judges, and what the run shows of it."""

    server: str
    suite: str
    id: str  # a case's slug, a family's id, or "controls", "must", "score", "server"
    title: str
    level: Level
    clause: str
    status: Status = msgspec.field(name="said")  # what tables call it
    message: str
    details: tuple[str, ...] = ()
    ref: str = ""  # the catalogue's number
    family: str = ""
    outcome: str = ""  # how it fails, in one word or few: what a baseline lists
    failures: int = 0  # of its requests; one case is one request
    requests: int = 0
    contested: bool = False  # the text can be read otherwise; both readings are shown
    reproducers: tuple[str, ...] = ()  # shell lines
    wire: str = ""  # both sides of the wire, escaped
    sent: str = ""  # what the case sent, escaped, if it is short enough to read
    fewest: str = ""  # how few bytes do the same, and how to send them, or themselves
    by_hand: tuple[str, ...] = ()  # lines of shell for a server that is gone by now
    last_words: tuple[str, ...] = ()  # what a server that died wrote before, marked as its own
    witness: str = ""  # the case whose exchange shows the failure, where it is known
    delivery: str = ""  # how its bytes were split, where that matters
    expected: str = ""  # in the catalogue's words, of the case that shows the failure
    actual: str = ""
    excuse: Excuse | None = None  # None where no baseline was asked

    @property
    def key(self) -> str:
        """What identifies it from run to run."""
        return f"{self.server}/{self.suite}/{self.id}"

    @property
    def fails(self) -> bool:
        """Whether its subject does not do what is asked, gated or not."""
        return self.status in (Status.FAILED, Status.WARNED, Status.EXPECTED)


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate asks for; the words are those of ``httpmark check``."""

    ruleset: str = "rfc"
    fail_under: float | None = None
    inconclusive: str = "warn"

    def __post_init__(self) -> None:
        if self.ruleset not in RULESETS:
            raise HarnessError(
                f"--ruleset {self.ruleset}: unknown; known are {', '.join(RULESETS)}"
            )
        if self.inconclusive not in INCONCLUSIVE:
            raise HarnessError(
                f"--inconclusive {self.inconclusive}: unknown; known are {', '.join(INCONCLUSIVE)}"
            )


# --- findings -----------------------------------------------------------------------------------


def findings(
    run: Run,
    *,
    gate: Gate | None = None,
    families: Mapping[str, Family] | None = None,
) -> tuple[Finding, ...]:
    """Everything the run lets a gate say, in the run's order.

    :param families: titles, levels and clauses by entry id, from the catalogue; a family it does
        not know is a SHOULD without a clause.
    """
    gate = gate or Gate()
    known = families or {}
    found: list[Finding] = []
    for server in run.servers:
        if server.control:
            continue  # a control is there to be measured against, not to be judged
        found += _of_crashes(server, known)
        trouble = server.unavailable or server.died
        if trouble is not None and not server.crashes:
            found.append(_of_server(server, trouble))
        for name, suite in server.compliance.suites.items():
            found += _of_suite(server, name, suite, gate, known)
    return tuple(found)


def _of_case(server: str, suite: str, id: str, verdict: Verdict, family: Family | None) -> Finding:
    """The finding of one designed case: a failed MUST or control fails the gate.

    A failure at any other level is reported only; what is void, or not the same twice, is
    undecided.
    """
    status = {
        Word.PASS: Status.PASSED,
        Word.WARN: Status.WARNED,
        Word.FAIL: Status.FAILED if verdict.level.is_binding else Status.WARNED,
        Word.VOID: Status.UNDECIDED,
        Word.UNSTABLE: Status.UNDECIDED,
        Word.NOT_APPLICABLE: Status.NOT_APPLICABLE,
    }[verdict.word]
    fails = verdict.word in (Word.FAIL, Word.WARN)
    return Finding(
        server=server,
        suite=suite,
        id=id,
        **_about(id, family),
        level=verdict.level,
        status=status,
        message=_wanted_and_got(verdict),
        details=(
            *((f"in the catalogue's words: {verdict.expected}",) if fails else ()),
            *((family.why,) if family and family.why else ()),
            *((f"contested: {family.contested}",) if family and family.contested else ()),
            *(
                ("the server only closes the connection, without an answer",)
                if verdict.closed_unanswered
                else ()
            ),
        ),
        outcome=failure_modes.failure_mode(verdict.actual) if fails else "",
        failures=int(fails),
        requests=1,
        witness=verdict.case if fails else "",
        expected=verdict.expected,
        actual=verdict.actual,
    )


def _wanted_and_got(verdict: Verdict) -> str:
    """What was asked for and what came, in plain words."""
    came = expectation_words.came(verdict.actual)
    return (
        f"wanted: {expectation_words.wanted(verdict.expected)}; got: {came}"
        if verdict.expected
        else came
    )


def _of_tally(server: str, suite: str, id: str, tally: Tally, family: Family | None) -> Finding:
    """The finding of a generated family, or of a check on every answer."""
    counts: collections.Counter[Word] = collections.Counter()
    binding = 0
    for level, words in tally.words.items():
        counts.update(words)
        binding += words.get(Word.FAIL, 0) if level.is_binding else 0
    total, failed = counts.total(), counts[Word.FAIL]
    applicable = total - counts[Word.NOT_APPLICABLE]
    if not applicable:
        status = Status.NOT_APPLICABLE if total else Status.UNDECIDED
    elif binding:
        status = Status.FAILED
    elif counts[Word.VOID] or counts[Word.UNSTABLE]:
        status = Status.UNDECIDED
    else:
        status = Status.WARNED if failed else Status.PASSED
    level = min(tally.words, key=list(Level).index) if tally.words else Level.MUST
    told = f"{failed} of {applicable} fail: " + ", ".join(
        f"{counts[word]} {word.value.replace('_', ' ')}" for word in counts
    )
    shown = _worst_shown(tally.failures) if failed else None
    if set(counts) == {Word.VOID} and tally.failures:
        told = tally.failures[0].actual  # nothing was asked
    return Finding(
        server=server,
        suite=suite,
        id=id,
        **_about(id, family),
        level=family.level if family else level,
        status=status,
        message=told,
        details=(
            *((family.why,) if family and family.why else ()),
            *((f"fails as {_modes(tally)}",) if tally.failure_modes else ()),
            *(f"{v.case}: {_wanted_and_got(v)}" for v in tally.failures),
        ),
        outcome=failure_modes.as_outcome(tally.failure_modes) if failed else "",
        failures=failed,
        requests=total,
        witness=shown.case if shown else "",
        expected=shown.expected if shown else "",
        actual=shown.actual if shown else "",
    )


def _worst_shown(kept: tuple[Verdict, ...]) -> Verdict | None:
    """Of the verdicts that a tally keeps, one that fails and binds if there is one."""
    failing = [one for one in kept if one.word is Word.FAIL]
    return next((one for one in failing if one.level.is_binding), next(iter(failing or kept), None))


def _modes(tally: Tally) -> str:
    return ", ".join(f"{mode!r} {number} times" for mode, number in tally.failure_modes.items())


def listable(families: Mapping[str, Family]) -> dict[str, str]:
    """Every id that a case, a check or a delivery can have in a finding, with its number."""
    return (
        {family.id: family.ref for family in families.values()}
        | {f"{family.id}{CUT}": "" for family in families.values() if family.deliver}
        | {crash_id(id): "" for id in families}
        | dict.fromkeys((*RULES, crashes.NAMELESS), "")
    )


class _About(TypedDict):
    title: str
    clause: str
    ref: str
    family: str
    contested: bool


def _about(id: str, family: Family | None) -> _About:
    """What the catalogue says of an entry."""
    if family is None:
        return _About(title=id, clause="", ref="", family=id, contested=False)
    return _About(
        title=family.title,
        clause=family.clause,
        ref=family.ref,
        family=id,
        contested=family.contested is not None,
    )


def _of_deliveries(
    server: str, suite: str, told: Deliveries, known: Mapping[str, Family]
) -> list[Finding]:
    """A finding for each message whose answer depends on where its bytes are split.

    Where there is none, one finding says so. A message whose clause is a MUST or control fails the
    gate.
    """
    cuts = sum(told.fired.values())
    if not told.disagreements and cuts:
        return [
            Finding(
                server=server,
                suite=suite,
                id="deliveries",
                title="the answer does not depend on where TCP splits the bytes",
                level=Level.MUST,
                clause="",
                status=Status.PASSED,
                message=f"{told.messages} messages were sent in {cuts} deliveries"
                + (f"; {len(told.unstable)} got two answers to one write" if told.unstable else ""),
                requests=cuts,
            )
        ]
    return [
        Finding(
            server=server,
            suite=suite,
            id=f"{one.case}{CUT}",
            title="the answer depends on where TCP splits the bytes",
            level=one.level,
            clause=known[one.case].clause if one.case in known else "",
            ref=known[one.case].ref if one.case in known else "",
            family=one.case,
            status=Status.FAILED if one.level.is_binding else Status.WARNED,
            message=f"{one.count} {'delivery' if one.count == 1 else 'deliveries'} of {one.case} "
            f"got another answer than one write: {one.what}",
            details=(f"split as {', '.join(one.deliveries)}",),
            outcome="delivery",
            failures=one.count,
            requests=cuts,
            witness=one.case,
            delivery=one.deliveries[0] if one.deliveries else "",
        )
        for one in told.disagreements
    ]


def _of_crashes(server: ServerResult, known: Mapping[str, Family]) -> list[Finding]:
    """A finding for each entry of the catalogue that a server died or hung of, and one for all
    other times. Each fails the gate, whatever the level of the case."""
    found = []
    for (suite, id), some in crashes.by_entry(server.crashes).items():
        first = some[0]
        about = _about(id, known.get(id))
        title = f"the server {crashes.does(first)} of {id}: {about['title']}"
        found.append(
            Finding(
                server=server.name,
                suite=suite or "server",
                id=crash_id(id) if id else crashes.NAMELESS,
                title=title if id else "the server stays alive and answers",
                level=Level.CTRL,
                clause=about["clause"] if id else "",
                ref=about["ref"] if id else "",
                family=id,
                status=Status.FAILED,
                message="; ".join(dict.fromkeys(map(crashes.told, some))),
                details=tuple(
                    line
                    for crash in some[:_CRASHES_TOLD_MAX]
                    for line in (
                        *([f"requests: {crashes.named(crash)}"] if crash.cases else []),
                        *([crashes.fewest(crash)] if crash.fewest else crash.by_hand),
                        *crashes.last_words(crash),
                    )
                ),
                fewest=crashes.fewest(first),
                by_hand=first.by_hand,
                last_words=tuple(crashes.last_words(first)),
                outcome=" | ".join(sorted({crashes.outcome(crash) for crash in some})),
                failures=len(some),
                requests=len(some),
                witness=first.cases[0] if id and first.cases else "",
            )
        )
    return found


_CRASHES_TOLD_MAX = 3


def _of_server(server: ServerResult, trouble: str) -> Finding:
    what = "was not measured" if server.unavailable is not None else "died"
    return Finding(
        server=server.name,
        suite="server",
        id="server",
        title="the server runs",
        level=Level.CTRL,
        clause="",
        status=Status.UNUSABLE,
        message=f"{server.title} {what}: {trouble}",
    )


def _of_suite(
    server: ServerResult,
    name: str,
    suite: SuiteResult,
    gate: Gate,
    known: Mapping[str, Family],
) -> list[Finding]:
    """The findings of one suite: its controls, families, cases, checks, deliveries, score."""
    found: list[Finding] = []
    if not _has_verdicts(suite):  # else controls and MUSTs need no sum
        found += _of_controls(server.name, name, suite)
        found += _of_must_counts(server.name, name, suite)
    for id, counts in suite.families.items():
        found.append(_of_family(server.name, name, id, counts, gate, known.get(id)))
    for id, verdict in suite.cases.items():
        found.append(_of_case(server.name, name, id, verdict, known.get(id)))
    for id, tally in suite.generated.items():
        found.append(_of_tally(server.name, name, id, tally, known.get(id)))
    for number, tally in suite.answers.items():
        found.append(_of_answers(server.name, name, number, tally))
    if suite.deliveries is not None:
        found += _of_deliveries(server.name, name, suite.deliveries, known)
    return [*found, *_of_score(server, name, suite, gate)]


def _has_verdicts(suite: SuiteResult) -> bool:
    """Whether its cases have verdicts of their own."""
    return bool(suite.cases or suite.generated)


def _of_controls(server: str, name: str, suite: SuiteResult) -> list[Finding]:
    """The good requests that a published suite begins with, as one finding."""
    controls = suite.controls
    if controls is None or not controls.passed + controls.failed:
        return []
    return [
        Finding(
            server=server,
            suite=name,
            id="controls",
            title="good requests are accepted",
            level=Level.CTRL,
            clause="",
            status=Status.FAILED if controls.failed else Status.PASSED,
            message=f"{controls.passed} of {controls.passed + controls.failed} good requests "
            "were accepted",
            details=tuple(
                f"{verdict.case}: {_wanted_and_got(verdict)}" for verdict in controls.failures
            ),
            witness=controls.failures[0].case if controls.failures else "",
            expected=controls.failures[0].expected if controls.failures else "",
            actual=controls.failures[0].actual if controls.failures else "",
        )
    ]


def _of_must_counts(server: str, name: str, suite: SuiteResult) -> list[Finding]:
    """The MUSTs of a suite that says no more of them than how many hold."""
    if suite.must is None:
        return []
    return [
        Finding(
            server=server,
            suite=name,
            id="must",
            title="every MUST of the suite",
            level=Level.MUST,
            clause="",
            status=Status.FAILED if suite.must.get("failed", 0) else Status.PASSED,
            message=", ".join(
                f"{word.replace('_', ' ')} {count}" for word, count in suite.must.items()
            ),
        )
    ]


def _of_answers(server: str, name: str, number: str, tally: Tally) -> Finding:
    """The finding of one check on every answer."""
    one = msgspec.structs.replace(_of_tally(server, name, number, tally, None), family="")
    if number not in RULES:
        return one
    check = RULES[number]
    return msgspec.structs.replace(
        one, title=check.title, clause=check.clause, level=check.level, ref=number
    )


def _of_score(server: ServerResult, name: str, suite: SuiteResult, gate: Gate) -> list[Finding]:
    """That a suite has no score, or whether its score is as high as the gate asks."""
    controls, score, has_verdicts = suite.controls, suite.score_percent, _has_verdicts(suite)
    if score is None:
        only_good = controls is not None and not controls.failed and not suite.families
        if not suite.reason and (has_verdicts or only_good):
            return []
        blocked = controls is not None and controls.failed
        void = sum(counts.void for counts in suite.families.values())
        title, level = "the suite has a score", Level.CTRL
        status = Status.UNDECIDED if void and not blocked and not server.died else Status.UNUSABLE
        if server.died and server.crashes:
            status = Status.UNDECIDED  # the crash is the finding
        message = suite.reason or "no score, and no reason was recorded"
    elif gate.fail_under is not None:
        title, level = f"a score of at least {gate.fail_under:g} %", Level.MUST
        status = Status.PASSED if score >= gate.fail_under else Status.FAILED
        counted = "requirements are met" if has_verdicts else "requests were detected"
        message = (
            f"{score_text(score)} % of the {counted}; --fail-under asks for {gate.fail_under:g} %"
        )
    else:
        return []
    return [
        Finding(
            server=server.name,
            suite=name,
            id="score",
            title=title,
            level=level,
            clause="",
            status=status,
            message=message,
        )
    ]


def _of_family(
    server: str, suite: str, id: str, counts: SeedFamily, gate: Gate, family: Family | None
) -> Finding:
    """A family rests on SHOULDs: it warns, and fails only by the ruleset that is its own."""
    message = f"{counts.undetected} of {counts.requests} malformed requests were let through"
    status, outcome, failures = Status.PASSED, "", 0
    if counts.undetected:
        fails = gate.ruleset == "seed" and gate.fail_under is None
        outcome, failures = "accepted", counts.undetected
        status = Status.FAILED if fails else Status.WARNED
    elif counts.void or not counts.requests:
        status, message = Status.UNDECIDED, f"{message}; {counts.void} are void"
    elif counts.mute or counts.malformed:
        status, failures = Status.WARNED, counts.mute + counts.malformed
        outcome = "hung" if counts.mute else "malformed"
        message += (
            f", but {counts.mute} got no answer and {counts.malformed} got bytes "
            "that are not an HTTP response"
        )
    return Finding(
        server=server,
        suite=suite,
        id=id,
        **_about(id, family),
        level=family.level if family else Level.SHOULD,
        status=status,
        message=message,
        details=(
            f"rejected {counts.rejected}, closed {counts.closed}, accepted {counts.accepted}, "
            f"mute {counts.mute}, malformed {counts.malformed}, void {counts.void}",
            *((family.why,) if family else ()),
        ),
        outcome=outcome,
        failures=failures,
        requests=counts.requests,
    )


WORST_FIRST = (
    Status.UNUSABLE,
    Status.FAILED,
    Status.UNDECIDED,
    Status.WARNED,
    Status.EXPECTED,
    Status.NOT_APPLICABLE,
    Status.PASSED,
)


def tally(found: Iterable[Finding]) -> dict[Status, int]:
    """How many findings say what, worst first; what none says is left out."""
    counts = collections.Counter(finding.status for finding in found)
    return {status: counts[status] for status in WORST_FIRST if status in counts}


def rfc_link(clause: str) -> str | None:
    """The page of the first clause named: ``RFC 9112 3.2`` or ``9112/3.2`` to its section."""
    named = re.search(r"\b(?:RFC (\d+)(?: (\d+(?:\.\d+)*))?|(\d{4})/(\d+(?:\.\d+)*))", clause)
    if named is None:
        return None
    number, section = named[1] or named[3], named[2] or named[4]
    anchor = f"#section-{section}" if section else ""
    return f"https://www.rfc-editor.org/rfc/rfc{number}.html{anchor}"
