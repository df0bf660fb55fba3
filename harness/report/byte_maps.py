"""Byte maps: what a server did with each byte, or each pair of bytes, at one place of a request.

Places are found, not listed: families of a suite that send the same text, but for one byte or one
pair that varies, share a map. So a map shows the allowed bytes (those of a control) beside the
others, and a new scenario file that varies a byte elsewhere gets a map without a change here.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from markupsafe import Markup

from httpmark.harness.catalogue import variations
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.http import printable, shell_lines
from httpmark.harness.judging import published_rule
from httpmark.harness.judging.exchange_reader import ExchangeReader
from httpmark.harness.model.cases import Facts, Level
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.run import ServerResult
from httpmark.harness.model.verdicts import Word

READINGS = ("rejected", "closed", "accepted", "mute", "malformed", "void")
"""The strict readings, in the order they are drawn; a map's cell holds 1 + the index."""

# Distinct for readers who cannot tell red from green, and from the background; tests measure it.
LIGHT = ("", "1f5c96", "1f354c", "c44d0c", "13043d", "563a00", "6e6e6e")
DARK = ("", "3b88c0", "e4f4fb", "f5834d", "d8b8fc", "f1dd5a", "8c8c8c")
_TOLD_FIRST = ("accepted", "mute", "malformed", "closed", "void", "rejected")
_SENT_BYTES_MAX = 240

# The bytes that say most to a reader when one request must stand for a family, the best first.
_TELLING = (0x00, 0x0D, 0x20, 0x22, 0x3C, 0x7C, 0x23, 0x25, 0x09, 0x0A, 0x7F, 0x80, 0xFF)
# How little each byte says: the request with the smallest sum stands for its family. 0x00 adds
# nothing, so that one byte may be read as a pair.
_TELLS_LITTLE = bytes(
    _TELLING.index(octet) if octet in _TELLING else len(_TELLING) + (octet >= 0x80)
    for octet in range(256)
)
_VARIES = re.compile(r"\{(octet|pair)\}")
_MARK = {"octet": "▮", "pair": "▮▮"}


class FamilyText(msgspec.Struct, frozen=True):
    """How a published family is named to a reader."""

    id: str
    title: str
    where: str
    pair: bool


FAMILIES = (
    FamilyText("path_byte", "Path bytes", "GET /hello▮ HTTP/1.1", False),
    FamilyText("query_byte", "Query bytes", "GET /hello?▮ HTTP/1.1", False),
    FamilyText("field_name_byte", "Field-name bytes", "▮: value", False),
    FamilyText("field_value_byte", "Field-value bytes", "name: ▮", False),
    FamilyText("path_pct_pair", "Percent pairs in the path", "GET /hello%▮▮ HTTP/1.1", True),
    FamilyText("query_pct_pair", "Percent pairs in the query", "GET /hello?%▮▮ HTTP/1.1", True),
)


class Place(msgspec.Struct, frozen=True):
    """A place of a request where one byte, or one pair, varies."""

    key: str  # the id of its first family that is no control
    suite: str
    where: str  # the line of the request, with a mark for what varies
    titles: tuple[str, ...]
    families: frozenset[str]
    pair: bool
    allowed: frozenset[int]  # cells that may stand there: those of a control
    controls: tuple[str, ...]

    @property
    def label(self) -> str:
        """The line without what is the same in all of them."""
        return self.where.removeprefix("GET ").removesuffix(" HTTP/1.1")


