"""A small server in Python, started as a process, and another harness that starts one."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.model.servers import ProcessRecipe as Recipe
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import (
    running,
    starting,
)
from httpmark.harness.tests.shared import child_process
from httpmark.harness.tests.shared.ports import own_port

GONE_DEADLINE_S = 10.0

# "workers" processes that answer on one port; each line of MANNER makes it odd.
TINY = """
import os, signal, socket, sys, time
address, port, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
print("tiny says hello", flush=True)
{manner}
listener = socket.create_server((address, port), backlog=64)
gate, key = os.pipe()
for _ in range(workers - 1):
    if os.fork() == 0:
        os.close(key)
        os.read(gate, 1)
        break
else:
    os.close(key)  # nobody answers before all are there
while True:
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(1)
        try:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
        except OSError:
            pass
"""


def tiny(folder: Path, manner: str = "", **changes: Any) -> Server:
    """A server in Python; ``manner`` runs after it has spoken and before it listens."""
    (folder / "server.py").write_text(TINY.format(manner=textwrap.dedent(manner)))
    fields: dict[str, Any] = {
        "name": "tiny", "title": "Tiny", "language": "Python", "version": "1",
        "homepage": "https://example.org/", "capabilities": ("hello",), "source": str(folder),
        "ready_timeout_s": 10.0,
        "process": Recipe(
            start=("{python}", "-S", "{source}/server.py", "{address}", "{port}", "{workers}")
        ),
    }  # fmt: skip
    return Server(**(fields | changes))


def start(server: Server, *, port: int | None = None, **options: Any) -> running.Running:
    chosen: dict[str, Any] = {"workers": 1, "cpus": None, "run_id": f"test{os.getpid()}"}
    chosen |= options
    return starting.start(
        server, chosen.pop("runtime", "process"), address="127.0.0.1",
        port=port or own_port(), **chosen,
    )  # fmt: skip


def until(truth: Callable[[], object], deadline_s: float = GONE_DEADLINE_S) -> bool:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        if truth():
            return True
        time.sleep(0.01)
    return bool(truth())


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


HELPER = """
import time
from pathlib import Path
import msgspec
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import starting
server = msgspec.json.decode(Path({server!r}).read_bytes(), type=Server)
one = starting.start(server, {runtime!r}, address="127.0.0.1", port={port}, workers=2, cpus=None,
                     run_id={run_id!r})
try:
    print(*one.pids(), flush=True)
    time.sleep(60)
finally:
    one.stop()
"""


def with_package() -> dict[str, str]:
    """The environment in which another Python finds this package where this one found it."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def helper(
    folder: Path, server: Server, *, how: str, run_id: str = "helper"
) -> tuple[subprocess.Popen[str], list[int], int]:
    """Another harness, with a server up; its process, the server's pids and port."""
    described = folder / f"{run_id}.json"
    described.write_bytes(msgspec.json.encode(server))
    port = own_port()
    text = HELPER.format(
        server=str(described), runtime=how, port=port,
        run_id=run_id,
    )  # fmt: skip
    env = with_package()
    child = child_process.start([sys.executable, "-c", text], stdout=subprocess.PIPE, env=env)
    assert child.stdout is not None
    with child.stdout as told:
        return child, [int(word) for word in told.readline().split()], port
