"""What front ends made of the messages: by rule for a terminal, by message for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from httpmark.harness.http.printable import escaped, escaped_lines, terminal_line
from httpmark.harness.model.cases import Level
from httpmark.harness.model.forwarding import FrontEnd, Heard, MessageCount, Rule, Survey
from httpmark.harness.report import text_layout

_COLUMN_MIN = 8
_SHOWN_MAX = 300
# A gateway without Via breaks a MUST with each message: its row says so once.
_OF_EVERY_MESSAGE = frozenset(("via",))
_WORDS = {Level.MUST: "MUST", Level.SHOULD: "SHOULD", Level.INFO: "note"}


def usable(survey: Survey) -> list[FrontEnd]:
    return [one for one in survey.front_ends if one.unavailable is None]


def lines(survey: Survey, width: int) -> Iterator[str]:
    """The table by rule, and for each rule and front end the case that shows it."""
    found = usable(survey)
    if found:
        yield f"What reached the origin ({survey.origin}); the columns count cases."
        yield ""
        yield from _table(survey, found, width)
        for rule in survey.rules:
            yield from _examples(rule, found, width)
        yield ""
        yield from _asked(found, width)
    for one in survey.front_ends:
        if one.unavailable is not None:
            yield from text_layout.wrapped(
                f"{one.name} is unavailable, because {one.unavailable}", width, indent=""
            )
    if survey.left_out:
        told = "; ".join(f"{one.cases:,} {one.why}" for one in survey.left_out)
        yield from text_layout.wrapped(f"Cases left out: {told}.", width, indent="")


def _table(survey: Survey, found: Sequence[FrontEnd], width: int) -> Iterator[str]:
    columns = [(one.name, max(_COLUMN_MIN, len(one.name))) for one in found]
    table = text_layout.Table(width, ("level", -6), *columns)
    yield table.head("rule")
    for rule in survey.rules:
        cells = [_cases(one, rule.id) for one in found]
        if any(cells):
            shown = [f"{count:,}" if count else "-" for count in cells]
            yield table.line(rule.id, [_WORDS[rule.level], *shown])


def _cases(one: FrontEnd, rule: str) -> int:
    return next((len(count.cases) for count in one.rules if count.rule == rule), 0)


def _examples(rule: Rule, found: Sequence[FrontEnd], width: int) -> Iterator[str]:
    breaking = [(one, count) for one in found for count in one.rules if count.rule == rule.id]
    if not breaking:
        return
    yield ""
    title = f"{rule.id}: {rule.title} ({_WORDS[rule.level]}, {rule.clause})"
    yield from text_layout.wrapped(title, width, indent="")
    yield from text_layout.wrapped(rule.why, width)
    for one, count in breaking:
        yield from text_layout.wrapped(
            f"{one.name}: {count.example}: {count.what}", width, hyphens=False
        )
        if rule.level is not Level.INFO:
            yield f"    came  {_short(count.shown)}"


def _short(octets: bytes) -> str:
    text = escaped(octets)
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 4] + " ..."


def _asked(found: Sequence[FrontEnd], width: int) -> Iterator[str]:
    for one in found:
        lost = f"; {one.not_repeated} broke a rule once only" if one.not_repeated else ""
        yield from text_layout.wrapped(
            f"{one.name} {one.version or ''}: {one.asked:,} cases asked in {one.seconds:.0f} s, "
            f"{one.forwarded:,} forwarded{lost}", width, indent="",
        )  # fmt: skip


def both_sides(name: str, one: Heard) -> Iterator[str]:
    """The bytes of one case on both sides of a proxy, and what is said of them."""
    passage = one.passage
    yield f"{passage.case} through {name}"
    yield "the client sent:"
    yield escaped_lines(passage.sent) or "(nothing)"
    for upstream in passage.upstreams:
        yield f"reached the origin, on connection {upstream.number}:"
        yield escaped_lines(upstream.to_origin)
        yield "the origin answered:"
        yield escaped_lines(upstream.from_origin) or "(nothing)"
    if not passage.upstreams:
        yield "nothing reached the origin"
    yield "the client received:"
    yield escaped_lines(passage.received) or "(nothing)"
    for remark in one.remarks:
        again = ", and again" if remark.rule in one.repeated else ""
        yield f"{remark.rule}: {terminal_line(remark.what)}{again}"
    if not one.remarks:
        yield "nothing is to be said of it"


# --- the page -------------------------------------------------------------------------------------


def page(survey: Survey) -> str:
    """The survey as Markdown."""
    return "\n".join([*_intro(survey), *_rules(survey), *_messages(survey)]) + "\n"


def _intro(survey: Survey) -> Iterator[str]:
    yield "# What reaches the origin"
    yield ""
    yield (
        f"Survey of {survey.date}, httpmark {survey.harness_version}, catalogue "
        f"{survey.catalogue_version}. Behind each front end stood {survey.origin}."
    )
    yield ""
    yield "| front end | version | asked | forwarded |"
    yield "|---|---|--:|--:|"
    for one in survey.front_ends:
        if one.unavailable is None:
            yield (
                f"| {_cell(one.title)} | {_cell(one.version or '')} | {one.asked:,} "
                f"| {one.forwarded:,} |"
            )
    yield ""
    if absent := [one for one in survey.front_ends if one.unavailable is not None]:
        told = "; ".join(f"{one.title} ({one.unavailable})" for one in absent)
        yield f"Not asked: {_cell(told)}."
        yield ""
    if survey.left_out:
        told = "; ".join(f"{one.cases:,} {one.why}" for one in survey.left_out)
        yield f"Cases left out: {told}."
        yield ""


def _rules(survey: Survey) -> Iterator[str]:
    found = usable(survey)
    yield "## By rule"
    yield ""
    yield "The columns count cases. A `-` is a rule that was kept."
    yield ""
    yield f"| rule | level | clause | {' | '.join(_cell(one.title) for one in found)} |"
    yield f"|---|---|---|{'--:|' * len(found)}"
    for rule in survey.rules:
        cells = [_cases(one, rule.id) for one in found]
        if any(cells):
            shown = " | ".join(f"{count:,}" if count else "-" for count in cells)
            yield f"| {_cell(rule.title)} | {_WORDS[rule.level]} | {rule.clause} | {shown} |"
    yield ""


def _messages(survey: Survey) -> Iterator[str]:
    found = usable(survey)
    by_family = {one.name: {count.family: count for count in one.messages} for one in found}
    families = dict.fromkeys(count.family for one in found for count in one.messages)
    levels = {rule.id: rule.level for rule in survey.rules}
    yield "## By message"
    yield ""
    yield (
        "Only messages that the front ends treat differently, or of which a rule is broken. A "
        "family of generated cases is one row. Via is left out here."
    )
    yield ""
    yield f"| message | {' | '.join(_cell(one.title) for one in found)} |"
    yield f"|---|{'---|' * len(found)}"
    for family in families:
        counts = [by_family[one.name].get(family) for one in found]
        cells = [_message_cell(count, levels) for count in counts]
        is_broken = any(_broken(count, levels) for count in counts)
        if is_broken or len(set(map(_fate, counts))) > 1:
            yield f"| `{family}` | {' | '.join(cells)} |"
    yield ""


def _broken(count: MessageCount | None, levels: dict[str, Level]) -> list[str]:
    """The rules that a message breaks, as words with their counts."""
    return [
        f"**{name}**" if levels[name] is Level.MUST else name
        for name in (count.rules if count is not None else ())
        if levels[name] is not Level.INFO and name not in _OF_EVERY_MESSAGE
    ]


def _fate(count: MessageCount | None) -> str:
    if count is None:
        return "not asked"
    if count.forwarded in (0, count.asked):
        return "forwarded" if count.forwarded else "refused"
    return "some"


def _message_cell(count: MessageCount | None, levels: dict[str, Level]) -> str:
    fate = _fate(count)
    if count is not None and fate == "some":
        fate = f"{count.forwarded} of {count.asked} forwarded"
    return "; ".join([fate, *_broken(count, levels)])


def _cell(text: str) -> str:
    return terminal_line(text).replace("|", "\\|")
