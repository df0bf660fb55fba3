"""The published benchmarks and a run of ours, side by side, and what differs in method.

A rate says as much of its machine as of its server. So beside each figure stands its ratio to one
server that both tables have: that is what can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.judging import published_score
from httpmark.harness.judging.score_text import score_text
from httpmark.harness.model.load import Bottleneck, LoadResult, Posted
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.report.number_format import memory, rate, times
from httpmark.harness.report.text_layout import Table, grouped, wrapped

COMPLIANCE = "compliance"
SUITE = "seed"
PROFILES = {
    "plaintext": "published_plain",
    "tls": "published_tls",
    "memory": "published_500k",
    "echo": "published_echo",
}
"""The load profile of each comparison."""
DEFAULT = ("plaintext", "tls", "memory", COMPLIANCE)

# Who the others are divided by, where both tables have it: the first of these.
_BASES = ("go_net_http", "rust_hyper", "qhttpserver", "lithium", "kourier")
_ABSENT = "not part of this run"
_METHOD = {
    "rate": (
        "posted: what wrk counted, which does not check what an answer holds. Measured: answers "
        "that were checked, by httpmark-load, on fresh starts in random order"
    ),
    "memory": (
        "posted: VmPeak after wrk, whose figures do not show how many connections were in use. "
        "Measured: VmPeak after a load in which all are. It is address space, not memory"
    ),
    "compliance": (
        "the same requests and the same rule: a request counts as detected if the answer does not "
        "begin with 'HTTP/1.1 200 OK'. Ours are asked again if time ran out, and need controls"
    ),
}


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One server in one comparison."""

    server: str
    posted: tuple[float | None, ...]  # one for each machine of the comparison
    measured: float | None
    posted_ratio: tuple[float | None, ...] = ()  # to the comparison's base
    measured_ratio: float | None = None
    reason: str = ""  # why there is no measured figure, or why it is not the server's


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One published table beside ours."""

    name: str
    unit: str  # "requests per second", "VmPeak in kB", "percent detected"
    machines: tuple[str, ...]
    base: str | None  # the server that the ratios are to
    figures: tuple[Figure, ...]
    differs: tuple[str, ...]  # in method, and why


def comparisons(run: Run, known: Catalogue) -> tuple[Comparison, ...]:
    """All that a run has of the published tables."""
    made = []
    for name, profile in PROFILES.items():
        if profile in run.profiles:
            posted = known.plan(profile).posted
            made.append(_rates(name, profile, posted, run))
            if any(one.vmpeak_kb for one in posted):
                made.append(_memory(posted, profile, run))
    if SUITE in run.suites:
        made.append(_compliance(run, known))
    return tuple(made)


def _rates(name: str, profile: str, posted: tuple[Posted, ...], run: Run) -> Comparison:
    loads = {one.name: _load(one, profile) for one in run.servers}
    measured = {
        server: load.requests_per_second for server, load in loads.items() if load is not None
    }
    reasons = {one.name: _why_not(one, loads[one.name]) for one in run.servers}
    scaled = [load.scaled for load in loads.values() if load is not None and load.scaled]
    return _comparison(
        f"{name}, requests per second",
        "requests per second",
        tuple((one.machine, one.requests_per_second) for one in posted),
        measured,
        reasons,
        (_METHOD["rate"], *(f"scaled: {told}" for told in dict.fromkeys(scaled))),
    )


def _memory(posted: tuple[Posted, ...], profile: str, run: Run) -> Comparison:
    held = {
        one.name: (one.memory.vmpeak_kb, one.memory.connections_held)
        for one in run.servers
        if one.memory is not None and _load(one, profile) is not None
    }
    counts = sorted({number for _, number in held.values()})
    told = f"measured with {counts[0]:,} connections, not 500,000" if counts else ""
    return _comparison(
        "memory, VmPeak",
        "VmPeak in kB",
        tuple((one.machine, one.vmpeak_kb) for one in posted),
        {name: peak for name, (peak, _) in held.items()},
        {one.name: "" if one.name in held else _no_memory(one) for one in run.servers},
        (_METHOD["memory"], *((told,) if told else ())),
    )


def _compliance(run: Run, known: Catalogue) -> Comparison:
    suites = {one.name: one.compliance.suites.get(SUITE) for one in run.servers}
    return _comparison(
        "compliance, percent detected",
        "percent detected",
        (("the posts", {name: _percent(counts) for name, counts in known.published.items()}),),
        {name: suite.score_percent for name, suite in suites.items() if suite is not None},
        {
            name: (suite.reason if suite else None) or _unavailable(run, name)
            for name, suite in suites.items()
        },
        (_METHOD["compliance"],),
        with_ratios=False,
    )


def _percent(detections: Mapping[str, str]) -> float:
    """How much was detected, of run lengths such as ``35d140u``-words."""
    detected = [one for text in detections.values() for one in published_score.expand(text)]
    return sum(detected) / len(detected) * 100


def _comparison(
    name: str,
    unit: str,
    posted: tuple[tuple[str, Mapping[str, float]], ...],
    measured: Mapping[str, float | None],
    reasons: Mapping[str, str],
    differs: tuple[str, ...],
    *,
    with_ratios: bool = True,
) -> Comparison:
    names = dict.fromkeys([*(server for _, table in posted for server in table), *reasons])
    base = next(
        (
            one
            for one in _BASES
            if with_ratios and measured.get(one) and any(one in table for _, table in posted)
        ),
        None,
    )
    figures = []
    for server in names:
        there = tuple(table.get(server) for _, table in posted)
        here = measured.get(server)
        figures.append(
            Figure(
                server=server,
                posted=there,
                measured=here,
                posted_ratio=tuple(
                    _ratio(value, table.get(base)) if base else None
                    for value, (_, table) in zip(there, posted, strict=True)
                ),
                measured_ratio=_ratio(here, measured.get(base)) if base else None,
                reason=reasons.get(server, _ABSENT),
            )
        )
    return Comparison(
        name=name,
        unit=unit,
        machines=tuple(machine for machine, _ in posted),
        base=base,
        figures=tuple(figures),
        differs=differs,
    )


def _ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def _no_memory(server: ServerResult) -> str:
    return server.unavailable or server.memory_reason or server.died or "not measured"


def _load(server: ServerResult, profile: str) -> LoadResult | None:
    return next((load for load in server.load if load.profile == profile), None)


def _why_not(server: ServerResult, load: LoadResult | None) -> str:
    """Why a server has no rate of its own; empty where it has."""
    if load is None:
        return server.unavailable or server.died or "not measured: see the notes of the run"
    if load.requests_per_second is None:
        return load.reason or load.ranked_reason
    if load.bottleneck is not Bottleneck.SERVER:
        return f"the limit was not the server ({load.bottleneck}): {load.bottleneck_why}"
    return ""


def _unavailable(run: Run, name: str) -> str:
    server = next(one for one in run.servers if one.name == name)
    return server.unavailable or server.died or ""


def lines(run: Run, known: Catalogue, *, width: int = 80) -> Iterator[str]:
    """The tables as plain text."""
    for table in comparisons(run, known):
        yield ""
        yield table.name.upper()
        for at, machine in enumerate(table.machines):
            yield from wrapped(f"posted {at + 1}: {machine}", width)
        if table.base:
            yield from wrapped(f"in brackets: the ratio to {table.base}", width)
        yield from _rows(table, width)
        yield from grouped([(one.server, one.reason) for one in table.figures if one.reason], width)
        for told in table.differs:
            yield from wrapped(f"differs: {told}", width)


def _rows(table: Comparison, width: int) -> Iterator[str]:
    heads = [f"posted {at + 1}" for at in range(len(table.machines))]
    text = Table(width, *((head, 16) for head in (*heads, "measured")))
    yield text.head("server")
    for one in table.figures:
        pairs = [
            *zip(one.posted, one.posted_ratio, strict=True),
            (one.measured, one.measured_ratio),
        ]
        yield text.line(one.server, [_cell(table.unit, value, ratio) for value, ratio in pairs])


def _cell(unit: str, value: float | None, ratio: float | None) -> str:
    if value is None:
        return "-"
    shown = {
        "requests per second": rate(value),
        "VmPeak in kB": memory(int(value)),
        "percent detected": f"{score_text(value)} %",
    }[unit]
    return shown if ratio is None else f"{shown} ({times(ratio)})"
