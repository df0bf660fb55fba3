"""The reference server as its command, and a client that sees every octet."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared import child_process

DEADLINE_S = 30.0
GET = b"GET /hello HTTP/1.1\r\nHost: h\r\n\r\n"
LAST_GET = b"GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True)
class Served:
    """A running server: who it is, and where it listens."""

    pid: int
    port: int
    tls_port: int = 0

    def connect(self) -> socket.socket:
        wire = socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return wire

    def ask(self, octets: bytes) -> bytes:
        """All that comes until the server closes."""
        with self.connect() as wire:
            wire.sendall(octets)
            return to_the_end(wire)

    def status(self, octets: bytes) -> int:
        return status_of(self.ask(octets))

    def rss(self) -> int:
        """Bytes in memory."""
        return self._pages(1)

    def mapped(self) -> int:
        """Bytes of address space."""
        return self._pages(0)

    def _pages(self, place: int) -> int:
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()
        return int(pages[place]) * resource.getpagesize()


@contextlib.contextmanager
def served(*words: str, workers: int = 1, **environment: str) -> Iterator[Served]:
    """The command with these words, until the block ends. It must have lived until then."""
    program = [str(binaries.need("server")), "--port", "0", "--workers", str(workers), *words]
    with child_process.start(
        program, stdout=subprocess.PIPE, env={**os.environ, **environment}
    ) as process:
        try:
            assert process.stdout is not None
            ports = []
            for _ in range(2 if "--tls-port" in words else 1):
                line = process.stdout.readline()
                assert line.startswith("listening on "), line
                ports.append(int(re.findall(r":(\d+)", line)[-1]))
            yield Served(process.pid, *ports)
            assert process.poll() is None, "the server has ended"
        finally:
            process.kill()


def to_the_end(wire: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while more := wire.recv(1 << 16):
            received += more
    return received


def one_answer(wire: socket.socket) -> bytes:
    """A whole answer with Content-Length."""
    received = b""
    while b"\r\n\r\n" not in received:
        more = wire.recv(1)
        assert more, received
        received += more
    length = re.search(rb"Content-Length: (\d+)", received)
    assert length is not None, received
    while len(received.partition(b"\r\n\r\n")[2]) < int(length[1]):
        received += wire.recv(int(length[1]))
    return received


def status_of(answer: bytes) -> int:
    """0 where there is none."""
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(found[1]) if found else 0


def get(target: str = "/hello", fields: bytes = b"") -> bytes:
    head = f"GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n".encode()
    return head + fields + b"\r\n"


def post(content: bytes, *, chunked: bool = False) -> bytes:
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(content)
    return b"POST /body HTTP/1.1\r\nHost: h\r\nConnection: close\r\n%s\r\n\r\n%s" % (
        framing, content,
    )  # fmt: skip


def chunks(trailers: bytes = b"", line: bytes = b"1") -> bytes:
    return post(line + b"\r\nx\r\n0\r\n" + trailers + b"\r\n", chunked=True)


def soon(condition: Callable[[], object]) -> bool:
    """Whether something becomes true."""
    end = time.monotonic() + DEADLINE_S
    while not (done := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return bool(done)
