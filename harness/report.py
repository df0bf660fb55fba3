"""A run to what people look at: one offline HTML page, and a plain scoreboard of 80 columns.

Nothing is decided here. Scores, ranks and bottlenecks are read from the run; this module lays them
out, and where a figure is not fit to stand alone it prints the reason instead. Octets that came
from a server are hostile: they reach the page only through the template's escaping, the JSON
block's, or :func:`wire`.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
import struct
import textwrap
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import jinja2
import msgspec
from markupsafe import Markup, escape

from httpmark.harness import catalogue, judge, matrix
from httpmark.harness.model import (
    Bottleneck,
    Exchange,
    Level,
    LoadResult,
    LoadSample,
    Run,
    SeedFamily,
    ServerResult,
    SuiteResult,
    Word,
)

TEMPLATES = Path(__file__).resolve().parent.parent / "reports"

SUITE = "seed"

PRINCIPLE = (
    "Speed counts only when the server is conformant, the server (not the load generator) was the "
    "bottleneck, and the numbers add up (Little’s law). Where a figure does not meet this, "
    "we print that instead of ranking it."
)

READINGS = ("rejected", "closed", "accepted", "mute", "malformed", "void")
"""The strict readings, in the order they are drawn; a map's cell holds 1 + the index."""

_LIGHT = ("", "1f6796", "a9cfe5", "dd5a12", "3b1238", "c79a00", "8c8c8c")
_DARK = ("", "3d84b8", "234256", "f2894e", "e9cbe4", "d9b43a", "7a7a7a")
_LETTERS = ".rcamxv"  # of READINGS, for the octet maps; "." was not sent
_SENT_OCTETS_MAX = 240
_RECEIVED_OCTETS_MAX = 200
_STRINGS_MAX = 300  # of one environment value, in characters


_BULKY = frozenset({"histogram", "cases", "generated", "answers"})


class FamilyText(msgspec.Struct, frozen=True):
    """How a published family is named to a reader."""

    id: str
    title: str
    where: str
    pair: bool


FAMILIES = (
    FamilyText("path_byte", "Path octets", "GET /hello▮ HTTP/1.1", False),
    FamilyText("query_byte", "Query octets", "GET /hello?▮ HTTP/1.1", False),
    FamilyText("field_name_byte", "Field-name octets", "▮: value", False),
    FamilyText("field_value_byte", "Field-value octets", "name: ▮", False),
    FamilyText("path_pct_pair", "Percent pairs, path", "GET /hello%▮▮ HTTP/1.1", True),
    FamilyText("query_pct_pair", "Percent pairs, query", "GET /hello?%▮▮ HTTP/1.1", True),
)

# Octets that say most to a reader when one request must stand for a family.
_TELLING = (0x00, 0x0D, 0x20, 0x22, 0x3C, 0x7C, 0x23, 0x25, 0x09, 0x0A, 0x7F, 0x80, 0xFF)


class Evidence(Protocol):
    """What ``evidence.Evidence`` offers to a reader of exchanges."""

    def exchanges(
        self, server: str, *, family: str | None = None, case: str | None = None
    ) -> Iterator[Exchange]:
        """Every exchange with a server, in case order."""
        ...  # pragma: no cover


# --- figures as words ---------------------------------------------------------------------------


def count(number: int | None) -> str:
    """An exact count with thousands marked."""
    return "—" if number is None else f"{number:,}"


def percent(number: float | None) -> str:
    """A score with one decimal that never reaches 100 or 0 by rounding."""
    if number is None:
        return "—"
    if 0 < number < 0.1:
        return "< 0.1"
    return f"{math.floor(number * 10 + 1e-6) / 10:.1f}"


def nanoseconds(number: float | None) -> str:
    """A cost with three digits where it is small and thousands marked where it is large."""
    if number is None:
        return "—"
    return f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def _digits(number: float, *, down: bool) -> str:
    """Three digits and a unit; ``down`` never rounds up, as a lower bound must not."""
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")):
        if number >= limit * (1 if down else 0.9995):
            scaled = number / limit
            decimals = 2 if scaled < 10 else 1 if scaled < 100 else 0
            if down:
                scaled = math.floor(scaled * 10**decimals) / 10**decimals
            return f"{scaled:.{decimals}f}{unit}"
    return f"{number:.2f}"


