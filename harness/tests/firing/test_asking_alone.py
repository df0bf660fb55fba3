"""Who is asked alone, for how long, and who of the others is believed."""

from __future__ import annotations

import itertools
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpmark.harness.catalogue import loading
from httpmark.harness.firing import asking_alone, targets
from httpmark.harness.firing.case_stream import CaseStream
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.suite_results import Fired
from httpmark.harness.tests.shared import peers

_CASE = ("host-missing", "host-missing")


def _held_up_by(octets: bytes, seconds: float) -> peers.Handler:
    """Answers nobody for a while from the first request that lacks some octets on."""
    held_from: list[float] = []

    def handler(connection: socket.socket) -> None:
        asked = peers.head(connection)
        if octets not in asked:
            held_from.append(time.monotonic())
        if held_from and time.monotonic() < held_from[0] + seconds:
            time.sleep(seconds)
            return
        connection.sendall(peers.OK)

    return handler


@pytest.mark.process
@pytest.mark.parametrize(("seconds", "counts"), [(0.0, True), (12.0, False)])
def test_a_server_that_is_silent_to_everybody_is_held_up(
    tmp_path: Path, seconds: float, counts: bool
) -> None:
    with (
        peers.peer(_held_up_by(b"Host:", seconds)) as peer,
        Evidence(tmp_path / "e.sqlite", create=True) as evidence,
    ):
        target = targets.Target(
            name="peer", address="127.0.0.1", port=peer.port, host="a", at_once=1
        )
        stream = CaseStream(loading.load(), target, evidence, Fired(), quick=True)
        stream.plan([_CASE[0]])
        found = asking_alone.ask(stream, [_CASE])
        stored = list(evidence.attempts("peer", family=_CASE[0]))
    assert found.asked == ({_CASE} if counts else set())
    assert len(stored) == int(counts)
    assert not found.is_plain


@given(st.integers(0, 700), st.integers(1, 300))
def test_lots_hold_each_case_once_and_come_from_all_over(total: int, size: int) -> None:
    cases = [("f", str(number)) for number in range(total)]
    lots = asking_alone.lots(cases, size)
    assert sorted(itertools.chain(*lots)) == sorted(cases)
    assert all(0 < len(lot) <= size for lot in lots)
    if len(lots) > 1 and size > 1:
        assert all(int(lot[-1][1]) - int(lot[0][1]) > total // 2 for lot in lots if len(lot) > 2)


@pytest.mark.parametrize(
    ("late", "asked", "is_over"), [(31, 31, False), (32, 32, True), (33, 40, False), (36, 40, True)]
)
def test_those_left_are_believed_when_nearly_all_run_out_again(
    late: int, asked: int, is_over: bool
) -> None:
    stream = cast(CaseStream, SimpleNamespace(quick=True))
    believed = asking_alone._Believed(stream, 5, 6)
    believed.add(late - 5, asked - 6)
    assert believed.is_over is is_over


def test_nobody_is_asked_alone_for_longer_than_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    quick = asking_alone._Believed(cast(CaseStream, SimpleNamespace(quick=True)), 1, 6)
    whole = asking_alone._Believed(cast(CaseStream, SimpleNamespace(quick=False)), 1, 6)
    assert (quick.is_over, whole.is_over) == (False, False)
    now[0] = 31.0
    assert (quick.is_over, whole.is_over) == (True, False)
    now[0] = 301.0
    assert whole.is_over
