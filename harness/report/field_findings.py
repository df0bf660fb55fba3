"""What a run over many servers found: by server, what each breaks; by rule, who breaks it.

Only requirements count: MUSTs and positive controls. A server with the HTTP parser of another one
is named with it, so that one parser's fault is not counted as many.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from httpmark.harness.gate.broken_requirements import Group, Summary
from httpmark.harness.http.printable import terminal_line
from httpmark.harness.judging.message_readings import Split
from httpmark.harness.model.run import Run, ServerResult

WORST = 3  # findings named for each server
BEGIN = "<!-- field: made by httpmark findings -->"
END = "<!-- field: end -->"
_CAME_CHARACTERS_MAX = 90


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """One broken requirement of a server, by the case that shows it."""

    requirement: str
    title: str
    clause: str
    case: str  # for httpmark replay and explain
    came: str
    smuggling: bool  # it can be used for request smuggling


class FieldServer(msgspec.Struct, frozen=True, kw_only=True):
    """One server of the field."""

    name: str
    title: str
    version: str
    language: str
    engine: str  # the server whose HTTP parser it shares, or empty
    asked: int = 0
    met: int = 0
    permitted: int = 0
    undecided: int = 0
    crashes: int = 0
    broken: tuple[Example, ...] = ()  # the worst first
    doubtful: tuple[Example, ...] = ()  # read, and not surely a fault of the server
    unavailable: str = ""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement that some server breaks."""

    requirement: str
    title: str
    clause: str
    smuggling: bool
    servers: tuple[str, ...]  # titles


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of a run over the field; the page is made of it."""

    date: str  # UTC, of the run's start
    harness_version: str
    catalogue_version: str
    suites: tuple[str, ...]
    quick: bool
    servers: tuple[FieldServer, ...]
    rules: tuple[Rule, ...]
    splits: tuple[Split, ...] = ()  # messages that servers read in two ways; names are titles


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the failures of one requirement were found to be when they were read."""

    requirement: str
    why: str
    came: tuple[str, ...] = ()  # kinds of answer that break the clause
    doubtful: tuple[str, ...] = ()  # servers whose failure the clause does not surely bear out
    unread: tuple[str, ...] = ()  # kinds of answer that nobody has read yet


class Readings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of readings beside a page."""

    reading: tuple[Reading, ...]


def judged(run: Run) -> list[str]:
    """The servers of a run that were judged, by name, and are no control."""
    return [one.name for one in run.servers if not one.control and not one.unavailable]


def together(runs: Sequence[Run]) -> tuple[Run, dict[str, int]]:
    """The servers of several runs of the same suites as one run, and by name which run each is of.

    A server of a later run is added, or takes the place of the one of its name, unless it could not
    be had then.
    """
    first = runs[0]
    servers = {one.name: one for one in first.servers}
    owner = dict.fromkeys(servers, 0)
    for number, run in enumerate(runs[1:], 1):
        for one in run.servers:
            if one.name not in servers or not one.unavailable:
                servers[one.name], owner[one.name] = one, number
    return msgspec.structs.replace(first, servers=tuple(servers.values())), owner


def field(run: Run, summaries: Iterable[Summary], splits: Iterable[Split] = ()) -> Field:
    """What a run found, the servers that break least first."""
    by_name = {one.name: one for one in run.servers if not one.control}
    told = {one.server: one for one in summaries}
    servers = [_server(one, told.get(name)) for name, one in by_name.items()]
    return Field(
        date=run.started[:10],
        harness_version=run.harness_version,
        catalogue_version=run.catalogue_version,
        suites=run.suites,
        quick=run.quick,
        servers=_in_order(servers),
        rules=tuple(_rules(servers)),
        splits=tuple(_titled(one, by_name) for one in splits),
    )


def without_doubtful(found: Field, doubtful: Mapping[str, Collection[str]]) -> Field:
    """The same, where what is doubtful counts as broken no more.

    :param doubtful: by requirement, the names of the servers of which its failure is no sure fault.
    """

    def is_doubtful(server: FieldServer, one: Example) -> bool:
        return server.name in doubtful.get(one.requirement, ())

    servers = [
        msgspec.structs.replace(
            server,
            broken=tuple(one for one in server.broken if not is_doubtful(server, one)),
            doubtful=tuple(one for one in server.broken if is_doubtful(server, one)),
        )
        for server in found.servers
    ]
    return msgspec.structs.replace(found, servers=_in_order(servers), rules=tuple(_rules(servers)))


def _in_order(servers: Iterable[FieldServer]) -> tuple[FieldServer, ...]:
    return tuple(
        sorted(servers, key=lambda one: (bool(one.unavailable), len(one.broken), one.name))
    )


def _titled(one: Split, by_name: dict[str, ServerResult]) -> Split:
    readings = tuple(
        (said, tuple(by_name[name].title for name in names)) for said, names in one.readings
    )
    return msgspec.structs.replace(one, readings=readings)


def _server(server: ServerResult, summary: Summary | None) -> FieldServer:
    known = FieldServer(
        name=server.name,
        title=server.title,
        version=server.version or "",
        language=server.language,
        engine=server.engine,
        crashes=len(server.crashes),
        unavailable=server.unavailable or "",
    )
    if summary is None or server.unavailable:
        return known
    return msgspec.structs.replace(
        known,
        asked=summary.asked,
        met=summary.met,
        permitted=summary.permitted,
        undecided=summary.undecided_count,
        broken=tuple(_example(group) for group in summary.broken if group.found),
    )


def _example(group: Group) -> Example:
    shown = group.example
    came = terminal_line(shown.actual or shown.message) if shown else ""
    return Example(
        requirement=group.id,
        title=group.title,
        clause=group.clause,
        case=(shown.witness or shown.id) if shown else "",
        came=came if len(came) <= _CAME_CHARACTERS_MAX else came[: _CAME_CHARACTERS_MAX - 1] + "…",
        smuggling=group.smuggling,
    )


def _rules(servers: Sequence[FieldServer]) -> Iterator[Rule]:
    """The rules, what can smuggle first, then those that most break."""
    breaks: dict[str, list[tuple[Example, str]]] = {}
    for server in servers:
        for example in server.broken:
            breaks.setdefault(example.requirement, []).append((example, server.title))
    made = [
        Rule(
            requirement=id,
            title=found[0][0].title,
            clause=found[0][0].clause,
            smuggling=any(example.smuggling for example, _ in found),
            servers=tuple(sorted(title for _, title in found)),
        )
        for id, found in breaks.items()
    ]
    yield from sorted(made, key=lambda one: (not one.smuggling, -len(one.servers), one.requirement))


def markdown(found: Field) -> str:
    """The tables as Markdown, between the marks that :func:`placed` looks for."""
    tables = [*_by_server(found), *_by_rule(found), *_by_message(found)]
    return "\n".join([BEGIN, "", *_intro(found), *tables, END]) + "\n"


def placed(page: str, found: Field) -> str:
    """A page with the tables of a field in the place of those that it has.

    :raises ValueError: it has no place for them.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END + "\n")
    if not begin or not end:
        raise ValueError(f"no line {BEGIN!r} with a line {END!r} after it")
    return before + markdown(found) + after


