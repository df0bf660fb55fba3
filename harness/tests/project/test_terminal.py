"""A hostile server cannot reach the terminal of whoever tests it, by any command."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import pty
import re
import select
import socket
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.command_process import COMMAND, environment

# The title, a cleared screen, hidden text, the same in C1; ends of lines, and another direction.
EVIL = (
    b"\x1b]0;owned\x07\x1b[2J\x1b[8mhid\x9b2J\x9d0;owned\x9c\xc2\x9b2J"
    b"\xe2\x80\xa8\xe2\x80\xae\r\x7f\x08"
)
LINE = EVIL.replace(b"\r", b"")
# What our own colours and progress bars are made of.
OWN = re.compile(r"\x1b\[(?:0|1|2|22|3[0-7](?:;1)?|9[0-7]|1;3[0-7]|38;5;\d+|\?25[lh]|1A|2K)?m?")


def answers() -> list[bytes]:
    """An answer with escapes in every place that one has; the first is good elsewhere."""
    good = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n"
    text = LINE + b"\r\n"
    return [
        b"HTTP/1.1 200 " + LINE + b"\r\nContent-Length: 5\r\n\r\nhello",
        good + b"Server: " + text + b"\r\nhello",
        good + b"Date: " + text + b"\r\nhello",
        good + b"Location: " + text + b"Allow: " + text + b"\r\nhello",
        good + b"X" + LINE + b": y\r\n\r\nhello",
        good + text + b"\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Type: " + text + b"Content-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + text + b"\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + text + b"\r\nhello",
        b"HTTP/1.1 200 OK\r\nConnection: " + text + b"Content-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;" + text + b"hello\r\n0\r\nX: "
        + text + b"\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + text + b"hello",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(EVIL) + EVIL,
        b"HTTP/1.1 103 " + text + b"Link: " + text + b"\r\n" + good + b"\r\nhello",
        b"HTTP/1.1 4" + text + b"\r\n",
        EVIL,
    ]  # fmt: skip


def evil() -> peers.Handler:
    """Takes every request. Plain ones get the first answer, so that the server counts as good;
    others get all of the answers, one after the other."""
    turns = itertools.cycle(answers())

    def handler(connection: socket.socket) -> None:
        while request := peers.head(connection):
            is_plain = request.startswith(b"GET /hello HTTP/1.1\r\nHost: 127") and (
                request.count(b"\r\n") < 5
            )
            connection.sendall(answers()[0] if is_plain else next(turns))

    return handler


@contextlib.contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a pseudo terminal of 200 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    try:
        yield ours, theirs
    finally:
        os.close(ours)


def shown(*words: str, cwd: Path, seconds: float = 120) -> str:
    """All that a command writes to its terminal, on both streams."""
    variables = environment(TERM="xterm-256color")
    del variables["CI"]
    for name in ("NO_COLOR", "GITHUB_ACTIONS"):
        variables.pop(name, None)
    with terminal() as (ours, theirs):
        process = subprocess.Popen(words, cwd=cwd, env=variables, stdin=theirs, stdout=theirs,
                                   stderr=theirs)  # fmt: skip
        os.close(theirs)
        written = bytearray()
        end = time.monotonic() + seconds
        try:
            while (time.monotonic() < end and select.select([ours], [], [], 1)[0]) or (
                process.poll() is None and time.monotonic() < end
            ):
                if not select.select([ours], [], [], 0.1)[0]:
                    continue
                try:
                    piece = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                if not piece:
                    break
                written += piece
        finally:
            process.kill()
            process.wait()
    return written.decode("utf-8", "surrogateescape")


def obeyed(text: str) -> list[str]:
    """What a terminal would obey in an output, without our own colours and bars."""
    rest = OWN.sub("", text.replace("\r\n", "\n"))
    found = re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e\udc80-\udcff]", rest)
    # A progress bar goes back to the begin of its line.
    return [one for one in found if one != "\r"] + re.findall("\x1b\\[8m|\x1b\\]|\x1b\\[2J", text)


@pytest.mark.process
def test_a_replay_and_the_load_generator_pass_no_escape_on(tmp_path: Path) -> None:
    """The two that showed an answer as it came; the next test is of all commands."""
    load = (str(binaries.need("load")), "--first-answer-s", "0.3", "--duration-s", "0.1")
    for answer in answers():
        with peers.peer(peers.answering(answer)) as peer:
            target = f"http://127.0.0.1:{peer.port}/hello"
            text = shown(*load, target, cwd=tmp_path)
            assert "httpmark-load" in text or "responses verified" in text
            assert not obeyed(text), text
    with peers.peer(peers.answering(answers()[1])) as peer:
        target = f"http://127.0.0.1:{peer.port}/hello"
        text = shown(*COMMAND, "replay", "get-plain", target, cwd=tmp_path)
        assert "RESP-31:" in text or "verdict:" in text
        assert not obeyed(text), text


@pytest.mark.nightly
@pytest.mark.process
def test_no_output_has_an_escape_of_a_server(tmp_path: Path) -> None:
    load = (binaries.need("load"), "--first-answer-s", "0.3", "--duration-s", "0.1")
    with peers.peer(evil()) as peer:
        target = f"http://127.0.0.1:{peer.port}/hello"
        check = (
            "check",
            target,
            "--quick",
            "--suite",
            "rfc",
            "--case",
            "host-*",
            "--color",
            "always",
        )
        for words in (
            (*COMMAND, *check, "--out", "one", "--outputs", "outputs", "--json", "/dev/stdout"),
            *(
                (*COMMAND, "replay", case, target, *more)
                for case in ("host-missing", "get-plain", "chunk-extension-name")
                for more in ((), ("--delivery", "two@17"))
            ),
            (*COMMAND, "fuzz", target, "--seconds", "2", "--out", "found"),
            (*COMMAND, "fuzz", target, "--seconds", "1", "--out", "found", "--json"),
            (*COMMAND, "bench", target, "--quick", "--profile", "one"),
            (*COMMAND, "judge", "one"),
            (*COMMAND, "judge", "one", "--json"),
            (*COMMAND, "judge", "one", "--second-opinion"),
            (*COMMAND, "judge", "one", "--second-opinion", "--json"),
            (*COMMAND, "compare", "one", "one"),
            (*COMMAND, "compare", "one", "one", "--markdown"),
            (*COMMAND, "findings", "one"),
            *(
                (*COMMAND, "report", "one", "--format", name)
                for name in ("junit", "sarif", "summary", "code-quality", "metrics", "tables")
            ),
            (*COMMAND, "export", "one", "--json"),
            *((*load, target) for _ in answers()),
        ):
            text = shown(*words, cwd=tmp_path)
            assert "Traceback" not in text, (words, text)
            assert "internal error" not in text, (words, text)
            assert not obeyed(text), (words, [text[at - 80 : at + 80] for at in [
                text.find(obeyed(text)[0])]])  # fmt: skip
    assert (tmp_path / "one" / "report.html").is_file()


def test_what_is_looked_for_would_be_found() -> None:
    assert obeyed(EVIL.decode("utf-8", "surrogateescape"))
    for octets in (b"\x1b]0;owned\x07", b"\x1b[2J", b"\x9b2J", b"\xc2\x9b2J", b"\x1b[8mhid"):
        assert obeyed(octets.decode("utf-8", "surrogateescape")), octets
    assert not obeyed("\x1b[31m\x1b[1mBroken\x1b[0m\r\n\x1b[2K\x1b[1A done")
