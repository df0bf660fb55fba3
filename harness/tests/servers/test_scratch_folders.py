"""Folders for the time of a command: gone with their owner, whatever ended it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from httpmark.harness.servers import scratch_folders


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_folder_is_there_for_the_time_of_a_block() -> None:
    with scratch_folders.folder("some.server-3") as made:
        (made / "file").write_text("")
        assert scratch_folders.sweep() == []
        assert made.is_dir()
    assert not made.exists()


@pytest.mark.process
def test_what_a_killed_owner_left_is_swept(tmp_path: Path) -> None:
    code = (
        "import os, signal; from httpmark.harness.servers import scratch_folders as f\n"
        "(f.make('x') / 'file').write_text(''); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, timeout=60, check=False)
    left = list(tmp_path.iterdir())
    assert len(left) == 1
    assert scratch_folders.sweep() == left
    assert not list(tmp_path.iterdir())


def test_an_owner_is_known_by_its_start_time_too() -> None:
    made = scratch_folders.make("x")
    head, _, end = made.name.rpartition("-")
    head, _, started = head.rpartition("-")
    # The process id was given to another process since.
    former = made.rename(made.with_name(f"{head}-{int(started) - 1}-{end}"))
    assert scratch_folders.sweep() == [former]


def test_what_is_not_known_to_be_ours_stays(tmp_path: Path) -> None:
    namespace, pid = os.stat("/proc/self/ns/pid").st_ino, os.getpid()
    for name in ("httpmark-tls-abc", f"httpmark-x-{namespace + 1}-{pid}-1-abc", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / f"httpmark-x-{namespace}-{pid}-1-abc").symlink_to(tmp_path / "other")
    assert scratch_folders.sweep() == []
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.process
def test_what_nobody_removed_goes_with_its_owner(tmp_path: Path) -> None:
    code = (
        "from httpmark.harness.servers import scratch_folders as f\n"
        "(f.make('x') / 'file').write_text('')"
    )
    (tmp_path / "other").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, timeout=60, check=True)
    assert [one.name for one in tmp_path.iterdir()] == ["other"]
