"""Targets: which words name one, and what may not be tested without leave."""

from __future__ import annotations

import re

import pytest

from httpmark.harness.http import address
from httpmark.harness.http.address import Address
from httpmark.harness.model.errors import HarnessError


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("http://127.0.0.1:8080/", Address("127.0.0.1", 8080, "127.0.0.1:8080", path="/")),
        ("127.0.0.1:8080", Address("127.0.0.1", 8080, "127.0.0.1:8080")),
        ("http://localhost/", Address("127.0.0.1", 80, "localhost", path="/")),
        ("http://[::1]:81/x", Address("::1", 81, "[::1]:81", path="/x")),
        ("https://127.0.0.1/a?b", Address("127.0.0.1", 443, "127.0.0.1", tls=True, path="/a?b")),
        ("unix:/run/s", Address("localhost", 80, "localhost", unix="/run/s")),
        ("http://127.9.9.9:1", Address("127.9.9.9", 1, "127.9.9.9:1")),
    ],
)
def test_a_target_is_read(text: str, wanted: Address) -> None:
    assert address.read(text, allow_remote=False) == wanted


@pytest.mark.parametrize("text", ["http://192.0.2.1/", "example.org:80", "http://10.0.0.1:8080/"])
def test_another_machine_needs_leave(text: str) -> None:
    with pytest.raises(HarnessError, match="--allow-remote"):
        address.read(text, allow_remote=False)
    assert address.read(text, allow_remote=True).port in (80, 8080)


@pytest.mark.parametrize(
    "text",
    ["unix:", "http://127.0.0.1:99999/", "http://:80/", "ftp://127.0.0.1/", "http://127.0.0.1:0/",
     "http://[::1/", "[::1", "http://[zz]:80/", "http://[::1]x/", "http://a b/"],
)  # fmt: skip
def test_what_is_no_target_is_said(text: str) -> None:
    with pytest.raises(HarnessError, match=re.escape(text)):
        address.read(text, allow_remote=True)


def test_a_certificate_is_that_of_the_name_as_it_was_written() -> None:
    for text, name in (
        ("https://localhost:1/", "localhost"),
        ("https://example.org/", "example.org"),
        ("https://[::1]:1/", "::1"),
    ):
        assert address.read(text, allow_remote=True).name == name


@pytest.mark.parametrize(
    ("host", "port", "unix", "written"),
    [
        ("127.0.0.1", 8080, None, "127.0.0.1:8080"),
        ("::1", 81, None, "[::1]:81"),
        ("localhost", 80, "/run/s", "unix:/run/s"),
    ],
)
def test_what_is_written_is_read_back(host: str, port: int, unix: str | None, written: str) -> None:
    assert address.listening_at(host, port, unix) == written
    found = address.read(written, allow_remote=False)
    assert (found.unix or found.address, found.port) == (unix or host, port)
    if unix is None:
        assert address.endpoint(host, port) == written
        assert address.url(host, port, "/a?b", tls=True) == f"https://{written}/a?b"
        read = address.read(address.url(host, port, "/a", tls=False), allow_remote=False)
        assert read == Address(host, port, written, path="/a")


def test_a_server_of_our_own_is_on_this_machine() -> None:
    assert address.loopback(81) == address.read("127.0.0.1:81", allow_remote=False)
