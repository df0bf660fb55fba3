"""A check as plain text for a terminal: the verdict, what fails, what is open, the target."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from httpmark.harness.catalogue import expectation_words, loading
from httpmark.harness.gate import conclusion, crashes, verdict_sentences
from httpmark.harness.gate.broken_requirements import Group, Summary, summaries
from httpmark.harness.gate.findings import Finding
from httpmark.harness.gate.verdict_sentences import counted
from httpmark.harness.http.printable import terminal_line
from httpmark.harness.judging.score_text import score_text
from httpmark.harness.model.cases import Facts, Level
from httpmark.harness.model.run import Run
from httpmark.harness.report.target_facts import facts_told
from httpmark.harness.report.text_layout import wrapped

_DETAILED_MAX = 10  # requirements that are shown with an example; the others have a line each
_SMUGGLING_MAX = 5  # recommendations with a line each
_LABEL_WIDTH = 8
_INDENT = " " * 4


class Style(enum.StrEnum):
    """What a line is, so that a terminal can colour it. The words alone say the same."""

    PLAIN = "plain"
    TITLE = "title"
    BAD = "bad"
    GOOD = "good"
    DOUBT = "doubt"
    SOFT = "soft"


class Line(msgspec.Struct, frozen=True):
    """A line, and how its first characters look; the rest is plain."""

    text: str
    style: Style = Style.PLAIN
    styled: int | None = None  # how many characters; None: all


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A run, what its gate found, and what is known of its targets, by server."""

    run: Run
    found: tuple[Finding, ...]
    code: int
    facts: Mapping[str, Facts] = {}


def verdict_lines(judged: Judged, *, width: int = 80) -> list[Line]:
    """All that a check prints, but for where its report is."""
    run = judged.run
    lines = _sentences(judged, width)
    lines += _wrapped([f"Note: {note}" for note in run.notes], width, Style.SOFT)
    known = summaries(run, judged.found, loading.load())
    for one in known:
        lines += _failures(one, width)
    for one in known:
        lines += _counts(one, run, width)
    for name, facts in judged.facts.items():
        lines += _target(name if len(judged.facts) > 1 else "", facts, width)
    marks = [
        f"httpmark {run.harness_version}",
        f"run {run.id}",
        run.started,
        *(["quick"] if run.quick else []),
        *(["INTERRUPTED, partial"] if run.interrupted else []),
    ]
    lines += [Line(""), *_wrapped([" | ".join(marks)], width, Style.SOFT)]
    last = conclusion.last_line(judged.found, judged.code, interrupted=run.interrupted)
    return [*lines, *_wrapped([last], width, _of_code(judged.code))]


def _of_code(code: int) -> Style:
    return {0: Style.GOOD, 1: Style.BAD}.get(code, Style.DOUBT)


def _wrapped(
    texts: Sequence[str], width: int, style: Style = Style.PLAIN, *, indent: str = ""
) -> list[Line]:
    return [Line(line, style) for text in texts for line in wrapped(text, width, indent=indent)]


def _sentences(judged: Judged, width: int) -> list[Line]:
    """The verdict; its first sentence stands out."""
    told = judged.run.conclusion.sentences if judged.run.conclusion is not None else ()
    first, *rest = told or verdict_sentences.sentences(judged.run, judged.found, judged.code)
    lines = _wrapped([first], width, _of_code(judged.code))
    return lines + _wrapped(rest, width)


# --- what fails ---------------------------------------------------------------------------------


def section(group: Group) -> str:
    """The heading under which something that fails the gate stands."""
    if crashes.is_crash(group.id):
        return "The server dies or hangs"
    if not group.requirement:
        return "Also fails the gate"
    if group.smuggling:
        return "Broken, and can be used for request smuggling"
    if group.level is Level.CTRL:
        return "Broken: what is valid must be accepted"
    return "Broken: MUST"


def _failures(one: Summary, width: int) -> list[Line]:
    """What fails the gate, requirement by requirement, then what is only reported."""
    lines: list[Line] = []
    shown = [(section(group), group) for group in one.failing]
    heading = ""
    for at, (title, group) in enumerate(shown, 1):
        if title != heading:
            heading = title
            lines += [Line(""), Line(title, Style.TITLE)]
        detailed = at <= _DETAILED_MAX
        lines += list((_detailed if detailed else _brief)(f"{at:2}. ", group, width))
    if len(shown) > _DETAILED_MAX:
        lines += _wrapped(["The page shows each of them with its bytes."], width, Style.SOFT)
    lines += _listed(
        "Broken, as the baseline lists it", [group for group in one.broken if group.expected], width
    )
    unsafe = [group for group in one.missed if group.smuggling]
    lines += _listed(
        "Not followed, and can be used for request smuggling (does not fail the gate)",
        unsafe[:_SMUGGLING_MAX],
        width,
    )
    if len(unsafe) > _SMUGGLING_MAX:
        lines += _wrapped([f"and {len(unsafe) - _SMUGGLING_MAX:,} more"], width, indent="    ")
    return lines


def _listed(heading: str, groups: Sequence[Group], width: int) -> list[Line]:
    """Groups with a line each, under a heading if there are any."""
    if not groups:
        return []
    lines = [Line(""), *_wrapped([heading], width, Style.TITLE)]
    for group in groups:
        lines += _brief("  - ", group, width)
    return lines


