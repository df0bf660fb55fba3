"""A server that was started: what it can be asked, how it is stopped, and which ones there are."""

from __future__ import annotations

import contextlib
import time
from typing import Protocol

from httpmark.harness.http.printable import one_line
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import open_connections, sockets

STOP_GRACE_S = 3.0  # between SIGTERM and SIGKILL
STOP_DEADLINE_S = STOP_GRACE_S + 7.0  # until a stop must have ended everything
_PORT_FREE_DEADLINE_S = 5.0
READY_PAUSE_S = 0.01
LOG_TAIL_LINES = 20


class Running(Protocol):
    """A server that answers; the holder must :meth:`stop` it."""

    server: Server
    runtime: str
    address: str
    port: int
    tls_port: int | None  # where it speaks TLS
    cgroup: str | None  # the folder of its memory controller, where it has one of its own
    version: str | None  # as the server itself tells it
    image_digest: str | None

    def pids(self) -> list[int]:
        """The server's whole process tree that lives now, as pids of this machine."""

    def trees(self) -> list[int]:
        """The roots of the process trees that hold everything the server ever starts."""

    def alive(self) -> bool:
        """Whether its first process still runs."""

    def ending(self) -> str:
        """How it ended: exit code or signal."""

    def exit_reason(self) -> str:
        """The same, and its last log line."""

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        """The last lines it wrote."""

    def stop(self) -> None:
        """SIGTERM, after 3 s SIGKILL, to the whole tree; waits until nobody listens there."""


class RunningServers:
    """The servers that this process started and has not stopped."""

    def __init__(self) -> None:
        self._servers: list[Running] = []

    def add(self, one: Running) -> None:
        self._servers.append(one)

    def remove(self, one: Running) -> None:
        """Forget a server that was stopped; harmless a second time."""
        if one in self._servers:
            self._servers.remove(one)

    def stop_all(self) -> None:
        while self._servers:
            self._servers[-1].stop()


RUNNING = RunningServers()


def last_line(log: str) -> str:
    """The last line of a server's log that shows anything, without what a terminal would obey."""
    lines = [line.strip() for line in map(one_line, log.splitlines()) if line.strip()]
    return lines[-1] if lines else ""


def wait_port_free(address: str, port: int) -> None:
    end = time.monotonic() + _PORT_FREE_DEADLINE_S
    with contextlib.suppress(OSError):
        while (
            sockets.port_taken(address, port)
            and not open_connections.is_only_waiting(port)
            and time.monotonic() < end
        ):
            time.sleep(READY_PAUSE_S)
