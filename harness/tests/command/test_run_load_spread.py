"""`bench --cluster`: one result from several generators, and nothing left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from httpmark.harness.command import run_options, run_session
from httpmark.harness.command.run_load import Loads
from httpmark.harness.command.run_load_spread import SpreadLoads
from httpmark.harness.command.subcommands import bench
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.servers import proc_files
from httpmark.harness.tests.shared import child_process, command_process
from httpmark.harness.tests.shared.command_process import run
from httpmark.harness.tests.shared.dask_programs import Programs
from httpmark.harness.tests.shared.pytest_rules import starts_process
from httpmark.harness.tests.shared.silent_events import SilentEvents

WORDS = ("bench", "null", "--profile", "keepalive", "--runtime", "process")
PLAN = LoadPlan(name="p", title="t", why="w", connections=64, depth=1, duration_s=1.0)


@pytest.mark.process
def test_the_result_is_that_of_a_bench_with_its_generators_in_each_sample(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code, out, errors = run(
        *WORDS, "--quick", "--rounds", "1", "--cluster", "local:3", "--generators", "2", "--json",
        "--out", str(folder), cwd=tmp_path,
    )  # fmt: skip
    assert code == 0, errors
    told = json.loads(out)
    assert told == json.loads((folder / run_folder.RESULT).read_bytes())
    (result,) = told["servers"][0]["load"]
    (sample,) = result["samples"]
    # One that starved is left out: this machine may be busy.
    assert 1 <= len(sample["generators"]) <= 2
    assert sum(one["requests"] for one in sample["generators"]) == sample["requests"] > 0
    assert sum(one["connections"] for one in sample["generators"]) == 64
    assert sample["cpu_ns_per_request"]["server"] > 0
    assert told["completed"]["profiles"] == ["keepalive"]
    assert any(note.startswith("keepalive: load by ") for note in told["notes"])
    assert (folder / run_folder.REPORT).stat().st_size > 0


def running(of: int) -> dict[int, str]:
    """The programs that live below a process."""
    return {
        pid: (proc_files.text_if_there(pid, "cmdline") or "").replace("\0", " ")
        for pid in proc_files.tree([of])
    }


@pytest.mark.process
def test_ctrl_c_leaves_nothing_running_and_a_result(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with child_process.start(
        [*command_process.COMMAND, *WORDS, "--cluster", "local:3", "--out", str(folder)],
        cwd=tmp_path, env=command_process.environment(), stderr=subprocess.PIPE,
        start_new_session=True,
    ) as one:  # fmt: skip
        end = time.monotonic() + 60
        found = running(one.pid)
        while not any("--start-fd" in line for line in found.values()):
            assert time.monotonic() < end, found
            time.sleep(0.1)
            found = running(one.pid)
        os.killpg(one.pid, signal.SIGINT)  # as a terminal does: the workers get it, too
        _, errors = one.communicate(timeout=60)
    assert one.returncode == 130, errors
    assert "Traceback" not in errors
    assert run_folder.read(folder).interrupted
    end = time.monotonic() + 20
    while left := [pid for pid in found if proc_files.text_if_there(pid, "cmdline")]:
        assert time.monotonic() < end, [found[pid] for pid in left]
        time.sleep(0.1)


@pytest.fixture
@starts_process
def programs(tmp_path: Path) -> Iterator[Programs]:
    made = Programs(tmp_path, "server=1", "generator=1")
    yield made
    made.stop()


def test_over_tls_a_killed_scheduler_is_told_and_leaves_nothing_running(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    words = [*WORDS, "--cluster", programs.url, "--out", str(folder)]
    for name, value in programs.environment.items():
        monkeypatch.setenv(name, value)
    with command_process.start(*words, cwd=tmp_path) as one:
        end = time.monotonic() + 60
        roots = [worker.pid for worker in programs.workers]
        found = {pid: line for root in roots for pid, line in running(root).items()}
        while not any("--start-fd" in line for line in found.values()):
            assert time.monotonic() < end, found
            time.sleep(0.1)
            found = {pid: line for root in roots for pid, line in running(root).items()}
        programs.scheduler.kill()
        _, errors = one.communicate(timeout=120)
    assert one.returncode == 3, errors
    assert "Traceback" not in errors
    assert "the scheduler of the cluster went away" in errors
    assert run_folder.read(folder).completed.profiles == ()
    end = time.monotonic() + 30
    ours = [pid for pid, line in found.items() if "httpmark-" in line]
    while left := [pid for pid in ours if proc_files.text_if_there(pid, "cmdline")]:
        assert time.monotonic() < end, [found[pid] for pid in left]
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"cluster": "nowhere"}, "names no cluster"),
        ({"cluster": None, "generators": 2}, "--generators needs --cluster"),
        ({"cluster": "local:1"}, "local:1 is one worker, and a load needs two"),
        ({"generators": 3}, "local:3 has 2 generators beside the server, and --generators is 3"),
        ({"cluster": "tcp://h:1", "generators": 65}, "keepalive has 64 connections, too few"),
        ({"profiles": ("idle_memory",)}, "idle_memory measures memory on one machine"),
        ({"engine": "wrk"}, "--cluster needs the engine native"),
        ({"port": 8080}, "--cluster and --port exclude each other"),
    ],
)
def test_a_bad_use_is_one_line_before_a_folder_is_made(
    tmp_path: Path, changed: dict[str, Any], why: str
) -> None:
    asked = run_options.Options(
        suites=(), profiles=("keepalive",), servers=("null",), out=tmp_path / "run",
        cluster="local:3",
    )  # fmt: skip
    with pytest.raises(HarnessError, match=why) as told:
        run_session.Runner(msgspec.structs.replace(asked, **changed), SilentEvents())
    assert told.value.exit_code == 2
    assert "\n" not in str(told.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.process
def test_without_a_cluster_load_is_made_here(tmp_path: Path) -> None:
    asked = run_options.Options(
        suites=(), profiles=("keepalive",), servers=("null",), out=tmp_path / "run"
    )  # fmt: skip
    assert type(run_session.Runner(asked, SilentEvents()).loads) is Loads


class Found:
    """Loads whose limit is what is written for each number of generators."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, there: int, limits: dict[int, str | None]
    ) -> None:
        self.notes: list[str] = []
        self.tried: list[int] = []
        loads = SpreadLoads.__new__(SpreadLoads)
        crew = SimpleNamespace(count=there, roster=SimpleNamespace(generators=lambda: "x" * there))

        def limited(*words: object, **named: object) -> str | None:
            self.tried.append(crew.count)
            return limits[crew.count]

        loads._crew = crew  # type: ignore[assignment]
        loads._log = SimpleNamespace(note=self.notes.append, say=lambda line: None)  # type: ignore[assignment]
        monkeypatch.setattr(loads, "_limited_elsewhere", limited)
        self.made = loads

    def find(self, plan: LoadPlan = PLAN) -> None:
        self.made._find_count(plan, [], seed=1)