def places(known: Catalogue) -> tuple[Place, ...]:
    """The places of all suites, in the order of their families; those of bytes first."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for family in known.families.values():
        if known.rules[family.id].varies in (("octet",), ("pair",)):
            alike.setdefault((family.suite, known.rules[family.id].sends), []).append(family.id)
    found = []
    for (suite, sends), ids in alike.items():
        controls = tuple(id for id in ids if known.families[id].level is Level.CTRL)
        others = [id for id in ids if id not in controls]
        if not sends or not others:
            continue
        varies = known.rules[ids[0]].varies[0]
        found.append(
            Place(
                key=others[0],
                suite=suite,
                where=_where(sends),
                titles=tuple(known.families[id].title for id in (*others, *controls)),
                families=frozenset(ids),
                pair=varies == "pair",
                allowed=frozenset(
                    int.from_bytes(value)
                    for id in controls
                    for one in variations.variations(known.rules[id])
                    if isinstance(value := one.values[varies], bytes)
                ),
                controls=controls,
            )
        )
    return tuple(sorted(found, key=lambda place: place.pair))


def _where(sends: Sequence[str]) -> str:
    """The line in which a byte varies, as a reader would see it."""
    line = next(line for text in sends for line in text.split(r"\r\n") if _VARIES.search(line))
    return _VARIES.sub(lambda found: _MARK[found[1]], line).replace("{p}", "/hello")


def bytes_of(case: str, family: str) -> bytes | None:
    """The bytes a generated case id names, or None where it names none."""
    tail = case[len(family) :]
    try:
        return bytes.fromhex(tail.replace("-", "")) if tail.startswith("-") else None
    except ValueError:
        return None


class Picked(msgspec.Struct, frozen=True):
    """An exchange that stands for others of its family and reading."""

    case: str
    reading: str
    detected: bool
    named: str  # the byte or pair, for a reader
    sent: Markup
    received: Markup
    outcome: str
    end: str
    first_us: int | None
    end_us: int
    reproducer: str


class Map(msgspec.Struct, frozen=True):
    """What one server did with each byte, or pair, at one place.

    ``counts`` and ``listed`` are of what may not stand there; ``failed`` is how many of those that
    may were no pass, by the verdicts of the run.
    """

    place: Place
    server: str
    title: str
    counts: dict[str, int]
    failed: int
    paths: tuple[tuple[str, str], ...] = ()  # byte maps: reading, SVG path
    light: str = ""  # pair maps: PNG as data URI
    dark: str = ""
    listed: tuple[tuple[str, str], ...] = ()  # byte maps: reading, ranges in hex


class Seen(msgspec.Struct, frozen=True):
    """Everything the page takes from one server's exchanges."""

    maps: dict[str, Map]  # by the key of the place
    picked: dict[str, tuple[Picked, ...]]  # by published family
    cells: dict[str, bytes]  # by the key of the place: what may not stand there
    readings: dict[str, str]  # of each case that is alone in its family


def ranges(found: Iterable[int]) -> str:
    """Bytes as ranges in hex: ``00-1f 7f``."""
    runs: list[list[int]] = []
    for octet in found:
        if runs and octet == runs[-1][1] + 1:
            runs[-1][1] = octet
        else:
            runs.append([octet, octet])
    return " ".join(f"{a:02x}" if a == b else f"{a:02x}–{b:02x}" for a, b in runs)


def _runs(cells: Sequence[bool]) -> Iterator[tuple[int, int, int]]:
    """The runs of a 16 x 16 map, row by row: row, first column, length."""
    for row in range(16):
        column = 0
        while column < 16:
            start = column
            while column < 16 and cells[row * 16 + column]:
                column += 1
            if column > start:
                yield row, start, column - start
            column += 1


def _cells_path(cells: bytes, state: int) -> str:
    """The cells of one state in a 16 x 16 map as an SVG path; equal runs in rows that follow each
    other are one rectangle.
    """
    heights: dict[tuple[int, int, int], int] = {}
    below: dict[tuple[int, int], int] = {}  # the row in which a rectangle that may grow began
    row_before = -1
    for row, start, length in _runs([cell == state for cell in cells]):
        if row != row_before:
            above, below = (below if row == row_before + 1 else {}), {}
            row_before = row
        first = above.get((start, length), row)
        below[start, length] = first
        heights[first, start, length] = row - first + 1
    return "".join(
        f"M{start} {first}h{length}v{height}H{start}"
        for (first, start, length), height in heights.items()
    )


