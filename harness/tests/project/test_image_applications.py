"""images/applications: the ASGI and the WSGI application answer alike."""

from __future__ import annotations

import asyncio
import base64
import importlib
import io
import json
import sys
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from httpmark.harness.servers import manifests

FOLDER = manifests.IMAGES / "applications"


class Answer(NamedTuple):
    status: int
    fields: dict[str, str]
    content: bytes


def loaded(name: str) -> ModuleType:
    """A module of the folder, which finds the others of it beside itself."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


ASGI, WSGI = loaded("asgi"), loaded("wsgi")
loaded("answers").SLOW_S = 0.0  # type: ignore[attr-defined]


def of_asgi(method: str, path: str, query: str, content: bytes) -> Answer:
    sent: list[dict[str, Any]] = []
    halves = [content[:2], content[2:]]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": halves.pop(0), "more_body": bool(halves)}

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    scope = {
        "type": "http", "http_version": "1.1", "method": method, "path": path,
        "raw_path": path.encode(), "query_string": query.encode(), "headers": [(b"x-odd", b"v w")],
    }  # fmt: skip
    asyncio.run(ASGI.app(scope, receive, send))
    start, body = sent
    fields = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], fields, body["body"])


def of_wsgi(method: str, path: str, query: str, content: bytes) -> Answer:
    started: list[Any] = []
    environ = {
        "REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query,
        "SERVER_PROTOCOL": "HTTP/1.1", "CONTENT_LENGTH": str(len(content)),
        "REQUEST_URI": path + (f"?{query}" if query else ""),
        "wsgi.input": io.BytesIO(content + b"next"),
    }  # fmt: skip
    answered = b"".join(WSGI.app(environ, lambda *words: started.append(words)))
    [(status, listed)] = started
    fields = {name.lower(): value for name, value in listed}
    return Answer(int(status.split()[0]), fields, answered)


@pytest.mark.parametrize(
    ("method", "path", "query", "status", "content"),
    [
        ("GET", "/hello", "", 200, b"Hello World!"),
        ("DELETE", "/some/other", "", 200, b"Hello World!"),
        ("POST", "/body", "", 200, b"sent"),
        ("GET", "/echo", "a=%41%20c&b=", 200, b'{"a": "A c", "b": ""}'),
        ("GET", "/slow", "", 200, b"Hello World!"),
        ("POST", "/early", "", 200, b"Hello World!"),
        ("GET", "/204", "", 204, b""),
        ("GET", "/304", "", 304, b""),
        ("GET", "/redirect", "", 302, b""),
        ("GET", "/big", "", 200, b"a" * (1 << 20)),
        ("POST", "/404", "", 404, b"Not Found"),
        ("HEAD", "/get-only", "", 200, b"Hello World!"),
        ("POST", "/get-only", "", 405, b"Method Not Allowed"),
    ],
)
def test_both_answer_alike(method: str, path: str, query: str, status: int, content: bytes) -> None:
    answers = [ask(method, path, query, b"sent") for ask in (of_asgi, of_wsgi)]
    assert answers[0] == answers[1]
    assert (answers[0].status, answers[0].content) == (status, content)
    length = answers[0].fields.get("content-length")
    assert length == (None if status in (204, 304) else str(len(content)))
    assert answers[0].fields.get("location") == ("/hello" if path == "/redirect" else None)
    assert ("etag" in answers[0].fields) is (path == "/304")
    assert ("allow" in answers[0].fields) is (status == 405)


def test_the_mirror_shows_what_the_interface_shows() -> None:
    seen = []
    for ask in (of_asgi, of_wsgi):
        told = json.loads(ask("POST", "/mirror", "a=%41&b", b"sent").content)
        fields = told.pop("fields")
        seen.append(
            {key: None if text is None else base64.b64decode(text) for key, text in told.items()}
        )
        # WSGI joins field lines and changes their names.
        odd = [base64.b64encode(text).decode() for text in (b"x-odd", b"v w")]
        assert fields == ([odd] if ask is of_asgi else None)
    assert seen[0] == seen[1]
    assert seen[0] == {
        "method": b"POST", "target": b"/mirror?a=%41&b", "authority": None, "version": b"HTTP/1.1",
        "content": b"sent", "trailers": None, "request_number": None,
    }  # fmt: skip
