"""A server on a thread that keeps the contract of images/README.md, or breaks one promise of it."""

from __future__ import annotations

import base64
import contextlib
import functools
import http.server
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

from httpmark.harness.model.cases import FILE_TEXT, SECRET, SECRET_TEXT

HELLO = b"Hello World!"
ALLOW = {"Allow": "GET, HEAD"}
Fields = list[tuple[str, str]]

# What can be wrong, and the capability that it breaks.
FAULTS = {
    "hello without a type": "hello",
    "hello in HTML": "hello",
    "hello with a thirteenth byte": "hello",
    "hello with 404 on other paths": "hello",
    "hello in HTTP/1.0": "hello",
    "hello once for two": "hello",
    "body cut": "body",
    "body without chunks": "body",
    "mirror lacks a key": "mirror",
    "mirror tells another method": "mirror",
    "mirror loses a field": "mirror",
    "mirror in plain text": "mirror",
    "mirror numbers from 0": "mirror",
    "mirror invents trailers": "mirror",
    "slow at once": "behave.slow",
    "late early": "behave.early",
    "204 with content": "behave.204",
    "304 without ETag": "behave.304",
    "redirect to elsewhere": "behave.redirect",
    "big is small": "behave.big",
    "404 only to GET": "behave.404",
    "get-only without Allow": "behave.get-only",
    "get-only for GET alone": "behave.get-only",
    "echo undecoded": "echo",
    "static shows the secret": "static",
    "static is empty": "static",
    "websocket refused": "websocket",
    "events with a length": "events",
    "events in plain text": "events",
}


def octets(text: str | bytes) -> str:
    return base64.b64encode(text.encode("latin-1") if isinstance(text, str) else text).decode()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, fault: str, *rest: Any) -> None:
        self.fault = fault
        self.number = 0
        self.answered_hello = False
        if fault == "hello in HTTP/1.0":
            self.protocol_version = "HTTP/1.0"
        super().__init__(*rest)

    def log_message(self, *_: object) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.serve
        raise AttributeError(name)

    def content(self) -> tuple[bytes, Fields]:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0))), []
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        trailers = []
        while line := self.rfile.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            trailers.append((name, value.strip()))
        return (b"" if self.fault == "body without chunks" else content), trailers

    def answer(self, status: int, content: bytes = b"", kind: str = "", **fields: str) -> None:
        self.send_response(status)
        if self.fault == "a close after each":
            fields["Connection"] = "close"
        for name, value in fields.items():
            self.send_header(name, value)
        if kind:
            self.send_header("Content-Type", kind)
        is_empty = status in (204, 304)
        if not is_empty:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if (self.command != "HEAD" and not is_empty) or self.fault == f"{status} with content":
            self.wfile.write(content)

    def serve(self) -> None:
        self.number += 1
        path, _, query = self.path.partition("?")
        if path == "/early" and self.fault != "late early":
            self.close_connection = True
            self.answer(200, HELLO, "text/plain")
            return
        framed = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        if self.fault == "411 without a length" and self.command[0] == "P" and not framed:
            self.answer(411)
            return
        content, trailers = self.content()
        if path == "/body":
            self.answer(200, content[:2] if self.fault == "body cut" else content, "text/plain")
        elif path == "/mirror":
            self.mirror(content, trailers)
        elif path == "/echo":
            pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
            if self.fault == "echo undecoded":
                pairs = [(one.partition("=")[0], one.partition("=")[2]) for one in query.split("&")]
            self.answer(200, json.dumps(dict(pairs)).encode(), "application/json")
        elif path.startswith("/static/"):
            self.static(path)
        elif path == "/events":
            self.events()
        else:
            self.behave(path)

    def events(self) -> None:
        kind = "text/plain" if self.fault == "events in plain text" else "text/event-stream"
        pieces = (b"data: 1\n\n", b"data: 2\n\n")
        if self.fault == "events with a length":
            self.answer(200, b"".join(pieces), kind)
            return
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in (*pieces, b""):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def static(self, path: str) -> None:
        if path == "/static/ok.html":
            text = "" if self.fault == "static is empty" else FILE_TEXT
            self.answer(200, text.encode(), "text/html")
        elif SECRET in path and self.fault == "static shows the secret":
            self.answer(200, SECRET_TEXT.encode(), "text/plain")
        else:
            self.answer(404)

    def mirror(self, content: bytes, trailers: Fields) -> None:
        fields = [(name, value) for name, value in self.headers.items()]
        if self.fault == "mirror loses a field":
            fields = [pair for pair in fields if pair[0] != "X-Odd"]
        if self.fault == "mirror invents trailers":
            trailers = [("x", "y")]
        told: dict[str, object] = {
            "method": octets(
                "GET" if self.fault == "mirror tells another method" else self.command
            ),
            "target": octets(self.path),
            "authority": None,
            "version": octets(self.request_version),
            "content": octets(content),
            "fields": [[octets(name), octets(value)] for name, value in fields],
            "trailers": [[octets(name), octets(value)] for name, value in trailers],
            "request_number": self.number - (self.fault == "mirror numbers from 0"),
        }
        if self.fault == "mirror lacks a key":
            del told["authority"]
        if self.fault == "mirror in plain text":
            told["method"] = self.command + "!"
        self.answer(200, json.dumps(told).encode(), "application/json")

    def behave(self, path: str) -> None:
        if path == "/slow" and self.fault != "slow at once":
            time.sleep(0.5)
        if path == "/204":
            self.answer(204, HELLO)
        elif path == "/304":
            fields = {} if self.fault == "304 without ETag" else {"ETag": '"a"'}
            self.answer(304, b"", "", **fields)
        elif path == "/redirect":
            self.answer(302, Location="/else" if self.fault.startswith("redirect") else "/hello")
        elif path == "/big":
            self.answer(200, b"a" * (1000 if self.fault == "big is small" else 1 << 20))
        elif path == "/404" and (self.command == "GET" or self.fault != "404 only to GET"):
            self.answer(404, b"Not Found", "text/plain")
        elif path == "/get-only" and (
            self.command not in ("GET", "HEAD")
            or (self.command == "HEAD" and self.fault == "get-only for GET alone")
        ):
            fields = {} if self.fault == "get-only without Allow" else ALLOW
            self.answer(405, b"", "", **fields)
        else:
            self.hello(path)

    def hello(self, path: str) -> None:
        content, kind = HELLO, "text/plain; charset=utf-8"
        if self.fault == "hello without a type":
            kind = ""
        elif self.fault == "hello in HTML":
            kind = "text/html"
        elif self.fault == "hello with a thirteenth byte":
            content += b"\n"
        elif self.fault == "hello with 404 on other paths" and path != "/hello":
            self.answer(404, b"", kind)
            return
        if self.fault == "hello once for two" and self.number > 1:
            self.answer(400)
            return
        self.answer(200, content, kind)


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that resets is no news."""


@contextlib.contextmanager
def contract_server(fault: str = "") -> Iterator[int]:
    """The port of one that keeps everything but ``fault``, a word of ``FAULTS``."""
    handler = functools.partial(_Handler, fault)
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
