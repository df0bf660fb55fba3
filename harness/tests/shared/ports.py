"""Ports for the servers of tests: free ones, and waiting until somebody listens."""

from __future__ import annotations

import fcntl
import random
import socket
import tempfile
import time
from pathlib import Path

# Above those that the harness draws, below those that the system gives out by itself.
_PORTS = range(28080, 32760)
_LAST = Path(tempfile.gettempdir(), "last-port-of-a-test")


def own_port() -> int:
    """A free port that no other test gets soon, in whatever process it runs.

    They are given out in turn: of ports drawn at random, two tests would draw the same one before
    the first of them listens.
    """
    with _LAST.open("a+", encoding="ascii") as last:
        fcntl.flock(last, fcntl.LOCK_EX)
        last.seek(0)
        text = last.read()
        port = int(text) if text.isdecimal() else random.choice(_PORTS)
        port = next_port(port)
        last.truncate(0)
        last.write(str(port))
    return port


def next_port(port: int) -> int:
    """The next port after ``port`` on which nobody listens."""
    while True:
        port = port + 1 if port + 1 in _PORTS else _PORTS.start
        if not is_listening(port):
            return port


def close_first(listener: socket.socket) -> int:
    """Close one connection on the listener's side first, and then the listener: the connection
    waits there to be forgotten (TIME_WAIT). Gives the port."""
    with listener, socket.create_connection(listener.getsockname()) as client:
        accepted, _ = listener.accept()
        accepted.close()
        assert client.recv(1) == b""
        return int(listener.getsockname()[1])


def is_listening(port: int) -> bool:
    """Whether a server on this machine listens on a port."""
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(row.split()[3] == "0A" and int(row.split()[1][-4:], 16) == port for row in rows)


def wait_listening(port: int, *, until: bool, seconds: float) -> None:
    """Wait until a server listens on a port, or until none does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and is_listening(port) is not until:
        time.sleep(0.05)
    assert is_listening(port) is until
