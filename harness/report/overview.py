"""A run at a glance: the servers in reading order, and each load as a column of costs.

The page's first screen and the scoreboard show it. Nothing is decided here: scores, ranks and
bottlenecks are read from the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from httpmark.harness.gate import crashes
from httpmark.harness.model.load import LoadResult
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.model.verdicts import SeedFamily, SuiteResult
from httpmark.harness.report.byte_maps import READINGS
from httpmark.harness.report.number_format import (
    STAMPS,
    Throughput,
    littles_law,
    nanoseconds,
    result_throughput,
)

PUBLISHED = "seed"
"""The suite of the published families."""

REQUIREMENTS = "rfc"
"""The suite whose MUSTs decide who is ranked."""


class Part(msgspec.Struct, frozen=True):
    """One piece of a stacked bar of width 100."""

    reading: str
    count: int
    x: float
    width: float


def parts(family: SeedFamily) -> tuple[Part, ...]:
    """The strict split of a family; what is there is never thinner than a hair."""
    counts = [(reading, int(getattr(family, reading))) for reading in READINGS]
    total = sum(number for _, number in counts)
    if not total:
        return ()
    raw = [(reading, number, number / total * 100) for reading, number in counts if number]
    widened = [(reading, number, max(width, 1.2)) for reading, number, width in raw]
    scale = 100 / sum(width for _, _, width in widened)
    pieces, x = [], 0.0
    for reading, number, width in widened:
        pieces.append(Part(reading, number, round(x, 2), round(width * scale, 2)))
        x += width * scale
    return tuple(pieces)


class Axis(msgspec.Struct, frozen=True):
    """A logarithmic axis of cost that begins at the null server, or at the cheapest."""

    low: float
    high: float
    over_null: bool
    ticks: tuple[tuple[float, str], ...]  # x in percent, label

    def x(self, cost: float) -> float:
        """Where a cost stands, in percent of the width."""
        span = math.log(self.high / self.low)
        return round(min(max(math.log(max(cost, 1e-9) / self.low) / span, 0.0), 1.0) * 100, 2)


class Cell(msgspec.Struct, frozen=True):
    """One load result as the first screen shows it."""

    load: LoadResult
    rate: Throughput
    stamp: str
    rank: str | None
    x: float | None
    low: float | None
    high: float | None
    dots: tuple[float, ...]
    law: str


class Column(msgspec.Struct, frozen=True):
    """One profile under one engine, over all servers."""

    key: str
    title: str
    connections: int
    depth: int
    engine: str
    axis: Axis | None
    cells: dict[str, Cell]
    order: tuple[str, ...]  # servers by cost, cheapest first


class Row(msgspec.Struct, frozen=True):
    """One server with what the page adds to it."""

    server: ServerResult
    suite: SuiteResult | None
    anchor: str
    totals: dict[str, int]
    families: dict[str, SeedFamily]
    published: dict[str, int]  # published detected, where something was published
    state: str  # "scored", "control" or "absent"
    sentence: str  # why it stands where it stands, where that needs saying

    @property
    def group(self) -> tuple[str, str]:
        """What it is listed with: servers of one state with one HTTP parser."""
        return self.state, self.server.engine or self.server.name

    @property
    def marked_name(self) -> str:
        """The server's name, with a star where it is a control."""
        return f"{self.server.name} *" if self.server.control else self.server.name


def _axis(costs: Sequence[float], edges: Sequence[float], null: float | None) -> Axis | None:
    """From the null server's cost (or a little below the least) to the end of all intervals."""
    if not costs:
        return None
    low = min(costs) if null is not None else min((*costs, *edges)) / 1.15
    high = max(max((*costs, *edges)) * 1.08, low * 1.5)
    ticks: list[tuple[float, str]] = []
    span = math.log(high / low)
    unit = 1.0 if null is None else null
    steps = (1, 2, 5) if high / low < 30 else (1,)
    for power in range(-3, 9):
        for step in steps:
            value = step * 10.0**power * unit
            if low * 0.999 <= value <= high:
                label = f"{step * 10.0**power:,g}×" if null is not None else nanoseconds(value)
                ticks.append((round(math.log(value / low) / span * 100, 2), label))
    return Axis(low, high, null is not None, tuple(ticks))


