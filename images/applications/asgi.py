"""What images/README.md asks of a server, as an ASGI application: one for all ASGI servers.

It repairs nothing and refuses nothing: what it tells is what the server put into the scope.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import answers

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def answer(send: Send, given: answers.Answer) -> None:
    status, fields, content = given
    own = [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in fields]
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


def mirror(scope: Scope, content: bytes) -> answers.Answer:
    target = None
    if scope.get("raw_path") is not None:
        query = scope["query_string"]
        target = scope["raw_path"].partition(b"?")[0] + (b"?" + query if query else b"")
    return answers.mirror(
        method=scope["method"].encode("latin-1"),
        target=target,
        version=b"HTTP/" + scope["http_version"].encode("ascii"),
        content=content,
        fields=scope["headers"],
    )


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
        await answer(send, answers.hello())
        await received(receive)
        return
    content = await received(receive)
    if content is None:
        return
    if path == "/body":
        await answer(send, answers.body(content))
    elif path == "/echo":
        await answer(send, answers.echo(scope["query_string"].decode("latin-1")))
    elif path == "/mirror":
        await answer(send, mirror(scope, content))
    else:
        if path == "/slow":
            await asyncio.sleep(answers.SLOW_S)
        await answer(send, answers.behave(path, scope["method"]))
