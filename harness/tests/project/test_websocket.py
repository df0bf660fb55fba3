"""The reference server's WebSocket from outside, octet by octet.

The families of cases are those that the Autobahn test-suite publishes for servers, written anew:
each says what a client sends and every octet that it wants back. Each goes out whole and octet by
octet, over epoll and io_uring, in TCP and TLS.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from httpmark.harness.tests.shared import websocket_frames as ws
from httpmark.harness.tests.shared.pytest_rules import starts_process
from httpmark.harness.tests.shared.websocket_place import Place, serving

BYE = ws.close(1000, b"bye")
BYE_BACK = ws.plain(ws.FIN | ws.CLOSE, b"\x03\xe8")
DEADLINE_S = 60.0
OCTET_BY_OCTET_MAX = 3000  # more is sent in pieces of this many octets
GREEK = "κόσμε".encode()


@dataclass(frozen=True)
class Case:
    name: str
    sent: bytes
    wanted: bytes


def refused(code: int, reason: bytes) -> bytes:
    """The Close frame for a violation: its code and its name."""
    return ws.plain(ws.FIN | ws.CLOSE, code.to_bytes(2) + reason)


def text_back(payload: bytes = b"") -> bytes:
    return ws.plain(ws.FIN | ws.TEXT, payload)


def binary_back(payload: bytes = b"") -> bytes:
    return ws.plain(ws.FIN | ws.BINARY, payload)


def pong_back(payload: bytes = b"") -> bytes:
    return ws.plain(ws.FIN | ws.PONG, payload)


def framing() -> Iterator[Case]:
    for number, size in enumerate((0, 125, 126, 127, 128, 65535, 65536), 1):
        stars, octets = b"*" * size, b"\xfe" * size
        yield Case(f"1.1.{number}", ws.text(stars) + BYE, text_back(stars) + BYE_BACK)
        yield Case(f"1.2.{number}", ws.binary(octets) + BYE, binary_back(octets) + BYE_BACK)


def pings_and_pongs() -> Iterator[Case]:
    for name, payload in (
        ("2.1", b""),
        ("2.2", b"Hello, world!"),
        ("2.3", b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff"),
        ("2.4", b"\xfe" * 125),
    ):
        yield Case(name, ws.ping(payload) + BYE, pong_back(payload) + BYE_BACK)
    yield Case("2.5", ws.ping(b"\xfe" * 126) + BYE, refused(1002, b"control-too-long"))
    yield Case("2.7", ws.pong() + BYE, BYE_BACK)
    yield Case("2.8", ws.pong(b"unasked") + BYE, BYE_BACK)
    yield Case("2.9", ws.pong(b"unasked") + ws.ping(b"p") + BYE, pong_back(b"p") + BYE_BACK)
    ten = [b"payload-%d" % number for number in range(10)]
    answers = b"".join(map(pong_back, ten)) + BYE_BACK
    yield Case("2.10", b"".join(map(ws.ping, ten)) + BYE, answers)


def reserved_bits() -> Iterator[Case]:
    no = refused(1002, b"reserved-bit")
    for rsv in range(1, 8):
        bits = ws.FIN | rsv << 4
        first = ws.text(b"small")
        bad = ws.masked(bits | ws.TEXT, b"small")
        yield Case(f"3.1 rsv {rsv}", bad + BYE, no)
        yield Case(f"3.2 rsv {rsv}", first + bad + ws.ping(), text_back(b"small") + no)
        yield Case(f"3.5 rsv {rsv}", ws.masked(bits | ws.BINARY, b"\xff" * 8) + BYE, no)
        yield Case(f"3.6 rsv {rsv}", ws.masked(bits | ws.PING, b"ping") + BYE, no)
        yield Case(f"3.7 rsv {rsv}", ws.masked(bits | ws.CLOSE, b"\x03\xe8"), no)


def opcodes() -> Iterator[Case]:
    no = refused(1002, b"opcode-unknown")
    for opcode in (*range(3, 8), *range(11, 16)):
        empty, full = ws.masked(ws.FIN | opcode), ws.masked(ws.FIN | opcode, b"reserved")
        yield Case(f"4 opcode {opcode}", empty + BYE, no)
        yield Case(f"4 opcode {opcode} with payload", full + BYE, no)
        after = ws.text(b"Hello") + full + ws.ping()
        yield Case(f"4 opcode {opcode} after text", after, text_back(b"Hello") + no)


def fragments() -> Iterator[Case]:
    nothing = refused(1002, b"continuation-of-nothing")
    unfinished = refused(1002, b"message-not-finished")
    control = refused(1002, b"control-fragmented")
    two = [b"fragment1", b"fragment2"]
    both = text_back(b"".join(two))
    whole = ws.parts(ws.TEXT, two)
    last = ws.masked(ws.FIN | ws.CONTINUATION, b"late")
    middle = ws.masked(ws.CONTINUATION, b"late")
    hello = ws.text(b"Hello")
    yield Case("5.1", ws.parts(ws.PING, two) + BYE, control)
    yield Case("5.2", ws.parts(ws.PONG, two) + BYE, control)
    yield Case("5.3", whole + BYE, both + BYE_BACK)
    yield Case(
        "5.6", ws.parts(ws.TEXT, two, ws.ping(b"p")) + BYE, pong_back(b"p") + both + BYE_BACK
    )
    yield Case("5.7", ws.parts(ws.TEXT, two, ws.pong(b"p")) + BYE, both + BYE_BACK)
    yield Case("5.9", last + hello + BYE, nothing)
    yield Case("5.12", middle + hello + BYE, nothing)
    yield Case("5.15", whole + middle + hello + BYE, both + nothing)
    yield Case("5.16", middle + whole + middle + whole + BYE, nothing)
    yield Case("5.17", last + whole + last + whole + BYE, nothing)
    twice = ws.masked(ws.TEXT, two[0]) + ws.masked(ws.FIN | ws.TEXT, two[1])
    yield Case("5.18", twice + BYE, unfinished)
    five = [b"fragment%d" % number for number in range(1, 6)]
    answers = pong_back(b"p") * 4 + text_back(b"".join(five)) + BYE_BACK
    yield Case("5.19", ws.parts(ws.TEXT, five, ws.ping(b"p")) + BYE, answers)


def unicode_texts() -> Iterator[bytes]:
    """Markus Kuhn's list: what is at the edges of UTF-8, and behind them."""
    yield from (b"", GREEK, GREEK + b"\xf4\x90\x80\x80" + b"edited", GREEK + b"\xed\xa0\x80")
    yield from (GREEK[:end] for end in range(1, len(GREEK)))
    first = (0x0, 0x80, 0x800, 0x10000, 0x200000, 0x4000000)
    last = (0x7F, 0x7FF, 0xFFFF, 0x1FFFFF, 0x3FFFFFF, 0x7FFFFFFF)
    edges = (0xD7FF, 0xE000, 0xFFFD, 0x10FFFF, 0x110000, 0xFFFE, 0xFFFF)
    for point in (*first, *last, *edges):
        yield generalized(point)
    for size in range(1, 8):
        yield b"\x80\xbf" * (size // 2) + b"\x80" * (size % 2)
    yield bytes(range(0x80, 0xC0))
    for starts in (range(0xC0, 0xE0), range(0xE0, 0xF0), range(0xF0, 0xF8), range(0xF8, 0xFE)):
        yield b"".join(bytes((start, 0x20)) for start in starts)
    whole = [generalized(point) for point in (*first[1:], *last[1:])]
    yield from (one[:-1] for one in whole)
    yield b"".join(one[:-1] for one in whole)
    yield from (b"\xfe", b"\xff", b"\xfe\xfe\xff\xff")
    for point in (0x2F, 0x7F, 0x0, 0x7FF, 0xFFFF):
        yield from (generalized(point, size) for size in range(2, 7))
    surrogates = (0xD800, 0xDB7F, 0xDB80, 0xDBFF, 0xDC00, 0xDF80, 0xDFFF)
    yield from map(generalized, surrogates)
    for high in surrogates[:4]:
        yield from (generalized(high) + generalized(low) for low in (0xDC00, 0xDFFF))
    for plane in range(17):
        yield from (generalized(plane << 16 | end) for end in (0xFFFE, 0xFFFF))


def generalized(point: int, size: int = 0) -> bytes:
    """The encoding that UTF-8 would have without its limits, of at least ``size`` octets."""
    bits = max(point.bit_length(), 1)
    shortest = 1 if bits <= 7 else next(n for n in range(2, 7) if bits <= 5 * n + 1)
    size = max(size, shortest)
    if size == 1:
        return bytes((point,))
    rest = [0x80 | point >> 6 * at & 0x3F for at in reversed(range(size - 1))]
    return bytes((0xFF00 >> size & 0xFF | point >> 6 * (size - 1), *rest))


def texts() -> Iterator[Case]:
    no = refused(1007, b"text-not-utf-8")
    yield Case("6.1.2", ws.parts(ws.TEXT, [b"", b"", b""]) + BYE, text_back() + BYE_BACK)
    middle = ws.parts(ws.TEXT, [b"", b"middle", b""])
    yield Case("6.1.3", middle + BYE, text_back(b"middle") + BYE_BACK)
    for number, payload in enumerate(unicode_texts()):
        try:
            payload.decode("utf-8", "strict")
            wanted = text_back(payload) + BYE_BACK
        except UnicodeDecodeError:
            wanted = no
        yield Case(f"6 text {number}", ws.text(payload) + BYE, wanted)
        pieces = ws.cut(payload, 1) or [b""]
        yield Case(f"6 text {number} in frames", ws.parts(ws.TEXT, pieces) + BYE, wanted)
    # Told at the octet that makes it hopeless: the rest of the message never comes.
    begun = ws.masked(ws.TEXT, GREEK) + ws.masked(ws.CONTINUATION, b"\xf4\x90")
    yield Case("6.4", begun, no)


def closing() -> Iterator[Case]:
    hello = b"Hello World!"
    yield Case("7.1.1", ws.text(hello) + BYE, text_back(hello) + BYE_BACK)
    yield Case("7.1.2", BYE + BYE, BYE_BACK)
    yield Case("7.1.3", BYE + ws.ping(), BYE_BACK)
    yield Case("7.1.4", BYE + ws.text(hello), BYE_BACK)
    half = ws.masked(ws.TEXT, hello) + BYE + ws.masked(ws.FIN, hello)
    yield Case("7.1.5", half, BYE_BACK)
    much = b"BAsd7&jh23" * 26000
    yield Case("7.1.6", ws.text(much) + BYE + ws.ping(), text_back(much) + BYE_BACK)
    yield Case("7.3.1", ws.close(None), ws.plain(ws.FIN | ws.CLOSE))
    one_octet = ws.masked(ws.FIN | ws.CLOSE, b"a")
    yield Case("7.3.2", one_octet, refused(1002, b"close-too-short"))
    yield Case("7.3.3", ws.close(1000), BYE_BACK)
    yield Case("7.3.5", ws.close(1000, b"*" * 123), BYE_BACK)
    yield Case("7.3.6", ws.close(1000, b"*" * 124), refused(1002, b"control-too-long"))
    bad = ws.close(1000, GREEK + b"\xed\xa0\x80edited")
    yield Case("7.5.1", bad, refused(1007, b"close-reason-not-utf-8"))
    for code in (*range(1000, 1004), *range(1007, 1012), 3000, 3999, 4000, 4999):
        yield Case(f"7.7 {code}", ws.close(code), ws.plain(ws.FIN | ws.CLOSE, code.to_bytes(2)))
    for code in (0, 999, 1004, 1005, 1006, *range(1012, 1017), 1100, 2000, 2999, 5000, 65535):
        yield Case(f"7.9 {code}", ws.close(code), refused(1002, b"close-code"))


def sizes() -> Iterator[Case]:
    """Large messages, whole and in frames of every size; many small ones."""
    mega = 1 << 20
    for size in (1 << 16, 1 << 18, mega, 4 * mega, 8 * mega):
        payload = b"*" * size
        yield Case(f"9.1 {size}", ws.text(payload) + BYE, text_back(payload) + BYE_BACK)
        yield Case(f"9.2 {size}", ws.binary(payload) + BYE, binary_back(payload) + BYE_BACK)
    payload = os.urandom(mega)
    for shift in range(6, 21, 2):
        frames = ws.parts(ws.BINARY, ws.cut(payload, 1 << shift))
        yield Case(f"9.4 {1 << shift}", frames + BYE, binary_back(payload) + BYE_BACK)
    for size in (0, 16, 64, 256, 1024, 4096):
        payload = b"*" * size
        yield Case(
            f"9.7 {size}", ws.text(payload) * 1000 + BYE, text_back(payload) * 1000 + BYE_BACK
        )
    stars = b"*" * 65536
    frames = ws.parts(ws.TEXT, ws.cut(stars, 1300))
    yield Case("10.1.1", frames + BYE, text_back(stars) + BYE_BACK)


FAMILIES = {
    "framing": framing,
    "pings_and_pongs": pings_and_pongs,
    "reserved_bits": reserved_bits,
    "opcodes": opcodes,
    "fragments": fragments,
    "texts": texts,
    "closing": closing,
    "sizes": sizes,
}


@pytest.fixture(scope="module", params=["epoll", "uring"])
@starts_process
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    with serving(tmp_path_factory.mktemp("tls"), "--engine", request.param) as started:
        yield started


def exchanged(wire: socket.socket, pieces: list[bytes]) -> bytes:
    """What a server sends to these pieces until it closes. It may close before it has them all."""
    wire.setblocking(False)
    received, end = bytearray(), time.monotonic() + DEADLINE_S
    left = list(reversed(pieces))
    while time.monotonic() < end:
        select.select([wire], [wire] if left else [], [], 1)
        if left:
            with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                try:
                    sent = wire.send(left[-1])
                except (BrokenPipeError, ConnectionResetError):
                    left.clear()
                    continue
                left[-1] = left[-1][sent:]
                if not left[-1]:
                    left.pop()
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
            more = wire.recv(1 << 20)
            if not more:
                return bytes(received)
            received += more
    raise AssertionError(f"no end after {DEADLINE_S} s and {len(received)} octets")


def told(frames: bytes) -> str:
    return f"{len(frames)} octets: {frames[:80]!r} ... {frames[-80:]!r}"


@pytest.mark.process
@pytest.mark.parametrize("tls", [False, True], ids=["tcp", "tls"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_whole_and_octet_by_octet(place: Place, family: str, tls: bool) -> None:
    for case in FAMILIES[family]():
        step = 1 if len(case.sent) <= OCTET_BY_OCTET_MAX else OCTET_BY_OCTET_MAX
        handshake = ws.HANDSHAKE + b"\r\n"
        for pieces in ([handshake + case.sent], [handshake, *ws.cut(case.sent, step)]):
            with place.connect(tls=tls) as wire:
                head, _, frames = exchanged(wire, pieces).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 101 "), head
            assert frames == case.wanted, f"{case.name}: {told(frames)}, not {told(case.wanted)}"