def _brief(mark: str, group: Group, width: int) -> Iterator[Line]:
    """One requirement without its bytes."""
    example = f": {group.example.id}" if group.example is not None else ""
    yield from _hung(mark, f"{group.title} ({_where(group)}){example}", width)


def _where(group: Group) -> str:
    return ", ".join(filter(None, (group.level.value, group.clause)))


def _hung(mark: str, text: str, width: int, style: Style = Style.PLAIN) -> Iterator[Line]:
    """Text beside a mark; its further lines stand below its first."""
    for at, line in enumerate(wrapped(text, width - len(mark), indent="", hyphens=False)):
        lead = mark if not at else " " * len(mark)
        yield Line(f"{lead}{line.strip()}", style)


def _detailed(mark: str, group: Group, width: int) -> Iterator[Line]:
    """One requirement with an example: why it matters, what was wanted, what came, the line."""
    yield from _hung(mark, group.title, width, Style.BAD)
    example = group.example
    if example is None:
        yield Line(f"{_INDENT}{_where(group)}", Style.SOFT)
        return
    fails = f"; {counted(len(group.found), 'case')} and checks fail" * (len(group.found) > 1)
    yield from _hung(_INDENT, f"{_where(group)}{fails}", width, Style.SOFT)
    if group.why:
        yield from _labelled("why", group.why, width)
    title = "" if example.title in (example.id, group.title) else f": {example.title}"
    yield from _labelled("example", f"{example.id}{title}", width)
    yield from _seen(example, width)
    for line in example.reproducers[:1]:
        # Not wrapped: it is there to be copied.
        yield _label("again", line)
    told, *smaller = example.fewest.splitlines() or [""]
    if told:
        yield _label("smaller", f"{told.rstrip(':')}:")
        yield from (_label("", line) for line in smaller)
    else:
        yield from (_label("by hand", line) for line in example.by_hand)
    for at, line in enumerate(example.last_words):
        yield _label("" if at else "server", line)


def _seen(example: Finding, width: int) -> Iterator[Line]:
    """What was wanted and what came, whole; the next request's answer is told apart."""
    if not example.actual:
        yield from _labelled("seen", example.message, width)
        return
    if example.requests > 1:
        yield from _labelled(
            "how many", f"{example.failures:,} of {counted(example.requests, 'request')}", width
        )
        yield from _labelled("such as", example.witness, width)
    if example.sent:
        yield from _labelled("sent", example.sent, width)
    if example.expected:
        yield from _labelled("wanted", expectation_words.wanted(example.expected), width)
    came, then = expectation_words.came_apart(example.actual)
    yield from _labelled("came", came, width, Style.BAD)
    if then:
        yield from _labelled("then", then, width)
    if example.excuse is not None and example.excuse.told:
        yield from _labelled("baseline", example.excuse.told, width)


def _label(label: str, text: str, style: Style = Style.SOFT) -> Line:
    lead = f"{_INDENT}{label:{_LABEL_WIDTH}}"
    return Line(f"{lead} {terminal_line(text)}", style, len(lead))


def _labelled(label: str, text: str, width: int, style: Style = Style.SOFT) -> Iterator[Line]:
    lead = f"{_INDENT}{label:{_LABEL_WIDTH}} "
    for at, line in enumerate(wrapped(text, width - len(lead), indent="", hyphens=False)):
        start = lead if not at else " " * len(lead)
        yield Line(f"{start}{line.strip()}", style, len(lead) if style is Style.SOFT else None)


# --- what is counted ----------------------------------------------------------------------------


def _counts(one: Summary, run: Run, width: int) -> list[Line]:
    """Requirements by verdict, what is open, and the scores, a line each."""
    told = []
    if one.asked or one.not_applicable:
        permitted = f" ({one.permitted:,} of these as permitted)" * bool(one.permitted)
        told.append(
            f"Requirements: {one.met:,} met{permitted}, {one.broken_count:,} broken, "
            f"{one.undecided_count:,} undecided, {len(one.not_applicable):,} not applicable."
        )
    told += filter(None, (verdict_sentences.undecided(one), verdict_sentences.not_applicable(one)))
    told += scores(run, one.server)
    return [Line(""), *_wrapped(told, width)] if told else []


def scores(run: Run, server: str) -> Iterator[str]:
    """The score of each suite, in one line; a suite without one says why, if it can."""
    suites = [
        (name, suite)
        for entry in run.servers
        if entry.name == server
        for name, suite in entry.compliance.suites.items()
    ]
    known = [
        f"{name} {score_text(suite.score_percent)} %"
        for name, suite in suites
        if suite.score_percent is not None
    ]
    if known:
        yield f"Score: {', '.join(known)}."
    for name, suite in suites:
        if suite.score_percent is None and suite.reason:
            yield f"No score of {name}: {suite.reason.removeprefix('not scored: ')}."


def _target(name: str, facts: Facts, width: int) -> list[Line]:
    lines = [Line(""), Line(terminal_line(f"The target {name}".strip()), Style.TITLE)]
    for label, text in facts_told(facts):
        lines += _labelled(label, text, width)
    return lines
