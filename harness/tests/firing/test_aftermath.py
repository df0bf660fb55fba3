"""Who is waited for when a crowd has gone, and for how long."""

from __future__ import annotations

import socket
import time

import pytest

from httpmark.harness.firing import aftermath
from httpmark.harness.firing.targets import Target
from httpmark.harness.tests.shared import peers


def _waited_s(handler: peers.Handler, *, crowd_s: float, open_s: list[float]) -> float:
    with peers.peer(handler) as peer:
        target = Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        after = aftermath.Aftermath(target)
        after.look_before()
        open_s[0] = time.monotonic() + crowd_s
        began = time.monotonic()
        after.wait()
        return time.monotonic() - began


def _keeping_from(open_s: list[float]) -> peers.Handler:
    """Keeps connections, but for a time that is told later."""

    def handler(connection: socket.socket) -> None:
        while peers.head(connection):
            connection.sendall(peers.OK)
            if time.monotonic() < open_s[0]:
                return

    return handler


@pytest.mark.process
def test_a_server_that_kept_connections_is_waited_for_until_it_does_again() -> None:
    open_s = [0.0]
    assert _waited_s(_keeping_from(open_s), crowd_s=1.0, open_s=open_s) >= 1.0


@pytest.mark.process
def test_nobody_waits_for_a_server_that_never_kept_one() -> None:
    open_s = [time.monotonic() + 60]
    assert _waited_s(_keeping_from(open_s), crowd_s=60, open_s=open_s) < 1.0


@pytest.mark.process
def test_the_wait_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aftermath, "_WAIT_S", 0.5)
    open_s = [0.0]
    assert 0.5 <= _waited_s(_keeping_from(open_s), crowd_s=60, open_s=open_s) < 30
