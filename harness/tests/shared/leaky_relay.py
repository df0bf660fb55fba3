"""A server that leaks, for the laws of a soak to find.

``python -m ...leaky_relay WHAT PROGRAM...`` starts a server, passes on to it whatever its own
clients send, and keeps something of each connection for ever: a descriptor, memory or nothing.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from types import FrameType

_KEPT_BYTES = 200_000


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while octets := source.recv(1 << 16):
            sink.sendall(octets)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        # A reset goes on as a reset, and wakes who reads from the other end.
        for one in (source, sink):
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it has ended by itself


def _serve(client: socket.socket, port: int) -> None:
    with client, socket.create_connection(("127.0.0.1", port)) as server:
        back = threading.Thread(target=_pump, args=(server, client))
        back.start()
        _pump(client, server)
        back.join()


def main() -> None:
    what, program = sys.argv[1], sys.argv[2:]
    child = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    found = re.search(r":(\d+)$", child.stdout.readline().strip())
    assert found is not None

    def leave(_signal: int, _frame: FrameType | None) -> None:
        child.terminate()
        os._exit(child.wait())

    signal.signal(signal.SIGTERM, leave)
    kept: list[object] = []
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        sys.stdout.write(f"listening on 127.0.0.1:{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        while True:
            client, _ = listener.accept()
            if what == "descriptor":
                kept.append(os.open(os.devnull, os.O_RDONLY))
            elif what == "memory":
                kept.append(b"x" * _KEPT_BYTES)
            threading.Thread(target=_serve, args=(client, int(found[1])), daemon=True).start()


if __name__ == "__main__":
    main()
