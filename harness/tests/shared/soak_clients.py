"""Clients of a soak: each does one kind of thing to a server, good or bad, and counts it.

What a client counts is what the server must have counted as well. A client that cuts its connection
cannot know how much of what it sent was read: it counts the least and the most.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared import websocket_frames as ws

DEADLINE_S = 60.0
IDLE_TIMEOUT_S = 15
CONNECTIONS_MAX = 150
BIG_BYTES = 1 << 20
# An answer's head, and what a server may have sent of /big to somebody who did not read it.
HEAD_BYTES_MAX = 1024
GET = b"GET /hello HTTP/1.1\r\nHost: soak\r\n\r\n"
GET_BIG = b"GET /big HTTP/1.1\r\nHost: soak\r\n\r\n"
FILES = {"small.txt": 100, "page.html": 20_000, "photo.bin": 700_000}
# Each is refused as it stands, and ends its connection.
MALFORMED = (
    b"GET /hello HTTP/1.1\r\nHost: soak\r\nHost: soak\r\n\r\n",
    b"GET  /hello HTTP/1.1\r\nHost: soak\r\n\r\n",
    b"GET /hello HTTP/1.1\r\n\r\n",
    b"GET /hello HTTP/2.0\r\nHost: soak\r\n\r\n",
    b"GET /hello HTTP/1.1\nHost: soak\n\n",
    b"GET /hello HTTP/1.1\r\nHost : soak\r\n\r\n",
    b"GET /\x01 HTTP/1.1\r\nHost: soak\r\n\r\n",
    b"GET /%zz HTTP/1.1\r\nHost: soak\r\n\r\n",
    b"GET /hello HTTP/1.1\r\nHost: soak\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
    b"POST /body HTTP/1.1\r\nHost: soak\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST /body HTTP/1.1\r\nHost: soak\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /body HTTP/1.1\r\nHost: soak\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 this is TLS",
)


class Wrong(Exception):
    """A client did not get what it must get."""


@dataclass
class Between:
    """A count of which the least and the most are known."""

    least: int = 0
    most: int = 0

    def add(self, least: int, most: int | None = None) -> None:
        self.least += least
        self.most += least if most is None else most


@dataclass
class Tally:
    """What one client did. Sizes in bytes, seen from the client."""

    connections: Between = field(default_factory=Between)
    requests: Between = field(default_factory=Between)
    sent: Between = field(default_factory=Between)
    received: Between = field(default_factory=Between)
    refused: Between = field(default_factory=Between)
    timeouts: Between = field(default_factory=Between)


@dataclass(frozen=True)
class Place:
    """Where the server listens, and the folder whose files it serves."""

    port: int
    files: Path

    def content(self, name: str) -> bytes:
        return (self.files / name).read_bytes()


def lay_files(folder: Path) -> None:
    """The files that the clients ask for."""
    draw = random.Random(1)
    for name, size in FILES.items():
        (folder / name).write_bytes(draw.randbytes(size))


class Wire:
    """A connection whose bytes are counted into a tally when it ends."""

    def __init__(self, place: Place, tally: Tally, *, room: int = 0) -> None:
        self._socket = socket.socket()
        self._socket.settimeout(DEADLINE_S)
        if room:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        try:
            self._socket.connect(("127.0.0.1", place.port))
        except OSError:
            self._socket.close()
            raise
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._tally = tally
        self._held = b""
        tally.connections.add(1)

    def send(self, octets: bytes, *, requests: int = 0) -> None:
        """Bytes that the server reads to the end."""
        self._socket.sendall(octets)
        self._tally.sent.add(len(octets))
        self._tally.requests.add(requests)

    def send_and_leave(self, octets: bytes, *, requests: int = 0) -> None:
        """Bytes that the server may not get to see: the connection is cut behind them."""
        self._socket.sendall(octets)
        self._tally.sent.add(0, len(octets))
        self._tally.requests.add(0, requests)

    def read(self, size: int) -> bytes:
        """So many bytes, and no fewer."""
        while len(self._held) < size:
            if not self._more():
                raise Wrong(f"closed after {len(self._held)} of {size} bytes: {self._held[:80]!r}")
        taken, self._held = self._held[:size], self._held[size:]
        return taken

    def _more(self, most: int = 1 << 16) -> bytes:
        got = self._socket.recv(most)
        self._tally.received.add(len(got))
        self._held += got
        return got

    def answer(self, status: int) -> bytes:
        """The content of the next answer, which must have this status and a Content-Length."""
        while b"\r\n\r\n" not in self._held:
            if not self._more():
                raise Wrong(f"closed within a head: {self._held[:80]!r}")
        head, _, self._held = self._held.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 %d " % status):
            raise Wrong(f"not {status}: {head[:80]!r}")
        length = re.search(rb"\r\nContent-Length: (\d+)", head)
        return self.read(int(length[1])) if length else b""

    def rest(self) -> bytes:
        """All that comes until the server closes."""
        while self._more():
            pass
        taken, self._held = self._held, b""
        return taken

    def trickle(self, size: int, draw: random.Random, seconds: float) -> bytes:
        """So many bytes, at first slowly."""
        end = time.monotonic() + seconds
        while len(self._held) < size and time.monotonic() < end:
            if not self._more(draw.randrange(1, 8192)):
                break
            time.sleep(draw.uniform(0.0, 0.03))
        return self.read(size)

    def close(self) -> None:
        self._socket.close()

    def cut(self, *, unread: int = 0) -> None:
        """End it with RST; ``unread`` bytes at most have been sent by the server and not read."""
        self._tally.received.add(0, unread)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()


@contextlib.contextmanager
def opened(place: Place, tally: Tally, *, room: int = 0) -> Iterator[Wire]:
    wire = Wire(place, tally, room=room)
    try:
        yield wire
    finally:
        wire.close()


def must(condition: object, what: str) -> None:
    if not condition:
        raise Wrong(what)


# --- the clients: each call is a short visit


def asks(place: Place, tally: Tally, draw: random.Random) -> None:
    """GETs one after the other, some of them behind each other in one write."""
    with opened(place, tally) as wire:
        for _ in range(draw.randrange(1, 20)):
            depth = draw.choice((1, 1, 4, 32))
            wire.send(GET * depth, requests=depth)
            for _ in range(depth):
                must(wire.answer(200) == b"Hello World!", "another content than Hello World!")


def chunked(content: bytes, draw: random.Random) -> bytes:
    """Content in chunks of random sizes, sometimes with an extension and a trailer."""
    out = bytearray()
    at = 0
    while at < len(content):
        size = draw.randrange(1, 1 + max(1, len(content) // draw.choice((1, 2, 10))))
        piece = content[at : at + size]
        out += b"%x%s\r\n%s\r\n" % (len(piece), draw.choice((b"", b";a=b")), piece)
        at += len(piece)
    return bytes(out + b"0\r\n" + draw.choice((b"", b"X-Trailer: 1\r\n")) + b"\r\n")


def post(content: bytes, draw: random.Random, *, in_chunks: bool) -> tuple[bytes, bytes]:
    """A request with content: its head and what follows."""
    framing = b"Transfer-Encoding: chunked" if in_chunks else b"Content-Length: %d" % len(content)
    body = chunked(content, draw) if in_chunks else content
    return b"POST /body HTTP/1.1\r\nHost: soak\r\n%s\r\n\r\n" % framing, body


def posts(place: Place, tally: Tally, draw: random.Random) -> None:
    """POSTs whose content comes back, with Content-Length and in chunks, in several writes."""
    with opened(place, tally) as wire:
        for _ in range(draw.randrange(1, 8)):
            content = draw.randbytes(draw.choice((0, 1, 1000, 70_000, 200_000)))
            head, body = post(content, draw, in_chunks=draw.random() < 0.5)
            message = head + body
            cut = draw.randrange(len(message))
            wire.send(message[:cut])
            time.sleep(draw.choice((0.0, 0.0, 0.02)))
            wire.send(message[cut:], requests=1)
            must(wire.answer(200) == content, "other content than was posted")


def talks(place: Place, tally: Tally, draw: random.Random) -> None:
    """A WebSocket: messages that come back, then the closing handshake."""
    with opened(place, tally) as wire:
        wire.send(ws.HANDSHAKE + b"\r\n", requests=1)
        wire.answer(101)
        for _ in range(draw.randrange(1, 20)):
            payload = draw.randbytes(draw.choice((0, 5, 125, 126, 3000, 66_000)))
            pieces = ws.cut(payload, 1000) if payload and draw.random() < 0.3 else [payload]
            wire.send(ws.parts(ws.BINARY, pieces))
            wanted = ws.plain(ws.FIN | ws.BINARY, payload)
            must(wire.read(len(wanted)) == wanted, "another message than was sent")
        wire.send(ws.close())
        must(wire.rest() == ws.plain(ws.FIN | ws.CLOSE, b"\x03\xe8"), "another Close frame")


def fetches(place: Place, tally: Tally, draw: random.Random) -> None:
    """Files, whole and in part, and one that is not there."""
    with opened(place, tally) as wire:
        for _ in range(draw.randrange(1, 6)):
            name = draw.choice(tuple(FILES))
            content = place.content(name)
            begin = draw.randrange(len(content))
            end = draw.randrange(begin, len(content))
            is_part = draw.random() < 0.4
            more = b"Range: bytes=%d-%d\r\n" % (begin, end) if is_part else b""
            head = b"GET /static/%s HTTP/1.1\r\nHost: soak\r\n%s\r\n"
            wire.send(head % (name.encode(), more), requests=1)
            wanted = content[begin : end + 1] if is_part else content
            must(wire.answer(206 if is_part else 200) == wanted, f"other content than {name}")
            if draw.random() < 0.2:
                wire.send(head % (b"absent", b""), requests=1)
                wire.answer(404)


def reads_slowly(place: Place, tally: Tally, draw: random.Random) -> None:
    """Several large answers, read a little at a time through a small window."""
    with opened(place, tally, room=8192) as wire:
        count = draw.randrange(1, 4)
        wire.send(GET_BIG * count, requests=count)
        for number in range(count):
            head = wire.read(0)
            while b"\r\n\r\n" not in head:
                head += wire.read(1)
            must(head.startswith(b"HTTP/1.1 200 "), f"not 200: {head[:80]!r}")
            wire.trickle(BIG_BYTES, draw, seconds=2.0 if number == 0 else 0.2)


def cuts(place: Place, tally: Tally, draw: random.Random) -> None:
    """RST in the middle of a head, of content, of chunks, of an answer, of a message."""
    wire = Wire(place, tally)
    where = draw.choice(("connected", "head", "content", "chunks", "answer", "message"))
    unread = 0
    if where == "head":
        wire.send_and_leave(GET[: draw.randrange(1, len(GET))])
    elif where in ("content", "chunks"):
        content = draw.randbytes(draw.choice((100, 50_000)))
        head, body = post(content, draw, in_chunks=where == "chunks")
        wire.send_and_leave(head, requests=1)
        wire.send_and_leave(body[: draw.randrange(len(body))])
    elif where == "answer":
        count = draw.randrange(1, 5)
        wire.send_and_leave(GET_BIG * count, requests=count)
        unread = count * (BIG_BYTES + HEAD_BYTES_MAX)
        if draw.random() < 0.7:
            unread -= len(wire.read(draw.randrange(1, 200_000)))
            unread = max(unread, 0)
    elif where == "message":
        wire.send(ws.HANDSHAKE + b"\r\n", requests=1)
        wire.answer(101)
        message = ws.binary(draw.randbytes(30_000))
        wire.send_and_leave(message[: draw.randrange(1, len(message))])
    time.sleep(draw.choice((0.0, 0.0, 0.01)))
    wire.cut(unread=unread)


def breaks_rules(place: Place, tally: Tally, draw: random.Random) -> None:
    """A malformed request: one answer with a status of 400 or more, then the close."""
    with opened(place, tally) as wire:
        octets = draw.choice(MALFORMED)
        wire.send(octets)
        tally.requests.add(0, 1)  # some are refused by what stands behind a whole head
        tally.refused.add(1)
        # Where this process gets no turn, the server does not wait for it to close.
        tally.timeouts.add(0, 1)
        answer = wire.rest()
        must(re.match(rb"HTTP/1\.1 [45]\d\d ", answer), f"{octets[:60]!r}: {answer[:60]!r}")


def holds(place: Place, tally: Tally, draw: random.Random) -> None:
    """Connections held idle until the server closes them; some have asked before."""
    with contextlib.ExitStack() as all_of_them:
        wires = []
        for _ in range(draw.randrange(3, 12)):
            wire = all_of_them.enter_context(opened(place, tally))
            if draw.random() < 0.5:
                wire.send(GET, requests=1)
                wire.answer(200)
            wires.append(wire)
        for wire in wires:
            must(wire.rest() == b"", "bytes on an idle connection")
        # Each is told once that it was idle, and again where it did not close in time.
        tally.timeouts.add(len(wires), 2 * len(wires))


def fills(place: Place, tally: Tally, draw: random.Random) -> None:
    """All connections that the server allows, and some more, which are refused; to be called while
    no other client has one."""
    with contextlib.ExitStack() as all_of_them:
        for _ in range(CONNECTIONS_MAX):
            wire = all_of_them.enter_context(opened(place, tally))
            wire.send(GET, requests=1)
            wire.answer(200)
        for _ in range(draw.randrange(1, 6)):
            with opened(place, tally) as wire:
                tally.refused.add(1)
                tally.timeouts.add(0, 1)
                must(wire.rest().startswith(b"HTTP/1.1 503 "), "not 503 above connections-max")


LOADS = (
    ("--mode", "closed", "--connections", "8", "--depth", "16", "--duration-s", "1"),
    ("--mode", "churn", "--connections", "4", "--depth", "2", "--duration-s", "0.7"),
)  # fmt: skip


def loads(place: Place, tally: Tally, draw: random.Random) -> None:
    """httpmark-load: pipelined GETs, or many short connections."""
    words = draw.choice(LOADS)
    done = subprocess.run(
        [binaries.need("load"), *words, "--json", f"http://127.0.0.1:{place.port}/hello"],
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    must(done.returncode == 0, f"httpmark-load: {done.returncode}: {done.stdout[-300:]}")
    told = json.loads(done.stdout)
    left = int(told["unanswered"]) + int(told["not_waited_for"])
    must(left == 0, f"httpmark-load: {left} requests without an answer")
    # Before it counts, it learns the first answer on a connection of its own.
    sent, received = int(told["requests_sent"]), int(told["bytes_received"])
    tally.connections.add(1 + int(told["established"]) + int(told["reconnects"]))
    tally.requests.add(1 + sent)
    tally.sent.add((1 + sent) * int(told["bytes_sent"]) // sent)
    tally.received.add((1 + sent) * received // sent)


Visit = Callable[[Place, Tally, random.Random], None]
# How long each rests between two visits, in seconds.
CLIENTS: dict[str, tuple[Visit, float]] = {
    "asks": (asks, 0.05),
    "posts": (posts, 0.1),
    "talks": (talks, 0.1),
    "fetches": (fetches, 0.1),
    "reads slowly": (reads_slowly, 0.3),
    "cuts": (cuts, 0.02),
    "breaks rules": (breaks_rules, 0.05),
    "holds": (holds, 0.5),
    "loads": (loads, 5.0),
}


class Crowd:
    """All clients, each in a thread of its own, until they are sent away."""

    def __init__(self, place: Place, seed: int) -> None:
        self.tallies = {name: Tally() for name in [*CLIENTS, "fills"]}
        self.wrong: list[str] = []
        self._place = place
        self._seed = seed
        self._is_over = threading.Event()
        self._is_open = threading.Event()
        self._is_open.set()
        self._inside = threading.Semaphore(len(CLIENTS))
        self._threads = [threading.Thread(target=self._stay, args=(name,)) for name in CLIENTS]

    def come(self) -> None:
        for thread in self._threads:
            thread.start()

    def leave(self) -> None:
        """Every client ends the visit that it has begun; none is left after this."""
        self._is_over.set()
        self._is_open.set()
        for thread in self._threads:
            thread.join()

    def fill(self, draw: random.Random, is_empty: Callable[[], bool]) -> None:
        """Wait until all are outside, take all connections that there are, and leave.

        :param is_empty: whether the server has seen that all have left; waits for it.
        """
        self._is_open.clear()
        for _ in CLIENTS:
            self._inside.acquire()
        try:
            if is_empty():
                self._visit("fills", fills, draw)
                is_empty()
        finally:
            self._inside.release(len(CLIENTS))
            self._is_open.set()

    def _stay(self, name: str) -> None:
        visit, rest_s = CLIENTS[name]
        draw = random.Random(f"{self._seed} {name}")
        while not self._is_over.is_set():
            self._is_open.wait()
            with self._inside:
                self._visit(name, visit, draw)
            self._is_over.wait(draw.uniform(0.0, 2 * rest_s))

    def _visit(self, name: str, visit: Visit, draw: random.Random) -> None:
        try:
            visit(self._place, self.tallies[name], draw)
        except (Wrong, OSError, subprocess.SubprocessError, ValueError) as error:
            self.wrong.append(f"{name}: {type(error).__name__}: {error}")
            if len(self.wrong) > 20:
                self._is_over.set()
