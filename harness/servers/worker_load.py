"""A little load, to see which threads of a server work."""

from __future__ import annotations

import contextlib
import time

from httpmark.harness.http.address import endpoint
from httpmark.harness.servers import cpu_time, proc_files
from httpmark.harness.servers.running import Running
from httpmark.harness.servers.sockets import Connection

_CONNECTIONS = 32
_SECONDS = 0.5
_SHARE_MIN = 0.15  # of the CPU time of all; what uses less only helps
_DEADLINE_S = 2.0


def busy_threads(one: Running) -> int:
    """How many threads of a server share the work of many connections."""
    before = _used(one)
    host = endpoint(one.address, one.port)
    request = f"GET {one.server.ready_path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("ascii")
    with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
        connections = [
            stack.enter_context(Connection(one.address, one.port, deadline_s=_DEADLINE_S))
            for _ in range(_CONNECTIONS)
        ]
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            # All at once, so that there is work for more than one.
            for connection in connections:
                connection.send(request)
            for connection in connections:
                connection.receive()
    grown = {key: used - before.get(key, 0) for key, used in _used(one).items()}
    total = sum(grown.values())
    return sum(used >= _SHARE_MIN * total for used in grown.values()) if total > 0 else 0


def _used(one: Running) -> dict[tuple[int, str], int]:
    """The CPU time of each thread that lives, by its process and its number."""
    return {
        (pid, thread): used
        for pid in one.pids()
        for thread, (used, _) in zip(
            proc_files.names_in_if_there(pid, "task"), cpu_time.threads_ns(pid), strict=False
        )
    }
