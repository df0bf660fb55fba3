#!/usr/bin/env python3
"""CPU time of the server for each WebSocket message, beside other servers in one run.

64 connections each have 64 messages of 32 bytes under way: they are sent in one piece, and the next
64 follow once all have come back. Servers are taken in turn; costs and intervals are those of
measuring.py. The peers are built in --folder: gorilla/websocket needs go, uWebSockets a C compiler;
what cannot be had is left out, and said.

    python3 reference_server/bench/websocket_figures.py BUILD
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from measuring import Server, cost_row, interval, row, say

PEERS = Path(__file__).resolve().parent / "websocket_peers"
HANDSHAKE = (
    b"GET /websocket HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
KEY = b"\x37\xfa\x21\x3d"


def frames(size: int, count: int) -> tuple[bytes, bytes]:
    """What a client sends, and what it has to get back."""
    payload = bytes(97 + at % 26 for at in range(size))
    masked = bytes(octet ^ KEY[at % 4] for at, octet in enumerate(payload))
    head = bytes((size,)) if size < 126 else b"\x7e" + size.to_bytes(2)
    first = bytes((0x80 | head[0],)) + head[1:]
    return (b"\x81" + first + KEY + masked) * count, (b"\x81" + head + payload) * count


class Load:
    """Connections to one server, each with its messages under way."""

    def __init__(self, port: int, connections: int, size: int, depth: int) -> None:
        self.sent, self.wanted = frames(size, depth)
        self.depth = depth
        self.selector = selectors.DefaultSelector()
        for _ in range(connections):
            one = socket.create_connection(("127.0.0.1", port))
            one.sendall(HANDSHAKE)
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += one.recv(1)
            if not head.startswith(b"HTTP/1.1 101 "):
                sys.exit(f"websocket_figures: no WebSocket at port {port}: {head[:60]!r}")
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(one, selectors.EVENT_READ, bytearray())

    def run(self, seconds: float) -> int:
        """Messages that came back, each of them compared."""
        done, end = 0, time.monotonic() + seconds
        busy = 0
        for key in self.selector.get_map().values():
            key.fileobj.sendall(self.sent)  # type: ignore[union-attr]
            busy += 1
        while busy:
            for key, _ in self.selector.select(30):
                one, held = key.fileobj, key.data
                assert isinstance(one, socket.socket)
                held += one.recv(1 << 16)
                if len(held) < len(self.wanted):
                    continue
                if held != self.wanted:
                    sys.exit("websocket_figures: what came back is not what was sent")
                held.clear()
                done += self.depth
                if time.monotonic() < end:
                    one.sendall(self.sent)
                else:
                    busy -= 1
        return done

    def close(self) -> None:
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self.selector.close()


def built(command: list[str | Path], folder: Path) -> bool:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        say(f"left out: {' '.join(map(str, command))}: {done.stderr.strip()[-200:]}")
    return done.returncode == 0


def socketify_library() -> Path | None:
    """The library of uWebSockets that the Python package brings along."""
    command = [sys.executable, "-c", "import socketify; print(socketify.__file__)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = Path(done.stdout.strip()).parent / "libsocketify_linux_amd64.so"
    return found if done.returncode == 0 and found.is_file() else None


def peers(folder: Path) -> Iterator[tuple[str, list[str | Path]]]:
    """Name and command of each other server that can be had here."""
    folder.mkdir(parents=True, exist_ok=True)
    gorilla = folder / "gorilla"
    shutil.copytree(PEERS / "gorilla", gorilla, dirs_exist_ok=True)
    if shutil.which("go") is None:
        say("left out: gorilla/websocket: no go")
    elif built(["go", "mod", "tidy"], gorilla) and built(["go", "build", "-o", "echo"], gorilla):
        yield "gorilla/websocket (Go)", [gorilla / "echo", "PORT"]
    library = socketify_library()
    if library is None:
        say("left out: uWebSockets: pip install socketify")
    elif built(
        ["cc", "-O2", "-o", "uwebsockets", PEERS / "uwebsockets.c", library,
         f"-Wl,-rpath,{library.parent}"],
        folder,
    ):  # fmt: skip
        yield "uWebSockets (C++)", [folder / "uwebsockets", "PORT"]
    if importlib.util.find_spec("websockets") is None:
        say("left out: websockets: pip install websockets")
    else:
        yield "websockets (Python)", [sys.executable, PEERS / "python_websockets.py", "PORT"]


def measure(arguments: argparse.Namespace) -> None:
    server = arguments.build / "reference_server/httpmark-server"
    if not server.is_file():
        server = arguments.build / "httpmark-server"
    own: list[str | Path] = [
        server, "--address", "127.0.0.1", "--port", "PORT", "--workers", "1",
    ]  # fmt: skip
    commands = [("reference, epoll", own), ("reference, io_uring", [*own, "--engine", "uring"])]
    commands += peers(arguments.folder)
    with ExitStack() as stack:
        os.sched_setaffinity(0, {1})
        servers = [stack.enter_context(Server(name, command, 0)) for name, command in commands]
        loads = [
            Load(one.port, arguments.connections, arguments.size, arguments.depth)
            for one in servers
        ]
        costs: list[list[float]] = [[] for _ in servers]
        for turn in range(arguments.pairs + 1):
            order = range(len(servers)) if turn % 2 == 0 else reversed(range(len(servers)))
            for index in order:
                before = servers[index].cpu_ns()
                messages = loads[index].run(arguments.seconds)
                cost = (servers[index].cpu_ns() - before) / messages
                if turn != 0:  # the first warms up
                    costs[index].append(cost)
        for one in loads:
            one.close()
    what = f"{arguments.size} bytes, {arguments.connections} x {arguments.depth}"
    for one, cost in zip(servers, costs, strict=True):
        cost_row(f"WebSocket message, {what}: {one.name}", "", cost, None)
    for one, cost in zip(servers[1:], costs[1:], strict=True):
        ratios = [mine / other for mine, other in zip(costs[0], cost, strict=True)]
        low, high = interval(ratios)
        text = f"{statistics.median(ratios):.3f} ({low:.3f}-{high:.3f})"
        is_peer = not one.name.startswith("reference")
        aim, met = ("below 1", high < 1) if is_peer else ("", None)
        row(f"  epoll over {one.name}", aim, text, met)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", type=Path, help="folder of a release build")
    parser.add_argument("--folder", type=Path, help="where peers are built (BUILD/peers)")
    parser.add_argument("--pairs", type=int, default=7, help="samples of each server")
    parser.add_argument("--seconds", type=float, default=1.0, help="of one sample")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--depth", type=int, default=64, help="messages under way on each")
    parser.add_argument("--size", type=int, default=32, help="bytes of a message, at most 65,535")
    arguments = parser.parse_args()
    arguments.folder = (arguments.folder or arguments.build / "peers").resolve()
    measure(arguments)


if __name__ == "__main__":
    main()
