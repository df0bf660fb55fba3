"""Under mixed load with faults the reference server stays as it was; and a leak would be seen."""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from pathlib import Path

import pytest

from httpmark.harness.tests import soak
from httpmark.harness.tests.shared import soak_clients
from httpmark.harness.tests.shared.pytest_rules import required
from httpmark.harness.tests.shared.soak_clients import Between, Tally
from httpmark.harness.tests.soak import (
    BYTES_PER_CONNECTION_MAX,
    COUNTERS,
    NOISE_BYTES,
    Sample,
    Soaked,
    broken,
    growth,
)

MIB = 1 << 20
RELAY = "httpmark.harness.tests.shared.leaky_relay"


def series(*, per_connection: float, seconds: int = 3600, noise: int = 200_000) -> list[Sample]:
    """Samples of a server that takes 5 MiB in its first minutes, then so much of each connection,
    100 of which come in a second."""
    draw = random.Random(1)
    return [
        Sample(
            at_s=float(at),
            rss_bytes=int(
                5 * MIB * min(1.0, at / 300) + 100 * at * per_connection + draw.randrange(noise)
            ),
            descriptors=20,
            connections=9,
            accepted=100 * at,
        )
        for at in range(0, seconds, 2)
    ]


def soaked(**changes: object) -> Soaked:
    """A soak in which all laws hold."""
    at_rest = Sample(0.0, 3 * MIB, 12, 0, 1)
    tally = Tally()
    for name in COUNTERS.values():
        getattr(tally, name).add(90, 110)
    made = Soaked(
        engine="epoll", seconds=3600.0, base=at_rest, samples=tuple(series(per_connection=0)),
        left=at_rest, counters=dict.fromkeys(COUNTERS, 100), tallies={"one": tally}, wrong=(),
        answers=True, exit_code=0,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def test_memory_that_grows_at_first_and_then_varies_is_no_leak() -> None:
    assert broken(soaked()) == []
    grown = growth(series(per_connection=0))
    assert abs(grown.bytes) < NOISE_BYTES / 10
    assert grown.seconds == pytest.approx(900, abs=5)


def test_the_smallest_piece_that_can_be_lost_on_each_connection_is_seen_in_an_hour() -> None:
    (told,) = broken(soaked(samples=tuple(series(per_connection=32))))
    assert told.startswith("memory grew by 2,")
    half = tuple(series(per_connection=BYTES_PER_CONNECTION_MAX / 2))
    assert broken(soaked(samples=half)) == []
    # A short soak has fewer connections, and sees larger leaks only.
    assert broken(soaked(samples=tuple(series(per_connection=32, seconds=80)))) == []
    assert broken(soaked(samples=tuple(series(per_connection=2000, seconds=80))))


def test_memory_that_is_given_back_is_no_leak() -> None:
    assert broken(soaked(samples=tuple(series(per_connection=-1.0, noise=10)))) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"left": Sample(1.0, MIB, 13, 0, 1)}, "13 descriptors after all clients had left, 12"),
        ({"left": Sample(1.0, MIB, 11, 0, 1)}, "11 descriptors"),
        ({"left": Sample(1.0, MIB, 12, 2, 1)}, "2 connections are open after"),
        ({"answers": False}, "GET /hello has no answer"),
        ({"exit_code": -11, "said": "why"}, "SIGTERM: exit code -11: why"),
        ({"exit_code": None}, "SIGTERM: exit code None"),
        ({"wrong": ("posts: Wrong: other content",)}, "a client: posts: Wrong: other content"),
    ],
)
def test_each_law_can_fail(changes: dict[str, object], told: str) -> None:
    (found,) = broken(soaked(**changes))
    assert found.startswith(told)


@pytest.mark.parametrize("counter", COUNTERS)
def test_each_counter_is_compared_with_what_the_clients_did(counter: str) -> None:
    for count, holds in ((89, False), (90, True), (110, True), (111, False)):
        found = broken(soaked(counters=dict.fromkeys(COUNTERS, 100) | {counter: count}))
        assert (found == []) is holds
        if not holds:
            assert found == [f"the server counted {count} of {counter}, the clients 90 to 110"]


def test_a_count_knows_its_least_and_its_most() -> None:
    count = Between()
    count.add(3)
    count.add(0, 2)
    assert (count.least, count.most) == (3, 5)


def test_what_was_seen_is_told_and_can_be_read_by_programs() -> None:
    one = soaked()
    text = soak.told(one)
    assert "all laws hold" in text
    assert "connections_accepted" in text
    assert "broken: SIGTERM: exit code 1" in soak.told(soaked(exit_code=1))
    data = json.loads(json.dumps(soak.as_data(one)))
    assert data["broken"] == []
    assert data["growth"]["bound"] > NOISE_BYTES
    assert len(data["samples"]) == len(one.samples)


@pytest.mark.process
@pytest.mark.first
def test_the_server_is_as_before_after_a_short_soak(tmp_path: Path) -> None:
    seen = soak.soak("epoll", seconds=8, seed=1, folder=tmp_path)
    assert broken(seen) == [], soak.told(seen)
    assert seen.counters["refused"] > 10
    assert seen.counters["requests"] > 1000
    for name, tally in seen.tallies.items():
        assert tally.connections.least, f"{name} has not come"


@pytest.mark.process
@pytest.mark.parametrize("what", ["descriptor", "memory", "nothing"])
def test_a_server_that_leaks_is_seen(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "PATIENCE_S", 1.0)
    monkeypatch.setattr(soak_clients, "IDLE_TIMEOUT_S", 2)
    monkeypatch.setattr(soak, "SAMPLE_S", 0.5)
    # The relay has a thread for each connection, so its own memory varies by more than a server's.
    monkeypatch.setattr(soak, "NOISE_BYTES", 8 * MIB)
    files = tmp_path / "files"
    program = [sys.executable, "-m", RELAY, what, *soak.program_of("epoll", files)]
    seen = soak.soak("epoll", seconds=6, seed=1, folder=tmp_path, program=program)
    told = " ".join(broken(seen))
    assert ("descriptors after all clients had left" in told) is (what == "descriptor"), told
    assert ("memory grew by" in told) is (what == "memory"), told


@pytest.mark.process
def test_a_server_that_ends_is_no_soak(tmp_path: Path) -> None:
    """Its port is not that of a server that gives its counters, so the first question fails."""
    program = [sys.executable, "-c", "print('listening on 127.0.0.1:1'); raise SystemExit(7)"]
    with pytest.raises(soak.Ended, match=r"exit code 7"):
        soak.soak("epoll", seconds=1, seed=1, folder=tmp_path, program=program)


@pytest.mark.nightly
@pytest.mark.process
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", soak.ENGINES)
def test_the_server_is_as_before_after_a_soak(engine: str, tmp_path: Path) -> None:
    if not soak.has_engine(engine):
        if engine in required():
            pytest.fail(f"HTTPMARK_REQUIRE lists {engine}, and this machine lacks it")
        pytest.skip(f"{engine} is not on this machine")
    seen = soak.soak(engine, seconds=75, seed=2, folder=tmp_path)
    assert broken(seen) == [], soak.told(seen)
