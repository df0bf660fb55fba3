"""Processes that take CPU time away from what a test starts."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def spinning(cpu: int) -> Iterator[None]:
    """Two processes that leave whoever shares their CPU a third of it."""
    script = f"import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    spinners = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    try:
        yield
    finally:
        for one in spinners:
            one.kill()
            one.wait()
