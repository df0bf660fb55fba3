"""Findings to a conclusion: the result of the gate, in words and as an exit code."""

from __future__ import annotations

import collections
import textwrap
from collections.abc import Iterable, Sequence

from httpmark.harness.gate.findings import WORST_FIRST, Finding, Gate, Status, tally
from httpmark.harness.http.printable import terminal_line
from httpmark.harness.model.cases import Level
from httpmark.harness.model.run import Conclusion, Run

_SPOKEN_MAX = 12  # findings of one kind on a terminal
# Of the MUSTs that apply, the share that may be undecided where --inconclusive is warn.
_UNDECIDED_MAX = 1 / 20
_ADVICE = "run the check again while the machine does nothing else; what stays undecided is listed"

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
    """How many MUSTs and controls failed, of how many that were checked."""
    counts = [
        suite.must
        for server in run.servers
        if not server.control
        for suite in server.compliance.suites.values()
        if suite.must is not None
    ]
    asked = ("passed", "failed", "warned", "void", "unstable")
    return (
        sum(must.get("failed", 0) for must in counts),
        sum(must.get(word, 0) for must in counts for word in asked),
    )


def conclusion(run: Run, found: Sequence[Finding], code: int) -> Conclusion:
    """The verdict in words: requirements first, then the cases that show them."""
    word = headline(found, interrupted=run.interrupted)
    failed, asked = failed_requirements(run)
    counts = tally(found)
    gating = counts.get(Status.FAILED, 0)
    why = ""
    undecided = sum(one.status is Status.UNDECIDED and one.level.is_binding for one in found)
    if code == UNDECIDED:
        why = f": {undecided:,} cases and checks of MUSTs and controls are undecided; {_ADVICE}"
    elif failed:
        why = f": {failed:,} of {asked:,} MUSTs and controls failed"
    elif code == FAILED:
        why = f": {gating:,} {'finding fails' if gating == 1 else 'findings fail'} the gate"
    elif asked and code == PASSED:
        why = f": {asked:,} MUSTs and controls were checked"
    if Status.UNUSABLE in counts:
        why = f": {next(one.message for one in found if one.status is Status.UNUSABLE)}"
    told = ", ".join(f"{number:,} {one.value}" for one, number in counts.items())
    return Conclusion(
        exit_code=code,
        headline=f"{word.upper() if code == FAILED else word.capitalize()}{why} (exit code {code})",
        counts=f"cases and checks: {told}" if told else "nothing was judged",
    )


def spoken(
    found: Sequence[Finding],
    code: int,
    *,
    interrupted: bool,
    requirements: tuple[int, int] = (0, 0),
    width: int = 80,
) -> list[str]:
    """The verdict for a terminal: what it is, and the findings that have something to say.

    :param requirements: :func:`failed_requirements` of the run.
    """
    counts = ", ".join(f"{number:,} {word.value}" for word, number in tally(found).items())
    failed, asked = requirements
    if asked and counts:
        counts = f"{failed:,} of {asked:,} MUSTs and controls failed; cases and checks: {counts}"
    head = f"GATE {headline(found, interrupted=interrupted)}, exit code {code}"
    if code == UNDECIDED:
        head += f": {_ADVICE}"
    lines = textwrap.wrap(
        terminal_line(f"{head}: {counts}" if counts else head), width, subsequent_indent="  "
    )
    told: collections.Counter[Status] = collections.Counter()
    for finding in worst_first(found):
        status = finding.status
        if status in (Status.PASSED, Status.NOT_APPLICABLE) and not _surprises(finding):
            continue
        told[status] += 1
        if told[status] > _SPOKEN_MAX:
            continue
        level = f"{finding.level.value}{f', {finding.clause}' if finding.clause else ''}"
        title = f": {finding.title}" if finding.title != finding.id else ""
        for text, indent, most in (
            (f"{status.value}: {finding.id} ({level}){title}", "  ", 2),
            (finding.message, "    ", 3),
        ):
            lines += textwrap.wrap(
                terminal_line(text),
                width,
                initial_indent=indent,
                subsequent_indent="    ",
                max_lines=most,
            )
        if status is Status.FAILED and finding.reproducers:
            # Not wrapped: they are there to be copied.
            lines.append(f"    {finding.reproducers[0]}")
            lines += [f"    {line}" for line in finding.fewest.splitlines()]
    for status, number in told.items():
        if number > _SPOKEN_MAX:
            lines.append(f"  and {number - _SPOKEN_MAX:,} more {status.value}: see the report")
    return lines


def _surprises(finding: Finding) -> bool:
    return finding.excuse is not None and finding.excuse.state == "absent"


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
