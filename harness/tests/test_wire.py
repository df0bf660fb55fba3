"""The only Python sockets: free, taken, asked, refused."""

from __future__ import annotations

import socket
import time

from httpmark.harness import wire

from . import peers


def test_a_port_somebody_listens_on_is_taken() -> None:
    with peers.peer(peers.mute) as peer:
        assert wire.port_taken("127.0.0.1", peer.port)
    assert not wire.port_taken("127.0.0.1", peer.port)


def test_a_free_port_lies_below_the_ephemeral_range() -> None:
    port = wire.free_port()
    assert port < 32768
    with socket.create_server(("127.0.0.1", port)):
        assert wire.free_port() != port


def test_an_answer_ends_with_its_content() -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        started = time.monotonic()
        assert wire.ask("127.0.0.1", peer.port, b"GET\r\n\r\n", deadline_s=5) == peers.OK
        assert time.monotonic() - started < 4


def test_silence_is_empty_and_refusal_is_none() -> None:
    with peers.peer(peers.mute) as peer:
        assert wire.ask("127.0.0.1", peer.port, b"GET\r\n\r\n", deadline_s=0.1) == b""
    assert wire.ask("127.0.0.1", peer.port, b"GET\r\n\r\n", deadline_s=0.1) is None


def test_a_reset_is_not_an_error_of_ours() -> None:
    with peers.peer(peers.resetting) as peer:
        assert wire.ask("127.0.0.1", peer.port, b"GET\r\n\r\n", deadline_s=2) == b""