def dots(place: Place) -> str:
    """Lines through the cells that may stand at a place, as an SVG path; drawn as dots."""
    cells = [cell in place.allowed for cell in range(256)]
    return "".join(f"M{start}.4 {row}.5h{length}" for row, start, length in _runs(cells))


def _png(cells: bytes, palette: Sequence[str]) -> str:
    """A 256 x 256 map as a data URI: 4 bits per cell, palette, colour 0 transparent."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    packed = bytes(a << 4 | b for a, b in zip(cells[::2], cells[1::2], strict=True))
    rows = b"".join(b"\0" + packed[at : at + 128] for at in range(0, len(packed), 128))
    png = b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", 256, 256, 4, 3, 0, 0, 0)),
            chunk(b"PLTE", bytes.fromhex("".join(colour or "808080" for colour in palette))),
            chunk(b"tRNS", b"\0"),
            chunk(b"IDAT", zlib.compress(rows, 9)),
            chunk(b"IEND", b""),
        )
    )
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _forbidden(place: Place, cells: bytes) -> bytes:
    """The cells of what may not stand at a place."""
    left = bytearray(cells)
    for cell in place.allowed:
        left[cell] = 0
    return bytes(left)


def _map(server: ServerResult, place: Place, cells: bytes) -> Map:
    forbidden = _forbidden(place, cells)
    counts = {reading: forbidden.count(at + 1) for at, reading in enumerate(READINGS)}
    present = [(at + 1, reading) for at, reading in enumerate(READINGS) if at + 1 in cells]
    drawn = Map(place, server.name, server.title, counts, _failed(server, place))
    if place.pair:
        return msgspec.structs.replace(drawn, light=_png(cells, LIGHT), dark=_png(cells, DARK))
    return msgspec.structs.replace(
        drawn,
        paths=tuple((reading, _cells_path(cells, state)) for state, reading in present),
        listed=tuple(
            (reading, ranges(octet for octet in range(256) if forbidden[octet] == state))
            for state, reading in present
            if counts[reading]
        ),
    )


def _failed(server: ServerResult, place: Place) -> int:
    """How many requests that may stand at a place were no pass."""
    suite = server.compliance.suites.get(place.suite)
    tallies = suite.generated if suite is not None else {}
    return sum(
        words.get(word, 0)
        for id in place.controls
        if id in tallies
        for words in tallies[id].words.values()
        for word in (Word.FAIL, Word.UNSTABLE)
    )


class Alike(msgspec.Struct, frozen=True):
    """Servers that did the same at a place, and the map of the first of them."""

    map: Map
    servers: tuple[ServerResult, ...]


def alike(
    shown: Iterable[Place], servers: Iterable[ServerResult], seen: Mapping[str, Seen]
) -> dict[str, tuple[Alike, ...]]:
    """By the key of a place: equal maps once, in the order of the servers."""
    known = [server for server in servers if server.name in seen]
    found: dict[str, tuple[Alike, ...]] = {}
    for place in shown:
        groups: dict[tuple[object, ...], list[ServerResult]] = {}
        for server in known:
            if (drawn := seen[server.name].maps.get(place.key)) is not None:
                key = (drawn.light, drawn.paths, drawn.listed, drawn.failed, server.control)
                groups.setdefault(key, []).append(server)
        found[place.key] = tuple(
            Alike(seen[same[0].name].maps[place.key], tuple(same)) for same in groups.values()
        )
    return found


class Taken(msgspec.Struct, frozen=True):
    """One way a published family was taken: by whom, and the request that shows it best."""

    family: FamilyText
    reading: str
    servers: tuple[ServerResult, ...]
    pick: Picked
    of: ServerResult  # whose answer it is


def taken(servers: Iterable[ServerResult], seen: Mapping[str, Seen]) -> tuple[Taken, ...]:
    """Each way a published family was taken, by family, what was let through first."""
    found: dict[tuple[str, str], list[tuple[ServerResult, Picked]]] = {}
    for server in servers:
        if server.name in seen:
            for family, picks in seen[server.name].picked.items():
                for pick in picks:
                    found.setdefault((family, pick.reading), []).append((server, pick))
    return tuple(
        Taken(family, reading, tuple(server for server, _ in same), same[0][1], same[0][0])
        for family in FAMILIES
        for reading in _TOLD_FIRST
        if (same := found.get((family.id, reading)))
    )


def _named(found: bytes) -> str:
    return " ".join(
        f"0x{octet:02X}" + (f" ‘{chr(octet)}’" if 0x20 < octet < 0x7F else "") for octet in found
    )


def look(server: ServerResult, evidence: ExchangeReader, known: Sequence[Place]) -> Seen:
    """One pass over a server's exchanges: its maps, and the requests that stand for others."""
    place_of = {id: place for place in known for id in place.families}
    published = {family.id for family in FAMILIES}
    cells: dict[str, bytearray] = {}
    best: dict[tuple[str, str], tuple[int, Exchange, bool]] = {}
    readings: dict[str, str] = {}
    state_of = {reading: at + 1 for at, reading in enumerate(READINGS)}
    facts = evidence.facts(server.name)
    for exchange in evidence.exchanges(server.name):
        place = place_of.get(exchange.family)
        if place is None:
            if exchange.case == exchange.family:
                readings[exchange.case] = published_rule.reading_of(_first_alone(exchange), facts)[
                    1
                ]
            continue
        found = bytes_of(exchange.case, exchange.family)
        if found is None or len(found) != 1 + place.pair:
            continue
        detected, read = published_rule.reading_of(exchange, facts)
        if (own := cells.get(place.key)) is None:
            own = cells[place.key] = bytearray(65536 if place.pair else 256)
        cell = int.from_bytes(found)
        own[cell] = state_of[read]
        if exchange.family in published:
            weight = _TELLS_LITTLE[cell >> 8] + _TELLS_LITTLE[cell & 0xFF]
            so_far = best.get((exchange.family, read))
            if so_far is None or weight < so_far[0]:
                best[exchange.family, read] = (weight, exchange, detected)
    return Seen(
        {
            place.key: _map(server, place, bytes(cells[place.key]))
            for place in known
            if place.key in cells
        },
        _picks(best, server, facts),
        {
            place.key: _forbidden(place, bytes(cells[place.key]))
            for place in known
            if place.key in cells
        },
        readings,
    )