def times(number: float | None) -> str:
    """A ratio."""
    if number is None:
        return "—"
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def memory(kilobytes: int | None) -> str:
    """kB of /proc (1,024 octets each) in binary units."""
    if kilobytes is None:
        return "—"
    if kilobytes >= 1024 * 1024:
        return f"{kilobytes / 1024 / 1024:.2f} GiB"
    if kilobytes >= 1024:
        mib = kilobytes / 1024
        return f"{mib:.1f} MiB" if mib < 100 else f"{mib:,.0f} MiB"
    return f"{kilobytes} KiB"


class Throughput(msgspec.Struct, frozen=True):
    """Requests per second as it may be printed: plain, as a lower bound, or not at all."""

    text: str
    ranked: bool
    figure: bool
    why: str


_LIMITED_BY = {
    Bottleneck.SERVER: "the server was the limit",
    Bottleneck.CLIENT: "the load generator was the limit",
    Bottleneck.NETWORK: "the network was the limit",
    Bottleneck.NONE: "both ends had time left: too few requests in flight",
    Bottleneck.STARVED: "the machine gave the CPU to others",
    Bottleneck.BROKEN: "the window had errors",
    Bottleneck.UNKNOWN: "what limited it is not known",
}

STAMPS = {
    Bottleneck.SERVER: "server-bound",
    Bottleneck.CLIENT: "generator-bound",
    Bottleneck.NETWORK: "network-bound",
    Bottleneck.NONE: "nothing-bound",
    Bottleneck.STARVED: "starved",
    Bottleneck.BROKEN: "broken",
    Bottleneck.UNKNOWN: "unknown",
}


def throughput(
    rate: float | None, bottleneck: Bottleneck, *, ranked: bool, why: str = ""
) -> Throughput:
    """How requests per second are printed; what is not ranked is never a plain number."""
    reason = why or _LIMITED_BY[bottleneck]
    if rate is None:
        return Throughput("no figure", False, False, reason)
    if bottleneck is Bottleneck.BROKEN:
        return Throughput("not counted", False, False, reason)
    if ranked:
        return Throughput(_digits(rate, down=False), True, True, reason)
    return Throughput(f"≥ {_digits(rate, down=True)}", False, True, reason)


def result_throughput(load: LoadResult) -> Throughput:
    """Of a load result: its own reason first."""
    if load.requests_per_second is None:
        why = load.reason or load.ranked_reason
    else:
        why = load.ranked_reason if load.ranked else load.bottleneck_why
    return throughput(load.requests_per_second, load.bottleneck, ranked=load.ranked, why=why)


def sample_throughput(sample: LoadSample) -> Throughput:
    """Of one window: plain only when the server was its limit and nothing went wrong."""
    fit = sample.bottleneck is Bottleneck.SERVER and not sample.errors
    return throughput(sample.requests_per_second, sample.bottleneck, ranked=fit)


def littles_law(connections: int, depth: int, ratio: float | None) -> str:
    """The self-check of load.md 4.5: what was in flight against rate times mean time."""
    slots = connections * depth
    line = f"N = {connections:,} × depth {depth:,} → {slots:,} in flight"
    if ratio is None:
        return f"{line}; rate × mean time not measured"
    return f"{line}; rate × mean time = {slots * ratio:,.0f} ({ratio * 100:.1f} %)"


def in_flight(column: Column, sample: LoadSample) -> str:
    """Rate times mean time of one window, and its share of what was to be in flight."""
    if sample.littles_law_ratio is None:
        return "not measured"
    slots = column.connections * column.depth
    return f"{slots * sample.littles_law_ratio:,.0f} ({sample.littles_law_ratio * 100:.1f} %)"


def share(ratio: float | None) -> str:
    """A ratio as a whole percentage."""
    return "—" if ratio is None else f"{ratio * 100:.0f} %"


