"""What front ends made of the messages: by rule for a terminal, by message for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from httpmark.harness.http.printable import escaped, escaped_lines, terminal_line
from httpmark.harness.model.cases import Level
from httpmark.harness.model.forwarding import FrontEnd, Heard, MessageCount, Rule, Survey
from httpmark.harness.model.run import Run
from httpmark.harness.report import text_layout

_COLUMN_MIN = 8
_FATE_COLUMNS = 11
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


# --- of a run -------------------------------------------------------------------------------------


def of_run(run: Run) -> Survey | None:
    """What a run found of its servers as reverse proxies; None where none was asked."""
    if run.forwarding is None:
        return None
    return Survey(
        date=run.started[:10],
        harness_version=run.harness_version,
        catalogue_version=run.catalogue_version,
        origin=run.forwarding.origin,
        rules=run.forwarding.rules,
        left_out=run.forwarding.left_out,
        front_ends=tuple(one.forwarding for one in run.servers if one.forwarding is not None),
    )


def not_asked(run: Run) -> list[tuple[str, str]]:
    """The servers of a run of which nothing is known as reverse proxies, and why."""
    return [
        (one.name, one.forwarding_reason)
        for one in run.servers
        if one.forwarding_reason is not None
    ]


def run_lines(run: Run, width: int) -> list[str]:
    """The front ends of a run in plain text: by rule, and by message where a MUST is broken."""
    survey, reasons = of_run(run), not_asked(run)
    found = usable(survey) if survey is not None else []
    if not (found or reasons):
        return []
    lines = ["", "FORWARDING: what reached the origin behind each front end"]
    if survey is not None and found:
        lines += ["The columns count the cases that break a rule; a - is a rule that was kept."]
        lines += _table(survey, found, width)
        lines += ["", "MESSAGES of which a MUST is broken, marked *"]
        columns = [(one.name, max(_FATE_COLUMNS, len(one.name))) for one in found]
        table = text_layout.Table(width, *columns)
        lines.append(table.head("message"))
        lines += [
            table.line(
                one.family,
                [
                    fate.replace(" forwarded", "") + ("*" if breaks else "")
                    for fate, breaks in zip(one.fates, one.breaks_must, strict=True)
                ],
            )
            for one in messages(survey)
            if any(one.breaks_must)
        ]
        lines += text_layout.wrapped(
            "Via is left out here: without it, each message breaks a MUST.", width, indent=""
        )
    return lines + text_layout.grouped(reasons, width)


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


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message, or a family of generated ones, at all front ends that could be asked."""

    family: str
    fates: tuple[str, ...]  # by front end
    broken: tuple[tuple[Rule, ...], ...]  # by front end

    @property
    def breaks_must(self) -> tuple[bool, ...]:
        """Whether a MUST is broken, by front end."""
        return tuple(any(rule.level is Level.MUST for rule in rules) for rules in self.broken)


def messages(survey: Survey) -> list[Message]:
    """The messages that front ends treat differently, or of which a rule is broken; without Via,
    which is broken with every message or with none."""
    found = usable(survey)
    by_family = {one.name: {count.family: count for count in one.messages} for one in found}
    families = dict.fromkeys(count.family for one in found for count in one.messages)
    rules = {rule.id: rule for rule in survey.rules}
    made = []
    for family in families:
        counts = [by_family[one.name].get(family) for one in found]
        broken = tuple(_broken(count, rules) for count in counts)
        if any(broken) or len(set(map(_fate, counts))) > 1:
            fates = tuple(map(_told_fate, counts))
            made.append(Message(family=family, fates=fates, broken=broken))
    return made


def _messages(survey: Survey) -> Iterator[str]:
    found = usable(survey)
    yield "## By message"
    yield ""
    yield (
        "Only messages that the front ends treat differently, or of which a rule is broken. A "
        "family of generated cases is one row. Via is left out here."
    )
    yield ""
    yield f"| message | {' | '.join(_cell(one.title) for one in found)} |"
    yield f"|---|{'---|' * len(found)}"
    for one in messages(survey):
        cells = [
            "; ".join([fate, *map(_marked, rules)])
            for fate, rules in zip(one.fates, one.broken, strict=True)
        ]
        yield f"| `{one.family}` | {' | '.join(cells)} |"
    yield ""


def _marked(rule: Rule) -> str:
    return f"**{rule.id}**" if rule.level is Level.MUST else rule.id


def _broken(count: MessageCount | None, rules: dict[str, Rule]) -> tuple[Rule, ...]:
    """The rules that a message breaks."""
    return tuple(
        rules[name]
        for name in (count.rules if count is not None else ())
        if rules[name].level is not Level.INFO and name not in _OF_EVERY_MESSAGE
    )


def _fate(count: MessageCount | None) -> str:
    if count is None:
        return "not asked"
    if count.forwarded in (0, count.asked):
        return "forwarded" if count.forwarded else "refused"
    return "some"


def _told_fate(count: MessageCount | None) -> str:
    fate = _fate(count)
    if count is not None and fate == "some":
        return f"{count.forwarded} of {count.asked} forwarded"
    return fate


def _cell(text: str) -> str:
    return terminal_line(text).replace("|", "\\|")
