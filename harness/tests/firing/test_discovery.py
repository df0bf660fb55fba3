"""What a target can do, found by asking it."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import cast

import pytest

from httpmark.harness.firing import discovery, targets
from httpmark.harness.firing.targets import Target
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.servers import PARTS_OF_BEHAVE
from httpmark.harness.tests.shared import command_process, peers
from httpmark.harness.tests.shared.made_answers import answer

BEHAVES = {
    "GET /early": answer(200),
    "GET /204": b"HTTP/1.1 204 x\r\n\r\n",
    "GET /304": b'HTTP/1.1 304 x\r\nETag: "a"\r\n\r\n',
    "GET /redirect": answer(302, b"", "Location: /hello"),
    "GET /big": answer(200, b"a" * (1 << 20)),
    "GET /404": answer(404),
    "HEAD /404": answer(404),
    "POST /404": answer(404),
    "GET /get-only": answer(200),
    "POST /get-only": answer(405, b"", "Allow: GET, HEAD"),
    "GET /slow": answer(200),
}


class Asked:
    """A target that answers as a table says, and else 404; only ``now`` goes on at /slow."""

    def __init__(self, answers: dict[str, bytes], otherwise: bytes, slow_s: float) -> None:
        self.answers, self.otherwise, self.slow_s, self.now = answers, otherwise, slow_s, 0.0

    def facts(self) -> Facts:
        return Facts(host="a")

    def ask(self, octets: bytes, *, deadline_s: float) -> bytes:
        line = octets.partition(b" HTTP/1.1\r\n")[0].decode()
        self.now += self.slow_s if line == "GET /slow" else 0.0
        return self.answers.get(line, self.otherwise)


def found(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, bytes],
    otherwise: bytes = answer(404),
    slow_s: float = 0.5,
) -> set[str]:
    asked = Asked(answers, otherwise, slow_s)
    monkeypatch.setattr(time, "monotonic", lambda: asked.now)
    return set(discovery.capabilities(cast(Target, asked)))


def test_a_server_with_every_place_behaves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, BEHAVES) == {"hello", "behave"}


@pytest.mark.parametrize("part", PARTS_OF_BEHAVE)
def test_a_server_that_lacks_one_place_has_the_others(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/" + part.removeprefix("behave.")
    answers = {line: said for line, said in BEHAVES.items() if line.partition(" ")[2] != path}
    wrong = answer(500)
    assert found(monkeypatch, answers, wrong) == {"hello", *PARTS_OF_BEHAVE} - {part}


def test_only_an_event_stream_that_ends_is_taken_for_the_place_of_the_contract(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Most applications stream without end at such a path, as they should."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    event = b"Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n"
    assert "events" in found(monkeypatch, {"GET /events": head + event + b"0\r\n\r\n"})
    assert "events" not in found(monkeypatch, {"GET /events": head + event})
    assert "events" not in found(monkeypatch, {"GET /events": answer(200)})


def test_a_place_that_answers_any_path_at_once_is_not_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert found(monkeypatch, {}, answer(200), slow_s=0.001) == {"hello", "behave.early"}
    assert "behave.slow" not in found(monkeypatch, BEHAVES, slow_s=0.001)


def test_a_server_that_finds_nothing_has_a_place_that_is_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert found(monkeypatch, {}) == {"hello", "behave.404"}
    assert found(monkeypatch, {"HEAD /404": answer(405)}) == {"hello"}


def _trickling(connection: socket.socket) -> None:
    """Sends its answer byte by byte, and never all of it."""
    peers.head(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.2)


def _interim(connection: socket.socket) -> None:
    """Sends interim answers without end."""
    peers.head(connection)
    while True:
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        time.sleep(0.2)


def _too_long(connection: socket.socket) -> None:
    """Has one byte less than it says."""
    while peers.head(connection):
        connection.sendall(peers.OK[:-1])


def _for_ever(connection: socket.socket) -> None:
    """Sends content that only a close would end."""
    peers.head(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(bytes(1 << 16))


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (_for_ever, "is longer than 1 MiB"),
        (_too_long, "did not end within 0.5 s"),
        (peers.closing(peers.OK[:-1]), None),  # it ended, and is judged
        (peers.answering(answer(200, bytes(2 << 20))), "is longer than 1 MiB"),
        (peers.closing(b"HTTP/1.1 200 OK\r\n\r\nHello"), None),
        (peers.answering(peers.OK), None),
        (peers.mute, None),
    ],
)
def test_a_plain_answer_has_to_end(
    monkeypatch: pytest.MonkeyPatch, handler: peers.Handler, why: str | None
) -> None:
    monkeypatch.setattr(discovery, "PATIENCE_S", 0.5)
    with peers.peer(handler) as peer:
        target = Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        told = discovery.without_end(target, targets.hello(target, deadline_s=0.2) or b"")
    assert (told or "").endswith(why or "")
    assert bool(told) is bool(why)


@pytest.mark.parametrize(
    ("octets", "is_short"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", False),
        (b"HTTP/1.1 200 OK\r\n\r\nonly the close ends it", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", True),
        (b"HTTP/1.1 200 OK\r\nContent-", True),
        (b"HT", True),
        (b"no HTTP", False),
        (b"", False),
    ],
)
def test_an_answer_that_a_close_cuts_short_is_told(octets: bytes, is_short: bool) -> None:
    with peers.peer(peers.closing(octets)) as peer:
        target = Target(name="peer", address="127.0.0.1", port=peer.port, host="a", path="/x")
        told = discovery.cut_short(target)
    assert told == ("its answer to GET /x is cut short" if is_short else None)


@pytest.mark.process
@pytest.mark.parametrize("handler", [_trickling, _interim])
@pytest.mark.parametrize(
    "words", [("replay", "get-plain"), ("fuzz", "--seconds", "1"), ("check", "--quick")]
)
def test_no_command_stays_with_a_target_that_trickles(
    tmp_path: Path, handler: peers.Handler, words: tuple[str, ...]
) -> None:
    with peers.peer(handler) as peer:
        began = time.monotonic()
        code, _, errors = command_process.run(
            *words, f"127.0.0.1:{peer.port}", cwd=tmp_path, timeout=60
        )
    assert code == 3, errors
    assert "did not end within 5 s" in errors
    assert time.monotonic() - began < 30
