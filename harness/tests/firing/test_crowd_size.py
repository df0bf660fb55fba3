"""How many cases go out at once."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import msgspec
import pytest

from httpmark.harness.firing import (
    case_stream,
    crowd_size,
    targets,
)
from httpmark.harness.tests.shared import peers


@pytest.mark.process
def test_a_server_that_cannot_take_many_at_once_is_asked_fewer() -> None:
    one_at_a_time = threading.Lock()

    def handler(connection: socket.socket) -> None:
        peers.head(connection)
        with one_at_a_time:
            time.sleep(0.006)
        connection.sendall(peers.OK)

    with peers.peer(handler) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        assert crowd_size.found(target) == case_stream.AGAIN_IN_FLIGHT
    with peers.peer(peers.answering(peers.OK)) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        assert crowd_size.found(target) == case_stream.CASES_IN_FLIGHT


@pytest.mark.process
def test_a_server_with_a_short_queue_is_asked_no_more_than_fit_into_it() -> None:
    """What is dropped from a listen queue comes again a second later: that is no slow answer."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=5)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                time.sleep(0.002)
                with connection, contextlib.suppress(OSError):
                    peers.closing(peers.OK)(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    port = listener.getsockname()[1]
    target = targets.Target(name="peer", address="127.0.0.1", port=port, host="a")
    try:
        at_once = crowd_size.found(target)
        probe = msgspec.structs.replace(target, at_once=at_once).probe(in_flight=256)
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
    assert at_once == targets.FEW_IN_FLIGHT
    assert probe.command[-1] == str(at_once), "whatever is asked of it"
