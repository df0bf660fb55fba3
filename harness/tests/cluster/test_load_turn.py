"""Windows from several generators are one sample, and whoever fails is named and left out."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator

import msgspec
import pytest

from httpmark.harness.cluster import addresses, connecting, load_turn, load_windows
from httpmark.harness.cluster.connecting import Cluster
from httpmark.harness.cluster.load_crew import WorkerLost
from httpmark.harness.cluster.load_turn import Turn
from httpmark.harness.cluster.load_windows import LoadCluster
from httpmark.harness.cluster.server_task import Identity
from httpmark.harness.load import histogram
from httpmark.harness.load.contestants import Contestant
from httpmark.harness.load.engines.native import Native
from httpmark.harness.load.sampling import Taken
from httpmark.harness.load.windows import NotLoaded
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadMode, LoadPlan, LoadRequest
from httpmark.harness.model.progress import Interrupted
from httpmark.harness.servers import open_connections, proc_files
from httpmark.harness.tests.shared.pytest_rules import starts_process

PLAN = LoadPlan(
    name="p", title="t", why="w", connections=7, depth=2, duration_s=0.4, warmup_s=0.1,
    bind="127.0.0.0/8",
)  # fmt: skip
LONG = msgspec.structs.replace(PLAN, duration_s=3.0)
"""Long enough to be in its window for sure, however busy the machine is."""
WORKERS = 3


@pytest.fixture(scope="module")
@starts_process
def cluster() -> Iterator[Cluster]:
    with connecting.opened(addresses.Local(WORKERS)) as opened:
        yield opened


class Crew:
    """A load cluster, and what it tells."""

    def __init__(self, cluster: Cluster, name: str, server: str = "null") -> None:
        end = time.monotonic() + 60
        while len(cluster.workers()) < WORKERS:  # those that a test killed come back
            assert time.monotonic() < end
            time.sleep(0.1)
        self.lines: list[str] = []
        self.known: dict[str, Identity] = {}
        self.made = LoadCluster(
            cluster, name, say=self.lines.append, remember=self.known.__setitem__
        )
        self.made.prepare(server, "process")
        self._server = server

    def take(self, plan: LoadPlan = PLAN) -> Taken:
        def never(*words: object) -> contextlib.AbstractContextManager[object]:
            raise AssertionError("the server is started by its worker")

        racer = Contestant(self._server, never)  # type: ignore[arg-type]
        return self.made(racer, plan, Native(), plan.duration_s)


@pytest.fixture(autouse=True)
def _whoever_runs_beside_the_tests_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_windows, "troubled", lambda *words: {})


class InTheWindow:
    """Calls something in the middle of a window, and knows who ran in it."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, do: Callable[[Turn], None], *, every: bool = False
    ) -> None:
        """:param every: do it in each window, not only in the first."""
        self.pids: list[int] = []  # of the generators
        self.server_pids: list[int] = []
        self.done = 0
        begin = Turn._begin

        def begun(turn: Turn) -> object:
            offsets = begin(turn)
            self.done += 1
            if every or self.done == 1:
                said = turn._waiting.said
                self.pids = [said[key]["pid"] for key in turn._keys]
                order = turn._up
                self.server_pids = open_connections.listeners(order["port"], "127.0.0.1")
                time.sleep(load_turn._LEAD_S + PLAN.warmup_s + 0.1)
                do(turn)
            return offsets

        monkeypatch.setattr(Turn, "_begin", begun)

    def check_nothing_runs(self) -> None:
        end = time.monotonic() + 20
        while left := [pid for pid in (*self.pids, *self.server_pids) if is_running(pid)]:
            assert time.monotonic() < end, left
            time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return proc_files.text(pid, "stat").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pid_of(cluster: Cluster, address: str) -> int:
    pid: int = cluster.ask(os.getpid, of=[address])[address]
    return pid


def test_two_generators_make_one_sample(cluster: Cluster) -> None:
    crew = Crew(cluster, "one")
    taken = crew.take()
    first, second = taken.generators
    assert [first.connections, second.connections] == [4, 3]
    measured = taken.measured
    assert measured.errors == {}
    assert measured.established == 7
    assert measured.requests == first.measured.requests + second.measured.requests > 0
    parts = [one.measured.histogram or "" for one in (first, second)]
    added = histogram.merged(parts)
    assert added is not None
    assert measured.histogram == added.stored()
    assert measured.server_ns_per_request is not None
    assert measured.server_ns_per_request > 0
    assert measured.server_on_cpu_ratio is not None
    assert measured.littles_law_ratio is not None
    assert taken.memory is not None
    assert taken.start_spread_us is not None
    assert taken.redone == 0
    assert crew.known["null"].program is not None


