"""The path's round trip is that of handshakes, and nobody there is told as nothing."""

from __future__ import annotations

import pytest

from httpmark.harness.cluster import path_clock
from httpmark.harness.cluster.path_clock import PathClock
from httpmark.harness.servers import sockets
from httpmark.harness.tests.shared import ports


def test_the_shortest_before_and_the_median_under_load_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trips = iter([0.003, 0.002, None, 0.004, 0.005, 0.030, None, 0.010, 0.020])
    monkeypatch.setattr(sockets, "handshake_s", lambda *to: next(trips))
    monkeypatch.setattr(path_clock, "_EVERY_S", 0.0)
    clock = PathClock("10.0.0.1", 80)
    for _ in range(4):
        clock.look(float("inf"))
    found = clock.told()
    assert found is not None
    assert found.idle_us == pytest.approx(2_000)
    assert found.loaded_us == pytest.approx(20_000)


def test_it_is_not_asked_more_often_than_it_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def handshake_s(*to: object) -> float:
        asked.append(to)
        return 0.001

    monkeypatch.setattr(sockets, "handshake_s", handshake_s)
    clock = PathClock("10.0.0.1", 80)
    before = len(asked)
    clock.look(0.0)
    clock.look(0.0)
    assert len(asked) == before + 1


def test_where_nobody_answers_there_is_no_path() -> None:
    assert PathClock("127.0.0.1", ports.own_port()).told() is None


def test_a_handshake_is_timed() -> None:
    port = ports.own_port()
    with sockets.listener("127.0.0.1", port):
        took = sockets.handshake_s("127.0.0.1", port)
    assert took is not None
    assert 0 < took < 0.5
