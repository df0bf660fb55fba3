"""Servers go to workers, and what they found comes back, also where a worker dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.cluster import (
    addresses,
    carried_files,
    connecting,
    spreading,
    worker_facts,
)
from httpmark.harness.cluster.connecting import Cluster
from httpmark.harness.cluster.spreading import Spread
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.progress import Interrupted
from httpmark.harness.tests.shared.command_process import run, start
from httpmark.harness.tests.shared.dask_programs import Programs
from httpmark.harness.tests.shared.pytest_rules import starts_process
from httpmark.harness.tests.shared.spread_orders import (
    WORDS,
    Taken,
    left_running,
    order,
    wait_until_nothing_runs,
    wait_until_something_is_fired,
)


@pytest.fixture(scope="module")
@starts_process
def cluster() -> Iterator[Cluster]:
    with connecting.opened(addresses.Local(2)) as opened:
        yield opened


def test_a_worker_that_dies_gives_its_server_to_another(cluster: Cluster) -> None:
    before, lines, killed, taken = left_running(), [], [], Taken()

    def say(line: str) -> None:
        lines.append(line)
        if ": begun by the worker " in line:
            address = line.rpartition(" ")[2]
            pid = cluster.ask(os.getpid, of=[address])[address]
            os.kill(pid, signal.SIGKILL)
            killed.append(address)

    Spread(cluster, "dies", say).carry_out([order("dies")], taken)
    ((found, exchanges),) = zip(taken.found, taken.exchanges, strict=True)
    assert found.trouble is None
    assert exchanges > 0
    assert any(f"null: the worker {killed[0]} is gone; " in line for line in lines), lines
    wait_until_nothing_runs(before)


def test_an_interruption_brings_back_what_there_is(cluster: Cluster) -> None:
    before, taken = left_running(), Taken()
    begun: list[str] = []

    def say(line: str) -> None:
        begun.append(line)
        if begun == [line]:
            wait_until_something_is_fired(before)
            raise Interrupted(130)

    orders = [order("stops", suite="resilience"), order("stops", "reference", "resilience")]
    with pytest.raises(Interrupted):
        Spread(cluster, "stops", say).carry_out(orders, taken)
    assert [one.trouble for one in taken.found] == [None] * len(taken.found)
    assert taken.interrupted
    assert all(taken.interrupted)
    wait_until_nothing_runs(before)


def test_why_a_server_has_no_result_is_told_of_that_server(cluster: Cluster) -> None:
    taken = Taken()
    Spread(cluster, "wrong", lambda line: None).carry_out([order("wrong", "no-such")], taken)
    ((server, trouble),) = [(one.server, one.trouble) for one in taken.found]
    assert server == "no-such"
    assert "no-such" in (trouble or "")
    assert "\n" not in (trouble or "")


def test_what_does_not_come_whole_is_done_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    taken, bring = Taken(), carried_files.bring

    def fails_once(*words: object) -> int:
        monkeypatch.setattr(carried_files, "bring", bring)
        raise Unusable("piece 1 of result.json did not come whole: its digest is wrong")

    monkeypatch.setattr(carried_files, "bring", fails_once)
    Spread(cluster, "again", lines.append).carry_out([order("again")], taken)
    assert [one.trouble for one in taken.found] == [None]
    assert any("its digest is wrong; it is done again" in line for line in lines)


def test_a_cluster_without_a_worker_for_suites_is_refused() -> None:
    class NoRoles:
        def workers(self) -> list[connecting.Worker]:
            return [connecting.Worker(address="tcp://10.0.0.1:1", name="one", roles=("server",))]

    with pytest.raises(Unusable, match="no worker of the cluster may fire suites"):
        spreading.suite_workers(NoRoles())  # type: ignore[arg-type]


def test_a_worker_of_another_version_is_refused(cluster: Cluster) -> None:
    class Older:
        workers = cluster.workers

        def ask(self, function: object, *, of: list[str]) -> dict[str, object]:
            found = cluster.ask(worker_facts.facts, of=of)
            return {key: msgspec.structs.replace(one, version="0") for key, one in found.items()}

    with pytest.raises(Unusable, match=r"is 0, and .* here: install the same"):
        spreading.suite_workers(Older())  # type: ignore[arg-type]


def test_work_kept_for_workers_that_all_died_is_offered_again() -> None:
    """A worker that dies comes back with another address."""
    offered: list[list[str]] = []

    class Changing:
        addresses = ("a", "b")

        def hear(self, topic: str, take: object) -> None:
            """Nobody says anything."""

        def workers(self) -> list[connecting.Worker]:
            return [
                connecting.Worker(address=one, name=one, roles=("suite",)) for one in self.addresses
            ]

        def submit(self, *words: object, role: str, only: list[str]) -> object:
            offered.append(only)
            return object()

        def cancel(self, futures: list[object]) -> None:
            """Nothing runs."""

    cluster = Changing()
    spread = Spread(cluster, "dead", lambda line: None)  # type: ignore[arg-type]
    spread._others.add("b")
    spread._submit(order("dead"), 2)
    spread._release()
    assert offered == [["a"]]
    cluster.addresses = ("b", "c")
    spread._release()
    assert offered == [["a"], ["c"]]
    assert [number for _, number in spread._left.values()] == [2]


@pytest.fixture
@starts_process
def programs(tmp_path: Path) -> Iterator[Programs]:
    """Dask's own scheduler and worker, as they are started by hand."""
    made = Programs(tmp_path, "suite=1")
    yield made
    made.stop()


def test_over_tls_suites_come_back_and_a_killed_scheduler_is_told(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the page says: the files are named in the environment, and nobody enters without them."""
    before, words = left_running(), ("run", "--server", "null", *WORDS)
    first, second = tmp_path / "first", tmp_path / "second"
    code, _, errors = run("cluster", "doctor", "--cluster", programs.url, cwd=tmp_path)
    assert code == 2
    assert f"{programs.url}: no certificates are named" in errors
    for name, value in programs.environment.items():
        monkeypatch.setenv(name, value)
    spread = ("--cluster", programs.url, "--out")
    code, out, errors = run(*words, "smuggling", *spread, str(first), cwd=tmp_path)
    assert code == 0, out + errors
    assert run_folder.read(first).completed.suites == (("smuggling", "null"),)
    with start(*words, "resilience", *spread, str(second), cwd=tmp_path) as one:
        assert one.stderr is not None
        for line in one.stderr:
            if "begun by the worker" in line:
                break
        programs.scheduler.kill()
        _, errors = one.communicate(timeout=120)
    assert one.returncode == 3, errors
    assert "the scheduler of the cluster went away, and 1 server is not done" in errors
    assert run_folder.read(second).completed.suites == ()
    wait_until_nothing_runs(before)
