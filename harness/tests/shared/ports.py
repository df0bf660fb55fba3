"""Ports for the servers of tests: free ones, and waiting until somebody listens."""

from __future__ import annotations

import random
import socket
import time
from pathlib import Path


def own_port() -> int:
    """A free port in a wide range, which no other run on this machine chooses by itself."""
    while True:
        port = random.randrange(20000, 30000)
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
