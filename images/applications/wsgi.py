"""What images/README.md asks of a server, as a WSGI application: one for all WSGI servers.

It repairs nothing and refuses nothing. WSGI shows fields joined and with changed names, and the
path decoded: what of a request it does not show as it came is null in the mirror.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.parse
from collections.abc import Callable, Iterable
from typing import Any

HELLO = b"Hello World!"
BIG = b"a" * (1 << 20)
SLOW_S = 0.5
PLAIN = ("Content-Type", "text/plain")
JSON = ("Content-Type", "application/json")
PHRASES = {
    200: "OK", 204: "No Content", 302: "Found", 304: "Not Modified", 404: "Not Found",
    405: "Method Not Allowed",
}  # fmt: skip

Start = Callable[[str, list[tuple[str, str]]], Any]


def octets(value: str | bytes) -> str:
    latin = value.encode("latin-1") if isinstance(value, str) else value
    return base64.b64encode(latin).decode("ascii")


def answer(
    start: Start, status: int, content: bytes = b"", *fields: tuple[str, str]
) -> Iterable[bytes]:
    own = list(fields)
    if status not in (204, 304):
        own.append(("Content-Length", str(len(content))))
    start(f"{status} {PHRASES[status]}", own)
    return [content] if content else []


def received(environ: dict[str, Any]) -> bytes:
    """The whole content of the request.

    PEP 3333 leaves chunks to the server: where it decodes them, the stream ends with the content.
    """
    if environ.get("wsgi.input_terminated") or "HTTP_TRANSFER_ENCODING" in environ:
        return bytes(environ["wsgi.input"].read())
    return bytes(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))


def mirror(environ: dict[str, Any], content: bytes) -> bytes:
    target = environ.get("RAW_URI", environ.get("REQUEST_URI"))
    told = {
        "method": octets(environ["REQUEST_METHOD"]),
        "target": None if target is None else octets(target),
        "authority": None,
        "version": octets(environ["SERVER_PROTOCOL"]),
        "content": octets(content),
        "fields": None,
        "trailers": None,
        "request_number": None,
    }
    return json.dumps(told).encode()


def behave(path: str, method: str, start: Start) -> Iterable[bytes]:
    if path == "/slow":
        time.sleep(SLOW_S)
    if path == "/204":
        return answer(start, 204)
    if path == "/304":
        return answer(start, 304, b"", ("ETag", '"httpmark"'))
    if path == "/redirect":
        return answer(start, 302, b"", ("Location", "/hello"))
    if path == "/big":
        return answer(start, 200, BIG, PLAIN)
    if path == "/404":
        return answer(start, 404, b"Not Found", PLAIN)
    if path == "/get-only" and method not in ("GET", "HEAD"):
        return answer(start, 405, b"Method Not Allowed", PLAIN, ("Allow", "GET, HEAD"))
    return answer(start, 200, HELLO, PLAIN)


def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    if path == "/early":
        return answer(start, 200, HELLO, PLAIN)
    content = received(environ)
    if path == "/body":
        return answer(start, 200, content, PLAIN)
    if path == "/echo":
        query = environ.get("QUERY_STRING", "")
        parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        return answer(start, 200, json.dumps(parameters).encode(), JSON)
    if path == "/mirror":
        return answer(start, 200, mirror(environ, content), JSON)
    return behave(path, environ["REQUEST_METHOD"], start)
