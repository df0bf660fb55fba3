"""Drawings as data: where marks stand, in percent of a drawing's width and height.

Ratios with their intervals, latency by percentile, memory by connections held. Nothing is decided
here; what cannot be drawn is told with the reason. Lines are told apart by a number at their end, a
dash and a colour, never by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from httpmark.harness.load import histogram, statistics
from httpmark.harness.model.load import LoadMode, LoadResult, PairedRatio
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.report.number_format import microseconds

LINES_MAX = 10  # more lines could not be distinguished
_RIGHT = 95.0  # what is right of it is for the numbers of the lines
_APART = 6.0  # of these numbers, in percent of the height
_STEPS_A_DECADE = 8

_Point = tuple[float, float]


class Tick(msgspec.Struct, frozen=True):
    """A line across a drawing, and its label."""

    at: float
    label: str


class Line(msgspec.Struct, frozen=True):
    """One server's line."""

    number: int
    server: ServerResult
    points: str  # of an SVG polyline in a box of 100 x 100
    dots: tuple[tuple[float, float], ...]
    end: tuple[float, float]  # where its number stands


class Chart(msgspec.Struct, frozen=True):
    """Lines over two axes."""

    lines: tuple[Line, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


def _chart(
    drawn: Sequence[tuple[ServerResult, Sequence[_Point], Sequence[_Point]]],
    across: Iterable[tuple[float, str]],
    up: Iterable[tuple[float, str]],
    *,
    width: float,
    low: float,
    high: float,
) -> Chart:
    """Points in the units of the axes to places in a box; y grows downwards there.

    :param drawn: server, points of its line, points to mark.
    """

    def place(x: float, y: float) -> tuple[float, float]:
        share = min(max((y - low) / (high - low), 0.0), 1.0)
        return round(x / width * _RIGHT, 2), round(100 - share * 100, 2)

    lines = []
    for number, (server, points, dots) in enumerate(drawn, 1):
        placed = [place(x, y) for x, y in points]
        lines.append(
            Line(
                number,
                server,
                " ".join(f"{x:g},{y:g}" for x, y in placed),
                tuple(place(x, y) for x, y in dots),
                placed[-1],
            )
        )
    return Chart(
        _numbered_apart(lines),
        tuple(Tick(place(x, low)[0], label) for x, label in across),
        tuple(Tick(place(0, y)[1], label) for y, label in up),
    )


def _numbered_apart(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines with their numbers moved up or down until none covers another."""
    moved: dict[int, float] = {}
    floor = -_APART
    for line in sorted(lines, key=lambda line: (line.end[1], line.number)):
        floor = max(line.end[1], floor + _APART)
        moved[line.number] = floor
    over = max((y for y in moved.values()), default=0.0) - 100
    if over > 0:  # all of them up by what does not fit, as far as there is room
        ceiling = 100.0
        for number, y in sorted(moved.items(), key=lambda item: -item[1]):
            moved[number] = min(y, ceiling)
            ceiling = moved[number] - _APART
    return tuple(
        msgspec.structs.replace(line, end=(line.end[0], round(moved[line.number], 2)))
        for line in lines
    )


# --- ratios -------------------------------------------------------------------------------------


class Ratio(msgspec.Struct, frozen=True):
    """One server's cost over another's; places are None where there is no interval."""

    server: ServerResult
    pair: PairedRatio
    x: float | None
    low: float | None
    high: float | None


class Forest(msgspec.Struct, frozen=True):
    """The servers of one profile over the one they are compared with, on a logarithmic axis."""

    profile: str
    engine: str
    base: str
    one: float  # where 1 stands
    ticks: tuple[tuple[float, str], ...]
    rows: tuple[Ratio, ...]


def forests(run: Run) -> tuple[Forest, ...]:
    """The paired ratios of cost of a run, by profile and engine."""
    servers = {server.name: server for server in run.servers}
    found: dict[tuple[str, str, str], list[PairedRatio]] = {}
    for pair in run.paired:
        if pair.metric == "cpu_ns_per_request" and pair.head in servers:
            found.setdefault((pair.profile, pair.engine, pair.base), []).append(pair)
    return tuple(_forest(key, pairs, servers) for key, pairs in found.items())


def _forest(
    key: tuple[str, str, str], pairs: Sequence[PairedRatio], servers: dict[str, ServerResult]
) -> Forest:
    edges = [1.0, *(edge for pair in pairs for edge in pair.interval_95 or ())]
    low, high = min(edges) / 1.08, max(edges) * 1.08
    span = math.log(high / low)

    def x(ratio: float | None) -> float | None:
        return None if ratio is None else round(math.log(ratio / low) / span * 100, 2)

    ticks = [(x(value) or 0.0, f"{value:,g}×") for value in _ratio_ticks(low, high)]
    rows = tuple(
        Ratio(
            servers[pair.head],
            pair,
            x(pair.ratio) if pair.interval_95 else None,
            x(pair.interval_95[0]) if pair.interval_95 else None,
            x(pair.interval_95[1]) if pair.interval_95 else None,
        )
        for pair in sorted(pairs, key=lambda pair: (pair.ratio is None, pair.ratio or 0, pair.head))
    )
    profile, engine, base = key
    return Forest(profile, engine, base, x(1.0) or 0.0, tuple(ticks), rows)


def _ratio_ticks(low: float, high: float) -> list[float]:
    """Some round ratios within bounds, 1 among them: coarse where the axis is long."""
    for steps in ((1, 1.1, 1.2, 1.5, 2, 3, 5, 7), (1, 1.5, 2, 3, 5), (1, 2, 5), (1,)):
        found = [
            step * 10.0**power
            for power in range(-3, 7)
            for step in steps
            if low <= step * 10.0**power <= high
        ]
        if len(found) <= 6:
            break
    return found


# --- latency by percentile ----------------------------------------------------------------------


class Spectrum(msgspec.Struct, frozen=True):
    """Latency over percentiles, one line per server; ``notes``: who has none, or what to know."""

    profile: str
    engine: str
    chart: Chart | None
    figures: tuple[tuple[int, LoadResult], ...]  # by line
    notes: tuple[tuple[str, str], ...]  # server, word


def spectra(run: Run) -> tuple[Spectrum, ...]:
    """Of each profile whose latency is measured; saturated closed loops have none to speak of."""
    keys = dict.fromkeys(
        (load.profile, load.engine)
        for server in run.servers
        for load in server.load
        if load.mode is LoadMode.OPEN or load.latency_us
    )
    return tuple(_spectrum(run, *key) for key in keys)


def _spectrum(run: Run, profile: str, engine: str) -> Spectrum:
    notes: list[tuple[str, str]] = []
    drawn: list[tuple[ServerResult, LoadResult, list[_Point]]] = []
    for server in run.servers:
        for load in server.load:
            if (load.profile, load.engine) != (profile, engine):
                continue
            if load.latency_reason:
                notes.append((server.name, load.latency_reason))
            try:
                found = histogram.merged(s.histogram for s in load.samples if s.histogram)
            except histogram.Unreadable as error:
                notes.append((server.name, f"not drawn: {error}"))
                continue
            if load.latency_us is None or found is None or not found.total:
                notes.append((server.name, f"not drawn: {load.histogram_reason or 'no latency'}"))
            elif len(drawn) == LINES_MAX:
                notes.append(
                    (server.name, f"not drawn: a drawing holds at most {LINES_MAX} servers")
                )
            else:
                drawn.append((server, load, _points(found)))
    if not drawn:
        return Spectrum(profile, engine, None, (), tuple(notes))
    values = [y for _, _, points in drawn for _, y in points]
    low, high = math.floor(min(values)), math.ceil(max(values) + 1e-9)
    width = max(points[-1][0] for _, _, points in drawn)
    chart = _chart(
        [(server, points, ()) for server, _, points in drawn],
        _percentile_ticks(width),
        [(power, microseconds(10.0**power)) for power in range(low, high + 1)],
        width=width,
        low=low,
        high=max(high, low + 1),
    )
    figures = tuple((number, load) for number, (_, load, _) in enumerate(drawn, 1))
    return Spectrum(profile, engine, chart, figures, tuple(notes))


def _points(found: histogram.Histogram) -> list[_Point]:
    """log10 of 1/(1-share) and of microseconds, up to the share that one value is of all."""
    decades = math.log10(found.total) if found.total > 1 else 0.0
    steps = [at / _STEPS_A_DECADE for at in range(math.ceil(decades * _STEPS_A_DECADE))]
    steps.append(decades)
    values = found.percentiles([1 - 10.0**-step for step in steps[:-1]] + [1.0])
    return [(x, math.log10(max(y, 1) / 1000)) for x, y in zip(steps, values, strict=True)]


def _percentile_ticks(width: float) -> Iterator[tuple[float, str]]:
    yield 0.0, "0 %"
    for nines in range(1, math.floor(width) + 1):
        share = 100 - 10.0 ** (2 - nines)
        yield float(nines), f"{share:.{max(nines - 2, 0)}f} %"


# --- memory by connections ----------------------------------------------------------------------


class Ladder(msgspec.Struct, frozen=True):
    """What connections held add to a server's memory; lines are Theil-Sen slopes."""

    chart: Chart | None
    notes: tuple[tuple[str, str], ...]


def ladder(run: Run) -> Ladder | None:
    """The ladders of a run; None where none was climbed."""
    notes: list[tuple[str, str]] = []
    drawn: list[tuple[ServerResult, list[_Point], list[_Point]]] = []
    climbed = [server for server in run.servers if server.memory and server.memory.ladder]
    for server in climbed:
        assert server.memory is not None
        points = [
            (float(rung.held), rung.pss_kb / 1024)
            for rung in server.memory.ladder
            if rung.pss_kb is not None
        ]
        line = statistics.theil_sen(points)
        if server.memory.ladder_scaled:
            notes.append((server.name, server.memory.ladder_scaled))
        if server.memory.bytes_per_connection is None or line is None:
            reason = (
                server.memory.reason or "a slope needs measurements at two numbers of connections"
            )
            notes.append((server.name, f"not drawn: {reason}"))
        elif len(drawn) == LINES_MAX:
            notes.append((server.name, f"not drawn: a drawing holds at most {LINES_MAX} servers"))
        else:
            slope, foot = line
            end = max(x for x, _ in points)
            drawn.append(
                (server, [(0.0, 0.0), (end, slope * end)], [(x, y - foot) for x, y in points])
            )
    if not climbed:
        return None
    if not drawn:
        return Ladder(None, tuple(notes))
    width = max(points[-1][0] for _, points, _ in drawn)
    top = max(y for _, points, dots in drawn for _, y in (*points, *dots))
    step = round_step(max(top, 0.1) / 4)
    high = step * math.ceil(max(top, 0.1) / step)
    across = round_step(width / 4)
    return Ladder(
        _chart(
            drawn,
            [(at * across, f"{at * across:,.0f}") for at in range(math.floor(width / across) + 1)],
            [
                (at * step, f"{at * step:g} MiB" if at else "")
                for at in range(round(high / step) + 1)
            ],
            width=width,
            low=0.0,
            high=high,
        ),
        tuple(notes),
    )


def round_step(least: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is no less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(
        value for step in (1, 2, 5, 10) if (value := round(step * power, 12)) >= least * (1 - 1e-9)
    )
