"""Servers that lie: what a hostile or broken target does to whoever asks it.

Each liar is a handler of a connection (``peers.Handler``); as a program it runs in a process of its
own, so that its memory and time are not those of the command under test::

    python -m httpmark.harness.tests.shared.liars NAME

It prints its port and runs until it is killed. :data:`GALLERY` names them all. A *turncoat* answers
plain questions well, as a good server does, and lies to everything else: it passes every look at
the beginning.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.tiny_server import with_package

TRICKLE_S = 0.2  # between two bytes
_BLOCK = b"x" * (1 << 16)
_TEN_GIGABYTES = 10 * 10**9
# What a good client asks: GET or HEAD of a short path, with a few fields and no content.
_PLAIN = re.compile(
    rb"(GET|HEAD) /[\w?=&-]* HTTP/1\.1\r\nHost: [\w.:]+\r\n([\w-]+: [^\r\n]*\r\n){,2}\r\n"
)
ESCAPES = b"\x1b]0;owned\x07\x1b[2J\x1b[8mhid\x9b2J\x9d0;owned\x9c\xc2\x9b2J\xe2\x80\xae\x7f\x08"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


def _for_ever(octets: bytes, connection: socket.socket) -> None:
    """Sends the same until nobody takes it."""
    block = octets * max(1, len(_BLOCK) // len(octets))
    while True:
        connection.sendall(block)


def _bytewise(octets: bytes, connection: socket.socket, *, pause_s: float = TRICKLE_S) -> None:
    for octet in octets:
        connection.sendall(bytes([octet]))
        time.sleep(pause_s)


def _after_head(say: Callable[[socket.socket], None]) -> peers.Handler:
    """A liar that reads one request, and then lies."""

    def handler(connection: socket.socket) -> None:
        if peers.head(connection):
            say(connection)

    return handler


def _then_for_ever(begin: bytes, rest: bytes) -> peers.Handler:
    def say(connection: socket.socket) -> None:
        connection.sendall(begin)
        _for_ever(rest, connection)

    return _after_head(say)


def _then_trickled(begin: bytes, rest: bytes) -> peers.Handler:
    """Begins at once; the rest comes byte by byte, again and again."""

    def say(connection: socket.socket) -> None:
        connection.sendall(begin)
        while True:
            _bytewise(rest, connection)

    return _after_head(say)


def _silent(connection: socket.socket) -> None:
    """Takes the connection, reads nothing and says nothing."""
    while True:
        time.sleep(60)


def _answering_for_ever(connection: socket.socket) -> None:
    """Answers each request with answers without end."""
    peers.head(connection)
    _for_ever(peers.OK, connection)


def _ten_gigabytes(connection: socket.socket) -> None:
    """A long answer that is what it says, if one waits."""
    peers.head(connection)
    connection.sendall(_HEAD + b"Content-Length: %d\r\n\r\n" % _TEN_GIGABYTES)
    for _ in range(_TEN_GIGABYTES // len(_BLOCK)):
        connection.sendall(_BLOCK)


def _before_request(connection: socket.socket) -> None:
    """Answers before it was asked, and then reads and says nothing."""
    connection.sendall(peers.OK)
    peers.mute(connection)


def _too_long(connection: socket.socket) -> None:
    """Says more bytes than it has, and keeps the connection."""
    while peers.head(connection):
        connection.sendall(_HEAD + b"Content-Length: 13\r\n\r\nHello World!")


def _closing_at_each_byte() -> peers.Handler:
    """Closes after one byte of an answer, then after two, and so on."""
    cuts = itertools.cycle(range(1, len(peers.OK)))

    def handler(connection: socket.socket) -> None:
        peers.head(connection)
        connection.sendall(peers.OK[: next(cuts)])

    return handler


def _resetting_at_once(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def _closing_at_once(connection: socket.socket) -> None:
    """Closes each connection unread."""


def _escaping(connection: socket.socket) -> None:
    """Puts what a terminal obeys into every place of its answers."""
    server = b"Server: " + ESCAPES + b"\r\nX" + ESCAPES + b": " + ESCAPES + b"\r\n"
    length = b"Content-Length: %d\r\n\r\n" % len(ESCAPES)
    while peers.head(connection):
        connection.sendall(b"HTTP/1.1 200 " + ESCAPES + b"\r\n" + server + length + ESCAPES)


def turncoat(liar: peers.Handler) -> peers.Handler:
    """The same liar, but good to plain questions."""
    head, _, content = peers.OK.partition(b"\r\n\r\n")

    def handler(connection: socket.socket) -> None:
        while waiting := connection.recv(1 << 16, socket.MSG_PEEK):
            plain = _PLAIN.match(waiting)
            if plain is None:
                liar(connection)
                return
            connection.recv(plain.end())
            connection.sendall(head + b"\r\n\r\n" + (content if plain[1] == b"GET" else b""))
            if b"Connection: close" in plain[0]:
                return

    return handler


_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
_INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


def gallery() -> dict[str, peers.Handler]:
    """Every liar by its name."""
    liars: dict[str, peers.Handler] = {
        "silent": _silent,
        "mute": peers.mute,
        "endless-body": _then_for_ever(_HEAD + b"\r\n", _BLOCK),
        "endless-chunks": _then_for_ever(_CHUNKED, b"1000\r\n" + b"x" * 0x1000 + b"\r\n"),
        "endless-chunk-size": _then_for_ever(_CHUNKED, b"0"),
        "endless-trailers": _then_for_ever(_CHUNKED + b"0\r\n", b"X-Trailer: a\r\n"),
        "endless-answers": _answering_for_ever,
        "endless-interims": _then_for_ever(b"", _INTERIM),
        "endless-fields": _then_for_ever(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
        "endless-field": _then_for_ever(b"HTTP/1.1 200 OK\r\nA: ", b"b"),
        "endless-status-line": _then_for_ever(b"HTTP/1.1 200 ", b"OK"),
        "endless-empty-lines": _then_for_ever(b"", b"\r\n"),
        "ten-gigabytes": _ten_gigabytes,
        "before-request": _before_request,
        "too-long": _too_long,
        "too-long-closing": peers.closing(_HEAD + b"Content-Length: 13\r\n\r\nHello World!"),
        "too-short": peers.answering(_HEAD + b"Content-Length: 11\r\n\r\nHello World!"),
        "length-beyond-all": peers.answering(_HEAD + b"Content-Length: %d\r\n\r\n" % 10**30),
        "closing-at-each-byte": _closing_at_each_byte(),
        "closing-at-once": _closing_at_once,
        "resetting-at-once": _resetting_at_once,
        "resetting-after-request": peers.resetting,
        "trickled-head": _then_trickled(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
        "trickled-body": _then_trickled(_HEAD + b"Content-Length: 100000\r\n\r\n", b"x"),
        "trickled-chunks": _then_trickled(_CHUNKED, b"1\r\nx\r\n"),
        "trickled-interims": _then_trickled(b"", _INTERIM),
        "escapes": _escaping,
        "no-http": peers.answering(b"SSH-2.0-OpenSSH_9.2p1\r\n"),
    }  # fmt: skip
    for name in ("silent", "endless-body", "endless-interims", "endless-fields", "ten-gigabytes",
                 "too-long", "closing-at-each-byte", "resetting-after-request", "trickled-head",
                 "trickled-body", "trickled-chunks", "trickled-interims"):  # fmt: skip
        liars[f"turncoat-{name}"] = turncoat(liars[name])
    return liars


GALLERY = tuple(gallery())


@contextlib.contextmanager
def playing(name: str) -> Iterator[int]:
    """A liar as a process; its port."""
    words = [sys.executable, "-m", __name__, name]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=with_package()) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def main(name: str) -> None:
    """Play one liar until the process is ended."""
    # Thousands of connections may wait for it, each on a thread of its own.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    threading.stack_size(1 << 18)
    print(peers.Peer(gallery()[name]).port, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