def _intro(found: Field) -> Iterator[str]:
    judged = [one for one in found.servers if not one.unavailable]
    parsers = {one.engine or one.name for one in judged}
    suites = ", ".join(f"`{name}`" for name in found.suites)
    quick = ", a quick run" if found.quick else ""
    yield (
        f"Run of {found.date}{quick}, httpmark {found.harness_version}, suites {suites}: "
        f"{len(judged)} servers with {len(parsers)} HTTP parsers."
    )
    if doubtful := sum(len(one.doubtful) for one in judged):
        failures = "1 failure is" if doubtful == 1 else f"{doubtful} failures are"
        yield f"{failures} not counted as broken: it is doubtful whether the clause forbids it."
    yield ""


def _by_server(found: Field) -> Iterator[str]:
    yield "| server | version | parser | met | broken | the worst, each with its case |"
    yield "|---|---|---|--:|--:|---|"
    for one in found.servers:
        if one.unavailable:
            continue
        worst = "; ".join(_told(example) for example in one.broken[:WORST])
        more = len(one.broken) - WORST
        if more > 0:
            worst += f"; and {more} more"
        if one.crashes:
            worst = f"**dies or hangs** ({one.crashes} times); {worst}"
        undecided = f", {one.undecided} undecided" if one.undecided else ""
        yield (
            f"| {_cell(one.title)} | {_cell(one.version)} | {one.engine or 'its own'} "
            f"| {one.met} of {one.asked}{undecided} | {len(one.broken)} | {worst} |"
        )
    yield ""
    if absent := [one for one in found.servers if one.unavailable]:
        told = "; ".join(f"{one.title} ({one.unavailable})" for one in absent)
        yield f"Not judged: {_cell(told)}."
        yield ""


def _told(example: Example) -> str:
    mark = "**smuggling**: " if example.smuggling else ""
    return f"{mark}{_cell(example.title)} ({_cell(example.clause)}): `{example.case}`"


def _by_rule(found: Field) -> Iterator[str]:
    yield "| rule | clause | broken by |"
    yield "|---|---|---|"
    for rule in found.rules:
        mark = " (smuggling)" if rule.smuggling else ""
        names = ", ".join(rule.servers)
        yield f"| {_cell(rule.title)}{mark} | {_cell(rule.clause)} | {len(rule.servers)}: {names} |"
    yield ""


def _by_message(found: Field) -> Iterator[str]:
    if not found.splits:
        return
    yield (
        "Messages that servers read in two ways. Where one of them stands before another, a "
        "request may be smuggled, unless the first one frames it anew. Who refuses a message is "
        "not named."
    )
    yield ""
    yield "| message | clause | read as |"
    yield "|---|---|---|"
    for one in found.splits:
        told = "; ".join(f"**{said}**: {', '.join(names)}" for said, names in one.readings)
        yield f"| {_cell(one.title)}: `{one.case}` | {_cell(one.clause)} | {_cell(told)} |"
    yield ""


def _cell(text: str) -> str:
    return terminal_line(text).replace("|", "\\|")
