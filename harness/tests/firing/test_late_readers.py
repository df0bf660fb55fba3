"""Clients that read late: who gets all is told from who waits for ever or gets something else."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable

import pytest

from httpmark.harness.firing import targets
from httpmark.harness.firing.programs import late_readers
from httpmark.harness.firing.programs.stage import Found, Program, Stage
from httpmark.harness.model.cases import Case, Op, Step
from httpmark.harness.model.verdicts import Word
from httpmark.harness.servers import websocket_echo
from httpmark.harness.tests.shared import peers

MIB = 1 << 20
ASK = b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % MIB + bytes(MIB)
UPGRADE = b"GET /websocket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_readers, "_PATIENCE_ANSWERS", 1)
    monkeypatch.setattr(late_readers, "_QUIET_S", 0.1)


def read(program: Program, sent: bytes, handler: peers.Handler) -> Found:
    with peers.peer(handler) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        case = Case(id="late", family="late", steps=(Step(Op.SEND, sent),))
        stage = Stage(
            case=case, facts=target.facts(), fire=lambda cases, in_flight: [],
            alive=lambda: True, pids=list, flood=target.flood, trickle=target.trickle,
            read_late=target.read_late, negatives=list,
        )  # fmt: skip
        return program(stage)


def big(answers: int, then: Callable[[socket.socket], object] = lambda _: None) -> peers.Handler:
    def handler(connection: socket.socket) -> None:
        asked = b""
        while asked.count(b"\r\n\r\n") < 8:
            asked += connection.recv(4096)
        for _ in range(answers):
            connection.sendall(ANSWER)
        then(connection)

    return handler


def asleep(connection: socket.socket) -> None:
    connection.settimeout(10)
    try:
        while connection.recv(4096):
            time.sleep(0.01)
    except OSError:
        return


@pytest.mark.process
def test_eight_large_answers_are_waited_for() -> None:
    assert read(late_readers.late_reader, ASK, big(8)) == Found(
        Word.PASS, f"8 of 8 answers were whole, {8 * len(ANSWER):,} bytes"
    )


@pytest.mark.process
def test_who_stops_and_does_not_close_leaves_the_client_waiting() -> None:
    found = read(late_readers.late_reader, ASK, big(3, asleep))
    assert found.word is Word.FAIL
    assert found.actual.startswith("3 of 8 answers were whole")
    assert found.actual.endswith("nothing more came, and the server did not close")


@pytest.mark.process
def test_a_close_is_only_bad_before_the_first_answer() -> None:
    assert read(late_readers.late_reader, ASK, big(2)).word is Word.WARN
    assert read(late_readers.late_reader, ASK, big(0)).word is Word.FAIL


def echo(lost: int | None = None, after: int | None = None) -> peers.Handler:
    """Sends messages back as they come, but not the one of a number, and none after another."""

    def handler(connection: socket.socket) -> None:
        peers.head(connection)
        connection.sendall(SWITCH)
        number, held = 0, b""
        while piece := connection.recv(1 << 16):
            held += piece
            while len(held) >= 4:  # a short message, or one of two bytes of length
                mask = 2 if held[1] & 127 < 126 else 4
                size = held[1] & 127 if mask == 2 else int.from_bytes(held[2:4])
                if len(held) < mask + 4 + size:
                    break
                key, masked = held[mask : mask + 4], held[mask + 4 : mask + 4 + size]
                held = held[mask + 4 + size :]
                text = bytes(octet ^ key[at % 4] for at, octet in enumerate(masked))
                if number != lost and (after is None or number <= after):
                    connection.sendall(websocket_echo.text_frame(text))
                number += 1

    return handler


@pytest.mark.process
def test_messages_are_compared_with_what_was_sent() -> None:
    asked = (late_readers.websocket_late_reader, UPGRADE)
    assert read(*asked, echo(lost=0)).word is Word.NOT_APPLICABLE  # that is the first of all
    assert read(*asked, echo()) == Found(Word.PASS, "all 4,000 messages came back")
    wrong = read(*asked, echo(lost=1234))
    assert wrong.word is Word.FAIL
    assert re.search(r"not as they were sent|nothing more came", wrong.actual)
    short = read(*asked, echo(after=99))
    assert short.word is Word.FAIL
    assert short.actual == "100,400 of 4,016,000 bytes came back; then nothing more came"


@pytest.mark.process
def test_who_does_not_switch_is_not_asked() -> None:
    refuses = peers.closing(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    found = read(late_readers.websocket_late_reader, UPGRADE, refuses)
    assert found == Found(Word.NOT_APPLICABLE, "the handshake got no 101")
