"""A small reverse proxy that keeps the rules, or breaks one of them, to test the judge with.

It takes one request at a time, refuses what is not valid, and makes each request anew for the
origin. ``--bug NAME`` gives it one of :data:`BUGS`::

    python -m httpmark.harness.tests.shared.made_proxy --port 8080 --origin 127.0.0.1:8081 --bug via
"""

from __future__ import annotations

import argparse
import re
import socket
import threading

from httpmark.harness.http import request_reader
from httpmark.harness.http.request_reader import Broken, Request
from httpmark.harness.judging.forwarded_requests import authority, options, relative, values

# Each bug is called as the rule that it breaks.
RAW = {
    "both-framings": {Broken.BOTH},
    "invalid-length": {Broken.LENGTH, Broken.LENGTHS},
    "transfer-coding": {Broken.CODING, Broken.OLD},
    "chunks": {Broken.SIZE, Broken.DATA_END},
    "bare-cr": {Broken.BARE_CR},
    "nul": {Broken.NUL},
    "folded-line": {Broken.FOLD},
    "space-before-colon": {Broken.SPACE},
    "space-before-fields": {Broken.FIRST_LINE},
    "field-line": {Broken.NAME, Broken.COLON, Broken.BARE_LF},
    "invalid-host": {Broken.HOST},
    "request-line": {Broken.TARGET, Broken.METHOD},
    "control-in-value": {Broken.VALUE},
}
"""Bugs that forward a message as it came, where this is wrong with it."""
OTHERS = (
    "smuggled", "hidden", "read-on", "content", "own-version", "connection-options", "trailers",
    "host-of-target", "max-forwards", "via", "hop-by-hop", "repaired", "follows-version", "order",
    "unknown-field", "target-changed",
)  # fmt: skip
BUGS = {name: name for name in (*RAW, *OTHERS)} | {"hidden": "smuggled"}
"""The bugs, each with the rule that it breaks."""

_HOP_BY_HOP = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"upgrade"}
_MADE_ANEW = {b"host", b"content-length", b"transfer-encoding", b"expect", b"via", b"max-forwards"}
_CLOSE_LINE = re.compile(rb"(?i)\r\nconnection:[^\r\n]*")
REFUSAL = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
OWN = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Proxy:
    """One proxy; each client has a thread."""

    def __init__(self, origin: tuple[str, int], bug: str) -> None:
        self.origin, self.bug = origin, bug

    def serve(self, client: socket.socket) -> None:
        held = b""
        with client:
            while piece := client.recv(65536):
                held += piece
                while held:
                    taken = self._answered(client, held)
                    if taken is None:
                        return
                    if not taken:
                        break
                    held = held[taken:]

    def _answered(self, client: socket.socket, held: bytes) -> int | None:
        """How many bytes were a request that is answered by now; None: the connection is over."""
        octets = self._mended(held, request_reader.read(held).requests[0].broken)
        request = request_reader.read(octets).requests[0]
        if not request.valid:
            client.sendall(self._refused(request, octets))
            return None
        if not request.whole:
            return 0
        client.sendall(self._forwarded(request, octets))
        return request.end + len(held) - len(octets)

    def _mended(self, held: bytes, broken: Broken | None) -> bytes:
        """A message as a proxy reads it that is not strict enough."""
        head, end, rest = held.partition(b"\r\n\r\n")
        line, _, fields = head.partition(b"\r\n")
        match self.bug, broken:
            case "smuggled", Broken.BOTH:
                name, added = b"transfer-encoding", b""
            case "read-on", Broken.CODING:
                name, added = b"transfer-encoding", b"Transfer-Encoding: chunked"
            case "repaired", Broken.HOST:
                name, added = b"host", b"Host: h"
            case _:
                return held
        kept = [one for one in fields.split(b"\r\n") if not one.lower().startswith(name + b":")] + (
            [added] if added else []
        )
        return b"\r\n".join([line, *kept]) + end + rest

    def _refused(self, request: Request, octets: bytes) -> bytes:
        if request.broken in RAW.get(self.bug, ()):
            return self._asked(octets)
        return REFUSAL

    def _forwarded(self, request: Request, held: bytes) -> bytes:
        limit = values(request, b"max-forwards")
        is_counted = request.method in (b"TRACE", b"OPTIONS") and len(limit) == 1
        if is_counted and self.bug != "max-forwards":
            if limit[0] == b"0":
                return OWN
            limit = [b"%d" % (int(limit[0]) - 1)]
        elif not request.method or request.method == b"CONNECT":
            return REFUSAL
        head = [self._line(request), b"Host: " + self._host(request)]
        head += [b": ".join(field) for field in self._fields(request)]
        head += [b"Max-Forwards: " + value for value in limit]
        content = request.content(held)
        if self.bug == "content" and values(request, b"transfer-encoding"):
            content = content[:-1]
        is_hidden = self.bug == "hidden" and b" HTTP/1." in content
        if (content or values(request, b"content-length")) and not is_hidden:
            head.append(b"Content-Length: %d" % len(content))
        if self.bug != "via":
            head.append(b"Via: 1.%d made" % request.minor)
        if not is_hidden:
            head.append(b"Connection: close")
        return self._asked(b"\r\n".join(head) + b"\r\n\r\n" + content)

    def _line(self, request: Request) -> bytes:
        target = relative(request.target)
        if self.bug == "target-changed":
            target = target.replace(b"%2F", b"/")
        minor = 1
        if self.bug == "own-version" or (self.bug == "follows-version" and request.minor == 0):
            minor = request.minor
        return b"%s %s HTTP/1.%d" % (request.method, target, minor)

    def _host(self, request: Request) -> bytes:
        given = values(request, b"host")
        if self.bug == "host-of-target" and given:
            return given[0]
        return authority(request.target) or (given[0] if given else b"origin")

    def _fields(self, request: Request) -> list[tuple[bytes, bytes]]:
        named = set(options(request))
        if self.bug == "connection-options":
            named = set()
        known = _HOP_BY_HOP if self.bug != "hop-by-hop" else {b"connection"} | named
        kept = [
            (name, value)
            for name, value in request.fields
            if name not in known | _MADE_ANEW | named
        ]
        if self.bug == "trailers":
            kept += request.trailers
        if self.bug == "order":
            kept.reverse()
        if self.bug == "unknown-field":
            kept = [field for field in kept if not field[0].startswith(b"x-")]
        return kept

    def _asked(self, octets: bytes) -> bytes:
        """What the origin answers, until it ends the connection or says nothing more."""
        answer = b""
        with socket.create_connection(self.origin) as origin:
            origin.sendall(octets)
            origin.settimeout(0.1 if self.bug in ("hidden", *RAW) else 5.0)
            try:
                while piece := origin.recv(65536):
                    answer += piece
            except OSError:
                pass
        head, end, content = answer.partition(b"\r\n\r\n")
        return _CLOSE_LINE.sub(b"", head) + end + content


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--origin", required=True)
    parser.add_argument("--bug", default="", choices=["", *BUGS])
    given = parser.parse_args()
    host, _, port = given.origin.rpartition(":")
    proxy = Proxy((host, int(port)), given.bug)
    with socket.create_server((given.address, given.port), backlog=128) as listener:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve, args=(proxy, client), daemon=True).start()


def _serve(proxy: Proxy, client: socket.socket) -> None:
    try:
        proxy.serve(client)
    except OSError:
        client.close()


if __name__ == "__main__":
    main()