def test_an_open_loop_offers_its_rate_in_all(cluster: Cluster) -> None:
    plan = msgspec.structs.replace(PLAN, mode=LoadMode.OPEN, rate=333.5, connections=8)
    measured = Crew(cluster, "open").take(plan).measured
    assert measured.rate_offered == pytest.approx(333.5)
    assert measured.requests == pytest.approx(333.5 * 0.4, abs=3)
    assert measured.lag_us is not None


def test_over_tls_the_worker_of_the_server_has_its_own_certificate(cluster: Cluster) -> None:
    plan = msgspec.structs.replace(PLAN, tls_version="1.3")
    measured = Crew(cluster, "tls", "reference").take(plan).measured
    assert measured.errors == {}
    assert (measured.tls or "").startswith("TLSv1.3")
    assert measured.handshake_us is not None


def test_a_server_that_refuses_is_not_loaded(cluster: Cluster) -> None:
    plan = msgspec.structs.replace(PLAN, requests=(LoadRequest(method="BREW"),))
    with pytest.raises(NotLoaded, match="answered with 501, so nothing was measured") as told:
        Crew(cluster, "refuses", "reference").take(plan)
    assert list(told.value.statuses) == ["501"]


def test_a_generator_killed_in_the_window_is_left_out(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = InTheWindow(monkeypatch, lambda turn: os.kill(window.pids[0], signal.SIGKILL))
    crew = Crew(cluster, "killed")
    first = crew.made.roster.generators()[0].name
    taken = crew.take(LONG)
    assert [one.connections for one in taken.generators] == [7]
    assert taken.generators[0].name != first
    assert taken.redone == 1
    (line,) = (one for one in crew.lines if "taken again" in one)
    assert f"generator {first} failed: httpmark-load: " in line
    assert crew.made.roster.dead == {first}
    window.check_nothing_runs()


def test_a_generator_whose_worker_dies_is_left_out_and_leaves_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(turn: Turn) -> None:
        os.kill(pid_of(cluster, turn._crew.generators[1].address), signal.SIGKILL)

    window = InTheWindow(monkeypatch, kill)
    crew = Crew(cluster, "dies")
    second = crew.made.roster.generators()[1].name
    began = time.monotonic()
    taken = crew.take(LONG)
    assert [one.name for one in taken.generators] != [second]
    assert len(taken.generators) == 1
    assert any(f"generator {second} on " in line and " died; " in line for line in crew.lines)
    assert time.monotonic() - began < 40
    window.check_nothing_runs()


def test_without_a_generator_there_is_no_sample(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = InTheWindow(
        monkeypatch, lambda turn: os.kill(window.pids[0], signal.SIGKILL), every=True
    )
    with pytest.raises(NotLoaded, match=r"^\S+ failed: httpmark-load: "):
        Crew(cluster, "none").take(LONG)
    window.check_nothing_runs()


def test_a_server_that_dies_is_told_to_be_the_one(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = InTheWindow(monkeypatch, lambda turn: os.kill(window.server_pids[0], signal.SIGKILL))
    with pytest.raises(Unusable, match=r"SIGKILL|signal 9|killed"):
        Crew(cluster, "server").take(LONG)
    window.check_nothing_runs()


def test_a_dead_worker_of_the_server_ends_the_load_and_leaves_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(turn: Turn) -> None:
        os.kill(pid_of(cluster, turn._crew.server.address), signal.SIGKILL)

    window = InTheWindow(monkeypatch, kill)
    with pytest.raises(WorkerLost, match=r"the worker \S+, which ran the server, died"):
        Crew(cluster, "lost").take(LONG)
    window.check_nothing_runs()


def test_an_interruption_leaves_nothing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(turn: Turn) -> None:
        raise Interrupted(130)

    window = InTheWindow(monkeypatch, interrupt)
    with pytest.raises(Interrupted):
        Crew(cluster, "stops").take(msgspec.structs.replace(PLAN, duration_s=30.0))
    window.check_nothing_runs()
