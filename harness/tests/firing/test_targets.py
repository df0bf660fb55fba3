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
