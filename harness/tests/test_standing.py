"""Targets that run already: what is one, what is not, and what is never done to it."""

from __future__ import annotations

import os

import pytest

from httpmark.harness import standing
from httpmark.harness.model import HarnessError

from . import peers


def parse(text: str, *, allow_remote: bool = False) -> standing.Standing | None:
    return standing.parse(text, allow_remote=allow_remote)


@pytest.mark.parametrize("name", ["reference", "go_net_http", "null"])
def test_a_name_is_no_target(name: str) -> None:
    assert parse(name) is None


@pytest.mark.parametrize(
    ("text", "address", "port", "tls_port", "path"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080, None, None),
        ("http://127.0.0.1:8080/a?b=c", "127.0.0.1", 8080, None, "/a?b=c"),
        ("http://localhost", "127.0.0.1", 80, None, "/"),
        ("https://127.0.0.1/x", "127.0.0.1", 443, 443, "/x"),
        ("http://[::1]:99/", "::1", 99, None, "/"),
    ],
)
def test_targets_are_read(
    text: str, address: str, port: int, tls_port: int | None, path: str | None
) -> None:
    one = parse(text)
    assert one is not None
    assert (one.address, one.port, one.tls_port, one.path) == (address, port, tls_port, path)
    assert ("tls" in one.server.capabilities) is (tls_port is not None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ftp://127.0.0.1/", "http:// and https://"),
        ("http://127.0.0.1:99999/", "port"),
        ("http://example.org/", "IP address"),
        ("http://192.0.2.1/", "--allow-remote"),
        ("192.0.2.1:80", "--allow-remote"),
    ],
)
def test_what_cannot_be_loaded_is_said(text: str, said: str) -> None:
    with pytest.raises(HarnessError, match=said):
        parse(text)


def test_leave_is_leave() -> None:
    one = parse("http://192.0.2.1/", allow_remote=True)
    assert one is not None
    assert one.pids() == []


def test_the_processes_of_a_target_on_this_machine_are_found_and_let_live() -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        one = parse(f"127.0.0.1:{peer.port}")
        assert one is not None
        assert os.getpid() in one.pids()
        assert one.alive()
        one.stop()
        assert one.alive()
    assert not one.alive()
    assert "is the server running?" in one.exit_reason()
