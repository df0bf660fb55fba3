"""What images/README.md asks of a server, as a WSGI application: one for all WSGI servers.

It repairs nothing and refuses nothing. WSGI shows fields joined and with changed names, and the
path decoded: what of a request it does not show as it came is null in the mirror.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

import answers

Start = Callable[[str, list[tuple[str, str]]], Any]


def received(environ: dict[str, Any]) -> bytes:
    """The whole content of the request.

    PEP 3333 leaves chunks to the server: where it decodes them, the stream ends with the content.
    """
    if environ.get("wsgi.input_terminated") or "HTTP_TRANSFER_ENCODING" in environ:
        return bytes(environ["wsgi.input"].read())
    return bytes(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))


def mirror(environ: dict[str, Any], content: bytes) -> answers.Answer:
    target = environ.get("RAW_URI", environ.get("REQUEST_URI"))
    return answers.mirror(
        method=environ["REQUEST_METHOD"].encode("latin-1"),
        target=None if target is None else target.encode("latin-1"),
        version=environ["SERVER_PROTOCOL"].encode("latin-1"),
        content=content,
        fields=None,
    )


def answer(environ: dict[str, Any]) -> answers.Answer:
    path = environ["PATH_INFO"]
    if path == "/early":
        return answers.hello()
    content = received(environ)
    if path == "/body":
        return answers.body(content)
    if path == "/echo":
        return answers.echo(environ.get("QUERY_STRING", ""))
    if path == "/mirror":
        return mirror(environ, content)
    if path == "/slow":
        time.sleep(answers.SLOW_S)
    return answers.behave(path, environ["REQUEST_METHOD"])


def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    status, fields, content = answer(environ)
    if status not in (204, 304):
        fields.append(("Content-Length", str(len(content))))
    start(f"{status} {HTTPStatus(status).phrase}", fields)
    return [content] if content else []
