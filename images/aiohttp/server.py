"""aiohttp as a server: one handler for all paths, which repairs and refuses nothing."""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import signal
import ssl
import sys

from aiohttp import web

HELLO = b"Hello World!"
BIG = b"a" * (1 << 20)
SLOW_S = 0.5


def octets(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def plain(status: int, content: bytes, **fields: str) -> web.Response:
    return web.Response(status=status, body=content, content_type="text/plain", headers=fields)


def json_of(value: object) -> web.Response:
    return web.Response(body=json.dumps(value).encode(), content_type="application/json")


def mirror(request: web.Request, content: bytes) -> web.Response:
    version = f"HTTP/{request.version.major}.{request.version.minor}"
    return json_of(
        {
            "method": octets(request.method.encode("latin-1")),
            "target": octets(request.raw_path.encode("utf-8", "surrogateescape")),
            "authority": octets(request.host.encode("utf-8", "surrogateescape")),
            "version": octets(version.encode()),
            "content": octets(content),
            "fields": [[octets(name), octets(value)] for name, value in request.raw_headers],
            "trailers": None,  # aiohttp drops them
            "request_number": None,
        }
    )


async def handle(request: web.Request) -> web.Response:
    path = request.path
    if path == "/early":
        return plain(200, HELLO)
    content = await request.read()
    if path == "/body":
        return plain(200, content)
    if path == "/echo":
        return json_of(dict(request.query))
    if path == "/mirror":
        return mirror(request, content)
    if path == "/slow":
        await asyncio.sleep(SLOW_S)
    if path == "/204":
        return web.Response(status=204)
    if path == "/304":
        return web.Response(status=304, headers={"ETag": '"httpmark"'})
    if path == "/redirect":
        return web.Response(status=302, headers={"Location": "/hello"})
    if path == "/big":
        return plain(200, BIG)
    if path == "/404":
        return plain(404, b"Not Found")
    if path == "/get-only" and request.method not in ("GET", "HEAD"):
        return plain(405, b"Method Not Allowed", Allow="GET, HEAD")
    return plain(200, HELLO)


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


def watch(workers: int) -> None:
    """Fork the workers, which return; the first process ends them when it is told to end."""
    pids = []
    for _ in range(workers):
        pid = os.fork()
        if pid == 0:
            return
        pids.append(pid)

    def stop(*_: object) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    for pid in pids:
        os.waitpid(pid, 0)
    sys.exit()


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--address", default="127.0.0.1")
    words.add_argument("--port", type=int, default=8080)
    words.add_argument("--workers", type=int, default=1)
    words.add_argument("--tls-port", type=int, default=0)
    words.add_argument("--tls-cert", default="")
    words.add_argument("--tls-key", default="")
    options = words.parse_args()
    if options.workers > 1:
        watch(options.workers)
    asyncio.run(serve(options))


if __name__ == "__main__":
    main()
