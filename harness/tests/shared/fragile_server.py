"""A server with few threads: each serves one connection until that ends, so slow clients starve
the others. It dies of a request with more than a thousand fields."""

from __future__ import annotations

from pathlib import Path

THREADS = 14

FRAGILE = f"""
import os, socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=1024)
ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok"
def serve():
    while True:
        connection, _ = listener.accept()
        held = b""
        with connection:
            try:
                while piece := connection.recv(65536):
                    held += piece
                    if held.count(b"\\r\\n") > 1000:
                        os._exit(9)
                    heads = held.count(b"\\r\\n\\r\\n")
                    held = held.rpartition(b"\\r\\n\\r\\n")[2]
                    connection.sendall(ANSWER * heads)
            except OSError:
                pass
threads = [threading.Thread(target=serve) for _ in range({THREADS})]
for one in threads:
    one.start()
"""


def script(folder: Path) -> Path:
    """The server as a file, which takes its port as its word."""
    path = folder / "fragile.py"
    path.write_text(FRAGILE)
    return path
