"""Tornado as a server: one handler for all paths, which repairs and refuses nothing."""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import signal
import ssl
import urllib.parse

from tornado import httpserver, netutil, process, web

HELLO = b"Hello World!"
BIG = b"a" * (1 << 20)
SLOW_S = 0.5


def octets(value: str | bytes) -> str:
    latin = value.encode("latin-1") if isinstance(value, str) else value
    return base64.b64encode(latin).decode("ascii")


class Handler(web.RequestHandler):
    def answer(self, status: int, content: bytes = b"", **fields: str) -> None:
        self.set_status(status)
        for name, value in fields.items():
            self.set_header(name, value)
        if status in (204, 304):
            self.clear_header("Content-Type")
        elif content:
            self.set_header("Content-Type", "text/plain")
        self.finish(content or None)

    def answer_json(self, value: object) -> None:
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(value).encode())

    def compute_etag(self) -> None:
        """No digest of each answer: it would answer 304 for the application."""

    def mirror(self) -> None:
        request = self.request
        fields = request.headers.get_all()
        self.answer_json(
            {
                "method": octets(request.method or ""),
                "target": octets(request.uri or ""),
                "authority": octets(request.host),
                "version": octets(request.version),
                "content": octets(request.body),
                "fields": [[octets(name), octets(value)] for name, value in fields],
                "trailers": None,  # tornado drops them
                "request_number": None,
            }
        )

    async def serve(self) -> None:
        path = self.request.path
        if path == "/body":
            self.answer(200, self.request.body)
        elif path == "/echo":
            query = urllib.parse.parse_qsl(self.request.query, keep_blank_values=True)
            self.answer_json(dict(query))
        elif path == "/mirror":
            self.mirror()
        elif path == "/204":
            self.answer(204)
        elif path == "/304":
            self.answer(304, ETag='"httpmark"')
        elif path == "/redirect":
            self.answer(302, Location="/hello")
        elif path == "/big":
            self.answer(200, BIG)
        elif path == "/404":
            self.answer(404, b"Not Found")
        elif path == "/get-only" and self.request.method not in ("GET", "HEAD"):
            self.answer(405, b"Method Not Allowed", Allow="GET, HEAD")
        else:
            if path == "/slow":
                await asyncio.sleep(SLOW_S)
            self.answer(200, HELLO)

    get = head = post = put = delete = patch = options = serve


def end_all(*_: object) -> None:
    """Of the first process, which only watches the others: end its whole group."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    os._exit(0)


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--address", default="127.0.0.1")
    words.add_argument("--port", type=int, default=8080)
    words.add_argument("--workers", type=int, default=1)
    words.add_argument("--tls-port", type=int, default=0)
    words.add_argument("--tls-cert", default="")
    words.add_argument("--tls-key", default="")
    given = words.parse_args()
    plain = netutil.bind_sockets(given.port, given.address, backlog=4096)
    secure = []
    if given.tls_port:
        secure = netutil.bind_sockets(given.tls_port, given.address, backlog=4096)
    if given.workers > 1:
        signal.signal(signal.SIGTERM, end_all)
        process.fork_processes(given.workers)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    async def serve() -> None:
        app = web.Application([(r"/.*", Handler)], log_function=lambda _: None)
        httpserver.HTTPServer(app).add_sockets(plain)
        if secure:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(given.tls_cert, given.tls_key)
            httpserver.HTTPServer(app, ssl_options=context).add_sockets(secure)
        await asyncio.Event().wait()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
