"""A full disk: one line that names the place, exit code 3, what was stored can be read.

The folder of a run, or the one for temporary files, is a small file system. The larger it is, the
later it is full.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from httpmark.harness.model import run_folder
from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared import command_process
from httpmark.harness.tests.shared.kill_laws import RUN_FILES, TRACES

# A mount namespace of its own, that is gone with the command: what is in the small file system at
# the end is copied out of it.
_ON_SMALL = """
mount -t tmpfs -o size="$1"k tmpfs "$2" || exit 99
small=$2; copy=$3; shift 3
"$@"
code=$?
cp -a "$small" "$copy"
exit $code
"""
_PATIENCE_S = 240
# Up to where the evidence of both commands still needs more.
SIZES_KIB = (4, 8, 12, 16, 20, 28, 36, 40, 48, 64, 80, 96, 120, 160, 200, 300, 400, 700, 1500)
Meets = Callable[[int, Path], None]


class Done(NamedTuple):
    """What a command did whose file system was small."""

    code: int
    complaints: list[str]  # its lines on standard error
    left: Path  # what was in the file system at the end


def on_small(kib: int, folder: Path, *words: str, **variables: str) -> Done:
    """Run a command; ``SMALL`` in its words and variables is a file system of so many KiB."""
    small, copy = folder / "small", folder / "copy"
    small.mkdir(parents=True)
    words = tuple(word.replace("SMALL", str(small)) for word in words)
    variables = {name: word.replace("SMALL", str(small)) for name, word in variables.items()}
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", _ON_SMALL, "sh", str(kib), str(small), str(copy),
         *command_process.COMMAND, *words],
        cwd=folder, env=command_process.environment(None, **variables),
        text=True, capture_output=True, timeout=_PATIENCE_S, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode != 99, said
    assert not any(trace in said for trace in TRACES), said
    assert not (folder / "httpmark-error.txt").exists(), said
    return Done(done.returncode, done.stderr.splitlines(), copy)


def check() -> tuple[str, ...]:
    served = f"{binaries.need('server')} --address 127.0.0.1 --port {{port}} --workers 1"
    return (
        "check", "--serve", served, "--quick", "--suite", "rfc", "--case", "9112/6.3", "--case",
        "9112/3.2",
    )  # fmt: skip


def run() -> tuple[str, ...]:
    return (
        "run", "--runtime", "process", "--quick", "--suite", "smuggling", "--profile", "keepalive",
        "--server", "null",
    )  # fmt: skip


BENCH = (
    "--runtime", "process", "--quick", "--profile", "keepalive", "--rounds", "1", "null",
)  # fmt: skip


def hold_one_line(done: Done, place: str) -> None:
    """The last line, and no other one, names the place that is full and says what to do."""
    assert done.code == 3, done.complaints
    lines = [line for line in done.complaints if line.startswith("httpmark: ")]
    assert lines == done.complaints[-1:]
    assert place in lines[0], lines
    assert "full" in lines[0] or "No space left" in lines[0]
    assert "free some space" in lines[0] or "make room" in lines[0], lines


def hold_stored(folder: Path, here: Path) -> None:
    """What a run folder holds can be read where there is room, and nothing else is in it."""
    if not folder.exists():
        return
    if (folder / run_folder.RESULT).exists():
        code, _, errors = command_process.run("report", str(folder), cwd=here)
        assert code == 0, errors
    if (folder / run_folder.EVIDENCE).is_file():
        code, _, errors = command_process.run("judge", str(folder), cwd=here)
        assert code == 0, errors
    assert {one.name for one in folder.iterdir()} <= RUN_FILES


def _check_out(kib: int, folder: Path) -> None:
    done = on_small(kib, folder, *check(), "--out", "SMALL/r")
    hold_one_line(done, str(folder / "small" / "r"))
    hold_stored(done.left / "r", folder)


def _run_out(kib: int, folder: Path) -> None:
    done = on_small(kib, folder, *run(), "--out", "SMALL/r")
    hold_one_line(done, str(folder / "small" / "r"))
    hold_stored(done.left / "r", folder)


def _temporary(kib: int, folder: Path, words: tuple[str, ...]) -> Done:
    """What needs no more room there goes on; what does says so."""
    done = on_small(kib, folder, *words, "--out", "r", TMPDIR="SMALL")
    if done.code != 0:
        hold_one_line(done, str(folder / "small"))
    hold_stored(folder / "r", folder)
    assert not list(done.left.iterdir())
    return done


def _check_temporary(kib: int, folder: Path) -> None:
    _temporary(kib, folder, check())


def _run_temporary(kib: int, folder: Path) -> None:
    _temporary(kib, folder, run())


@pytest.mark.needs("small disk")
@pytest.mark.parametrize("kib", [4, 120])
def test_a_full_disk_is_said_wherever_a_check_meets_it(tmp_path: Path, kib: int) -> None:
    _check_out(kib, tmp_path)


@pytest.mark.needs("small disk")
@pytest.mark.parametrize("kib", [8, 120])
def test_a_full_disk_is_said_wherever_a_run_meets_it(tmp_path: Path, kib: int) -> None:
    _run_out(kib, tmp_path)


@pytest.mark.needs("small disk")
def test_a_full_folder_for_temporary_files_is_said(tmp_path: Path) -> None:
    # The reference server is given files there.
    done = _temporary(8, tmp_path, ("run", *run()[1:-1], "reference"))
    assert done.code == 3


@pytest.mark.needs("small disk")
def test_what_needs_no_room_for_temporary_files_goes_on_without(tmp_path: Path) -> None:
    assert _temporary(4, tmp_path, ("bench", *BENCH)).code == 0


@pytest.mark.nightly
@pytest.mark.timeout(2400)
@pytest.mark.needs("small disk")
@pytest.mark.parametrize(
    ("where", "sizes_kib"),
    [
        (_check_out, SIZES_KIB),
        (_check_temporary, SIZES_KIB),
        (_run_out, SIZES_KIB[::3]),  # each takes half a minute
        (_run_temporary, SIZES_KIB[::3]),
    ],
)
def test_a_disk_that_is_full_at_any_write_is_said(
    tmp_path: Path, where: Meets, sizes_kib: tuple[int, ...]
) -> None:
    for kib in sizes_kib:
        folder = tmp_path / str(kib)
        folder.mkdir()
        where(kib, folder)


@pytest.mark.needs("small disk")
def test_a_disk_with_room_changes_nothing(tmp_path: Path) -> None:
    done = on_small(32_000, tmp_path, *check(), "--out", "SMALL/r", TMPDIR="SMALL")
    assert done.code == 0, done.complaints
    hold_stored(done.left / "r", tmp_path)
    assert [one.name for one in done.left.iterdir()] == ["r"]
