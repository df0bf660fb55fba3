"""Findings to a conclusion: the result of the gate, in words and as an exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.gate import verdict_sentences
from httpmark.harness.gate.broken_requirements import summaries
from httpmark.harness.gate.findings import WORST_FIRST, Finding, Gate, Status, tally
from httpmark.harness.model.cases import Level
from httpmark.harness.model.run import Conclusion, Run

# Of the MUSTs that apply, the share that may be undecided where --inconclusive is warn.
_UNDECIDED_MAX = 1 / 20

PASSED, FAILED, UNUSABLE, UNDECIDED, NOTHING = 0, 1, 3, 4, 5


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    """Findings, the worst first."""
    return sorted(found, key=lambda finding: WORST_FIRST.index(finding.status))


def headline(found: Sequence[Finding], *, interrupted: bool) -> str:
    """The verdict in a word or three."""
    if interrupted:
        return "interrupted, gates not evaluated"
    counts = tally(found)
    for word, line in (
        (Status.UNUSABLE, "could not be judged"),
        (Status.FAILED, "failed"),
        (Status.UNDECIDED, "inconclusive"),
    ):
        if word in counts:
            return line
    return "passed" if set(counts) - {Status.NOT_APPLICABLE} else "nothing selected"


def failed_requirements(run: Run) -> tuple[int, int]:
    """How many requirements are broken, of how many that were asked: the figures of the verdict."""
    known = summaries(run, (), loading.load())
    return sum(one.broken_count for one in known), sum(one.asked for one in known)


def conclusion(run: Run, found: Sequence[Finding], code: int) -> Conclusion:
    """The verdict in words: requirements first, then the cases that show them."""
    said = verdict_sentences.sentences(run, found, code)
    return Conclusion(
        exit_code=code,
        headline=said[0],
        counts=counts(found),
        sentences=said,
        expected=tuple(one.id for one in found if one.status is Status.EXPECTED),
    )


def as_concluded(found: Iterable[Finding], told: Conclusion) -> tuple[Finding, ...]:
    """Findings of a stored run, as the baseline of its gate let them stand."""
    return tuple(
        msgspec.structs.replace(one, status=Status.EXPECTED)
        if one.status is Status.FAILED and one.id in told.expected
        else one
        for one in found
    )


def counts(found: Sequence[Finding]) -> str:
    """How many cases and checks there are of each status."""
    told = ", ".join(f"{number:,} {one.value}" for one, number in tally(found).items())
    return f"cases and checks: {told}" if told else "nothing was judged"


def last_line(found: Sequence[Finding], code: int, *, interrupted: bool) -> str:
    """The result of the gate in one line, for people and for scripts that look for it."""
    return f"GATE {headline(found, interrupted=interrupted)}, exit code {code}; {counts(found)}"


def exit_code(
    run: Run, found: Sequence[Finding], *, gate: Gate | None = None, signal: int = 2
) -> int:
    """The contract's exit code of a run and its findings.

    130 or 143 where it was interrupted (``signal`` 2 or 15): partial results gate nothing. Then 5
    where nothing was judged, 3 where a server or its controls made judging impossible, 1 for a
    failed gate, 4 for an undecided one (where ``inconclusive`` is ``fail``; where it is ``warn``,
    if a control or more than one MUST in twenty is undecided), else 0.
    """
    gate = gate or Gate()
    if run.interrupted:
        return 128 + signal
    there = set(tally(found)) - {Status.NOT_APPLICABLE}
    if not there:
        return NOTHING
    if Status.UNUSABLE in there:
        return UNUSABLE
    if Status.FAILED in there:
        return FAILED
    if Status.UNDECIDED in there and gate.inconclusive == "fail":
        return UNDECIDED
    if gate.inconclusive == "warn" and too_much_is_undecided(found):
        return UNDECIDED
    return PASSED


def too_much_is_undecided(found: Sequence[Finding]) -> bool:
    """Whether a control or more than one MUST in twenty of those that apply is undecided."""
    asked = [one for one in found if one.status is not Status.NOT_APPLICABLE]
    undecided = [one for one in asked if one.status is Status.UNDECIDED]
    musts = sum(one.level is Level.MUST for one in asked)
    return any(one.level is Level.CTRL for one in undecided) or (
        sum(one.level is Level.MUST for one in undecided) > _UNDECIDED_MAX * musts
    )