_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def visible(text: str) -> str:
    """Text with every control, bidirectional and surrogate character shown as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in _UNSEEN
        else f"\\u{ord(character):04x}"
        for character in text
    )


def wire(octets: bytes, *, limit: int = _RECEIVED_OCTETS_MAX) -> Markup:
    """Octets as one reads them: printable ASCII as itself, the rest as marked escapes."""
    parts: list[str] = []
    marked = False

    def mark(on: bool) -> None:
        nonlocal marked
        if on != marked:
            parts.append("<b>" if on else "</b>")
            marked = on

    shown = octets[:limit]
    for at, octet in enumerate(shown):
        if 0x20 <= octet < 0x7F and octet != 0x5C:
            mark(False)
            parts.append(str(escape(chr(octet))))
            continue
        mark(True)
        parts.append({9: "\\t", 10: "\\n", 13: "\\r", 0x5C: "\\\\"}.get(octet, f"\\x{octet:02x}"))
        if octet == 10 and at + 1 < len(shown):
            mark(False)
            parts.append("\n")
    mark(False)
    if len(octets) > limit:
        parts.append(f"\n… {len(octets) - limit:,} more octets")
    return Markup("".join(parts))  # every piece above is escaped or our own


def reproducer(sent: bytes) -> str:
    """One line of shell that sends the same octets again, to the host the request names."""
    escapes = {0x0D: "\\r", 0x0A: "\\n", 0x5C: "\\\\", 0x25: "%%", 0x27: "\\047"}
    text = "".join(
        escapes.get(octet, chr(octet) if 0x20 <= octet < 0x7F else f"\\{octet:03o}")
        for octet in sent
    )
    host, port = "127.0.0.1", "8080"
    for line in sent.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        found_host, colon, found_port = value.strip().decode("latin-1").rpartition(":")
        if name.lower() == b"host" and colon and found_port.isascii() and found_port.isdigit():
            if found_host.replace(".", "").replace("-", "").isalnum() and found_host.isascii():
                host, port = found_host, found_port
            break
    if text.startswith("-"):
        text = "\\055" + text[1:]  # else printf takes it for an option
    return f"printf '{text}' | nc -q 2 {host} {port}"


# --- the maps -----------------------------------------------------------------------------------


def _octets_of(case: str, family: str) -> tuple[int, ...] | None:
    """The octets a generated case id names, or None where it names none."""
    tail = case[len(family) :]
    try:
        return tuple(bytes.fromhex(tail.replace("-", ""))) if tail.startswith("-") else None
    except ValueError:
        return None


class Picked(msgspec.Struct, frozen=True):
    """An exchange that stands for others of its family and reading."""

    case: str
    reading: str
    detected: bool
    octets: str
    sent: Markup
    received: Markup
    outcome: str
    end: str
    first_us: int | None
    end_us: int
    reproducer: str


class Map(msgspec.Struct, frozen=True):
    """What one server did with each octet, or pair, of one family."""

    family: FamilyText
    server: str
    title: str
    counts: dict[str, int]
    paths: tuple[tuple[str, str], ...] = ()  # octet maps: reading, SVG path
    letters: str = ""
    light: str = ""  # pair maps: PNG as data URI
    dark: str = ""
    listed: tuple[tuple[str, str], ...] = ()  # octet maps: reading, ranges in hex


class Seen(msgspec.Struct, frozen=True):
    """Everything the page takes from one server's exchanges."""

    maps: dict[str, Map]
    picked: dict[str, tuple[Picked, ...]]
    cells: dict[str, bytes]


def _ranges(octets: Iterable[int]) -> str:
    """Octets as ranges in hex: ``00-1f 7f``."""
    runs: list[list[int]] = []
    for octet in octets:
        if runs and octet == runs[-1][1] + 1:
            runs[-1][1] = octet
        else:
            runs.append([octet, octet])
    return " ".join(f"{a:02x}" if a == b else f"{a:02x}–{b:02x}" for a, b in runs)


def _cells_path(cells: bytes, state: int) -> str:
    """The cells of one state in a 16 x 16 map as an SVG path, one rectangle per run in a row."""
    parts = []
    for row in range(16):
        column = 0
        while column < 16:
            start = column
            while column < 16 and cells[row * 16 + column] == state:
                column += 1
            if column > start:
                parts.append(f"M{start} {row}h{column - start}v1H{start}")
            column += 1
    return "".join(parts)


