"""Child processes that get signals as a program does that was started in a terminal."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from typing import Any


def _restore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(words: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """Start a program in which SIGINT is not ignored.

    A shell starts what runs in the background with SIGINT ignored, and every child inherits that.
    A test that sends SIGINT starts its child here, so that it passes in the background, too.

    :param options: those of :class:`subprocess.Popen`.
    """
    return subprocess.Popen(words, text=True, preexec_fn=_restore_interrupt, **options)
