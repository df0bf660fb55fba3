"""Workers that are wrong, drilled with Dask's own programs: one line says what is the matter."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from httpmark.harness.cluster import addresses, connecting, load_windows
from httpmark.harness.cluster.load_windows import LoadCluster
from httpmark.harness.cluster.spreading import Spread
from httpmark.harness.load.contestants import Contestant
from httpmark.harness.load.engines.native import Native
from httpmark.harness.model import run_folder
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.tests.shared import worker_faults
from httpmark.harness.tests.shared.command_process import run
from httpmark.harness.tests.shared.dask_programs import Programs
from httpmark.harness.tests.shared.pytest_rules import starts_process
from httpmark.harness.tests.shared.spread_orders import (
    Taken,
    left_running,
    order,
    wait_until_nothing_runs,
)

OTHER = "0.0.9"
PLAN = LoadPlan(
    name="p", title="t", why="w", connections=6, depth=1, duration_s=1.0, warmup_s=0.1
)  # fmt: skip
ALL = "server=1 generator=1 suite=1"

Start = Callable[..., Programs]


@pytest.fixture
@starts_process
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a cluster."""
    made: list[Programs] = []

    def started(*resources: str, **options: object) -> Programs:
        made.append(Programs(tmp_path, *resources, tls=False, **options))  # type: ignore[arg-type]
        return made[0]

    yield started
    for one in made:
        one.stop()


def wait_for_workers(cluster: connecting.Cluster, number: int) -> None:
    end = time.monotonic() + 60
    while len(cluster.workers()) < number:
        assert time.monotonic() < end
        time.sleep(0.1)


def racer() -> Contestant:
    return Contestant("null", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "words",
    [
        ("bench", "null", "--profile", "keepalive", "--quick"),
        ("run", "--server", "null", "--suite", "smuggling", "--quick"),
    ],
)
def test_a_worker_of_another_version_is_told_before_anything_begins(
    start: Start, tmp_path: Path, words: tuple[str, ...]
) -> None:
    before = left_running()
    programs = start(ALL, ALL, variables={1: worker_faults.other_version(tmp_path, OTHER)})
    with connecting.opened(addresses.parse(programs.url)) as cluster:
        wait_for_workers(cluster, 2)
    out = tmp_path / "run"
    code, _, errors = run(
        *words, "--runtime", "process", "--cluster", programs.url, "--out", str(out), cwd=tmp_path
    )
    assert code == 3, errors
    assert f" is {OTHER}, and " in errors.strip().splitlines()[-1]
    assert run_folder.read(out).completed.suites == ()
    assert run_folder.read(out).completed.profiles == ()
    assert set(left_running()) <= set(before)
    code, told, _ = run("cluster", "doctor", "--cluster", programs.url, cwd=tmp_path)
    assert code == 3
    assert f"httpmark is {OTHER} there" in told


def test_a_worker_of_another_version_that_comes_later_gets_no_work(
    start: Start, tmp_path: Path
) -> None:
    """There is an order for each place, so Dask offers it one."""
    before = left_running()
    programs = start(ALL)
    lines: list[str] = []
    taken = Taken()
    with connecting.opened(addresses.parse(programs.url)) as cluster:
        crew_lines: list[str] = []
        programs.add(ALL)
        wait_for_workers(cluster, 2)
        load = LoadCluster(cluster, "later", say=crew_lines.append, remember=lambda *words: None)
        spread = Spread(cluster, "later", lines.append)
        programs.add("generator=1 suite=1", **worker_faults.other_version(tmp_path, OTHER))
        wait_for_workers(cluster, 3)
        orders = [order("later"), order("later", "reference"), order("later", suite="resilience")]
        spread.carry_out(orders, taken)
        assert [one.name for one in load.roster.generators()][-1] == "worker-2"
        crew = load.roster.crew(PLAN, 3, set())
    assert [one.trouble for one in taken.found] == [None] * 3
    assert any(f" is {OTHER}, and " in one and "another worker takes it" in one for one in lines)
    assert crew is not None
    assert "worker-2" not in [one.name for one in crew.generators]
    (line,) = crew_lines
    assert f"httpmark at the worker worker-2 is {OTHER}, and " in line
    wait_until_nothing_runs(before)


def test_a_clock_two_seconds_off_is_told_and_generators_still_begin_together(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = worker_faults.clock_off(tmp_path, 2)
    programs = start("server=1", "generator=1", "generator=1", variables={2: off})
    lines: list[str] = []
    with connecting.opened(addresses.parse(programs.url)) as cluster:
        wait_for_workers(cluster, 3)
        load = LoadCluster(cluster, "clock", say=lines.append, remember=lambda *words: None)
        load.prepare("null", "process")
        monkeypatch.setattr(load_windows, "troubled", lambda *words: {})
        for _ in range(2):
            taken = load(racer(), PLAN, Native(), PLAN.duration_s)
    assert len(taken.generators) == 2
    assert all(one.measured.requests for one in taken.generators)
    assert taken.start_spread_us is not None
    assert taken.start_spread_us < 500_000
    told = "the clock of the worker worker-2 is +2.0 s off; times are put right by it"
    assert lines.count(told) == 1
    code, told, _ = run("cluster", "doctor", "--cluster", programs.url, cwd=tmp_path)
    assert code == 3
    assert "its clock is +2.0 s off" in told
