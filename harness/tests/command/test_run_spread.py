"""A run spread over workers is the run of one machine, verdict by verdict."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from httpmark.harness.command import run_options, run_session, stored_runs
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.run import Run
from httpmark.harness.servers import brought
from httpmark.harness.tests.shared import child_process, command_process
from httpmark.harness.tests.shared.command_process import run
from httpmark.harness.tests.shared.silent_events import SilentEvents

SERVERS = ("null", "reference", "python_http_server")
SUITES = ("smuggling", "resilience")


def carried_out(folder: Path, cluster: str | None) -> Run:
    options = run_options.Options(
        suites=("smuggling",), profiles=(), servers=SERVERS, runtime="process", quick=True, seed=3,
        suite_minutes=60, out=folder, cluster=cluster,
    )  # fmt: skip
    return run_session.Runner(options, SilentEvents()).run()


def verdicts(found: Run) -> dict[str, Any]:
    """All that is judged, without what differs from one firing to the next."""
    told: dict[str, Any] = {}
    for server in found.servers:
        for suite, result in server.compliance.suites.items():
            told[f"{server.name} {suite}"] = (
                result.score_percent, result.must, result.levels, result.requirements,
                result.requests, {case: one.word for case, one in result.cases.items()},
                result.generated, result.answers,
            )  # fmt: skip
    return told


def fired(folder: Path) -> dict[str, list[tuple[str, str, bytes]]]:
    """What was sent to each server, without the port."""
    with Evidence(folder / run_folder.EVIDENCE) as evidence:
        return {
            server: sorted(
                (one.case, one.delivery, re.sub(rb"127\.0\.0\.1:\d+", b"HOST", one.sent))
                for one in evidence.exchanges(server, delivery=None)
            )
            for server in evidence.servers()
        }


@pytest.mark.process
def test_a_spread_run_equals_one_of_one_machine(tmp_path: Path) -> None:
    one, many = tmp_path / "one", tmp_path / "many"
    plain, spread = carried_out(one, None), carried_out(many, "local:2")
    assert {server.name for server in spread.servers} == set(SERVERS)
    assert verdicts(spread) == verdicts(plain)
    assert fired(many) == fired(one)
    assert sorted(spread.completed.suites) == sorted(plain.completed.suites)
    assert [(s.name, s.runtime, s.version) for s in spread.servers] == [
        (s.name, s.runtime, s.version) for s in plain.servers
    ]
    # The evidence is whole: judged again, it gives the same.
    assert verdicts(stored_runs.rejudge(many)) == verdicts(plain)
    assert (many / run_folder.REPORT).stat().st_size > 0
    assert any("fired by 2 workers" in note for note in spread.notes)


@pytest.mark.process
def test_what_ctrl_c_left_is_done_when_the_run_is_carried_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ["--server", "null", "--quick", "--runtime", "process"]
    for suite in SUITES:
        words += ["--suite", suite]
    words += ["--cluster", "local:1", "--out", str(folder)]
    with child_process.start(
        [*command_process.COMMAND, "run", *words], cwd=tmp_path,
        env=command_process.environment(), stderr=subprocess.PIPE, start_new_session=True,
    ) as one:  # fmt: skip
        assert one.stderr is not None
        for line in one.stderr:
            if "begun by the worker" in line:
                break
        os.killpg(one.pid, signal.SIGINT)  # as a terminal does: the workers get it, too
        _, errors = one.communicate(timeout=120)
    assert one.returncode == 130, errors
    assert "Traceback" not in errors
    assert run_folder.read(folder).interrupted
    code, out, errors = run("run", "--resume", str(folder), "--cluster", "local:1", cwd=tmp_path)
    assert code == 0, out + errors
    done = run_folder.read(folder)
    assert not done.interrupted
    assert sorted(done.completed.suites) == sorted((suite, "null") for suite in SUITES)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"profiles": ("keepalive",)}, "leave out --profile"),
        ({"suites": ("forwarding",)}, "the suite forwarding cannot be spread"),
        ({"port": 8080}, "--cluster and --port exclude each other"),
        ({"cluster": "nowhere"}, "names no cluster"),
    ],
)
def test_what_cannot_be_spread_is_refused_before_a_folder_is_made(
    tmp_path: Path, changed: dict[str, Any], why: str
) -> None:
    asked = run_options.Options(
        suites=("smuggling",), profiles=(), servers=("null",), out=tmp_path / "run",
        cluster="local:1",
    )  # fmt: skip
    with pytest.raises(HarnessError, match=why) as told:
        run_session.Runner(msgspec.structs.replace(asked, **changed), SilentEvents())
    assert told.value.exit_code == 2
    assert not (tmp_path / "run").exists()


def test_a_server_that_the_user_brings_is_refused(tmp_path: Path) -> None:
    field = brought.Field()
    name = field.take(brought.Brought("mine", "./server --port {port}", tmp_path))
    asked = run_options.Options(
        suites=("smuggling",), profiles=(), servers=(name,), field=field, cluster="local:1",
        out=tmp_path / "run",
    )  # fmt: skip
    with pytest.raises(HarnessError, match="mine is brought by you"):
        run_session.Runner(asked, SilentEvents())
    assert not (tmp_path / "run").exists()
