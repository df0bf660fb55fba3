"""Two commands at once: each has its own folder, or one of them says in a line why it cannot be."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from httpmark.harness.model import digests, run_folder
from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared import command_process
from httpmark.harness.tests.shared.kill_laws import RUN_FILES, TRACES

_PATIENCE_S = 240
RUN = ("run", "--runtime", "process", "--quick", "--suite", "smuggling", "--server", "null")


def check() -> tuple[str, ...]:
    served = f"{binaries.need('null')} --address 127.0.0.1 --port {{port}} --workers 1"
    return ("check", "--serve", served, "--quick", "--suite", "rfc", "--case", "9112/6.3")


def at_once(words: Sequence[str], others: Sequence[str], cwd: Path) -> list[tuple[int, list[str]]]:
    """Two commands that are started together: exit code and standard error of each."""
    both = [command_process.start(*one, cwd=cwd) for one in (words, others)]
    found = []
    for process in both:
        with process:
            said, errors = process.communicate(timeout=_PATIENCE_S)
        assert not any(trace in said + errors for trace in TRACES), errors
        found.append((process.returncode, errors.splitlines()))
    return found


def hold_whole(folder: Path) -> None:
    """A run folder is that of one whole run."""
    assert {one.name for one in folder.iterdir()} == RUN_FILES
    assert not run_folder.read(folder).interrupted
    for name in (run_folder.RESULT, run_folder.EVIDENCE):
        assert digests.is_known(folder / name)
        assert not digests.differs(folder / name)


@pytest.mark.process
@pytest.mark.parametrize("words", [RUN, "check"], ids=["run", "check"])
def test_of_two_in_one_folder_one_is_whole_and_one_says_why_it_is_not(
    tmp_path: Path, words: tuple[str, ...] | str
) -> None:
    asked = check() if isinstance(words, str) else words
    asked = (*asked, "--out", "r")
    (code, errors), (other, others) = at_once(asked, asked, tmp_path)
    assert sorted((code, other))[1] == 2
    [line] = [one for one in errors + others if one.startswith("httpmark: ")]
    assert "another httpmark is writing this run" in line or "holds a run already" in line
    hold_whole(tmp_path / "r")


@pytest.mark.process
def test_two_with_folders_of_their_own_are_both_whole(tmp_path: Path) -> None:
    for code, errors in at_once(RUN, check(), tmp_path):
        assert code in (0, 1), errors
    folders = list((tmp_path / run_folder.RUNS).iterdir())
    assert len(folders) == 2
    for folder in folders:
        hold_whole(folder)


@pytest.mark.process
def test_a_run_is_judged_by_one_at_a_time(tmp_path: Path) -> None:
    subprocess.run(
        [*command_process.COMMAND, *check(), "--out", "r"], cwd=tmp_path, timeout=120,
        env=command_process.environment(), capture_output=True, check=False,
    )  # fmt: skip
    with run_folder.held(tmp_path / "r"):
        code, _, errors = command_process.run("judge", "r", cwd=tmp_path)
    assert code == 2
    assert "another httpmark is writing this run" in errors
    for code, lines in at_once(("judge", "r"), ("judge", "r"), tmp_path):
        assert code == 0 or "another httpmark is writing this run" in lines[-1], lines
    hold_whole(tmp_path / "r")
