"""A small server that dies or hangs of what it is sent, in one of several manners.

It is run as a program: ``python crashing_server.py PORT MANNER``.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # as a program it finds nothing of the package
    from httpmark.harness.firing.targets import Target

LAST_WORDS = "assertion failed: teeth != NULL"
TENTH = 10

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


class _State:
    asked = 0
    is_armed = False


def _last_words() -> None:
    print(LAST_WORDS, "\x1b[31m", file=sys.stderr, flush=True)


def _abort(head: bytes, state: _State) -> None:
    if b"X-Kill" in head:
        _last_words()
        os.abort()


def _gzip(head: bytes, state: _State) -> None:
    if b"gzip" in head:
        _last_words()
        os.abort()


def _exit(head: bytes, state: _State) -> None:
    if b"X-Kill" in head:
        os._exit(3)


def _spin(head: bytes, state: _State) -> None:
    while b"X-Kill" in head:
        pass


def _tenth(head: bytes, state: _State) -> None:
    state.asked += 1
    if state.asked == TENTH:
        os._exit(3)


def _two(head: bytes, state: _State) -> None:
    if b"X-Kill" in head and state.is_armed:
        os._exit(3)
    state.is_armed = state.is_armed or b"X-Arm" in head


def _none(head: bytes, state: _State) -> None:
    """It lives."""


MANNERS: dict[str, Callable[[bytes, _State], None]] = {
    "abort": _abort,
    "gzip": _gzip,
    "none": _none,
    "exit": _exit,
    "spin": _spin,
    "tenth": _tenth,
    "two": _two,
}


def _head(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        if not piece:
            break
        received += piece
    return received


def _serve(port: int, manner: str) -> None:
    state, kills = _State(), MANNERS[manner]
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    while True:
        connection, _ = listener.accept()
        connection.settimeout(0.3)
        with connection, contextlib.suppress(OSError):
            head = _head(connection)
            kills(head, state)
            connection.sendall(_OK)


def command(manner: str) -> str:
    """What ``--serve`` is given."""
    return f"{sys.executable} -S {os.path.abspath(__file__)} {{port}} {manner}"


def manifest(name: str, manner: str) -> str:
    """The same as a server of a run: its server.toml."""
    return f"""
name = "{name}"
title = "{name}"
language = "Python"
version = "1"
homepage = "https://example.org/"
capabilities = ["hello"]

[process]
start = ["{{python}}", "-S", "{os.path.abspath(__file__)}", "{{port}}", "{manner}"]
"""


@contextlib.contextmanager
def started(manner: str) -> Iterator[Target]:
    """The server as a target that is started again where it dies."""
    from httpmark.harness.command import named_target
    from httpmark.harness.firing.targets import Target
    from httpmark.harness.servers import sockets, starting
    from httpmark.harness.servers.restartable import Restartable

    server, port = named_target.served(command(manner), None), sockets.free_port()
    one = Restartable(
        lambda: starting.start(
            server, "process", address="127.0.0.1", port=port, workers=1, cpus=None,
            run_id="crash", conformance=True,
        )
    )  # fmt: skip
    try:
        yield Target(
            name="target", address="127.0.0.1", port=port, host="a", death=one.death, server=one,
            at_once=8,
        )  # fmt: skip
    finally:
        one.stop()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2])
