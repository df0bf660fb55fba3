"""A run that was killed is judged from its evidence."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.command import check_options, check_session, stored_runs
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.run import Run
from httpmark.harness.tests.shared import command_process, kill_laws, peers
from httpmark.harness.tests.shared.silent_events import SilentEvents


def _verdicts(run: Run) -> dict[str, object]:
    """What does not depend on the time that firing took."""
    return {
        name: msgspec.structs.replace(
            suite, wall_seconds=0.0, probe_cpu_seconds=None, server_cpu_seconds=None
        )
        for name, suite in run.servers[0].compliance.suites.items()
    }


@pytest.mark.process
def test_evidence_alone_gives_the_same_verdicts(tmp_path: Path) -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        options = check_options.Options(
            target=f"127.0.0.1:{peer.port}", suites=("rfc",), cases=("CL-01", "HOST-01"),
            quick=True, out=tmp_path / "r",
        )  # fmt: skip
        before = check_session.Checker(options, SilentEvents()).check()
    (tmp_path / "r" / run_folder.RESULT).unlink()
    with pytest.raises(HarnessError, match=r"killed before it wrote a result.*httpmark judge"):
        run_folder.read(tmp_path / "r")
    after = stored_runs.rejudge(tmp_path / "r")
    assert _verdicts(after) == _verdicts(before)
    assert after.interrupted
    assert after.finished is None
    assert "made of its evidence" in after.notes[0]


@pytest.mark.process
def test_a_check_that_is_killed_can_be_judged(tmp_path: Path) -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        words = ("check", f"127.0.0.1:{peer.port}", "--suite", "rfc", "--quick", "--out", "r")
        process = command_process.start(*words, cwd=tmp_path)
        end = time.monotonic() + 60
        while kill_laws.exchanges(tmp_path / "r") == 0 and time.monotonic() < end:
            time.sleep(0.1)
        process.kill()
        process.communicate(timeout=10)
    assert not (tmp_path / "r" / "result.json").exists()
    code, _, errors = command_process.run("judge", "r", cwd=tmp_path)
    assert code == 0, errors
    run = run_folder.read(tmp_path / "r")
    assert run.servers[0].compliance.suites["rfc"].requests > 0
    assert (tmp_path / "r" / "report.html").is_file()
