"""The tap relays every byte, keeps both directions apart, and ends with its connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from httpmark.harness.servers.recording_tap import Tap
from httpmark.harness.tests.shared.ports import is_listening, own_port
from httpmark.harness.tests.shared.tiny_server import until

HERE = "127.0.0.1"


class Origin:
    """Answers each piece with the same bytes in capitals; ends after ``bye``."""

    def __init__(self) -> None:
        self.listener = socket.create_server((HERE, 0))
        self.port = int(self.listener.getsockname()[1])
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    @staticmethod
    def serve(connection: socket.socket) -> None:
        with connection:
            while piece := connection.recv(65536):
                connection.sendall(piece.upper())
                if piece.endswith(b"bye"):
                    return


@pytest.fixture
def tap() -> Iterator[Tap]:
    origin = Origin()
    with origin.listener, Tap(HERE, own_port(), (HERE, origin.port)) as one:
        yield one
    origin.listener.close()


def connect(tap: Tap) -> socket.socket:
    return socket.create_connection((HERE, tap.port), timeout=10)


def received(wire: socket.socket, count: int) -> bytes:
    octets = b""
    while len(octets) < count and (piece := wire.recv(65536)):
        octets += piece
    return octets


def test_both_directions_are_kept_connection_by_connection(tap: Tap) -> None:
    with connect(tap) as first, connect(tap) as second:
        first.sendall(b"one")
        assert received(first, 3) == b"ONE"
        second.sendall(b"two")
        assert received(second, 3) == b"TWO"
        first.sendall(b"more")
        assert received(first, 4) == b"MORE"
    kept = tap.cut(deadline_s=5)
    assert [(one.to_origin, one.from_origin) for one in kept] == [
        (b"onemore", b"ONEMORE"), (b"two", b"TWO"),
    ]  # fmt: skip
    assert kept[0].opened_us < kept[1].opened_us
    assert [count for _, count in kept[0].writes] == [3, 4]
    assert kept[0].ended_by_proxy


def test_after_a_cut_everything_is_new(tap: Tap) -> None:
    with connect(tap) as wire:
        wire.sendall(b"one")
        assert received(wire, 3) == b"ONE"
        (kept,) = tap.cut(deadline_s=0.2)
        assert kept.to_origin == b"one"
        assert not kept.ended_by_proxy
        assert wire.recv(9) == b""
    assert tap.cut(deadline_s=1) == ()
    with connect(tap) as wire:
        wire.sendall(b"two")
        assert received(wire, 3) == b"TWO"
        assert [one.to_origin for one in tap.now()] == [b"two"]


def test_the_end_of_the_origin_reaches_the_proxy(tap: Tap) -> None:
    with connect(tap) as wire:
        wire.sendall(b"bye")
        assert received(wire, 9) == b"BYE"


def test_the_end_of_the_proxy_reaches_the_origin_and_its_answer_comes_back(tap: Tap) -> None:
    with connect(tap) as wire:
        wire.sendall(b"one")
        wire.shutdown(socket.SHUT_WR)
        assert received(wire, 9) == b"ONE"
    (kept,) = tap.cut(deadline_s=5)
    assert (kept.from_origin, kept.ended_by_proxy) == (b"ONE", True)


def test_much_is_relayed_whole_to_one_who_reads_late(tap: Tap) -> None:
    octets = bytes(range(97, 123)) * 200_000
    with connect(tap) as wire:
        sender = threading.Thread(target=wire.sendall, args=(octets,))
        sender.start()
        assert received(wire, len(octets)) == octets.upper()
        sender.join()
    (kept,) = tap.cut(deadline_s=5)
    assert (kept.to_origin, kept.from_origin) == (octets, octets.upper())


def test_a_connection_that_no_origin_takes_is_closed() -> None:
    with Tap(HERE, own_port(), (HERE, own_port())) as tap, connect(tap) as wire:
        assert wire.recv(9) == b""
        assert tap.cut(deadline_s=1) == ()


def test_it_is_quiet_where_nothing_goes_by(tap: Tap) -> None:
    assert until(lambda: tap.quiet_for() > 0.05)
    with connect(tap) as wire:
        wire.sendall(b"one")
        received(wire, 3)
        assert tap.quiet_for() < 5


def test_nothing_listens_after_its_end() -> None:
    with Tap(HERE, own_port(), (HERE, 9)) as tap:
        assert is_listening(tap.port)
    assert not is_listening(tap.port)
