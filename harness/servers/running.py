"""A server that was started: what can be asked of it, and how long it may take to stop."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Protocol

from httpmark.harness.model.servers import Server
from httpmark.harness.servers import sockets

if TYPE_CHECKING:
    pass

STOP_GRACE_S = 3.0  # between SIGTERM and SIGKILL
STOP_DEADLINE_S = STOP_GRACE_S + 7.0  # until a stop must have ended everything
_PORT_FREE_DEADLINE_S = 5.0
READY_PAUSE_S = 0.01
LOG_TAIL_LINES = 20
LOG_TAIL_BYTES = 64 * 1024


class Running(Protocol):
    """A server that answers; whoever holds one must :meth:`stop` it."""

    server: Server
    runtime: str
    address: str
    port: int
    cgroup: str | None  # the folder of its memory controller, where it has one of its own
    version: str | None  # as the server itself tells it
    image_digest: str | None

    def pids(self) -> list[int]:
        """The server's whole process tree that lives now, as pids of this machine."""

    def trees(self) -> list[int]:
        """Processes below which all is that the server ever starts, whatever it lets go of."""

    def alive(self) -> bool:
        """Whether its first process still runs."""

    def exit_reason(self) -> str:
        """How it ended (exit code or signal) and its last log line."""

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        """The last lines it wrote."""

    def stop(self) -> None:
        """SIGTERM, after 3 s SIGKILL, to the whole tree; waits until the port is free."""


# --- starting and stopping --------------------------------------------------------------------

RUNNING: list[Running] = []


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def wait_port_free(address: str, port: int) -> None:
    end = time.monotonic() + _PORT_FREE_DEADLINE_S
    with contextlib.suppress(OSError):
        while sockets.port_taken(address, port) and time.monotonic() < end:
            time.sleep(READY_PAUSE_S)
