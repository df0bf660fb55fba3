"""Where the program begins: Ctrl-C ends it in one line while its modules are still imported."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn


def _interrupted(number: int, _: FrameType | None) -> NoReturn:
    os.write(2, b"httpmark: interrupted before anything was begun\n")
    os._exit(128 + number)


signal.signal(signal.SIGINT, _interrupted)
signal.signal(signal.SIGTERM, _interrupted)


def main() -> None:
    """Run the command line of this process, and exit."""
    from httpmark.harness.command import cli

    cli.main()