def _png(cells: bytes, palette: Sequence[str]) -> str:
    """A 256 x 256 map as a data URI: 4 bits per cell, palette, colour 0 transparent."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    packed = bytes(a << 4 | b for a, b in zip(cells[::2], cells[1::2], strict=True))
    rows = b"".join(b"\0" + packed[at : at + 128] for at in range(0, len(packed), 128))
    octets = b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", 256, 256, 4, 3, 0, 0, 0)),
            chunk(b"PLTE", bytes.fromhex("".join(colour or "808080" for colour in palette))),
            chunk(b"tRNS", b"\0"),
            chunk(b"IDAT", zlib.compress(rows, 9)),
            chunk(b"IEND", b""),
        )
    )
    return "data:image/png;base64," + base64.b64encode(octets).decode("ascii")


def _map(server: ServerResult, family: FamilyText, cells: bytes) -> Map:
    counts = {reading: cells.count(at + 1) for at, reading in enumerate(READINGS)}
    present = [(at + 1, reading) for at, reading in enumerate(READINGS) if counts[reading]]
    if family.pair:
        return Map(
            family,
            server.name,
            server.title,
            counts,
            light=_png(cells, _LIGHT),
            dark=_png(cells, _DARK),
        )
    return Map(
        family,
        server.name,
        server.title,
        counts,
        paths=tuple((reading, _cells_path(cells, state)) for state, reading in present),
        letters="".join(_LETTERS[state] for state in cells),
        listed=tuple(
            (reading, _ranges(octet for octet in range(256) if cells[octet] == state))
            for state, reading in present
        ),
    )


def _telling(octets: tuple[int, ...]) -> int:
    """How little a request says to a reader: the smallest stands for its family."""
    return sum(
        _TELLING.index(octet) if octet in _TELLING else len(_TELLING) + (octet >= 0x80)
        for octet in octets
    )


def _named(octets: tuple[int, ...]) -> str:
    return " ".join(
        f"0x{octet:02X}" + (f" ‘{chr(octet)}’" if 0x20 < octet < 0x7F else "") for octet in octets
    )


def look(server: ServerResult, evidence: Evidence) -> Seen:
    """One pass over a server's exchanges: its maps, and the requests that stand for others."""
    texts = {family.id: family for family in FAMILIES}
    cells: dict[str, bytearray] = {}
    best: dict[tuple[str, str], tuple[int, Exchange, bool]] = {}
    fired = (x for name in texts for x in evidence.exchanges(server.name, family=name))
    for exchange in fired:
        text = texts[exchange.family]
        octets = _octets_of(exchange.case, exchange.family)
        if octets is None or len(octets) != 1 + text.pair:
            continue
        detected, read = judge.seed_reading(exchange)
        family_cells = cells.setdefault(text.id, bytearray(65536 if text.pair else 256))
        at = octets[0] * 256 + octets[1] if text.pair else octets[0]
        family_cells[at] = READINGS.index(read) + 1
        weight = _telling(octets)
        known = best.get((text.id, read))
        if known is None or weight < known[0]:
            best[text.id, read] = (weight, exchange, detected)
    picked: dict[str, tuple[Picked, ...]] = {}
    a_rejection_shown = False
    for family in FAMILIES:
        reads = [
            read
            for read in ("accepted", "mute", "malformed", "closed", "void", "rejected")
            if (family.id, read) in best and not (read == "rejected" and a_rejection_shown)
        ]
        a_rejection_shown = a_rejection_shown or "rejected" in reads
        if reads:
            picked[family.id] = tuple(_pick(best[family.id, read], read) for read in reads)
    return Seen(
        {
            family.id: _map(server, family, bytes(cells[family.id]))
            for family in FAMILIES
            if family.id in cells
        },
        picked,
        {family: bytes(found) for family, found in cells.items()},
    )


def _pick(found: tuple[int, Exchange, bool], read: str) -> Picked:
    _, exchange, detected = found
    octets = _octets_of(exchange.case, exchange.family) or ()
    return Picked(
        case=exchange.case,
        reading=read,
        detected=detected,
        octets=_named(octets),
        sent=wire(exchange.sent, limit=_SENT_OCTETS_MAX),
        received=wire(exchange.received),
        outcome=exchange.outcome.value,
        end=exchange.end.value,
        first_us=exchange.first_us,
        end_us=exchange.end_us,
        reproducer=reproducer(exchange.sent),
    )


class Agreement(msgspec.Struct, frozen=True):
    """How alike servers read the same requests: the share with the same accept-or-not."""

    names: tuple[str, ...]
    rows: tuple[tuple[float | None, ...], ...]


