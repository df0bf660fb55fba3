"""The reference server where calls to the system fail: strace gives them an error instead.

Each call that serving needs fails at one moment or at many, while clients ask. What they get is
right or ends early, and is never wrong. When the fault is over, the server answers as before, with
no descriptor lost, and ends when it is told to.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared.ports import own_port

LARGE = bytes(range(256)) * 4096  # 1 MiB, sent by sendfile(2)
SMALL = b"a file of a few bytes"
HELLO = b"Hello World!"
PATIENCE_S = 20.0

# What can fail while it serves, and how (the manual pages of each). EAGAIN is no fault of a call
# that is made because there is something to be had.
WHILE_SERVING = [
    ("accept4", "EINTR ECONNABORTED EPROTO EMFILE ENFILE ENOBUFS ENOMEM"),
    ("recvfrom", "EINTR ECONNRESET ETIMEDOUT ENOMEM"),
    ("sendto", "EINTR ECONNRESET EPIPE ENOBUFS ENOMEM"),
    ("sendfile", "EINTR ECONNRESET EIO ENOMEM EINVAL"),
    ("epoll_ctl", "ENOMEM ENOSPC"),
    ("epoll_wait", "EINTR"),
    ("openat2", "EINTR EMFILE ENFILE ENOMEM EACCES EIO"),
    ("getpeername", "ENOBUFS ENOTCONN"),
    ("write", "EINTR EIO ENOSPC"),
]
MOMENTS = ("1", "2", "4", "1..8", "2..20+3")

# What can fail before it serves: it leaves with one line, or does without.
BEFORE_SERVING = [
    ("socket", "EMFILE EAFNOSUPPORT"),
    ("bind", "EADDRINUSE EACCES"),
    ("listen", "EADDRINUSE"),
    ("setsockopt", "EPERM"),
    ("epoll_create1", "EMFILE ENOMEM"),
    ("eventfd2", "EMFILE ENOMEM"),
    ("clone3", "EAGAIN EPERM"),
    ("openat", "EMFILE EACCES"),
    ("mmap", "ENOMEM"),
]
each_serving = pytest.mark.parametrize(
    ("call", "error"),
    [(call, error) for call, errors in WHILE_SERVING for error in errors.split()],
)
each_starting = pytest.mark.parametrize(
    ("call", "error"),
    [(call, error) for call, errors in BEFORE_SERVING for error in errors.split()],
)


def is_taken(port: int) -> bool:
    """Whether something listens there, without asking it."""
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A" for row in rows)


class Traced:
    """A server below strace; the faults begin with its first connection, or with its start."""

    def __init__(self, folder: Path, call: str, error: str, moments: str) -> None:
        self.port = own_port()
        self.said = folder / "said"
        self.calls = folder / "calls"
        server = [
            str(binaries.need("server")), "--address", "127.0.0.1", "--port", str(self.port),
            "--workers", "1", "--stats", "--static", str(folder / "www"),
            "--access-log", str(folder / "access.log"),
        ]  # fmt: skip
        inject = f"inject={call}:error={error}:when={moments}"
        # The log alone: to write to an eventfd(2) cannot fail in any of these ways.
        only = ["-P", str(folder / "access.log")] if call == "write" else []
        with self.said.open("wb") as out:
            self.process = subprocess.Popen(
                ["strace", "-f", "-qq", "-o", str(self.calls), "-e", f"trace={call}",
                 "-e", inject, *only, *server],
                stdout=out, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def text(self) -> str:
        return self.said.read_text("utf-8", "replace")

    def faults(self) -> int:
        """How many calls have failed because they were to fail."""
        return self.calls.read_text("utf-8", "replace").count("(INJECTED)")

    def is_listening(self) -> bool:
        """Whether it does so in time; false where it leaves. What it says may be what fails."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if "listening on " in self.text() or is_taken(self.port):
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(0.02)
        pytest.fail(f"it neither listens nor leaves: {self.text()}")

    @property
    def pid(self) -> int:
        """Of the server: the child of strace."""
        task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(task.read_text().split()[0])

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def ends(self) -> int:
        os.kill(self.pid, signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@contextlib.contextmanager
def traced(folder: Path, call: str, error: str, moments: str) -> Iterator[Traced]:
    one = Traced(folder, call, error, moments)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            with contextlib.suppress(OSError, IndexError):
                os.kill(one.pid, signal.SIGKILL)
            one.process.kill()
        one.process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "large").write_bytes(LARGE)
    (tmp_path / "www" / "small").write_bytes(SMALL)
    return tmp_path


def request(line: str, fields: str = "", content: bytes = b"") -> bytes:
    return f"{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode() + content


