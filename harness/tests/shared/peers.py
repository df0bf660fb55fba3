"""Small servers for tests, good and bad, each on a thread of its own; stopped with their block."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello World!"
BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

Handler = Callable[[socket.socket], None]


class Peer:
    """A listening peer; ``connections`` counts what it accepted."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with self._lock:
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self._handler(connection)
        with self._lock:
            self._open.discard(connection)
        connection.close()

    def stop(self) -> None:
        """Stop listening and drop what is open."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)


@contextlib.contextmanager
def peer(handler: Handler) -> Iterator[Peer]:
    """A peer that serves every connection with ``handler``."""
    running = Peer(handler)
    try:
        yield running
    finally:
        running.stop()


def head(connection: socket.socket) -> bytes:
    """Read until the end of a header section or of the stream."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        if not piece:
            break
        received += piece
    return received


def answering(octets: bytes) -> Handler:
    """A handler that gives one answer to every head, and keeps the connection."""

    def handler(connection: socket.socket) -> None:
        while head(connection):
            connection.sendall(octets)

    return handler


def closing(octets: bytes) -> Handler:
    """A handler that answers one head and closes."""

    def handler(connection: socket.socket) -> None:
        head(connection)
        if octets:
            connection.sendall(octets)

    return handler


def crowded(most: int, *, lasting_s: float = 0.0) -> Handler:
    """A handler that keeps connections, but closes them unannounced while more than ``most`` are
    open, as Apache's event module does where it lacks threads.

    :param lasting_s: how long it goes on closing them after that.
    """
    opened = set[socket.socket]()
    until_s = 0.0

    def handler(connection: socket.socket) -> None:
        nonlocal until_s
        opened.add(connection)
        try:
            while head(connection):
                connection.sendall(OK)
                if len(opened) > most:
                    until_s = time.monotonic() + lasting_s
                if len(opened) > most or time.monotonic() < until_s:
                    return
        finally:
            opened.discard(connection)

    return handler


def mute(connection: socket.socket) -> None:
    """Reads everything and says nothing."""
    while connection.recv(65536):
        pass


def resetting(connection: socket.socket) -> None:
    """Resets after the first bytes."""
    connection.recv(65536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def naive(connection: socket.socket) -> None:
    """Answers 400 where a byte of the head is no visible ASCII or a lone percent; else 200."""
    while request := head(connection):
        line = request.split(b"\r\n", 1)[0]
        target = line.split(b" ")[1] if line.count(b" ") == 2 else b"\x00"
        clean = all(0x21 <= octet < 0x7F for octet in target)
        if clean and all(0x20 <= octet < 0x7F or octet in b"\r\n\t" for octet in request):
            connection.sendall(OK)
        else:
            connection.sendall(BAD)
            return