def _first_alone(exchange: Exchange) -> Exchange:
    """The exchange, its answer read as one without content where the first method asks for none."""
    without = exchange.sent.lstrip(b"\r\n").startswith((b"HEAD ", b"CONNECT "))
    return msgspec.structs.replace(exchange, head_only=True) if without else exchange


def _picks(
    best: Mapping[tuple[str, str], tuple[int, Exchange, bool]],
    server: ServerResult,
    facts: Facts | None,
) -> dict[str, tuple[Picked, ...]]:
    """For each published family a request per reading, what was let through first."""
    picked: dict[str, tuple[Picked, ...]] = {}
    for family in FAMILIES:
        reads = [read for read in _TOLD_FIRST if (family.id, read) in best]
        if reads:
            picked[family.id] = tuple(
                _pick(best[family.id, read], read, server, facts) for read in reads
            )
    return picked


def _pick(
    found: tuple[int, Exchange, bool], read: str, server: ServerResult, facts: Facts | None
) -> Picked:
    _, exchange, detected = found
    gone = server.again[:1] == ("--serve",)
    by_hand = None if gone else shell_lines.by_hand(exchange, facts)
    return Picked(
        case=exchange.case,
        reading=read,
        detected=detected,
        named=_named(bytes_of(exchange.case, exchange.family) or b""),
        sent=printable.page_bytes(exchange.sent, limit=_SENT_BYTES_MAX),
        received=printable.page_bytes(exchange.received),
        outcome=exchange.outcome.value,
        end=exchange.end.value,
        first_us=exchange.first_us,
        end_us=exchange.end_us,
        reproducer=by_hand or shell_lines.command(exchange.case, "seed", server.again),
    )
