"""Findings by the requirement that they break: what a report counts, and what it shows first.

The ledger of the catalogue says which requirement a case shows; the run says which are broken. A
*requirement* here is a row that binds, a MUST or a positive control; the other rows are
*recommendations*.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from httpmark.harness.catalogue import expectation_words
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.gate import crashes
from httpmark.harness.gate.findings import Finding, Status
from httpmark.harness.judging import failure_modes, requirement_verdicts
from httpmark.harness.model.cases import Family, Level, Requirement
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.model.verdicts import SuiteResult, Word

SMUGGLING = "smuggling"
"""The suite of requests that two readers may end at different places."""

_WORST_FIRST = (Level.MUST, Level.CTRL, Level.SHOULD, Level.SEC, Level.MAY, Level.INFO)
_UNDECIDED = (Word.VOID, Word.UNSTABLE)
_GATING = (Status.FAILED, Status.EXPECTED)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement that is broken, or a recommendation that is not followed, with the findings
    that show it. What fails the gate and belongs to no requirement is a group, too.
    """

    id: str
    title: str
    level: Level
    clause: str
    found: tuple[Finding, ...]  # the first is the example
    smuggling: bool = False  # one of them can be used for request smuggling
    why: str = ""  # why the example matters
    requirement: bool = True  # False: it fails the gate and belongs to no requirement

    @property
    def example(self) -> Finding | None:
        """The finding to show for all."""
        return self.found[0] if self.found else None

    @property
    def expected(self) -> bool:
        """Whether the baseline lists all that fails."""
        return bool(self.found) and all(one.status is Status.EXPECTED for one in self.found)


