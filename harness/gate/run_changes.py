"""Two runs to what changed between them: what is newly broken, newly mended, still failing.

Only a thing that was decided in both runs can be newly broken or newly mended. A verdict that one
of the runs could not give, or a case that it did not ask, says nothing about the server.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import msgspec

from httpmark.harness.gate import conclusion, crashes
from httpmark.harness.gate.findings import CUT, Finding, Status
from httpmark.harness.model.cases import Level
from httpmark.harness.model.crashes import CRASH
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.model.verdicts import SuiteResult, Tally, Word

NOT_ASKED = "not asked"


class Kind(enum.StrEnum):
    """What became of one thing that the gate judges; the worst first."""

    NEWLY_BROKEN = "newly broken"
    STILL_FAILING = "still failing"
    FIRST_ASKED = "fails, not asked before"
    UNDECIDED = "undecided"
    NO_LONGER_ASKED = "no longer asked"
    NEWLY_WARNED = "newly warned"
    NEWLY_MENDED = "newly mended"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the gate judges, in both runs."""

    kind: Kind
    server: str
    suite: str
    id: str
    title: str
    level: Level
    clause: str
    base: str  # its status there, or "not asked"
    head: str
    message: str  # what was wanted and what came; of base where head has nothing to say
    reproducers: tuple[str, ...] = ()  # shell lines

    @property
    def is_failure(self) -> bool:
        """Whether it fails in one of the runs; the rest is counted, not listed."""
        return bool({self.base, self.head} & _BAD)


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What changed between two runs."""

    changes: tuple[Change, ...]  # the worst first; what is the same in both is left out
    requirements: tuple[tuple[int, int], tuple[int, int]]  # failed and asked, of base and of head
    differs: tuple[str, ...] = ()  # why the runs may not be comparable
    notes: tuple[str, ...] = ()
    whole: bool = True  # whether head came to its end

    def of(self, kind: Kind) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind is kind)

    @property
    def headline(self) -> str:
        """How many of each kind, in words."""
        always = (Kind.NEWLY_BROKEN, Kind.NEWLY_MENDED, Kind.STILL_FAILING)
        others = [kind for kind in Kind if kind not in always and self.of(kind)]
        return ", ".join(f"{len(self.of(kind)):,} {kind.value}" for kind in (*always, *others))

    @property
    def counted(self) -> str:
        """How many requirements were broken, before and now."""
        (before, asked_before), (now, asked) = self.requirements
        return (
            f"requirements broken: {before:,} of {asked_before:,} in base, "
            f"{now:,} of {asked:,} in head"
        )

    @property
    def is_broken(self) -> bool:
        return bool(self.of(Kind.NEWLY_BROKEN))

    @property
    def is_undecided(self) -> bool:
        """Whether the runs cannot tell that nothing is newly broken."""
        return bool(self.of(Kind.UNDECIDED)) or not self.whole


def examples(ones: Sequence[Change], most: int) -> tuple[Change, ...]:
    """Those that are told in full: all, or of too many first one for each server and clause."""
    if len(ones) <= most:
        return tuple(ones)
    firsts = {(one.server, one.clause): one for one in reversed(ones)}.values()
    ranked = sorted(ones, key=lambda one: one not in firsts)
    chosen = ranked[:most]
    return tuple(one for one in ones if one in chosen)


_GOOD = {Status.PASSED.value, Status.WARNED.value}
_BAD = {Status.FAILED.value, Status.UNUSABLE.value}
_UNASKED = {NOT_ASKED, Status.NOT_APPLICABLE.value}


def kind_of(base: str, head: str) -> Kind | None:
    """What became of a thing, by its status in both runs; None where there is nothing to tell."""
    if base in _BAD and head in _BAD:
        return Kind.STILL_FAILING
    if Status.UNDECIDED.value in (base, head):
        decided = head if base == Status.UNDECIDED.value else base
        was_lost = head == Status.UNDECIDED.value and base in _GOOD
        return Kind.UNDECIDED if decided in _BAD or was_lost else None
    if head in _BAD:
        return Kind.NEWLY_BROKEN if base in _GOOD else Kind.FIRST_ASKED
    if head in _UNASKED:
        return Kind.NO_LONGER_ASKED if base not in _UNASKED else None
    if base in _BAD:
        return Kind.NEWLY_MENDED
    if base == Status.PASSED.value and head == Status.WARNED.value:
        return Kind.NEWLY_WARNED
    return None


class Side(msgspec.Struct, frozen=True):
    """One of the two runs, with its findings."""

    run: Run
    found: tuple[Finding, ...]

    @property
    def servers(self) -> dict[str, ServerResult]:
        return {server.name: server for server in self.run.servers if not server.control}


def changes(
    base: Side, head: Side, *, pairs: Mapping[str, str], differs: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Changes:  # fmt: skip
    """What changed for each server of two runs.

    :param pairs: the servers of head, with the name that each has in base.
    :param differs: why the runs may not be comparable.
    """
    found = []
    for name, was_called in pairs.items():
        before = _of_server(base, was_called)
        now = _of_server(head, name)
        for key in {**now, **before}:
            change = _change(name, key, before.get(key), now.get(key), base.servers[was_called],
                             head.servers[name])  # fmt: skip
            if change is not None:
                found.append(change)
    order = list(Kind)
    found.sort(
        key=lambda one: (
            order.index(one.kind),
            not one.is_failure,
            not crashes.is_crash(one.id),
            one.level != Level.CTRL,
        )
    )
    return Changes(
        changes=tuple(found),
        requirements=(
            conclusion.failed_requirements(base.run),
            conclusion.failed_requirements(head.run),
        ),
        differs=tuple(differs),
        notes=tuple(notes),
        whole=not head.run.interrupted,
    )


def _of_server(side: Side, name: str) -> dict[tuple[str, str], Finding]:
    # "deliveries" stands where no message has a finding of its own.
    return {
        (one.suite, one.id): one
        for one in side.found
        if one.server == name and one.id != "deliveries"
    }


def _change(
    name: str,
    key: tuple[str, str],
    before: Finding | None,
    now: Finding | None,
    base: ServerResult,
    head: ServerResult,
) -> Change | None:
    was, is_ = _status(before, key, base), _status(now, key, head)
    kind = kind_of(was, is_)
    more = ""
    if kind is Kind.STILL_FAILING and before is not None and now is not None:
        more = _more(before, now, base)
        kind = Kind.NEWLY_BROKEN if more else kind
    if kind is None:
        return None
    shown = now if now is not None and is_ not in _UNASKED else before
    assert shown is not None, "a change has a finding in one of the runs"
    return Change(
        kind=kind,
        server=name,
        suite=key[0],
        id=key[1],
        title=shown.title,
        level=shown.level,
        clause=shown.clause,
        base=was,
        head=is_,
        message=f"{more}{shown.message}",
        reproducers=shown.reproducers or shown.by_hand,
    )


def _status(finding: Finding | None, key: tuple[str, str], server: ServerResult) -> str:
    """What a run says of a thing; some things have a finding only where they fail."""
    if finding is not None:
        # What was not started was not judged.
        could_not = finding.status is Status.UNUSABLE and server.unavailable is not None
        return Status.UNDECIDED.value if could_not else finding.status.value
    if server.unavailable is not None:
        return Status.UNDECIDED.value
    suite, id = key
    if id in ("server", crashes.NAMELESS):
        return Status.PASSED.value
    result = server.compliance.suites.get(suite)
    if result is None:
        return NOT_ASKED
    if id == "score":
        return Status.PASSED.value
    if id.endswith(CRASH):
        return _survived(id.removesuffix(CRASH), result)
    if id.endswith(CUT) and result.deliveries is not None:
        unstable = id.removesuffix(CUT) in result.deliveries.unstable
        return (Status.UNDECIDED if unstable else Status.PASSED).value
    return NOT_ASKED


def _survived(entry: str, result: SuiteResult) -> str:
    """Whether a server stayed alive when it was asked a case or a family."""
    verdict = result.cases.get(entry)
    if verdict is not None and verdict.word is Word.VOID:
        return Status.UNDECIDED.value
    asked = verdict is not None or entry in result.generated or entry in result.families
    return Status.PASSED.value if asked else NOT_ASKED


def _more(before: Finding, now: Finding, base: ServerResult) -> str:
    """That more requests of a generated family fail than before; empty where that is not certain:
    other requests were asked, or those that base could not judge may be the ones."""
    result = base.compliance.suites.get(before.suite)
    if result is None or before.requests < 2 or before.requests != now.requests:
        return ""
    unknown = _unknown(before.id, result)
    if unknown is None or now.failures <= before.failures + unknown:
        return ""
    return f"{now.failures:,} requests fail, {before.failures:,} before; "


_UNKNOWN = (Word.VOID, Word.UNSTABLE, Word.NOT_APPLICABLE)


def _unknown(id: str, result: SuiteResult) -> int | None:
    """How many requests of a family a run could not judge; None of what is no family."""
    if id in result.families:
        return result.families[id].void
    tally: Tally | None = result.generated.get(id)
    if tally is None:
        return None
    return sum(words.get(word, 0) for words in tally.words.values() for word in _UNKNOWN)
