"""Whether a target lives."""

from __future__ import annotations

import pytest

from httpmark.harness.firing import (
    targets,
)
from httpmark.harness.tests.shared import peers


@pytest.mark.parametrize(
    ("handler", "alive"),
    [
        (peers.answering(peers.OK), True),
        (peers.answering(b"HTTP/1.1 103 Early Hints\r\n\r\n" + peers.OK), True),
        (peers.answering(peers.BAD), False),
        (peers.closing(b""), False),
        (peers.mute, False),
    ],
)
def test_a_mute_server_is_not_alive(handler: peers.Handler, alive: bool) -> None:
    with peers.peer(handler) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        assert targets.accepts(target, deadline_s=0.3) is alive
    assert not targets.accepts(target, deadline_s=0.3)


def test_a_target_that_lets_many_questions_run_out_of_time_is_asked_no_more() -> None:
    patience = targets.Patience()
    given = []
    for _ in range(30):
        given.append(patience.allows_s(2.0, slowest_ms=0))
        patience.lose(given[-1] or 2.0)
    assert given == [2.0] * 4 + [0.8] * 12 + [0.0] * 14
    # Half a second for an upgrade is no question of full length.
    short = targets.Patience()
    for _ in range(4):
        short.lose(0.5)
    assert short.allows_s(2.0, slowest_ms=0) == 2.0


def test_a_slow_target_has_the_time_that_its_plain_answers_take() -> None:
    patience = targets.Patience()
    for _ in range(4):
        patience.lose(2.0)
    assert patience.allows_s(8.0, slowest_ms=1500) == 6.0


def test_the_plain_request_is_always_asked() -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        for _ in range(16):
            target.patience.lose(2.0)
        assert target.ask(b"GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", deadline_s=2.0) == b""
        assert peer.connections == 0
        assert targets.accepts(target)