class Open(msgspec.Struct, frozen=True):
    """A requirement on which there is no verdict, and why."""

    requirement: Requirement
    why: str


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate knows of one server, counted in requirements."""

    server: str  # its name
    title: str
    met: int = 0
    permitted: int = 0  # of those met: not the first choice, or contested
    broken: tuple[Group, ...] = ()
    broken_untold: int = 0  # of suites whose result only says how many
    undecided: tuple[Open, ...] = ()
    undecided_untold: int = 0
    not_applicable: tuple[Open, ...] = ()
    others: tuple[Group, ...] = ()  # what fails the gate besides requirements
    recommended: int = 0  # recommendations that apply
    missed: tuple[Group, ...] = ()
    detected: int = 0  # malformed requests of the published families
    malformed: int = 0
    found: tuple[Finding, ...] = ()

    @property
    def failing(self) -> list[Group]:
        """What fails the gate: crashes first, then what can be used for request smuggling."""
        groups = [*(group for group in self.broken if not group.expected), *self.others]
        return sorted(groups, key=lambda group: not crashes.is_crash(group.id))

    @property
    def broken_count(self) -> int:
        return len(self.broken) + self.broken_untold

    @property
    def undecided_count(self) -> int:
        return len(self.undecided) + self.undecided_untold

    @property
    def asked(self) -> int:
        """The requirements that apply and were asked for."""
        return self.met + self.broken_count + self.undecided_count


def summaries(run: Run, found: Iterable[Finding], known: Catalogue) -> tuple[Summary, ...]:
    """What is known of each server that is no control; of others that findings name, these."""
    by_server: dict[str, list[Finding]] = {
        server.name: [] for server in run.servers if not server.control
    }
    for finding in found:
        by_server.setdefault(finding.server, []).append(finding)
    servers = {server.name: server for server in run.servers}
    return tuple(_summary(name, servers.get(name), own, known) for name, own in by_server.items())


def _summary(
    name: str, server: ServerResult | None, found: Sequence[Finding], known: Catalogue
) -> Summary:
    suites = list(server.compliance.suites.values()) if server is not None else []
    words = requirement_verdicts.merged(suites)
    rows = [
        row
        for row in requirement_verdicts.rows(
            known.requirements, list(known.families.values()), words
        )
        if row.id in words
    ]
    binding = [row for row in rows if row.level.is_binding]
    others = [row for row in rows if not row.level.is_binding and row.level.is_judged]
    gating = [one for one in found if one.status in _GATING]
    broken = _groups([row for row in binding if words[row.id] is Word.FAIL], gating, known)
    missing = [one for one in found if one.fails and _misses(one, suites)]
    missed = _groups([row for row in others if words[row.id] is Word.FAIL], missing, known)
    told = {one.key for group in broken for one in group.found}
    bare = [suite.must for suite in suites if suite.must and not suite.requirements]
    met = [row for row in binding if words[row.id] in (Word.PASS, Word.WARN)]
    families = [family for suite in suites for family in suite.families.values()]
    return Summary(
        server=name,
        title=server.title if server is not None else name,
        met=len(met) + sum(must.get(key, 0) for must in bare for key in ("passed", "warned")),
        permitted=sum(words[row.id] is Word.WARN for row in met),
        broken=tuple(broken),
        broken_untold=sum(must.get("failed", 0) for must in bare),
        undecided_untold=sum(must.get(key, 0) for must in bare for key in ("void", "unstable")),
        undecided=_open(
            [row for row in binding if words[row.id] in _UNDECIDED],
            [one for one in found if one.status is Status.UNDECIDED],
            known,
        ),
        not_applicable=_open(
            [row for row in binding if words[row.id] is Word.NOT_APPLICABLE],
            [one for one in found if one.status is Status.NOT_APPLICABLE],
            known,
        ),
        others=tuple(_ungrouped(gating, told, known)),
        recommended=sum(words[row.id] is not Word.NOT_APPLICABLE for row in others),
        missed=tuple(missed),
        detected=sum(family.detected for family in families),
        malformed=sum(family.requests for family in families),
        found=tuple(found),
    )


def _open(
    rows: Iterable[Requirement], found: Sequence[Finding], known: Catalogue
) -> tuple[Open, ...]:
    """Rows without a verdict, each with the most frequent reason of its cases."""
    made = []
    by_ref = {ref: family.id for family in known.families.values() for ref in family.refs}
    for row in rows:
        reasons = collections.Counter(
            _reason(one.actual or one.message, by_ref) for one in _shown_by(row, found, known)
        )
        made.append(Open(row, next((why for why, _ in reasons.most_common(1)), "")))
    return tuple(made)


_NEEDS = re.compile(r"\bneeds (?:the )?(.+?)(?:, which is not accepted| to be proven|: |, |$)")
_LIMIT = re.compile(r"declares no limit (\w+)")


def _reason(actual: str, by_ref: Mapping[str, str]) -> str:
    """Why a case has no verdict: the word that it needs, or what came.

    :param by_ref: the cases by their numbers.
    """
    if limit := _LIMIT.search(actual):
        return f"limits.{limit[1]}"
    if (needs := _NEEDS.search(actual)) is None:
        return expectation_words.came(actual)
    return by_ref.get(needs[1], needs[1])


def _misses(finding: Finding, suites: Iterable[SuiteResult]) -> bool:
    """Whether a finding is more than a deviation that its case permits."""
    verdicts = [suite.cases[finding.id] for suite in suites if finding.id in suite.cases]
    return not verdicts or any(one.word is Word.FAIL for one in verdicts)


def _groups(rows: Sequence[Requirement], found: Sequence[Finding], known: Catalogue) -> list[Group]:
    """The findings by requirement: smuggling first, then MUST, then controls, then the rest."""
    taken: set[str] = set()
    made = []
    for row in rows:
        own = sorted(_shown_by(row, found, known), key=lambda one: _place(one, taken, known))
        taken.update(one.key for one in own[:1])
        made.append(
            Group(
                id=row.id,
                title=row.title,
                level=row.level,
                clause=row.clause,
                found=tuple(own),
                smuggling=any(can_smuggle(one, known.families) for one in own),
                why=_why(own[0], known) if own else "",
            )
        )
    return sorted(made, key=lambda group: (not group.smuggling, _WORST_FIRST.index(group.level)))


def _shown_by(row: Requirement, found: Iterable[Finding], known: Catalogue) -> Iterator[Finding]:
    """The findings that show a row: those of its cases and checks."""
    shows = requirement_verdicts.showing(row)
    for one in found:
        family = known.families.get(one.family)
        if family is None:
            if shows((one.id,), one.id):
                yield one
        elif (
            one.id == one.family  # not a delivery of its case, for example
            and requirement_verdicts.has_level(row, family)
            and shows(family.refs or (family.ref,), family.group)
        ):
            yield one


def _place(finding: Finding, taken: set[str], known: Catalogue) -> tuple[bool, ...]:
    """Where a finding stands among those of its requirement; the first is the example."""
    family = known.families.get(finding.family)
    return (
        finding.status is Status.EXPECTED,
        not can_smuggle(finding, known.families),
        finding.key in taken,
        finding.contested,
        family is None,  # a check on every answer: a case says more
        family is not None and family.generated,
        family is not None and not family.realistic,
    )


def _why(finding: Finding, known: Catalogue) -> str:
    family = known.families.get(finding.family)
    return family.why if family is not None else ""


def _ungrouped(gating: Iterable[Finding], told: set[str], known: Catalogue) -> Iterator[Group]:
    """What fails the gate and shows no broken requirement, by title."""
    by_title: dict[str, list[Finding]] = {}
    for one in gating:
        if one.key not in told and one.status is Status.FAILED:
            by_title.setdefault(one.title, []).append(one)
    for title, own in by_title.items():
        yield Group(
            id=own[0].id,
            title=title,
            level=own[0].level,
            clause=own[0].clause,
            found=tuple(own),
            smuggling=any(can_smuggle(one, known.families) for one in own),
            why=_why(own[0], known),
            requirement=False,
        )


# --- request smuggling --------------------------------------------------------------------------

_TAKEN = re.compile(r"[123]\d\d\b")
_ACCEPTS = re.compile(r"(?:^| or | > )(?:ACC|PARSED|EITHER|WAIT|ONE|[123](?:\d\d|xx))")
_WRONGLY = ("the next request wrongly", "the next request is answered wrongly")
_UNANSWERED = "the next request is not answered"


def can_smuggle(finding: Finding, families: Mapping[str, Family]) -> bool:
    """Whether two readers could end the message at different places, and the server goes on.

    The catalogue says which cases ask for that: those of the suite ``smuggling``, and those with
    ``framing``. Of them only those count that the server did not refuse.
    """
    family = families.get(finding.family)
    if family is None or family.level is Level.CTRL:
        return False
    by_suite = family.suite == SMUGGLING
    if not by_suite and not family.framing:
        return False
    refusal = not _ACCEPTS.search(finding.expected.partition("; allowed: ")[0])
    return any(
        _goes_on(mode, taken=by_suite or refusal)
        for mode in finding.outcome.split(failure_modes.BETWEEN)
    )


def _goes_on(mode: str, *, taken: bool) -> bool:
    """Whether an outcome is more than a refusal.

    :param taken: the message must not be taken, or not be taken this way: a 2xx is enough.
    """
    if any(word in mode for word in _WRONGLY):
        return True
    return _TAKEN.match(mode) is not None and (taken or _UNANSWERED in mode)