def test_generators_are_added_until_the_server_is_the_bottleneck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Found(monkeypatch, 7, {1: "a: client", 2: "a: client", 4: None})
    found.find()
    assert found.tried == [1, 2, 4]
    assert found.notes == ["p: 4 generators of 7 are enough: the server is the bottleneck"]


def test_where_they_run_out_it_is_said_what_the_limit_is(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Found(monkeypatch, 3, dict.fromkeys((1, 2, 3), "a: client (generator on CPU 99%)"))
    found.find()
    assert found.tried == [1, 2, 3]
    assert found.notes == [
        "p: the generators ran out: with 3 generators the server is not the bottleneck: a: client "
        "(generator on CPU 99%)"
    ]


def test_no_more_are_tried_than_there_are_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Found(monkeypatch, 9, dict.fromkeys((1, 2), "a: none"))
    found.find(msgspec.structs.replace(PLAN, connections=2))
    assert found.tried == [1, 2]


@pytest.mark.parametrize("word", ["0", "-1", "many", "1.5", "10000"])
def test_a_number_of_generators_that_is_none_is_refused(tmp_path: Path, word: str) -> None:
    told = CliRunner().invoke(bench.command, ["null", "--cluster", "local:2", "--generators", word])
    assert told.exit_code == 2
    assert "neither auto nor a number" in told.output
