"""Workers as processes, for servers that have no command of their own that starts them."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys


def words() -> argparse.Namespace:
    """Where to listen, and with how many workers."""
    known = argparse.ArgumentParser()
    known.add_argument("--address", default="127.0.0.1")
    known.add_argument("--port", type=int, default=8080)
    known.add_argument("--workers", type=int, default=1)
    known.add_argument("--tls-port", type=int, default=0)
    known.add_argument("--tls-cert", default="")
    known.add_argument("--tls-key", default="")
    return known.parse_args()


def listener(address: str, port: int) -> socket.socket:
    """A listening socket, which the workers share; event loops do not wait in it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    one = socket.create_server((address, port), family=family, backlog=4096)
    one.setblocking(False)
    return one


def fork(workers: int) -> None:
    """Fork the workers, which return; the first process ends them when it is told to end.

    One worker needs no second process.
    """
    if workers == 1:
        return
    pids = []
    for _ in range(workers):
        pid = os.fork()
        if pid == 0:
            return
        pids.append(pid)

    def stop(*_: object) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    for pid in pids:
        os.waitpid(pid, 0)
    sys.exit()
