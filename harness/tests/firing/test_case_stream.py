"""What goes through the probe, and what is believed of silence."""

from __future__ import annotations

import contextlib
import itertools
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.firing import targets
from httpmark.harness.firing.case_stream import CaseStream, exhaust
from httpmark.harness.judging import suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.exchanges import Attempt, Exchange, Outcome
from httpmark.harness.servers import network_counters
from httpmark.harness.tests.shared import peers

KNOWN = loading.load()


def asked(port: int, folder: Path) -> Exchange:
    """One request on a machine that drops packets all the time."""
    target = targets.Target(name="peer", address="127.0.0.1", port=port, host="a")
    with Evidence(folder / "e.sqlite", create=True) as evidence:
        evidence.set_facts("peer", target.facts())
        stream = CaseStream(KNOWN, target, evidence, suite_results.Fired())
        cases = stream.only([("get-plain", "get-plain")])
        exhaust(stream.play(cases, in_flight=1, attempt=Attempt.FIRST))
        [[made]] = evidence.attempts("peer", family="get-plain")
    return made


@contextlib.contextmanager
def full() -> Iterator[int]:
    """The port of a server whose listen queue is full, so that the kernel drops what comes."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield server.getsockname()[1]


@pytest.fixture(autouse=True)
def dropping(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that dropped one packet more whenever one looks."""
    numbers = itertools.count()
    monkeypatch.setattr(network_counters, "dropped_packets", lambda: {"ListenDrops": next(numbers)})


@pytest.mark.process
def test_silence_after_the_server_got_the_request_is_its_own(tmp_path: Path) -> None:
    with peers.peer(peers.mute) as peer:
        made = asked(peer.port, tmp_path)
    assert made.outcome is Outcome.HUNG
    assert not made.machine_dropped


@pytest.mark.process
def test_silence_to_what_may_have_been_dropped_proves_nothing(tmp_path: Path) -> None:
    with full() as port:
        made = asked(port, tmp_path)
    assert made.outcome is Outcome.REFUSED
    assert made.machine_dropped