CHUNKED = request("POST /body", "Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n0\r\n\r\n")
# Requests that one connection sends, each in pieces, and the content of their answers.
TALKS: Sequence[tuple[tuple[bytes, ...], tuple[bytes, ...]]] = (
    ((request("GET /hello") * 3,), (HELLO,) * 3),
    ((request("GET /hello"), CHUNKED[:70], CHUNKED[70:], request("GET /hello")),
     (HELLO, b"hello", HELLO)),
    ((request("GET /static/small"), request("GET /static/large"), request("GET /hello")),
     (SMALL, LARGE, HELLO)),
    ((), ()),
)  # fmt: skip


def came(port: int, pieces: Sequence[bytes]) -> bytes:
    """All that comes until the other side closes, or until it is silent for a while."""
    got = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as wire:
            for piece in pieces:
                wire.sendall(piece)
                time.sleep(0.01)
            wire.shutdown(socket.SHUT_WR)
            while part := wire.recv(1 << 20):
                got += part
    except TimeoutError:
        pytest.fail(f"nothing more came in {PATIENCE_S:.0f} s after {len(got)} bytes")
    except OSError:
        pass  # cut off: what came before is still to be right
    return got


def answers(octets: bytes) -> list[tuple[int, bytes, bool]]:
    """Status, content and whether it is all there, of each answer; the last one may be cut."""
    found = []
    while octets:
        head, end, rest = octets.partition(b"\r\n\r\n")
        if not end:
            assert b"HTTP/1.1 ".startswith(head[:9]) or head.startswith(b"HTTP/1.1 "), head[:80]
            break
        status = re.match(rb"HTTP/1\.1 (\d{3}) ", head)
        assert status is not None, head[:80]
        length = re.search(rb"\r\nContent-Length: (\d+)", head)
        size = int(length[1]) if length else 0
        found.append((int(status[1]), rest[:size], len(rest) >= size))
        octets = rest[size:]
    return found


def check_talk(port: int, pieces: Sequence[bytes], wanted: Sequence[bytes]) -> None:
    """Nothing that comes is wrong: an answer is the right one, a refusal, or ends early."""
    got = answers(came(port, pieces))
    assert len(got) <= max(len(wanted), 1)
    for (status, content, is_whole), right in zip(got, wanted, strict=False):
        if status == 200:
            assert content == right if is_whole else right.startswith(content)
        else:
            assert status >= 400


def check_whole(port: int) -> None:
    """The fault is over: everything is answered as if it had never been."""
    for pieces, wanted in TALKS:
        got = answers(came(port, pieces))
        assert [content for _, content, _ in got] == list(wanted)
        assert all(status == 200 and is_whole for status, _, is_whole in got)


def spoil(server: Traced) -> None:
    """Ask until the fault has had its moments, then until everything is well again."""
    for _ in range(4):
        for pieces, wanted in TALKS:
            check_talk(server.port, pieces, wanted)
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return check_whole(server.port)
        except AssertionError:
            if time.monotonic() > end:
                raise


@pytest.mark.nightly
@pytest.mark.needs("strace")
@each_serving
def test_a_call_that_fails_ends_at_most_what_needed_it(folder: Path, call: str, error: str) -> None:
    faults = 0
    for moments in MOMENTS:
        with traced(folder, call, error, moments) as server:
            if not server.is_listening():  # the start needed it: told in one line
                assert server.process.wait() in (2, 3), server.text()
                assert len(server.text().splitlines()) == 1, server.text()
                continue
            before = server.descriptors()
            spoil(server)
            spent = server.cpu_s()
            time.sleep(0.3)
            assert server.cpu_s() - spent < 0.15, "it spins"
            end = time.monotonic() + PATIENCE_S
            while server.descriptors() > before and time.monotonic() < end:
                time.sleep(0.05)
            assert server.descriptors() <= before, os.listdir(f"/proc/{server.pid}/fd")
            assert server.ends() == 0, server.text()
            counted = re.search(r"accepted (\d+) closed (\d+)", server.text())
            assert counted is not None, server.text()
            assert counted[1] == counted[2], server.text()
            faults += server.faults()
    assert faults, f"serving calls {call} no more"


@pytest.mark.nightly
@pytest.mark.needs("strace")
@each_starting
def test_a_start_that_cannot_be_says_so_in_one_line(folder: Path, call: str, error: str) -> None:
    refused = 0
    for moments in ("1", "2", "3", "1+"):
        with traced(folder, call, error, moments) as server:
            if server.is_listening():
                continue
            refused += 1
            assert server.process.wait() not in (0, 1), server.text()
            if server.process.returncode in (2, 3):
                assert len(server.text().splitlines()) == 1, server.text()
                assert server.text().startswith("httpmark-server: "), server.text()
    assert refused, "no start was refused: the call is made no more"
