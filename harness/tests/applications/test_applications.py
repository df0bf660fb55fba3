"""Ordinary applications, each on the server that its framework comes with."""

from __future__ import annotations

import http.client

import pytest

from httpmark.harness.tests.shared import applications


def asked(port: int, method: str, path: str, content: bytes = b"") -> int:
    """The status that one good request gets."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body=content or None)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.process
@pytest.mark.parametrize("name", applications.each())
def test_an_application_has_exact_routes(name: str) -> None:
    """GET of its page and POST at one path; the framework refuses all else by itself."""
    applications.require(name)
    known = applications.read(name)
    with applications.listening(name) as port:
        assert asked(port, "GET", known.path) == 200
        assert asked(port, "POST", known.post_path, b"hello") in (200, 201)
        assert asked(port, "GET", "/unknown") == 404
        assert asked(port, "POST", known.path, b"hello") in (404, 405)