def columns(run: Run) -> tuple[Column, ...]:
    """The load results of a run, turned to one column per profile and engine."""
    keys: list[tuple[str, str]] = []
    for server in run.servers:
        for load in server.load:
            if (load.profile, load.engine) not in keys:
                keys.append((load.profile, load.engine))
    profiles = list(run.profiles)
    keys.sort(key=lambda key: profiles.index(key[0]) if key[0] in profiles else len(profiles))
    engines = {engine for _, engine in keys}
    return tuple(_column(run, profile, engine, len(engines) > 1) for profile, engine in keys)


def _column(run: Run, profile: str, engine: str, name_engine: bool) -> Column:
    loads = [
        (server, load)
        for server in run.servers
        for load in server.load
        if (load.profile, load.engine) == (profile, engine)
    ]
    costs: list[float] = []
    edges: list[float] = []
    null = None
    for server, load in loads:
        cost = load.cpu_ns_per_request.server
        if cost is not None and cost > 0:
            costs.append(cost)
            edges += [edge for edge in load.interval_95 or () if edge > 0]
            if server.control and server.name == "null":
                null = cost
    axis = _axis(costs, edges, null)
    ranks = [load.cost_rank for _, load in loads]
    cells = {server.name: _cell(load, axis, ranks) for server, load in loads}
    order = sorted(
        cells,
        key=lambda name: (
            cells[name].load.cpu_ns_per_request.server is None,
            cells[name].load.cpu_ns_per_request.server or 0.0,
        ),
    )
    first = loads[0][1]
    return Column(
        key=f"{profile}-{engine}",
        title=f"{profile} ({engine})" if name_engine else profile,
        connections=first.connections,
        depth=first.depth,
        engine=engine,
        axis=axis,
        cells=cells,
        order=tuple(order),
    )


def _cell(load: LoadResult, axis: Axis | None, ranks: Sequence[int | None]) -> Cell:
    cost, interval = load.cpu_ns_per_request.server, load.interval_95
    rank = None
    if load.cost_rank is not None:
        rank = f"{'=' if ranks.count(load.cost_rank) > 1 else ''}{load.cost_rank}"
    drawn = axis is not None and cost is not None and cost > 0
    samples = [sample.cpu_ns_per_request.server for sample in load.samples]
    return Cell(
        load=load,
        rate=result_throughput(load),
        stamp=STAMPS[load.bottleneck],
        rank=rank,
        x=axis.x(cost) if drawn and axis and cost else None,
        low=axis.x(interval[0]) if drawn and axis and interval else None,
        high=axis.x(interval[1]) if drawn and axis and interval else None,
        dots=tuple(axis.x(dot) for dot in samples if dot) if drawn and axis else (),
        law=littles_law(load.connections, load.depth, load.littles_law_ratio),
    )


def rows(run: Run) -> tuple[Row, ...]:
    """The servers in reading order: scored ones by score, controls, then those not measured.

    Servers that share an HTTP parser stand together, where the best of them stands.
    """
    made = [_row(at, server) for at, server in enumerate(run.servers)]

    def place(row: Row) -> tuple[object, ...]:
        group = ("scored", "control", "absent").index(row.state)
        suite = row.server.compliance.suites.get(REQUIREMENTS) or row.suite
        score = suite.score_percent if suite else None
        costs = [
            load.cpu_ns_per_request.server
            for load in row.server.load
            if load.cpu_ns_per_request.server is not None
        ]
        return (group, score is None, -(score or 0.0), not costs, costs[0] if costs else 0.0)

    best: dict[tuple[str, str], tuple[object, ...]] = {}
    for row in made:
        own = place(row)
        best[row.group] = min(own, best.get(row.group, own))

    return tuple(
        sorted(made, key=lambda row: (best[row.group], row.group, place(row), row.server.name))
    )


def _row(at: int, server: ServerResult) -> Row:
    suite = server.compliance.suites.get(PUBLISHED)
    families = suite.families if suite else {}
    totals = {
        reading: sum(int(getattr(family, reading)) for family in families.values())
        for reading in ("detected", "undetected", *READINGS)
    }
    published: dict[str, int] = {}
    if suite is not None and suite.published is not None:
        differing = {item.family: item.published_detected for item in suite.differences}
        published = {
            name: differing.get(name, family.detected) for name, family in families.items()
        }
    sentence = ""
    if server.unavailable is not None:
        sentence = f"not measured: {server.unavailable}"
    elif server.crashes:
        sentence = crashes.of_server(server)
    elif server.died is not None:
        sentence = f"died: {server.died}"
    return Row(
        server=server,
        suite=suite,
        anchor=f"s{at}",
        totals=totals,
        families=families,
        published=published,
        state="absent" if server.unavailable else "control" if server.control else "scored",
        sentence=sentence,
    )
