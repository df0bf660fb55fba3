"""Run folders: the newest one is found by when its run began."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import HarnessError

LATEST = Path("latest")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made(name: str, started: str | None, *, log_ns: int = 0) -> Path:
    folder = run_folder.RUNS / name
    folder.mkdir(parents=True)
    (folder / run_folder.LOG).write_text("")
    os.utime(folder / run_folder.LOG, ns=(log_ns, log_ns))
    if started is not None:
        (folder / run_folder.RESULT).write_text(f'{{"started": "{started}"}}')
    return folder


def test_latest_is_the_run_that_began_last_whatever_its_folder_is_called() -> None:
    made("z-first", "2026-11-21T04:00:00Z", log_ns=9)
    newest = made("a-second", "2026-11-21T04:00:01Z")
    made("20991231T000000Z-000000", None)  # it holds no result
    made("0-broken", None).joinpath(run_folder.RESULT).write_text("{")
    assert run_folder.named(LATEST) == newest


def test_of_two_runs_in_one_second_the_one_with_the_younger_log_is_latest() -> None:
    newest = made("a", "2026-11-21T04:00:00Z", log_ns=2)
    made("b", "2026-11-21T04:00:00Z", log_ns=1)
    assert run_folder.named(LATEST) == newest


def test_a_folder_that_is_named_is_taken_even_if_it_is_called_latest() -> None:
    made("a", "2026-11-21T04:00:00Z")
    assert run_folder.named(Path("elsewhere")) == Path("elsewhere")
    LATEST.mkdir()
    (LATEST / run_folder.RESULT).write_text("{}")
    assert run_folder.named(LATEST) == LATEST


def test_without_a_run_the_word_says_so() -> None:
    with pytest.raises(HarnessError, match="no run in httpmark-runs yet: name its folder"):
        run_folder.named(LATEST)


def test_a_run_folder_that_holds_nothing_is_discarded() -> None:
    path = run_folder.folder(None)
    run_folder.discard_unused()
    assert not path.exists()
    assert not run_folder.RUNS.exists()


def test_one_that_holds_something_or_is_somebody_elses_stays() -> None:
    used, told = run_folder.folder(Path("used")), run_folder.folder(Path("told"))
    (used / run_folder.EVIDENCE).write_text("")
    (told / run_folder.LOG).write_text("a line")
    Path("before").mkdir()
    run_folder.folder(Path("before"))
    written = run_folder.folder(Path("written"))
    with run_folder.held(written):
        run_folder.discard_unused()
    assert {one.name for one in Path().iterdir()} == {"used", "told", "before", "written"}
    run_folder.discard_unused()
    assert not written.exists()
