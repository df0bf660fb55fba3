"""The only Python sockets: free, taken, asked, refused."""

from __future__ import annotations

import itertools
import os
import socket
import time

import pytest

from httpmark.harness.servers import sockets
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.ports import close_first, own_port


def test_a_port_somebody_listens_on_is_taken() -> None:
    with peers.peer(peers.mute) as peer:
        assert sockets.port_taken("127.0.0.1", peer.port)
    assert not sockets.port_taken("127.0.0.1", peer.port)


def test_a_free_port_lies_below_the_ephemeral_range() -> None:
    port = sockets.free_port()
    assert port < 32768
    with socket.create_server(("127.0.0.1", port)):
        assert sockets.free_port() != port


def bound(*options: int) -> socket.socket:
    """A listener on a port of its own, bound with these options alone."""
    listener = socket.socket()
    for option in options:
        listener.setsockopt(socket.SOL_SOCKET, option, 1)
    listener.bind(("127.0.0.1", own_port()))
    listener.listen()
    return listener


def test_a_port_where_a_closed_connection_waits_is_kept_from_some() -> None:
    alone = close_first(bound())
    reused = close_first(bound(socket.SO_REUSEADDR))
    shared = close_first(bound(socket.SO_REUSEPORT))
    taken = {port: sockets.port_taken("127.0.0.1", port) for port in (alone, reused, shared)}
    assert taken == {alone: True, reused: False, shared: True}
    for port in (alone, reused, shared):
        # Not every server asks for the reuse of addresses: such a port is not free for all.
        assert sockets.port_taken("127.0.0.1", port, reuse=())
        assert sockets.port_left_by_sharer("127.0.0.1", port) is (port == shared)


def test_a_free_port_is_free_for_a_server_that_reuses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited_at = close_first(bound(socket.SO_REUSEADDR))
    good = own_port()
    monkeypatch.setattr(sockets, "_PORTS", [waited_at, good])
    assert sockets.free_port() == good


def test_processes_beside_each_other_draw_other_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    for pid in (4000, 4001):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        monkeypatch.setattr(sockets, "_drawn", itertools.count())
        drawn.append({sockets.free_port() for _ in range(8)})
    assert [len(ports) for ports in drawn] == [8, 8]
    assert not drawn[0] & drawn[1]


def test_an_answer_ends_with_its_content() -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        started = time.monotonic()
        assert sockets.ask("127.0.0.1", peer.port, b"GET\r\n\r\n", deadline_s=5) == peers.OK
        assert time.monotonic() - started < 4


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


@pytest.mark.parametrize(
    ("octets", "answer"),
    [
        (b"GET\r\n\r\n", CHUNKED),
        (b"GET\r\n\r\n", HINTS + peers.OK),
        (b"GET\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"),
        (b"HEAD / HTTP/1.1\r\n\r\n", peers.OK.removesuffix(b"Hello World!")),
    ],
)
def test_an_answer_ends_by_its_framing_and_not_with_the_deadline(
    octets: bytes, answer: bytes
) -> None:
    with peers.peer(peers.answering(answer)) as peer:
        started = time.monotonic()
        assert sockets.ask("127.0.0.1", peer.port, octets, deadline_s=5) == answer
        assert time.monotonic() - started < 4


def test_silence_is_empty_and_refusal_is_none() -> None:
    with peers.peer(peers.mute) as peer:
        assert sockets.ask("127.0.0.1", peer.port, b"GET\r\n\r\n", deadline_s=0.1) == b""
    assert sockets.ask("127.0.0.1", peer.port, b"GET\r\n\r\n", deadline_s=0.1) is None


def test_a_reset_is_not_an_error_of_ours() -> None:
    with peers.peer(peers.resetting) as peer:
        assert sockets.ask("127.0.0.1", peer.port, b"GET\r\n\r\n", deadline_s=2) == b""


def test_a_name_has_an_address_somebody_listens_on() -> None:
    with peers.peer(peers.mute) as peer:
        # Both addresses of this name may be known; the peer listens on one.
        assert sockets.resolved("localhost", peer.port) == "127.0.0.1"
    assert sockets.resolved("127.0.0.1", 1) == "127.0.0.1"
    assert sockets.resolved("::1", 1) == "::1"
    for name in ("nobody.invalid", "a" * 64, "a..b"):
        assert sockets.resolved(name, 80) is None


@pytest.mark.parametrize(
    ("address", "here"), [("127.0.0.1", True), ("127.9.9.9", True), ("192.0.2.1", False)]
)
def test_what_is_here_is_known(address: str, here: bool) -> None:
    assert sockets.is_here(address) is here


def test_a_connection_carries_several_requests() -> None:
    with (
        peers.peer(peers.answering(peers.OK)) as peer,
        sockets.Connection("127.0.0.1", peer.port, deadline_s=5) as connection,
    ):
        for _ in range(2):
            connection.send(b"GET\r\n\r\n")
            assert connection.receive() == peers.OK
        assert connection.tls_version is None
    assert peer.connections == 1


def test_a_connection_tells_silence_and_an_end_apart() -> None:
    with (
        peers.peer(peers.mute) as peer,
        sockets.Connection("127.0.0.1", peer.port, deadline_s=5) as connection,
        pytest.raises(TimeoutError),
    ):
        connection.receive(deadline_s=0.05)
    with (
        peers.peer(peers.closing(b"")) as peer,
        sockets.Connection("127.0.0.1", peer.port, deadline_s=5) as connection,
    ):
        connection.send(b"GET\r\n\r\n")
        assert connection.receive() == b""


def test_nobody_to_connect_to_is_an_error() -> None:
    with pytest.raises(ConnectionRefusedError):
        sockets.Connection("127.0.0.1", own_port(), deadline_s=1)
