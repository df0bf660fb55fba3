"""What images/README.md asks of a server, as an ASGI application: one for all ASGI servers.

It repairs nothing and refuses nothing: what it tells is what the server put into the scope.
"""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.parse
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

HELLO = b"Hello World!"
BIG = b"a" * (1 << 20)
SLOW_S = 0.5
PLAIN = (b"content-type", b"text/plain")
JSON = (b"content-type", b"application/json")

Fields = list[tuple[bytes, bytes]]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def octets(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def pairs(fields: Iterable[tuple[bytes, bytes]]) -> list[list[str]]:
    return [[octets(name), octets(value)] for name, value in fields]


async def answer(
    send: Send, status: int, content: bytes = b"", *fields: tuple[bytes, bytes]
) -> None:
    own: Fields = list(fields)
    if status not in (204, 304):
        own.append((b"content-length", b"%d" % len(content)))
    await send({"type": "http.response.start", "status": status, "headers": own})
    await send({"type": "http.response.body", "body": content})


async def received(receive: Receive) -> bytes | None:
    """The whole content of the request; None if the server says that the rest will not come."""
    content = b""
    while True:
        event = await receive()
        if event["type"] != "http.request":
            return None
        content += event.get("body", b"")
        if not event.get("more_body", False):
            return content


def mirror(scope: Scope, content: bytes) -> bytes:
    target = None
    if scope.get("raw_path") is not None:
        query = scope["query_string"]
        target = octets(scope["raw_path"].partition(b"?")[0] + (b"?" + query if query else b""))
    told = {
        "method": octets(scope["method"].encode("latin-1")),
        "target": target,
        "authority": None,  # ASGI has none of these three
        "version": octets(b"HTTP/" + scope["http_version"].encode("ascii")),
        "content": octets(content),
        "fields": pairs(scope["headers"]),
        "trailers": None,
        "request_number": None,
    }
    return json.dumps(told).encode()


async def behave(path: str, method: str, send: Send) -> None:
    if path == "/slow":
        await asyncio.sleep(SLOW_S)
    if path == "/204":
        await answer(send, 204)
    elif path == "/304":
        await answer(send, 304, b"", (b"etag", b'"httpmark"'))
    elif path == "/redirect":
        await answer(send, 302, b"", (b"location", b"/hello"))
    elif path == "/big":
        await answer(send, 200, BIG, PLAIN)
    elif path == "/404":
        await answer(send, 404, b"Not Found", PLAIN)
    elif path == "/get-only" and method not in ("GET", "HEAD"):
        await answer(send, 405, b"Method Not Allowed", PLAIN, (b"allow", b"GET, HEAD"))
    else:
        await answer(send, 200, HELLO, PLAIN)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    if scope["type"] != "http":
        raise RuntimeError(f"not served: {scope['type']}")
    path = scope["path"]
    if path == "/early":
        await answer(send, 200, HELLO, PLAIN)
        await received(receive)
        return
    content = await received(receive)
    if content is None:
        return
    if path == "/body":
        await answer(send, 200, content, PLAIN)
    elif path == "/echo":
        query = scope["query_string"].decode("latin-1")
        parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        await answer(send, 200, json.dumps(parameters).encode(), JSON)
    elif path == "/mirror":
        await answer(send, 200, mirror(scope, content), JSON)
    else:
        await behave(path, scope["method"], send)
