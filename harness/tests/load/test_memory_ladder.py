"""The ladder against servers of known appetite, and what is said where nothing can be measured."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec
import pytest

from httpmark.harness.load import memory_ladder
from httpmark.harness.load.engines import launch
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadMode, LoadPlan
from httpmark.harness.model.memory import Rung
from httpmark.harness.servers import binaries, memory_use, open_connections
from httpmark.harness.tests.shared import peers

PLAN = LoadPlan(
    name="p", title="t", why="w", connections=60, depth=1, duration_s=0.3, mode=LoadMode.IDLE,
    ladder=(20, 40, 60),
)  # fmt: skip

# Keeps 64 KiB for each connection, as long as it lives; accepts at most what it is told.
GREEDY = """
import selectors, socket, sys
most = int(sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0), backlog=512)
print(listener.getsockname()[1], flush=True)
choose = selectors.DefaultSelector()
choose.register(listener, selectors.EVENT_READ)
held = {}
while True:
    for key, _ in choose.select():
        if key.fileobj is listener:
            if len(held) >= most:
                choose.unregister(listener)
                continue
            connection, _ = listener.accept()
            held[connection] = bytearray(b"x" * 65536)
            choose.register(connection, selectors.EVENT_READ)
        elif not key.fileobj.recv(65536):
            choose.unregister(key.fileobj)
            held.pop(key.fileobj)
            key.fileobj.close()
            if len(held) == most - 1 and listener not in choose.get_map():
                choose.register(listener, selectors.EVENT_READ)
        else:
            key.fileobj.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