def agreement(seen: Mapping[str, Seen]) -> Agreement | None:
    """For each two servers, the share of octets both let through or both did not.

    The octet families only: in the pairs one property is asked 61,692 times. Requests that are
    void on either side do not count.
    """
    names = tuple(name for name, found in seen.items() if found.maps)
    if len(names) < 2:
        return None

    def joined(name: str) -> bytes:
        return b"".join(
            seen[name].cells.get(family.id, bytes(256)) for family in FAMILIES if not family.pair
        )

    accepted, unknown = READINGS.index("accepted") + 1, (0, READINGS.index("void") + 1)

    def alike(a: bytes, b: bytes) -> float | None:
        both = [(x, y) for x, y in zip(a, b, strict=True) if x not in unknown and y not in unknown]
        if not both:
            return None
        return sum((x == accepted) == (y == accepted) for x, y in both) / len(both) * 100

    octets = {name: joined(name) for name in names}
    return Agreement(names, tuple(tuple(alike(octets[a], octets[b]) for b in names) for a in names))


# --- the first screen ---------------------------------------------------------------------------


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
    """The servers in reading order: scored ones by score, controls, then those not measured."""
    made = [_row(at, server) for at, server in enumerate(run.servers)]

    def place(row: Row) -> tuple[object, ...]:
        group = ("scored", "control", "absent").index(row.state)
        suite = row.suite or row.server.compliance.suites.get("rfc")
        score = suite.score_percent if suite else None
        costs = [
            load.cpu_ns_per_request.server
            for load in row.server.load
            if load.cpu_ns_per_request.server is not None
        ]
        return (group, score is None, -(score or 0.0), not costs, costs[0] if costs else 0.0)

    return tuple(sorted(made, key=lambda row: (place(row), row.server.name)))


def _row(at: int, server: ServerResult) -> Row:
    suite = server.compliance.suites.get(SUITE)
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


# --- the environment, and the page's own data ---------------------------------------------------


def flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """A nested mapping as dotted names and printable values."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        if any(isinstance(inner, (dict, list, tuple)) for inner in value):
            for at, inner in enumerate(value):
                yield from flat(inner, f"{name}.{at}")
        else:
            yield name, _cut(" ".join(_scalar(inner) for inner in value) or "none")
    else:
        yield name, _cut(_scalar(value))


def _scalar(value: object) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _STRINGS_MAX else text[:_STRINGS_MAX] + " …"


def embedded(run: Run) -> Markup:
    """The run as JSON for a script block: nothing in it can end the block.

    Histograms and the verdict of each case stay in result.json: they are what is bulky.
    """

    def slim(value: object) -> object:
        if isinstance(value, dict):
            return {key: slim(inner) for key, inner in value.items() if key not in _BULKY}
        if isinstance(value, (list, tuple)):
            return [slim(inner) for inner in value]
        return value

    text = json.dumps(slim(msgspec.to_builtins(run)), ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


# --- the page -----------------------------------------------------------------------------------


def _finalize(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@functools.cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    environment.filters.update(
        count=count,
        percent=percent,
        ns=nanoseconds,
        times=times,
        memory=memory,
        parts=parts,
        share=share,
        octets=lambda value, limit: wire(value, limit=limit),
        again=reproducer,
    )
    return environment


def _own(name: str) -> tuple[Markup, str]:
    """A file of ours that stands in the page as it is, and its hash for the page's policy."""
    text = (TEMPLATES / name).read_text(encoding="utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return Markup(text), f"sha256-{digest}"


MARKS = {
    Word.PASS: "✓",
    Word.WARN: "!",
    Word.FAIL: "✗",
    Word.UNSTABLE: "~",
    Word.VOID: "?",
    Word.NOT_APPLICABLE: "–",
}


def render(run: Run, evidence: Evidence | None) -> str:
    """The HTML report of a run, one file without a network.

    :param evidence: the exchanges, for maps and wire logs; without it those sections say so.
    """
    seen = {}
    if evidence is not None:
        for server in run.servers:
            if not server.unavailable:
                seen[server.name] = look(server, evidence)
    style, style_hash = _own("style.css")
    script, script_hash = _own("script.js")
    server_rows = rows(run)
    made = matrix.matrix(run, catalogue.load(), evidence)
    page = _templates().get_template("page.html")
    ordered = [row.server.name for row in server_rows]
    text = page.render(
        run=run,
        rows=server_rows,
        columns=columns(run),
        requests_most=max((row.suite.requests for row in server_rows if row.suite), default=0),
        matrix=made,
        kept={name: (made.scores[at], made.must[at]) for at, name in enumerate(made.servers)}
        if made is not None
        else {},
        marks=MARKS,
        families=FAMILIES,
        readings=READINGS,
        principle=PRINCIPLE,
        suite_name=SUITE,
        seen=seen,
        agreement=agreement({name: seen[name] for name in ordered if name in seen}),
        has_evidence=evidence is not None,
        environment=tuple(flat(run.environment)),
        data=embedded(run),
        style=style,
        script=script,
        policy=(
            f"default-src 'none'; img-src data:; style-src '{style_hash}'; "
            f"script-src '{script_hash}'; base-uri 'none'; form-action 'none'"
        ),
        sample_throughput=sample_throughput,
        in_flight=in_flight,
        stamps=STAMPS,
    )
    return text + "\n"


# --- the scoreboard -----------------------------------------------------------------------------


def _ascii(text: str) -> str:
    """Text for any terminal: one line of printable ASCII, the rest as escapes."""
    plain = text.replace("×", "x").replace("≥", ">=").replace("–", "-").replace("’", "'")
    return "".join(
        character
        if character.isascii() and character.isprintable()
        else " "
        if character.isspace()
        else character.encode("unicode_escape", "backslashreplace").decode("ascii")
        for character in plain.replace("—", "-").replace("µ", "u")
    )


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "~"


class _Table:
    """Columns of text: the first fills what the others leave."""

    def __init__(self, width: int, *columns: tuple[str, int]) -> None:
        self.widths = [size for _, size in columns]
        used = sum(abs(size) for size in self.widths) + len(columns)
        self.name_width = max(width - used, 6)
        self.heads = [head for head, _ in columns]

    def line(self, name: str, cells: Sequence[str]) -> str:
        parts = [_fit(_ascii(name), self.name_width).ljust(self.name_width)]
        for text, size in zip(cells, self.widths, strict=True):
            fitted = _fit(_ascii(text), abs(size))
            parts.append(fitted.ljust(-size) if size < 0 else fitted.rjust(size))
        return " ".join(parts).rstrip()

    def head(self, name: str) -> str:
        return self.line(name, self.heads)


def _wrapped(text: str, width: int, *, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        _ascii(text), width, initial_indent=indent, subsequent_indent=indent + "  "
    ) or [""]


def _grouped(notes: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Reasons, each once, with the servers it is said of."""
    said: dict[str, list[str]] = {}
    for name, why in notes:
        said.setdefault(why, []).append(name)
    return [
        line
        for why, names in said.items()
        for line in _wrapped(f"{', '.join(names)}: {why}", width)
    ]


def scoreboard(run: Run, *, width: int = 80) -> str:
    """The run in plain text: what the page's first screen says, in short."""
    server_rows = rows(run)
    measured = [row for row in server_rows if row.state != "absent"]
    marks = (
        f"httpmark {run.harness_version}",
        f"run {run.id}",
        run.started,
        *(("quick",) if run.quick else ()),
        *(("INTERRUPTED, partial",) if run.interrupted else ()),
    )
    lines = [_fit(_ascii(" | ".join(marks)), width)]
    lines += _conformance_lines([row for row in measured if row.suite is not None], width)
    lines += _requirement_lines(measured, width)
    for column in columns(run):
        lines += _cost_lines(column, measured, width)
    lines += _memory_lines(measured, width)
    absent = [
        (row.server.name, row.server.unavailable or row.server.died or "")
        for row in server_rows
        if row.state == "absent" or row.server.died
    ]
    if absent:
        lines += ["", "NOT MEASURED, OR NOT TO THE END"]
        for name, why in absent:
            lines += _wrapped(f"{name}: {why}", width)
    for note in run.notes:
        lines += _wrapped(f"note: {note}", width, indent="")
    return "\n".join(lines) + "\n"


def _conformance_lines(measured: Sequence[Row], width: int) -> list[str]:
    if not measured:
        return []
    table = _Table(
        width,
        ("detected", 8),
        ("rejected", 8),
        ("closed", 8),
        ("accepted", 8),
        ("mute", 7),
        ("other", 6),
        ("published", -9),
    )
    most = max(row.suite.requests for row in measured if row.suite)
    lines = [
        "",
        f"CONFORMANCE, suite {SUITE}: {most:,} malformed requests each",
        table.head("server"),
    ]
    notes = []
    for row in measured:
        suite = row.suite
        if suite is None:
            continue
        score = suite.score_percent
        if score is None and suite.reason:
            notes.append((row.server.name, suite.reason))
        cells = [
            "no score" if score is None else f"{percent(score)} %",
            *(count(row.totals[reading]) for reading in READINGS[:4]),
            count(row.totals["malformed"] + row.totals["void"]),
            suite.published or "-",
        ]
        lines.append(table.line(_named_server(row), cells))
    return lines + _grouped(notes, width)


def _requirement_lines(measured: Sequence[Row], width: int) -> list[str]:
    """For each suite of designed cases: the MUSTs and controls of each server by verdict."""
    names = dict.fromkeys(
        name
        for row in measured
        for name, suite in row.server.compliance.suites.items()
        if suite.must is not None
    )
    lines = []
    for name in names:
        table = _Table(
            width, ("kept", 8), ("passed", 7), ("warned", 7), ("failed", 7), ("unstable", 8),
            ("void", 5), ("n/a", 5), ("SHOULD", 7),
        )  # fmt: skip
        lines += ["", f"REQUIREMENTS of level MUST, and controls: suite {name}"]
        lines.append(table.head("server"))
        notes = []
        for row in measured:
            suite = row.server.compliance.suites.get(name)
            if suite is None or suite.must is None:
                continue
            if suite.score_percent is None and suite.reason:
                notes.append((row.server.name, suite.reason))
            keys = ("passed", "warned", "failed", "unstable", "void", "not_applicable")
            missed = suite.levels.get(Level.SHOULD, {}).get(Word.FAIL, 0)
            score = suite.score_percent
            cells = [
                "no score" if score is None else f"{percent(score)} %",
                *(count(suite.must[key]) for key in keys),
                count(missed),
            ]
            lines.append(table.line(_named_server(row), cells))
        lines.append("SHOULD: cases of that level that failed; they gate nothing by themselves")
        lines += _grouped(notes, width)
    return lines


def _named_server(row: Row) -> str:
    return f"{row.server.name} *" if row.server.control else row.server.name


def _cost_lines(column: Column, measured: Sequence[Row], width: int) -> list[str]:
    table = _Table(
        width, ("rank", 4), ("ns/req", 8), ("95 % interval", 17), ("x null", 6), ("req/s", 11),
        ("bound by", -9),
    )  # fmt: skip
    title = (
        f"COST, {column.title}: {column.connections:,} connections x depth {column.depth:,}, "
        "server CPU per request"
    )
    lines = ["", _fit(_ascii(title), width), table.head("server")]
    notes: list[tuple[str, str]] = []
    by_name = {row.server.name: row for row in measured}
    for name in column.order:
        row, cell = by_name.get(name), column.cells[name]
        if row is None:
            continue
        load, interval = cell.load, cell.load.interval_95
        cells = [
            cell.rank or "-",
            nanoseconds(load.cpu_ns_per_request.server),
            f"{nanoseconds(interval[0])} - {nanoseconds(interval[1])}" if interval else "-",
            times(load.cost_over_null) if not row.server.control else "-",
            cell.rate.text,
            cell.stamp.removesuffix("-bound"),
        ]
        lines.append(table.line(_named_server(row), cells))
        if not cell.rate.ranked:
            prefix = "req/s is a lower bound, " if cell.rate.figure else "req/s "
            notes.append((name, prefix + cell.rate.why))
        if not interval and load.interval_reason:
            notes.append((name, f"no interval, {load.interval_reason}"))
        if (
            load.cost_rank is None
            and load.cost_rank_reason
            and load.cost_rank_reason != load.interval_reason
            and not row.server.control
        ):
            notes.append((name, f"cost not ranked, {load.cost_rank_reason}"))
    if any(row.server.control for row in measured):
        notes.append(("*", "control, measured for calibration and never ranked"))
    return lines + _grouped(notes, width)


def _memory_lines(measured: Sequence[Row], width: int) -> list[str]:
    known = [row for row in measured if row.server.memory or row.server.memory_reason]
    if not known:
        return []
    table = _Table(width, ("VmPeak", 12), ("VmHWM", 12), ("PSS", 12), ("connections", 12))
    lines = [
        "",
        _fit("MEMORY of the process tree; VmPeak is virtual: address space, not memory", width),
        table.head("server"),
    ]
    notes = []
    for row in known:
        held = row.server.memory
        if held is None:
            notes.append((row.server.name, row.server.memory_reason or "not measured"))
            continue
        figures = (held.vmpeak_kb, held.vmhwm_kb, held.pss_kb)
        cells = [*(memory(figure) for figure in figures), count(held.connections_held)]
        lines.append(table.line(_named_server(row), cells))
    return lines + _grouped(notes, width)
