"""The strict server of :mod:`rogue` with no bug, behind an exact router: one page, and at most one
path that takes POST. All else is 404 or 405, as a framework answers by itself.

``--manner`` names one thing that frameworks do in different ways, each of them conforming::

    python -m httpmark.harness.tests.shared.exact_router --manner closes --port 8080
"""

from __future__ import annotations

import argparse
import asyncio

from httpmark.harness.tests.shared import rogue

MANNERS = {
    "plain": "a wrong method gets 405 with Allow, HEAD is answered as GET",
    "hides": "a wrong method gets 404, as in Express, Fastify and Actix Web",
    "no-head": "HEAD gets 405, as where a handler names GET alone",
    "no-query": "the page has no query: with one it is 404, as where a handler compares the target",
    "closes": "each answer is the last of its connection, as with gunicorn's sync workers",
    "unread": "404 and 405 come without the content being read, and the connection is closed",
    "unimplemented": "a wrong method gets 501, as in Python's http.server",
}
PAGE = b"<p>Hello, world</p>\n"


class ExactRouter(rogue.Rogue):
    """The routes, and the manner in which what they lack is answered."""

    def __init__(self, manner: str = "plain", post_path: bytes | None = None) -> None:
        super().__init__()
        self.manner = manner
        self.post_path = post_path

    def connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> rogue.Connection:
        """A connection whose requests go to the routes."""
        return _Connection(self, reader, writer)

    def methods(self, path: bytes) -> list[bytes]:
        """The methods that have a route there."""
        if path == b"/":
            return [b"GET"] if self.manner == "no-head" else [b"GET", b"HEAD"]
        return [b"POST"] if path == self.post_path else []

    def status(self, request: rogue.Request) -> int:
        """What the router answers: 200, or 404, 405 or 501 for what has no route."""
        methods = self.methods(request.path)
        if not methods or (self.manner == "no-query" and b"?" in request.target):
            return 404
        if request.method in methods:
            return 200
        return {"hides": 404, "unimplemented": 501}.get(self.manner, 405)


class _Connection(rogue.Connection):
    """One connection: what the strict reader took is routed."""

    def __init__(
        self, router: ExactRouter, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        super().__init__(router, reader, writer)
        self.router = router

    async def respond(self, request: rogue.Request) -> bool:
        """Answer as the router says; whether the connection goes on."""
        status = self.router.status(request)
        is_left_unread = self.router.manner == "unread" and status != 200 and request.length != 0
        if not is_left_unread:
            await self.content(request)
        content = b"%d\n" % status
        if status == 200:
            content = PAGE if request.path == b"/" else b"%d bytes\n" % len(request.content)
        allow = [(b"Allow", b", ".join(self.router.methods(request.path)))]
        await self.answer(
            request, status, content,
            fields=allow if status == 405 else [],
            close=is_left_unread or self.router.manner == "closes",
        )  # fmt: skip
        return not request.close


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="A strict HTTP/1.1 server with an exact router.")
    parser.add_argument("--manner", choices=list(MANNERS), default="plain")
    parser.add_argument("--post-path", help="the path that takes POST")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any; the first line names it")
    given = parser.parse_args()
    path = given.post_path.encode() if given.post_path else None
    router = ExactRouter(given.manner, path)
    asyncio.run(rogue.listen(router, given.address, given.port))


if __name__ == "__main__":
    main()
