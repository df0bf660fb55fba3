"""Byte maps: each byte in its place, the same in colour, in words and for every suite."""

from __future__ import annotations

import base64
import itertools
import math
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Unpack

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.judging.exchange_reader import Wanted
from httpmark.harness.model.cases import Facts, Level
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.run import ServerResult
from httpmark.harness.model.verdicts import Compliance, SuiteResult, Tally, Word
from httpmark.harness.report import byte_maps, html_page
from httpmark.harness.tests.shared.made_run import BAD, OCTET_FAMILIES, OK, MadeEvidence, made_run

KNOWN = loading.load()
PLACES = byte_maps.places(KNOWN)


def look(server: ServerResult, *only: str) -> byte_maps.Seen:
    return byte_maps.look(server, MadeEvidence(only=only or OCTET_FAMILIES), PLACES)


def decoded(uri: str) -> tuple[bytes, bytes]:
    """The cells and the palette of a 256 x 256 PNG with four bits per cell."""
    octets = base64.b64decode(uri.removeprefix("data:image/png;base64,"), validate=True)
    assert octets[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(octets):
        (size,) = struct.unpack(">I", octets[at : at + 4])
        kind, content = octets[at + 4 : at + 8], octets[at + 8 : at + 8 + size]
        (check,) = struct.unpack(">I", octets[at + 8 + size : at + 12 + size])
        assert check == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + size
    rows = zlib.decompress(chunks[b"IDAT"])
    assert len(rows) == 256 * 129
    cells = b"".join(
        bytes(nibble for octet in rows[at + 1 : at + 129] for nibble in (octet >> 4, octet & 15))
        for at in range(0, len(rows), 129)
    )
    return cells, chunks[b"PLTE"]


def test_a_pair_map_has_each_pair_in_its_place() -> None:
    server = made_run(("rust_hyper",), only=("path_pct_pair",)).servers[0]
    drawn = look(server, "path_pct_pair").maps["path_pct_pair"]
    light, light_palette = decoded(drawn.light)
    dark, dark_palette = decoded(drawn.dark)
    assert light == dark
    assert light_palette != dark_palette
    assert 65536 - light.count(0) == 61692
    accepted = 1 + byte_maps.READINGS.index("accepted")
    for exchange in MadeEvidence(only=("path_pct_pair",)).exchanges("rust_hyper"):
        first, second = bytes.fromhex(exchange.case[-5:].replace("-", ""))
        assert (light[first * 256 + second] == accepted) == (exchange.received == OK)


def test_a_byte_map_draws_each_byte_once_and_lists_it() -> None:
    server = made_run(("rust_hyper",), only=OCTET_FAMILIES).servers[0]
    for drawn in look(server).maps.values():
        painted: dict[int, str] = {}
        for reading, path in drawn.paths:
            for x, y, width, height, back in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)H(\d+)", path):
                assert x == back
                for row in range(int(y), int(y) + int(height)):
                    for column in range(int(x), int(x) + int(width)):
                        assert row * 16 + column not in painted
                        painted[row * 16 + column] = reading
        cells = look(server).cells[drawn.place.key]
        assert {at: 1 + byte_maps.READINGS.index(word) for at, word in painted.items()} == {
            at: state for at, state in enumerate(cells) if state
        }
        listed: dict[int, str] = {}
        for reading, ranges in drawn.listed:
            for item in ranges.split():
                first, _, last = item.partition("–")
                for octet in range(int(first, 16), int(last or first, 16) + 1):
                    listed[octet] = reading
        assert listed == painted


def test_colours_of_page_and_maps_are_the_same() -> None:
    style = (html_page.TEMPLATES / "style.css").read_text()
    light, _, dark = style.partition("@media screen and (prefers-color-scheme:dark)")
    assert dark
    for sheet, palette in ((light, byte_maps.LIGHT), (dark, byte_maps.DARK)):
        for reading, colour in zip(byte_maps.READINGS, palette[1:], strict=True):
            assert f"--{reading}:#{colour}" in sheet


