"""When a server that fell silent is said to hang."""

from __future__ import annotations

import socket
import time

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.firing import liveness
from httpmark.harness.firing.crash_recovery import Recovery
from httpmark.harness.firing.targets import Target
from httpmark.harness.tests.shared import peers


def _target(peer: peers.Peer) -> Target:
    return Target(name="peer", address="127.0.0.1", port=peer.port, host="a")


@pytest.mark.process
def test_a_server_that_was_silent_for_a_while_does_not_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(liveness, "_HUNG_S", 1.0)
    monkeypatch.setattr(liveness, "_RECOVERS_S", 30.0)
    until_s = [0.0]

    def handler(connection: socket.socket) -> None:
        if peers.head(connection) and time.monotonic() >= until_s[0]:
            connection.sendall(peers.OK)

        else:
            time.sleep(60)

    with peers.peer(handler) as peer:
        target, recovery = _target(peer), Recovery(loading.load())
        recovery.meet(target)
        until_s[0] = time.monotonic() + 3.0
        assert recovery.ending(target) is None


@pytest.mark.process
def test_one_connection_that_is_lost_is_no_hang() -> None:
    asked: list[bytes] = []

    def loses_the_first(connection: socket.socket) -> None:
        asked.append(peers.head(connection))
        if len(asked) == 1:
            time.sleep(60)
        connection.sendall(peers.OK)

    with peers.peer(loses_the_first) as peer:
        assert liveness.ended(_target(peer), patience_s=9.0) is None
    assert len(asked) == 2


@pytest.mark.process
def test_a_server_that_stays_silent_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "_HUNG_S", 0.6)
    with peers.peer(peers.mute) as peer:
        found = liveness.ended(_target(peer))
    assert found is not None
    assert "answers no request" in found.how
