"""Tornado as a server: one handler for all paths, which repairs and refuses nothing."""

from __future__ import annotations

import asyncio
import ssl

import answers
import forked
from tornado import httpserver, netutil, web


def octets(value: str | None) -> bytes:
    return (value or "").encode("latin-1")


class Handler(web.RequestHandler):
    def compute_etag(self) -> None:
        """No digest of each answer: it would answer 304 for the application."""

    def mirror(self) -> answers.Answer:
        request = self.request
        return answers.mirror(
            method=octets(request.method),
            target=octets(request.uri),
            authority=octets(request.host),
            version=octets(request.version),
            content=request.body,
            fields=[(octets(name), octets(value)) for name, value in request.headers.get_all()],
        )

    def answer(self) -> answers.Answer:
        path = self.request.path
        if path == "/body":
            return answers.body(self.request.body)
        if path == "/echo":
            return answers.echo(self.request.query)
        if path == "/mirror":
            return self.mirror()
        return answers.behave(path, self.request.method or "")

    async def serve(self) -> None:
        if self.request.path == "/slow":
            await asyncio.sleep(answers.SLOW_S)
        status, fields, content = self.answer()
        self.set_status(status)
        self.clear_header("Content-Type")
        for name, value in fields:
            self.set_header(name, value)
        self.finish(content or None)

    get = head = post = put = delete = patch = options = serve


given = forked.words()
plain = netutil.bind_sockets(given.port, given.address, backlog=4096)
secure = []
if given.tls_port:
    secure = netutil.bind_sockets(given.tls_port, given.address, backlog=4096)
forked.fork(given.workers)


async def serve() -> None:
    app = web.Application([(r"/.*", Handler)], log_function=lambda _: None)
    httpserver.HTTPServer(app).add_sockets(plain)
    if secure:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(given.tls_cert, given.tls_key)
        httpserver.HTTPServer(app, ssl_options=context).add_sockets(secure)
    await asyncio.Event().wait()


asyncio.run(serve())
