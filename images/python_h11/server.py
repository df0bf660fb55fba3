"""h11 as a server, with nothing of its own: what is judged here is h11, so no handler repairs,
refuses or special-cases a request. The loop around it moves bytes and answers events."""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import http
import json
import os
import signal
import socket
import ssl
import urllib.parse
from collections.abc import Iterable

import h11
import websocket

HELLO = b"Hello World!"
BIG = b"a" * (1 << 20)
RECEIVE_OCTETS = 65536
SLOW_S = 0.5
SWITCHING = http.HTTPStatus.SWITCHING_PROTOCOLS.phrase.encode()
PLAIN = (b"Content-Type", b"text/plain")

Fields = list[tuple[bytes, bytes]]


def octets(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def pairs(fields: Iterable[tuple[bytes, bytes]]) -> list[list[str]]:
    return [[octets(name), octets(value)] for name, value in fields]


class Connection:
    """One connection: h11's state machine and the stream under it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.h11 = h11.Connection(h11.SERVER)
        self.requests = 0
        self.method = b""

    async def event(self) -> h11.Event | type[h11.PAUSED]:
        while True:
            event = self.h11.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self.h11.they_are_waiting_for_100_continue:
                self.write(h11.InformationalResponse(status_code=100, headers=[]))
            await self.writer.drain()
            self.h11.receive_data(await self.reader.read(RECEIVE_OCTETS))

    def write(self, *events: h11.Event) -> None:
        for event in events:
            data = self.h11.send(event)
            if data:
                self.writer.write(data)

    def answer(self, status: int, fields: Fields, content: bytes) -> None:
        if status not in (204, 304):
            fields = [*fields, (b"Content-Length", str(len(content)).encode())]
        self.write(
            h11.Response(
                status_code=status, headers=fields, reason=http.HTTPStatus(status).phrase.encode()
            ),
            # h11 frames the answer to HEAD but leaves its content out to us.
            h11.Data(data=b"" if self.method == b"HEAD" else content),
            h11.EndOfMessage(),
        )

    async def content(self) -> tuple[bytes, Fields]:
        """The rest of the request: its content and its trailers."""
        pieces = []
        while True:
            event = await self.event()
            if isinstance(event, h11.Data):
                pieces.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return b"".join(pieces), list(event.headers.raw_items())
            else:
                return b"".join(pieces), []

    async def request(self, request: h11.Request) -> None:
        self.requests += 1
        self.method = request.method
        path, _, query = request.target.partition(b"?")
        if path == b"/early":
            self.answer(200, [PLAIN], HELLO)
            await self.content()
            return
        content, trailers = await self.content()
        fields = list(request.headers)
        if path == b"/websocket" and websocket.is_asked_for(
            request.method, request.http_version, fields
        ):
            await self.switch(fields)
        elif path == b"/body":
            self.answer(200, [PLAIN], content)
        elif path == b"/echo":
            self.answer_json(
                dict(urllib.parse.parse_qsl(query.decode("latin-1"), keep_blank_values=True))
            )
        elif path == b"/mirror":
            self.answer_json(
                {
                    "method": octets(request.method),
                    "target": octets(request.target),
                    "authority": None,  # h11 computes none
                    "version": octets(b"HTTP/" + request.http_version),
                    "content": octets(content),
                    "fields": pairs(request.headers.raw_items()),
                    "trailers": pairs(trailers),
                    "request_number": self.requests,
                }
            )
        else:
            await self.behave(path, request.method)

    async def switch(self, fields: Fields) -> None:
        status, own = websocket.handshake(fields)
        if status != 101:
            self.answer(status, [PLAIN, *own], b"no WebSocket handshake\n")
            return
        self.write(h11.InformationalResponse(status_code=101, headers=own, reason=SWITCHING))
        begun, _ = self.h11.trailing_data
        await websocket.echo(self.reader, self.writer, begun)

    def answer_json(self, value: object) -> None:
        self.answer(200, [(b"Content-Type", b"application/json")], json.dumps(value).encode())

    async def behave(self, path: bytes, method: bytes) -> None:
        if path == b"/slow":
            await asyncio.sleep(SLOW_S)
        if path == b"/204":
            self.answer(204, [], b"")
        elif path == b"/304":
            self.answer(304, [(b"ETag", b'"httpmark"')], b"")
        elif path == b"/redirect":
            self.answer(302, [(b"Location", b"/hello")], b"")
        elif path == b"/big":
            self.answer(200, [PLAIN], BIG)
        elif path == b"/404":
            self.answer(404, [PLAIN], b"Not Found")
        elif path == b"/get-only" and method not in (b"GET", b"HEAD"):
            self.answer(405, [PLAIN, (b"Allow", b"GET, HEAD")], b"Method Not Allowed")
        else:
            self.answer(200, [PLAIN], HELLO)

    async def serve(self) -> None:
        try:
            while True:
                event = await self.event()
                if not isinstance(event, h11.Request):
                    return
                await self.request(event)
                await self.writer.drain()
                if self.h11.our_state in (h11.MUST_CLOSE, h11.CLOSED, h11.SWITCHED_PROTOCOL):
                    return
                self.h11.start_next_cycle()
        except h11.RemoteProtocolError as error:
            if self.h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                text = str(error).encode()
                close = (b"Connection", b"close")
                self.answer(error.error_status_hint, [PLAIN, close], text)
        except h11.LocalProtocolError:
            return  # h11 holds that this connection can go no further


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await Connection(reader, writer).serve()
        await writer.drain()
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


def listener(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    one = socket.socket(family, socket.SOCK_STREAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind((address, port))
    one.listen(4096)
    return one


async def serve(plain: socket.socket, secure: socket.socket | None, cert: str, key: str) -> None:
    servers = [await asyncio.start_server(handle, sock=plain)]
    if secure is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        servers.append(await asyncio.start_server(handle, sock=secure, ssl=context))
    await asyncio.gather(*(server.serve_forever() for server in servers))


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--address", default="127.0.0.1")
    words.add_argument("--port", type=int, default=8080)
    words.add_argument("--workers", type=int, default=1)
    words.add_argument("--tls-port", type=int, default=0)
    words.add_argument("--tls-cert", default="")
    words.add_argument("--tls-key", default="")
    words.add_argument("--version", action="version", version=f"h11 {h11.__version__}")
    options = words.parse_args()
    # Listeners of its own for each worker; the kernel spreads connections over them.
    sockets = [
        (
            listener(options.address, options.port),
            listener(options.address, options.tls_port) if options.tls_port else None,
        )
        for _ in range(options.workers)
    ]
    children: list[int] = []
    mine = sockets[0]
    for pair in sockets[1:]:
        pid = os.fork()
        if pid == 0:
            mine, children = pair, []
            break
        children.append(pid)
    for pair in sockets:
        if pair is not mine:
            for sock in filter(None, pair):
                sock.close()

    def stop(number: int, frame: object) -> None:
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    if children or options.workers == 1:
        print(f"listening on {options.address}:{options.port}", flush=True)
    asyncio.run(serve(*mine, options.tls_cert, options.tls_key))


if __name__ == "__main__":
    main()
