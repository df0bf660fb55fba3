"""aiohttp as a server: one handler for all paths, which repairs and refuses nothing."""

from __future__ import annotations

import argparse
import asyncio
import ssl

import answers
import forked
from aiohttp import web


def mirror(request: web.Request, content: bytes) -> answers.Answer:
    # No authority: request.host leaves the port of an absolute target out.
    return answers.mirror(
        method=request.method.encode("latin-1"),
        target=request.raw_path.encode("utf-8", "surrogateescape"),
        version=f"HTTP/{request.version.major}.{request.version.minor}".encode(),
        content=content,
        fields=request.raw_headers,
    )


async def answer(request: web.Request) -> answers.Answer:
    path = request.path
    if path == "/early":
        return answers.hello()
    content = await request.read()
    if path == "/body":
        return answers.body(content)
    if path == "/echo":
        return answers.echo(request.query_string)
    if path == "/mirror":
        return mirror(request, content)
    if path == "/slow":
        await asyncio.sleep(answers.SLOW_S)
    return answers.behave(path, request.method)


async def handle(request: web.Request) -> web.Response:
    status, fields, content = await answer(request)
    return web.Response(status=status, body=content or None, headers=fields)


async def serve(options: argparse.Namespace) -> None:
    app = web.Application(client_max_size=1 << 25)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    shared = {"backlog": 4096, "reuse_port": True}
    await web.TCPSite(runner, options.address, options.port, **shared).start()
    if options.tls_port:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(options.tls_cert, options.tls_key)
        site = web.TCPSite(runner, options.address, options.tls_port, ssl_context=context, **shared)
        await site.start()
    await asyncio.Event().wait()


given = forked.words()
forked.fork(given.workers)
asyncio.run(serve(given))
