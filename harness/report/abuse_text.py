"""What abuse did, as a table for people: on a terminal, or as Markdown for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from httpmark.harness.load.abuse_scenarios import BY_NAME
from httpmark.harness.model.abuse import Abused, AbuseReport, Fate, Honest, Suffered
from httpmark.harness.report.number_format import memory, microseconds, rate, times
from httpmark.harness.report.text_layout import Table, grouped, wrapped

_HEADS = (
    "fate", "p99 quiet", "p99 abused", "ratio", "lost", "new clients", "memory", "TCP buffers",
    "again",
)  # fmt: skip
# On a terminal; what was quiet stands above.
_NARROW = (
    ("fate", -7), ("p99", 8), ("ratio", 5), ("lost", 5), ("new", 7), ("memory", 8), ("TCP", 8),
    ("again", 5),
)  # fmt: skip
_LAG_SHARE = 0.5


def lines(report: AbuseReport, width: int) -> list[str]:
    """The whole report as text."""
    found = wrapped(_headline(report), width, indent="")
    for server in report.servers:
        found += ["", *_server_lines(server, width)]
    return [*found, "", *_legend(width)]


def _headline(report: AbuseReport) -> str:
    before = ", ".join(f"{figure:.2f}" for figure in report.load_average)
    return (
        f"ABUSE: beside it {report.clients} honest connections ask {report.rate:g} times a second "
        f"for {report.seconds:g} s; {report.processors} processors, load before: {before}"
    )


def _server_lines(server: Abused, width: int) -> Iterator[str]:
    title = " ".join(filter(None, (server.name, server.version, f"({server.runtime})")))
    yield title if server.runtime else server.name
    if server.suffered:
        yield from _quiet(server)
        table = Table(width, *_NARROW)
        yield table.head("scenario")
        for one in server.suffered:
            fate, _, *rest = cells(one)
            yield table.line(one.scenario, [fate, *rest])
        yield from grouped(
            ((one.scenario, why) for one in server.suffered for why in notes(one)), width
        )
    if server.unavailable:
        yield from wrapped(f"{server.name}: {server.unavailable}", width)


def _quiet(server: Abused) -> Iterator[str]:
    """The p99 without abuse: of the first port, and of that for TLS where it was measured."""
    told = dict.fromkeys(one.quiet.p99_us for one in server.suffered if one.quiet is not None)
    if told:
        yield f"p99 quiet: {', with TLS '.join(microseconds(figure) for figure in told)}"


def _legend(width: int) -> list[str]:
    return [
        line
        for text in (
            "held: fewer than one honest request in a hundred was lost, and the p99 is less than "
            "ten times the quiet one; slowed: it is more; starved: more were lost; silent: no "
            "answer within 10 s after the abuse; died: the process ended",
            "lost: of the honest connections' requests; new: answered of the clients that came "
            "anew, each with one request; memory: PSS at most; TCP: what the buffers of all "
            "sockets of the machine grew by; again: until it answered after the abuse",
        )
        for line in wrapped(text, width, indent="")
    ]


def cells(one: Suffered) -> list[str]:
    """What stands in the columns of one scenario."""
    if one.fate is None or one.quiet is None or one.under is None:
        return ["-", *[""] * (len(_HEADS) - 1)]
    under, held = one.under, one.held
    grown = None
    if held.tcp_peak_kb is not None and held.tcp_before_kb is not None:
        grown = held.tcp_peak_kb - held.tcp_before_kb
    return [
        str(one.fate),
        microseconds(one.quiet.p99_us),
        microseconds(under.p99_us),
        times(one.p99_ratio),
        f"{max(0, under.due - under.answered):,}",
        f"{under.new_answered}/{under.new_asked}",
        memory(held.pss_peak_kb),
        memory(grown),
        "never" if one.again_s is None else f"{one.again_s:.1f} s",
    ]


def notes(one: Suffered) -> Iterator[str]:
    """What has to be known beside the figures."""
    if one.reason:
        yield one.reason
    if one.under is not None and _is_own_delay(one.under):
        yield "most of the p99 is the delay of this machine's load generator, not of the server"
    if one.descriptors is not None:
        yield f"its descriptors were limited to {one.descriptors:,} for this"
    wanted = BY_NAME[one.scenario].per_second
    if one.done is not None and wanted is not None and one.done.seconds:
        reached = one.done.opened / one.done.seconds
        yield f"{rate(reached)} connections a second were taken, of {rate(wanted)} wanted"
    if one.under is not None and one.under.errors:
        yield "errors: " + ", ".join(f"{name} {n:,}" for name, n in one.under.errors.items())


def _is_own_delay(honest: Honest) -> bool:
    if honest.lag_p99_us is None or honest.p99_us is None:
        return False
    return honest.lag_p99_us > _LAG_SHARE * honest.p99_us


def markdown(report: AbuseReport) -> str:
    """The same as a page: one table of fates and ratios, then a table for each server."""
    parts = [_headline(report), "", *_overview(report)]
    for server in report.servers:
        parts += ["", f"## {_escaped(server.name)}", ""]
        if server.version:
            parts += [f"Version {_escaped(server.version)}, run as {server.runtime}.", ""]
        if server.suffered:
            parts += [
                "| scenario | " + " | ".join(_HEADS) + " |",
                "|---|---|" + "---:|" * (len(_HEADS) - 1),
                *(_row([one.scenario, *cells(one)]) for one in server.suffered),
                "",
            ]
            said = [(one.scenario, why) for one in server.suffered for why in notes(one)]
            parts += [f"- {name}: {_escaped(why)}" for name, why in said]
        if server.unavailable:
            parts.append(f"- {_escaped(server.unavailable)}")
    return "\n".join(parts) + "\n"


def _overview(report: AbuseReport) -> Iterator[str]:
    """All servers beside each other: the fate, and how many times the p99 became."""
    shown = [one for one in report.servers if one.suffered]
    names = list(dict.fromkeys(s.scenario for one in shown for s in one.suffered))
    yield _row(["scenario", *(one.name for one in shown)])
    yield "|---|" + "---|" * len(shown)
    for name in names:
        found = [next((s for s in one.suffered if s.scenario == name), None) for one in shown]
        yield _row([name, *map(_short, found)])


def _short(one: Suffered | None) -> str:
    if one is None or one.fate is None:
        return "-"
    if one.p99_ratio is None or one.fate in (Fate.DIED, Fate.SILENT):
        return str(one.fate)
    return f"{one.fate}, {times(one.p99_ratio)} ×"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
