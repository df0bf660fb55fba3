"""The path that a load requests: the one that is named, else one that answers with 2xx."""

from __future__ import annotations

import socket

import pytest

from httpmark.harness.http import address
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.servers import requested_path
from httpmark.harness.tests.shared import peers


@pytest.mark.parametrize(
    ("answers", "path"),
    [
        ({"/hello": 200, "/": 200}, "/hello"),
        ({"/hello": 404, "/": 204}, "/"),
        ({"/hello": 302, "/": 200}, "/"),
        ({"/hello": 0, "/": 200}, "/"),
        # A server that says nothing is left to the load, which tells why.
        ({"/hello": 0, "/": 0}, "/hello"),
    ],
)
def test_the_first_path_that_answers_2xx_is_taken(answers: dict[str, int], path: str) -> None:
    assert requested_path.found(answers.__getitem__) == (path, "")


def test_where_nothing_answers_2xx_what_came_is_told_with_what_to_do() -> None:
    answers = {"/hello": 404, "/": 302}
    assert requested_path.found(answers.__getitem__) == (
        None,
        "GET /hello was answered with 404 and GET / was answered with 302, so nothing was "
        "measured: name a path that GET answers with 2xx, as --path /health",
    )


def test_the_status_of_one_plain_request() -> None:
    with peers.peer(peers.answering(peers.NOT_FOUND)) as peer:
        assert requested_path.status("127.0.0.1", peer.port, "/x") == 404
    assert requested_path.status("127.0.0.1", peer.port, "/x") == 0

    def babbling(connection: socket.socket) -> None:
        peers.head(connection)
        connection.sendall(b"220 mail.example.org ESMTP\r\n")

    with peers.peer(babbling) as peer:
        assert requested_path.status("127.0.0.1", peer.port, "/x") == 0


@pytest.mark.parametrize("path", ["health", "", "/a b", "/ä", "/a\r\nX: y"])
def test_what_no_request_line_can_hold_is_no_path(path: str) -> None:
    with pytest.raises(HarnessError, match="is not a path: begin it with /"):
        requested_path.checked(path)
    assert requested_path.checked("/health?deep=1") == "/health?deep=1"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("http://127.0.0.1:80", None),
        ("http://127.0.0.1:80/", None),
        ("127.0.0.1:80/", None),
        ("http://127.0.0.1:80/a?b", "/a?b"),
        ("http://127.0.0.1:80/?b", "/?b"),
    ],
)
def test_an_address_with_and_without_the_slash_names_no_path(text: str, path: str | None) -> None:
    assert requested_path.of_address(address.read(text, allow_remote=False)) == path
