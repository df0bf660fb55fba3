"""The `httpmark` command as a user runs it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from httpmark.harness.tests.shared import child_process

COMMAND = (sys.executable, "-c", "from httpmark.harness.command.cli import main; main()")
"""The first words of the command line that starts the command under test."""


def environment(images: Path | None = None, **variables: str) -> dict[str, str]:
    """The variables the command gets: plain progress lines, and a folder of servers."""
    own = {} if images is None else {"HTTPMARK_IMAGES": str(images)}
    return {**os.environ, "CI": "true", **own, **variables}


def start(
    *words: str, cwd: Path, images: Path | None = None, **variables: str
) -> subprocess.Popen[str]:
    """Start the command; signals reach it as they do in a terminal."""
    return child_process.start(
        [*COMMAND, *words], cwd=cwd, env=environment(images, **variables),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def run(
    *words: str, cwd: Path, images: Path | None = None, timeout: float = 120, **variables: str
) -> tuple[int, str, str]:
    """Run the command to its end: exit code, standard output, standard error."""
    with start(*words, cwd=cwd, images=images, **variables) as process:
        out, errors = process.communicate(timeout=timeout)
    assert "Traceback" not in out + errors
    assert "internal error" not in errors
    return process.returncode, out, errors


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1]