"""


@contextlib.contextmanager
def greedy(most: int = 10_000) -> Iterator[memory_ladder.Ground]:
    with subprocess.Popen(
        [sys.executable, "-c", GREEDY, str(most)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        target = launch.Target("127.0.0.1", int(process.stdout.readline()))
        try:
            yield memory_ladder.Ground(
                target,
                lambda: [process.pid],
                lambda: process.poll() is None,
                lambda: f"exit code {process.poll()}",
            )
        finally:
            process.kill()


@pytest.mark.timed
@pytest.mark.process
def test_the_slope_is_what_a_connection_costs() -> None:
    plan = msgspec.structs.replace(PLAN, duration_s=0.96)  # 60 in it are 16 ms apart
    with greedy() as ground:
        began = time.monotonic()
        memory = memory_ladder.climb(plan, ground, cpus=None)
        assert time.monotonic() - began > 4 * plan.duration_s, "three rungs are held, then asked"
    assert [(rung.connections, rung.held) for rung in memory.ladder] == [
        (20, 20), (40, 40), (60, 60),
    ]  # fmt: skip
    assert memory.connections_held == 60
    slope = memory.bytes_per_connection
    assert slope is not None
    assert slope.resident is not None
    assert 60_000 < slope.resident < 90_000
    assert memory.baseline is not None
    assert (memory.baseline.connections, memory.baseline.held) == (0, 0)
    assert memory.baseline.pss_kb is not None
    assert memory.ladder[0].pss_kb is not None
    # The first twenty cost 64 KiB each; so where none is held the line meets what was there before.
    assert memory.ladder[0].pss_kb > memory.baseline.pss_kb + 1000
    assert memory.intercept_bytes is not None
    assert memory.intercept_bytes.resident == pytest.approx(memory.baseline.pss_kb * 1024, rel=0.2)
    assert memory.after_close_pss_kb is not None
    asked = memory.trickle
    assert asked is not None, memory.trickle_reason
    assert (asked.connections, asked.requests, asked.errors) == (60, 60, {})
    assert asked.pss_peak_kb is not None
    # 60 connections of 64 KiB are held again while they ask.
    assert asked.pss_peak_kb > memory.after_close_pss_kb + 1000
    # Neighbours may come and go on the machine that tests run on: then there is none, and a word.
    assert (slope.kernel is None) is (memory.reason is not None)
    if slope.kernel is not None:
        assert 1000 < slope.kernel < 20_000
        assert slope.total == pytest.approx(slope.kernel + slope.resident, rel=0.2)


@pytest.mark.process
def test_the_peak_of_a_phase_is_its_own() -> None:
    """What a server once took and gave back is no peak of what comes after."""
    script = (
        "import sys; held = bytearray(b'x' * 64_000_000); del held; print(1, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        before = memory_use.memory([process.pid])
        assert memory_use.reset_peak([process.pid])
        after = memory_use.memory([process.pid])
        process.communicate("\n")
    assert before is not None
    assert after is not None
    assert before.vmhwm_kb is not None
    assert after.vmhwm_kb is not None
    assert after.vmhwm_kb < before.vmhwm_kb - 50_000
    assert not memory_use.reset_peak([process.pid]), "nobody is there any more"


@pytest.mark.process
def test_a_peak_that_may_not_be_reset_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_use, "reset_peak", lambda pids: False)
    with greedy() as ground:
        memory = memory_ladder.climb(PLAN, ground, cpus=None)
    assert memory.vmhwm_reason == "since the start: clear_refs may not be written"
    assert memory.vmhwm_kb is not None
    assert memory.trickle is not None
    assert memory.trickle.vmhwm_kb is None


@pytest.mark.process
def test_what_the_server_does_not_hold_is_no_slope() -> None:
    with greedy(30) as ground:
        memory = memory_ladder.climb(PLAN, ground, cpus=None)
    assert memory.ladder[-1].held == 30
    assert memory.bytes_per_connection is None
    assert memory.reason == "the server held 30 of 40 connections"
    assert memory.trickle is not None
    assert memory.vmhwm_reason is None
    assert memory.trickle.vmhwm_kb is not None
    assert memory.trickle.connections == 20, "as many as were held"
    assert (memory.trickle.requests, memory.trickle.errors) == (20, {})


@pytest.mark.process
def test_the_slope_of_what_was_held_is_kept() -> None:
    with greedy(50) as ground:
        memory = memory_ladder.climb(PLAN, ground, cpus=None)
    assert [rung.held for rung in memory.ladder] == [20, 40, 50]
    slope = memory.bytes_per_connection
    assert slope is not None
    assert slope.resident is not None
    assert 60_000 < slope.resident < 90_000
    assert memory.reason is not None
    assert memory.reason.startswith(
        "the server held 50 of 60 connections: the slope is that up to 40"
    )


@pytest.mark.process
def test_connections_that_the_generator_could_not_open_are_not_the_servers_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = memory_ladder._Held.established
    missing = iter((0, 5, 0))
    monkeypatch.setattr(
        memory_ladder._Held,
        "established",
        lambda held, deadline_s: real(held, deadline_s) - next(missing),
    )
    with greedy() as ground:
        memory = memory_ladder.climb(PLAN, ground, cpus=None)
    assert [rung.connections for rung in memory.ladder] == [20, 35]
    assert memory.reason == "the ladder ended at 35 of 40 connections: no more opened"


@pytest.mark.process
def test_a_server_that_cannot_be_asked_now_and_then_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(held: memory_ladder._Held) -> dict[str, object]:
        raise Unusable("httpmark-load printed no result")

    monkeypatch.setattr(memory_ladder._Held, "report", never)
    with greedy() as ground:
        memory = memory_ladder.climb(PLAN, ground, cpus=None)
    assert memory.bytes_per_connection is not None
    assert memory.trickle is None
    assert memory.trickle_reason == "httpmark-load printed no result"


@pytest.mark.process
def test_a_generator_that_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_ladder, "_GRACE_S", 0.1)
    monkeypatch.setattr(memory_ladder._Held, "running", lambda held: True)
    monkeypatch.setattr(memory_ladder._Held, "established", lambda held, deadline_s: 4)
    plan = msgspec.structs.replace(PLAN, mode=LoadMode.SLOW, duration_s=0.1, ladder=())
    with greedy() as ground, pytest.raises(Unusable, match="did not end within 0 s"):
        memory_ladder.pour(plan, ground, cpus=None)


@pytest.mark.process
def test_a_ladder_that_ends_early_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    real = memory_ladder._Held.established
    calls = iter(range(10))

    def third_is_too_much(held: memory_ladder._Held, deadline_s: float) -> int:
        if next(calls) == 2:
            raise Unusable("it took too long")
        return real(held, deadline_s)

    monkeypatch.setattr(memory_ladder._Held, "established", third_is_too_much)
    with greedy() as ground:
        memory = memory_ladder.climb(PLAN, ground, cpus=None)
    assert [rung.held for rung in memory.ladder] == [20, 40]
    assert memory.bytes_per_connection is not None
    assert memory.reason == "the ladder ended below 60 connections: it took too long"


@pytest.mark.process
def test_nobody_there_is_said() -> None:
    with peers.peer(peers.mute) as peer:
        pass
    ground = memory_ladder.Ground(
        launch.Target("127.0.0.1", peer.port), lambda: [os.getpid()], lambda: True, lambda: "gone"
    )
    with pytest.raises(Unusable, match="cannot connect"):
        memory_ladder.climb(PLAN, ground, cpus=None)


@pytest.mark.process
def test_a_server_that_dies_on_the_ladder_is_said() -> None:
    with greedy() as ground:
        dead = msgspec.structs.replace(ground, alive=lambda: False, exit_reason=lambda: "signal 9")
        with pytest.raises(Unusable, match="signal 9"):
            memory_ladder.climb(PLAN, dead, cpus=None)


@pytest.mark.process
def test_processes_that_cannot_be_seen_have_no_memory() -> None:
    with greedy() as ground:
        unseen = msgspec.structs.replace(ground, pids=list)
        with pytest.raises(Unusable, match="cannot be read"):
            memory_ladder.climb(PLAN, unseen, cpus=None)


@pytest.mark.process
def test_null_does_not_pile_up_for_those_who_never_read() -> None:
    null = [binaries.need("null"), "--port", "0"]
    with subprocess.Popen(null, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        ground = memory_ladder.Ground(
            launch.Target("127.0.0.1", port), lambda: [process.pid], lambda: True, lambda: ""
        )
        plan = msgspec.structs.replace(
            PLAN, mode=LoadMode.SLOW, connections=4, depth=64, ladder=(), duration_s=0.5
        )
        try:
            memory = memory_ladder.sample(plan, ground, cpus=None)
        finally:
            process.terminate()
    poured = memory.slow_readers
    assert poured is not None
    assert poured.sent_kb > 100
    assert poured.pss_peak_kb is not None
    assert poured.pss_before_kb is not None
    assert poured.pss_peak_kb - poured.pss_before_kb < 1024


@pytest.mark.process
def test_only_accepted_connections_of_the_server_count() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            assert open_connections.accepted_connections(port, [os.getpid()]) == 0
            accepted, _ = listener.accept()
            with accepted:
                assert open_connections.accepted_connections(port, [os.getpid()]) == 1
                with subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as other:
                    assert open_connections.accepted_connections(port, [other.pid]) == 0
                    other.communicate(b"\n")


def test_each_rung_has_source_addresses_of_its_own() -> None:
    parts = {memory_ladder.sources("127.0.0.0/8", number) for number in range(5)}
    assert len(parts) == 5
    assert all(part is not None and part.endswith("/14") for part in parts)
    assert memory_ladder.sources("127.0.0.8/29", 3) == "127.0.0.8/29"
    assert memory_ladder.sources(None, 3) is None


def test_a_figure_that_is_missing_leaves_its_own_slope_out() -> None:
    rungs = [
        Rung(connections=n, held=n, vmpeak_kb=1000 + n, pss_kb=None, kernel_kb=4 * n)
        for n in (10, 20, 30)
    ]
    slopes, intercepts, _ = memory_ladder.slopes(rungs)
    assert slopes is not None
    assert intercepts is not None
    assert (intercepts.virtual, intercepts.resident, intercepts.kernel) == (1024000.0, None, 0.0)
    assert slopes.total is None, "half of it is not known"
    assert (slopes.virtual, slopes.resident, slopes.kernel) == (1024.0, None, 4096.0)


@pytest.mark.process
def test_the_generator_is_gone_after_the_ladder() -> None:
    with greedy() as ground:
        memory_ladder.climb(PLAN, ground, cpus=None)
        end = time.monotonic() + 10
        while open_connections.accepted_connections(ground.target.port, ground.pids()):
            assert time.monotonic() < end, "connections are still held"
            time.sleep(0.05)
