"""A cluster is reached by its address, or one line says why not."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from httpmark.harness.cluster import addresses, connecting, inspection, worker_facts
from httpmark.harness.cluster.connecting import Cluster
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.tests.shared import ports
from httpmark.harness.tests.shared.pytest_rules import starts_process


@pytest.fixture(scope="module")
@starts_process
def cluster() -> Iterator[Cluster]:
    with connecting.opened(addresses.Local(2)) as opened:
        yield opened


def test_local_workers_come_with_every_role(cluster: Cluster) -> None:
    assert [one.roles for one in cluster.workers()] == [connecting.ROLES] * 2


@pytest.mark.usefixtures("cluster")
def test_two_local_clusters_live_side_by_side() -> None:
    # Dask warns where its usual port is taken, and a warning fails a test.
    with connecting.opened(addresses.Local(1)) as second:
        assert len(second.workers()) == 1


def test_a_worker_answers_and_an_error_of_one_is_its_answer(cluster: Cluster) -> None:
    first, second = (one.address for one in cluster.workers())
    assert cluster.ask(int, "7", of=[first, second]) == {first: 7, second: 7}
    assert isinstance(cluster.ask(int, "seven", of=[first])[first], ValueError)


def test_an_inspection_measures_each_worker(cluster: Cluster) -> None:
    report = inspection.inspect(cluster)
    own = worker_facts.facts()
    assert report.lacks == ()
    for one in report.workers:
        assert one.facts is not None
        assert one.facts.version == own.version
        assert one.clock is not None
        # One machine has one clock.
        assert abs(one.clock.seconds) <= one.clock.bound_s + 0.001


def test_a_scheduler_that_is_not_there_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connecting, "CONNECT_S", 0.5)
    url = f"tcp://127.0.0.1:{ports.own_port()}"
    with (
        pytest.raises(Unusable, match="no scheduler answers") as told,
        connecting.opened(addresses.Scheduler(url)),
    ):
        pass
    assert url in str(told.value)
    assert "\n" not in str(told.value)


def test_without_dask_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(HarnessError, match=r"pip install 'httpmark\[cluster\]'") as told,
        connecting.opened(addresses.Local(1)),
    ):
        pass
    assert told.value.exit_code == 2


def test_by_ssh_scheduler_and_a_worker_stand_on_the_first_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Started for real only where hosts are; here, what Dask is asked."""
    import distributed

    asked: list[tuple[list[str], dict[str, object]]] = []

    def stand_in(hosts: list[str], **options: object) -> None:
        asked.append((hosts, options))
        raise OSError("Connection refused")

    monkeypatch.setattr(distributed, "SSHCluster", stand_in)
    with (
        pytest.raises(Unusable, match="ssh:one,two: the workers do not start: Connection refused"),
        connecting.opened(addresses.Hosts(("one", "two"))),
    ):
        pass
    ((hosts, options),) = asked
    assert hosts == ["one", "one", "two"]
    assert options["worker_options"] == {
        "nthreads": 1,
        "resources": {"server": 1, "generator": 1, "suite": 1},
    }


def test_workers_are_all_told_whatever_dask_refreshes_meanwhile(cluster: Cluster) -> None:
    """Dask's client looks at the scheduler from time to time, and then forgets the workers."""
    client = cluster._client

    def refresh() -> None:
        for _ in range(300):
            client.sync(client._update_scheduler_info, n_workers=0)

    thread = threading.Thread(target=refresh)
    thread.start()
    found = [len(cluster.workers()) for _ in range(300)]
    thread.join()
    assert set(found) == {2}
