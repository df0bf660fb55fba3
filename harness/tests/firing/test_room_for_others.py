"""Whether a server has room for others is seen from plain requests."""

from __future__ import annotations

import itertools
import socket
import threading
import time

import pytest

from httpmark.harness.firing import room_for_others, targets
from httpmark.harness.tests.shared import peers

_S = 1.2


def _is_shown(handler: peers.Handler, seconds: float = _S) -> bool:
    with peers.peer(handler) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with room_for_others.RoomForOthers(target) as room:
            time.sleep(seconds)
        assert not target.last_asked.recent
        return room.is_shown


@pytest.mark.process
def test_there_is_room_where_each_plain_request_is_answered() -> None:
    assert _is_shown(peers.answering(peers.OK))


@pytest.mark.process
@pytest.mark.parametrize("handler", [peers.mute, peers.answering(peers.BAD)])
def test_there_is_none_where_plain_requests_are_not_answered(handler: peers.Handler) -> None:
    assert not _is_shown(handler)


@pytest.mark.process
def test_one_that_is_not_answered_is_enough() -> None:
    """Of several workers one is held: those who come to it wait."""
    numbers, lock = itertools.count(), threading.Lock()

    def one_worker_is_held(connection: socket.socket) -> None:
        with lock:
            number = next(numbers)
        if number == 2:
            connection.recv(65536)
            connection.recv(65536)
        elif peers.head(connection):
            connection.sendall(peers.OK)

    assert not _is_shown(one_worker_is_held, 3 * _S)


@pytest.mark.process
def test_a_moment_shows_nothing() -> None:
    assert not _is_shown(peers.answering(peers.OK), 0.3)
