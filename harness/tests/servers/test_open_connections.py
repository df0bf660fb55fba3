"""Listeners and connections, against sockets that were opened."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from httpmark.harness.servers import (
    open_connections,
)


def test_the_room_for_connections_is_told_by_what_limits_it() -> None:
    room = open_connections.connection_room()
    assert room["ports"] > 1000
    assert room["memory"] > 0
    assert all(most >= 0 for most in room.values())


def test_listeners_are_found_by_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert open_connections.listeners(listener.getsockname()[1], "127.0.0.1") == [os.getpid()]
    assert open_connections.listeners(1, "127.0.0.1") == []


SLEEPER = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("up", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def sleeper(address: str, port: int, *, python: str = sys.executable) -> Iterator[int]:
    """A process that listens there; gives its id."""
    with subprocess.Popen(
        [python, "-S", "-c", SLEEPER, address, str(port)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process.pid
        process.stdin.close()


@pytest.mark.process
def test_of_several_that_listen_on_a_port_an_address_means_the_one_it_reaches() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with sleeper("127.0.0.2", port) as other:
            assert open_connections.listeners(port, "127.0.0.1") == [os.getpid()]
            assert open_connections.listeners(port, "127.0.0.2") == [other]
            assert open_connections.listeners(port, "127.0.0.3") == []
            assert open_connections.listeners(port, "::1") == []


def test_who_listens_on_all_addresses_is_reached_where_nobody_listens_on_that_one() -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        port = listener.getsockname()[1]
        for address in ("127.0.0.1", "::1"):
            assert open_connections.listeners(port, address) == [os.getpid()]


@pytest.mark.process
def test_a_forwarder_is_not_the_server_behind_it(tmp_path: Path) -> None:
    proxy = tmp_path / "docker-proxy"
    shutil.copy(os.path.realpath(sys.executable), proxy)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with sleeper("127.0.0.1", port, python=str(proxy)):
        assert open_connections.listeners(port, "127.0.0.1") == []


def test_listeners_are_found_by_the_path_of_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "a socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        assert open_connections.unix_listeners(path) == [], "bound, and not listening yet"
        listener.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            assert open_connections.unix_listeners(path) == [os.getpid()]
    assert open_connections.unix_listeners(path) == []


@pytest.mark.process
def test_descriptors_are_counted() -> None:
    def waiting(*kept: int) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", "print(flush=True); input()"]
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=kept,
        )

    with open(os.devnull) as more, waiting() as few, waiting(more.fileno()) as one_more:
        for child in (few, one_more):
            assert child.stdout is not None
            assert child.stdout.readline() == b"\n", "it has started"
        held = open_connections.descriptors([few.pid])
        assert held is not None
        assert open_connections.descriptors([one_more.pid]) == held + 1
        assert open_connections.descriptors([few.pid, one_more.pid]) == 2 * held + 1
    assert open_connections.descriptors([few.pid]) is None
    assert open_connections.descriptors([]) is None


def test_each_sharer_of_a_port_is_a_listening_socket() -> None:
    with socket.socket() as first, socket.socket() as second:
        for number, one in enumerate((first, second), 1):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            one.bind(("127.0.0.1", 0 if number == 1 else first.getsockname()[1]))
            one.listen()
            port = first.getsockname()[1]
            assert open_connections.listening_sockets(port) == number