Linear = tuple[float, float, float]

# What the eye makes of a colour: G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A
# physiologically-based model for simulation of color vision deficiency" (2009), severity 1.0, in
# linear sRGB.
EYES = {
    "all cones": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}


def linear(colour: str) -> Linear:
    """An sRGB colour in linear light (IEC 61966-2-1)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    r, g, b = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return r, g, b


def lab(colour: Linear) -> Linear:
    """CIE 1976 L*a*b*, white D65."""
    rows = (
        (0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750),
        (0.0193339, 0.1191920, 0.9503041),
    )  # fmt: skip
    x, y, z = (
        sum(a * b for a, b in zip(row, colour, strict=True)) / white
        for row, white in zip(rows, (0.95047, 1.0, 1.08883), strict=True)
    )

    def f(t: float) -> float:
        return math.cbrt(t) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116

    return 116 * f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))


def seen_by(eye: str, colour: str) -> Linear:
    light = linear(colour)
    r, g, b = (
        min(max(sum(a * b for a, b in zip(row, light, strict=True)), 0.0), 1.0) for row in EYES[eye]
    )
    return lab((r, g, b))


def luminance(colour: str) -> float:
    r, g, b = linear(colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    """WCAG 2.2's contrast ratio."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def ground(name: str, *, dark: bool) -> str:
    style = (html_page.TEMPLATES / "style.css").read_text()
    found: list[str] = re.findall(rf"--{name}:#([0-9a-f]{{6}})", style)
    return found[1 if dark else 0]


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("palette", [byte_maps.LIGHT, byte_maps.DARK], ids=["light", "dark"])
def test_any_two_readings_are_told_apart_by_every_eye(palette: tuple[str, ...], eye: str) -> None:
    for one, other in itertools.combinations(palette[1:], 2):
        assert math.dist(seen_by(eye, one), seen_by(eye, other)) >= 20, (one, other)


@pytest.mark.parametrize("palette", [byte_maps.LIGHT, byte_maps.DARK], ids=["light", "dark"])
def test_readings_stand_out_from_their_ground_and_letters_from_them(
    palette: tuple[str, ...],
) -> None:
    dark = palette is byte_maps.DARK
    for colour in palette[1:]:
        assert contrast(colour, ground("faint", dark=dark)) >= 3, "WCAG 1.4.11"
        assert contrast(colour, ground("paper", dark=dark)) >= 4.5, "an initial stands on it"


def test_readings_differ_in_lightness_not_only_in_hue() -> None:
    for palette in (byte_maps.LIGHT, byte_maps.DARK):
        for one, other in itertools.combinations(palette[1:5], 2):
            assert contrast(one, other) > 1.4, (one, other)


def test_the_logs_show_what_was_let_through_first() -> None:
    server = made_run(("rust_hyper",), only=OCTET_FAMILIES).servers[0]
    picked = look(server).picked
    assert [pick.reading for pick in picked["path_byte"]] == ["accepted", "closed", "rejected"]
    assert [pick.reading for pick in picked["query_byte"]] == ["accepted", "closed", "rejected"]
    assert not picked["path_byte"][0].detected
    assert picked["path_byte"][0].case == "path_byte-22"


# --- places are found in the catalogue ----------------------------------------------------------


def test_families_that_send_the_same_text_share_a_place() -> None:
    by_key = {place.key: place for place in PLACES}
    last = by_key["path_octet_last"]
    assert last.families == {"path_octet_last", "path_octet_good"}
    assert last.where == "GET /hello▮ HTTP/1.1"
    assert last.label == "/hello▮"
    assert byte_maps.ranges(sorted(last.allowed)) == "21 24 26–3b 3d 40–5a 5f 61–7a 7e"
    assert len(last.allowed) == KNOWN.families["path_octet_good"].count
    assert by_key["method_octet"].where == "G▮T /hello HTTP/1.1"
    assert by_key["path_pair"].pair
    assert by_key["path_pair"].families >= {"path_pair", "path_pair_good", "path_pair_letters"}


