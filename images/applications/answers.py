"""What images/README.md asks of a server, for servers whose handlers share no interface.

Each gives what its server told it of the request, and sends what comes back. It waits for /slow and
answers /early before the content by itself.
"""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Iterable

HELLO = b"Hello World!"
BIG = b"a" * (1 << 20)
SLOW_S = 0.5
PLAIN = ("Content-Type", "text/plain")
JSON = ("Content-Type", "application/json")

Answer = tuple[int, list[tuple[str, str]], bytes]


def octets(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


def hello() -> Answer:
    return 200, [PLAIN], HELLO


def body(content: bytes) -> Answer:
    return 200, [PLAIN], content


def echo(query: str) -> Answer:
    parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
    return 200, [JSON], json.dumps(parameters).encode()


def mirror(
    *,
    method: bytes,
    target: bytes | None,
    authority: bytes | None = None,
    version: bytes | None,
    content: bytes,
    fields: Iterable[tuple[bytes, bytes]] | None,
) -> Answer:
    told = {
        "method": octets(method),
        "target": octets(target),
        "authority": octets(authority),
        "version": octets(version),
        "content": octets(content),
        "fields": None
        if fields is None
        else [[octets(name), octets(value)] for name, value in fields],
        "trailers": None,
        "request_number": None,
    }
    return 200, [JSON], json.dumps(told).encode()


def behave(path: str, method: str) -> Answer:
    if path == "/204":
        return 204, [], b""
    if path == "/304":
        return 304, [("ETag", '"httpmark"')], b""
    if path == "/redirect":
        return 302, [("Location", "/hello")], b""
    if path == "/big":
        return 200, [PLAIN], BIG
    if path == "/404":
        return 404, [PLAIN], b"Not Found"
    if path == "/get-only" and method not in ("GET", "HEAD"):
        return 405, [PLAIN, ("Allow", "GET, HEAD")], b"Method Not Allowed"
    return hello()
