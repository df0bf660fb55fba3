"""A command that is watched from outside: how long it took, and what its processes held."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from httpmark.harness.servers import proc_files
from httpmark.harness.tests.shared.command_process import environment

_LOOK_S = 0.1
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


class Watched(msgspec.Struct, frozen=True):
    """What a command did."""

    code: int | None  # None: it was killed when its time was over
    out: str
    errors: str
    seconds: float
    peak_mb: int  # of its whole process tree; pages that processes share count once


def run(words: Sequence[str], *, cwd: Path, seconds: float) -> Watched:
    """Run a command to its end, or kill it."""
    out, errors = cwd / "stdout", cwd / "stderr"
    began, peak_kb = time.monotonic(), 0
    with (
        out.open("wb") as said,
        errors.open("wb") as complained,
        subprocess.Popen(
            words, cwd=cwd, env=environment(), stdin=subprocess.DEVNULL, stdout=said,
            stderr=complained,
        ) as process,
    ):  # fmt: skip
        while process.poll() is None and time.monotonic() - began < seconds:
            peak_kb = max(peak_kb, _held_kb(process.pid))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_S)
        took, code = time.monotonic() - began, process.poll()
        process.kill()
    return Watched(
        code, out.read_text(errors="replace"), errors.read_text(errors="replace"), took,
        peak_kb // 1024,
    )  # fmt: skip


def _held_kb(pid: int) -> int:
    held = 0
    for one in proc_files.tree([pid]):
        with contextlib.suppress(OSError):
            held += sum(map(int, _PSS.findall(proc_files.text(one, "smaps_rollup"))))
    return held