def test_every_family_of_bytes_and_pairs_has_a_place_in_its_suite() -> None:
    placed = [id for place in PLACES for id in place.families]
    assert len(placed) == len(set(placed))
    for id, rule in KNOWN.rules.items():
        if rule.varies in (("octet",), ("pair",)) and KNOWN.families[id].level is not Level.CTRL:
            assert id in placed, id
    for place in PLACES:
        assert {KNOWN.families[id].suite for id in place.families} == {place.suite}


class Stored:
    """Answers of one server to two bytes and a control of one place."""

    def facts(self, server: str) -> Facts | None:
        return None

    def exchanges(self, server: str, **wanted: Unpack[Wanted]) -> Iterator[Exchange]:
        for id, slug, received in (
            ("method_octet", "method_octet-00", BAD),
            ("method_octet", "method_octet-22", OK),
            ("method_octet_good", "method_octet_good-21", BAD),
            ("bare-cr", "bare-cr", BAD),
            ("head-alone", "head-alone", OK[:-12]),
        ):
            sent = b"HEAD / HTTP/1.1\r\n\r\n" if id == "head-alone" else b""
            yield Exchange(slug, id, sent, received, Outcome.ANSWERED, End.CLOSED, 1, 2, 0)


def test_bytes_that_may_stand_there_are_drawn_and_marked_but_not_counted() -> None:
    server = made_run(("reference",), only=OCTET_FAMILIES).servers[0]
    tally = Tally(words={Level.CTRL: {Word.PASS: 76, Word.FAIL: 1}})
    suite = SuiteResult(score_percent=None, generated={"method_octet_good": tally})
    server = msgspec.structs.replace(server, compliance=Compliance({"rfc": suite}))
    seen = byte_maps.look(server, Stored(), PLACES)
    drawn = seen.maps["method_octet"]
    assert {word: number for word, number in drawn.counts.items() if number} == {
        "rejected": 1,
        "accepted": 1,
    }
    assert drawn.listed == (("rejected", "00"), ("accepted", "22"))
    assert dict(drawn.paths)["rejected"] == "M0 0h1v1H0M1 2h1v1H1"
    assert drawn.failed == 1
    assert seen.cells["method_octet"][0x21] == 0
    assert seen.readings == {"bare-cr": "rejected", "head-alone": "accepted"}
    assert byte_maps.dots(drawn.place).startswith("M1.4 2.5h1M3.4 2.5h5")


# --- what several servers did alike stands once --------------------------------------------------


def test_servers_that_did_the_same_share_a_map_but_never_with_a_control() -> None:
    run = made_run(("reference", "nginx", "null", "lithium"), only=OCTET_FAMILIES)
    seen = {server.name: look(server) for server in run.servers if not server.unavailable}
    shown = [place for place in PLACES if place.key == "path_byte"]
    [found] = byte_maps.alike(shown, run.servers, seen).values()
    assert [[server.name for server in one.servers] for one in found] == [
        ["reference", "nginx"],
        ["null"],
        ["lithium"],
    ]


def test_each_way_a_family_was_taken_stands_once_with_all_who_took_it() -> None:
    run = made_run(("reference", "rust_hyper", "other_hyper"), only=OCTET_FAMILIES)
    seen = {server.name: look(server) for server in run.servers if not server.unavailable}
    found = [one for one in byte_maps.taken(run.servers, seen) if one.family.id == "path_byte"]
    assert [(one.reading, [server.name for server in one.servers]) for one in found] == [
        ("accepted", ["rust_hyper", "other_hyper"]),
        ("closed", ["rust_hyper", "other_hyper"]),
        ("rejected", ["reference", "rust_hyper", "other_hyper"]),
    ]
    assert found[0].of.name == "rust_hyper"
