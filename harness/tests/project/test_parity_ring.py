"""What ring lists as not done, where the command shows it: memory, and SIMD parsing.

What an application sees of ring's list are C++ tests; the table is docs/parity.md.
"""

from __future__ import annotations

import contextlib
import resource
import select
from pathlib import Path

import pytest

from httpmark.harness.tests.shared.reference_command import (
    GET,
    LAST_GET,
    chunks,
    get,
    one_answer,
    post,
    served,
    soon,
    status_of,
    to_the_end,
)

KERNELS = ("scalar", "sse42", "avx2", "avx512")

# What ring has not done yet, and a command shows.

UPLOAD = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"


@pytest.mark.process
def test_ring_memory_is_not_paid_in_advance() -> None:
    """Of each connection ring keeps 40 KiB and 8 MiB for its request. Here it is what is there."""
    count = 400
    with served() as server, contextlib.ExitStack() as wires:
        assert server.status(LAST_GET) == 200
        before = server.rss()
        all_of_them = [wires.enter_context(server.connect()) for _ in range(count)]
        for wire in all_of_them:
            wire.sendall(GET)
            assert status_of(one_answer(wire)) == 200
        idle = server.rss() - before
        assert idle < count * 1024, f"{idle / count:.0f} bytes of each idle connection"
        # A content of 8 MiB is announced, and 4 KiB of it have come.
        for wire in all_of_them:
            wire.sendall(UPLOAD % (8 << 20) + b"x" * 4096)
        for wire in all_of_them[:2]:
            wire.sendall(b"x" * ((8 << 20) - 4096))
            assert len(one_answer(wire)) > 8 << 20
        begun = server.rss() - before
        assert begun < count * 200 * 1024 + (64 << 20), f"{begun / count:.0f} bytes of each"


@pytest.mark.process
def test_ring_out_of_memory_for_a_request() -> None:
    """What is longer than it may be gets 413; what the server has no memory for, 503."""
    with served("--body-max", "9000000", "--memory-max", "4000000") as server:
        assert status_of(server.ask(UPLOAD % 9000001)) == 413
        assert server.status(post(b"x" * 1000000)) == 200
        for chunked in (False, True):
            content = b"x" * 3500000
            if chunked:
                content = b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)
            with server.connect() as wire:
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    wire.sendall(post(content, chunked=chunked))
                assert status_of(to_the_end(wire)) == 503
            assert server.status(post(b"x" * 1000000)) == 200


EVERYTHING = {
    "constant": get(),
    "content": post(b"x" * 100000),
    "chunks": chunks(b"t: v\r\n"),
    "query": get("/echo?" + "a=b&" * 100),
    "JSON": get("/mirror", b"n: v\r\n" * 50),
    "counters": get("/metrics"),
    "file": get("/static/test_parity_ring.py"),
    "source": get("/big"),
    "WebSocket": get("/websocket").replace(
        b"close\r\n",
        b"Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        b"Sec-WebSocket-Extensions: permessage-deflate\r\n",
    ),
}


@pytest.mark.process
@pytest.mark.parametrize("bound", ["option", "system", "nothing"])
def test_ring_out_of_memory_for_the_server(bound: str) -> None:
    """Whoever comes when all is taken gets 503; who needs none is served, and so is everybody as
    soon as there is some again.

    The bound is the server's own, or that of the system: with some room, or with none.
    """
    limit = ("--memory-max", "16000000") if bound == "option" else ()
    words = ("--metrics", "--static", str(Path(__file__).parent), *limit)
    with served(*words) as server:
        for name, request in EVERYTHING.items():
            with server.connect() as wire:
                wire.sendall(request)
                assert status_of(wire.recv(1 << 16)) in (200, 101), name
        if bound != "option":
            most = server.mapped() + (16 << 20 if bound == "system" else 0)
            resource.prlimit(server.pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        with contextlib.ExitStack() as wires:
            early = wires.enter_context(server.connect())
            early.sendall(GET)
            assert status_of(one_answer(early)) == 200
            full = [wires.enter_context(server.connect()) for _ in range(40)]
            for wire in full:
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    wire.sendall(UPLOAD % (1 << 20) + b"x" * 1000000)
            # Those that were refused; each of them was told.
            assert soon(lambda: select.select(full, [], [], 0)[0])
            early.sendall(GET)
            assert status_of(one_answer(early)) == 200
            for name, request in EVERYTHING.items():
                with server.connect() as wire:
                    wire.sendall(request)
                    assert status_of(wire.recv(1 << 16)) in (200, 101, 503), name
            refused = select.select(full, [], [], 0)[0]
            assert all(status_of(wire.recv(1 << 16)) == 503 for wire in refused)
            assert bound == "nothing" or 0 < len(refused) < len(full)
        if bound == "nothing":
            endless = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(server.pid, resource.RLIMIT_AS, endless)
        assert soon(lambda: server.status(post(b"x" * 1000000)) == 200)
        for name, request in EVERYTHING.items():
            with server.connect() as wire:
                wire.sendall(request)
                assert status_of(wire.recv(1 << 16)) in (200, 101), name


def kernels() -> list[str]:
    """Those that this processor runs."""
    flags = Path("/proc/cpuinfo").read_text().split()
    needs = {"scalar": [], "sse42": ["sse4_2"], "avx2": ["avx2"], "avx512": ["avx512_vbmi"]}
    return [name for name in KERNELS if all(flag in flags for flag in needs[name])]


@pytest.mark.process
def test_ring_simd_parsing() -> None:
    """Each kernel judges each octet, wherever it falls."""
    assert "scalar" in kernels()
    for kernel in kernels():
        with served(HTTPMARK_SIMD=kernel) as server:
            for place in range(80):
                padding = "a" * place
                assert server.status(get(f"/{padding}%61")) == 200, (kernel, place)
                assert server.status(get(f"/{padding}%zz")) == 400, (kernel, place)
                assert server.status(get(fields=b"n: %s\0\r\n" % padding.encode())) == 400
