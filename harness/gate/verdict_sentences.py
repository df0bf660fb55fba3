"""The verdict in sentences that a person would quote: the one place that words it.

Terminal, page, Markdown summary and GitHub's output begin with these sentences.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Sequence

from httpmark.harness.catalogue import loading, undeclared
from httpmark.harness.gate import crashes
from httpmark.harness.gate.broken_requirements import Group, Open, Summary, summaries
from httpmark.harness.gate.findings import Finding, Status, tally
from httpmark.harness.judging.score_text import score_text
from httpmark.harness.model.run import Run, ServerResult

_NEED = re.compile(r"[a-z][\w.|-]*")  # a capability, limit or timeout, or a case to be accepted
_NEEDS_MAX = 8
_NAMED_MAX = 3  # requirements of one sentence that are named
_ADVICE = "Run the check again while the machine does nothing else; what stays undecided is listed."
_UNDECIDED = 4


def sentences(run: Run, found: Sequence[Finding], code: int) -> tuple[str, ...]:
    """What a gate makes of a run. The first sentence is the verdict.

    :param code: the exit code of the gate.
    """
    told: list[str] = ["The run was interrupted: the gate was not evaluated."] * run.interrupted
    known = summaries(run, found, loading.load())
    servers = {server.name: server for server in run.servers}
    for one in known:
        own = [*_crashes(servers.get(one.server)), *_of_server(one, code)]
        told += [f"{one.title}: {own[0]}", *own[1:]] if len(known) > 1 else own
    return tuple(told) or ("Nothing was judged.",)


def _crashes(server: ServerResult | None) -> list[str]:
    """Of what the server died or hung; this comes before anything else."""
    if server is None or not server.crashes:
        return []
    told = crashes.of_server(server)
    return [f"{told[0].upper()}{told[1:]}."]


def _of_server(one: Summary, code: int) -> list[str]:
    unusable = dict.fromkeys(
        finding.message for finding in one.found if finding.status is Status.UNUSABLE
    )
    if unusable:
        return [
            f"Could not be judged: {_ended(why.removeprefix('not scored: '))}" for why in unusable
        ]
    verdict, others = _requirements(one), [] if one.broken_untold else _others(one)
    if one.broken_count:
        told = [*verdict, *_smuggling(one.broken, one.broken_count), *_excused(one), *others]
    else:
        told = [*others, *verdict, *_excused(one)]
    if one.malformed:
        percent = score_text(100 * one.detected / one.malformed)
        told.append(f"Detects {percent} % of {counted(one.malformed, 'malformed request')}.")
    if not told:
        told += _checks(one)
    told += _recommendations(one)
    told += _not_asked(one)
    return told + [_ADVICE] * (code == _UNDECIDED)


def _requirements(one: Summary) -> list[str]:
    """How many requirements are broken, of how many that were asked."""
    undecided = one.undecided_count
    doubt = f" {undecided:,} {_are(undecided)} undecided." if undecided else ""
    if one.broken_count:
        return [f"Breaks {one.broken_count:,} of {counted(one.asked, 'requirement')}.{doubt}"]
    if undecided:
        return [f"Breaks none of {counted(one.asked, 'requirement')}.{doubt}"]
    if one.met:
        return [f"Meets {'the' if one.met == 1 else 'all'} {counted(one.met, 'requirement')}."]
    if one.not_applicable:
        return [f"None of {counted(len(one.not_applicable), 'requirement')} applies."]
    return []


def _smuggling(groups: Iterable[Group], whole: int) -> list[str]:
    """Which of so many can be used for request smuggling."""
    titles = [f'"{group.title}"' for group in groups if group.smuggling]
    number = len(titles)
    if not titles:
        return []
    who = f"{number:,} of them"
    if number == whole:
        who = "It" if whole == 1 else f"All {whole:,}"
    return [f"{who} can be used for request smuggling: {listed(titles)}."]


def _excused(one: Summary) -> list[str]:
    """What the baseline makes of it."""
    expected = sum(group.expected for group in one.broken)
    gone = sum(
        finding.excuse is not None and finding.excuse.state == "absent" for finding in one.found
    )
    told = []
    if expected and expected == one.broken_count:
        told.append(f"The baseline lists {'it' if expected == 1 else f'all {expected:,}'}.")
    elif expected:
        told.append(f"The baseline lists {expected:,} of them.")
    if gone:
        told.append(
            f"The baseline lists {counted(gone, 'failure')} that {_are(gone)} gone: remove "
            f"{'it' if gone == 1 else 'them'}, or run check with --update."
        )
    return told


def _others(one: Summary) -> list[str]:
    """What fails the gate besides requirements."""
    told = []
    others = [group for group in one.others if not crashes.is_crash(group.id)]
    for group in others[:_NAMED_MAX]:
        first, number = group.found[0], len(group.found)
        often = f" ({number:,} times)" if number > 1 else ""
        # What a case shows is told below; of a score, and the like, there is nothing but figures.
        said = f"{group.title}{often}" if first.actual or number > 1 else first.message
        told.append(f"Fails the gate: {said}.")
    if (more := len(others) - _NAMED_MAX) > 0:
        told.append(f"Fails the gate for {counted(more, 'more reason')}.")
    return told


def _checks(one: Summary) -> list[str]:
    """What is no requirement: the figures of a comparison, for example."""
    counts = tally(one.found)
    number = sum(n for status, n in counts.items() if status is not Status.NOT_APPLICABLE)
    if not number:
        return ["Nothing was judged."]
    if undecided := counts.get(Status.UNDECIDED, 0):
        return [f"{undecided:,} of {counted(number, 'check')} {_are(undecided)} undecided."]
    return [f"Passes {'the' if number == 1 else 'all'} {counted(number, 'check')}."]


def _not_asked(one: Summary) -> list[str]:
    """What was not asked because nothing is known that takes POST, and what to add."""
    titles = [f'"{row.requirement.title}"' for row in one.not_applicable if _lacks_post(row)]
    if not titles:
        return []
    whole = counted(len(titles), "requirement")
    return [
        f"Nothing that was asked takes POST, so {whole} {'was' if len(titles) == 1 else 'were'} "
        f"not asked: {listed(titles)}. Name a path that takes POST with --post-path PATH."
    ]


def _lacks_post(row: Open) -> bool:
    return row.why == undeclared.POST_TAKEN


def _recommendations(one: Summary) -> list[str]:
    if not one.missed:
        return []
    whole = counted(one.recommended, "recommendation")
    number = len(one.missed)
    gate = "this does" if number == 1 else "these do"
    told = [f"Does not follow {number:,} of {whole}; {gate} not fail the gate."]
    return told + _smuggling(one.missed, number)


def undecided(one: Summary) -> str:
    """The requirements that are undecided, in one line; empty if none is."""
    if not one.undecided:
        return ""
    named = [f'"{row.requirement.title}" ({row.why})' for row in one.undecided]
    return f"Undecided: {counted(len(named), 'requirement')}: {listed(named)}."


def not_applicable(one: Summary) -> str:
    """The requirements that do not apply, and what they need, in one line; empty if all apply."""
    if not one.not_applicable:
        return ""
    needs = collections.Counter(
        row.why if _NEED.fullmatch(row.why) else "" for row in one.not_applicable
    )
    needs[undeclared.POST_TAKEN] = sum(map(_lacks_post, one.not_applicable))
    others = needs.pop("", 0) - needs[undeclared.POST_TAKEN]
    told = [f"{need} ({number:,})" for need, number in needs.most_common() if number]
    why = f" They need {listed(told, most=_NEEDS_MAX)}." if told else ""
    if others:
        more = " more" if told else ""
        why += f" {others:,}{more} could not be asked, given what it answered."
    whole = counted(len(one.not_applicable), "requirement")
    return f"Not applicable: {whole}.{why}"


# --- words --------------------------------------------------------------------------------------


def counted(number: int, word: str) -> str:
    """A number of things: ``1 requirement``, ``2,000 requirements``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def listed(words: Sequence[str], *, most: int = _NAMED_MAX) -> str:
    """Things as one reads them: the first few, then how many more."""
    more = len(words) - most
    shown = [*words[:most], *([f"{more:,} more"] if more > 0 else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
