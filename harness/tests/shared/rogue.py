"""A strict HTTP/1.1 server that breaks one named rule at a time, to test the judge with.

Written from RFC 9110, 9112 and 3986, not from the parser of ``reference_server``: judge and judged
share no code. Unmodified it conforms; ``--bug B34`` gives it that one of :data:`BUGS`. It offers
``hello``, ``body``, ``mirror``, ``behave``, ``echo`` and, with ``--static``, ``static``::

    python -m httpmark.harness.tests.shared.rogue --bug B34 --port 8080
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hashlib
import http
import json
import os
import re
import signal
import socket
import struct
import time
import urllib.parse
from email.utils import formatdate
from pathlib import Path

BUGS = {
    "B01": "the version is compared by prefix",
    "B02": "digits of the version are parsed into 8 bits",
    "B03": "the method is matched by prefix and without case",
    "B04": "bytes of the method are unchecked",
    "B05": "the request line is split at any whitespace, inside the target too",
    "B06": "a request line without a version is served as HTTP/0.9",
    "B07": "an empty line before the request line is refused",
    "B08": "empty lines before the request line are skipped without bound",
    "B09": "bytes of the path above 0x7F are unchecked",
    "B10": "the path is unchecked in its last partial block of 16",
    "B11": "the query is unchecked",
    "B12": "G to Z count as hexadecimal digits",
    "B13": "only the first digit of a percent pair is checked",
    "B14": "a percent pair over the edge of a block is unchecked",
    "B15": "a percent pair cut short by the target's end is accepted",
    "B16": "a fragment is accepted",
    "B17": "absolute-form is refused",
    "B18": "absolute-form is served by Host",
    "B19": "a path that begins with two slashes is refused",
    "B20": "the asterisk is accepted for every method",
    "B21": "Host may be missing",
    "B22": "the flag for a second Host line is turned over at each",
    "B23": "the value of Host is unchecked",
    "B24": "an empty field name is accepted",
    "B25": "bytes of field names are unchecked",
    "B26": "whitespace before the colon is trimmed",
    "B27": "0x85 and 0xA0 are trimmed as whitespace",
    "B28": "controls in values are unchecked",
    "B29": "a NUL cuts a value short",
    "B30": "a bare CR ends a line",
    "B31": "CR and any byte end the header section",
    "B32": "a folded line is dropped",
    "B33": "a folded line is read as a field",
    "B34": "Content-Length is read with sign and by longest prefix",
    "B35": "Content-Length wraps at 32 bits",
    "B36": "Content-Length may be octal or hexadecimal",
    "B37": "an empty Content-Length is 0",
    "B38": "the first of different Content-Lengths wins",
    "B39": "a Content-Length of more than 19 digits is refused, zeros or not",
    "B40": "Transfer-Encoding is compared by substring",
    "B41": "Transfer-Encoding is compared with case",
    "B42": "an unknown transfer coding is taken for chunked",
    "B43": "an unknown transfer coding is taken for no content",
    "B44": "Transfer-Encoding is not trimmed",
    "B45": "chunked need not be last",
    "B46": "Content-Length wins over Transfer-Encoding",
    "B47": "Transfer-Encoding beside Content-Length is accepted, and the connection stays open",
    "B48": "Transfer-Encoding is honoured in HTTP/1.0, and the connection stays open",
    "B49": "a chunk size is read by longest prefix",
    "B50": "an empty chunk size is 0, and ends the message",
    "B51": "a chunk size wraps at 32 bits",
    "B52": "what follows the digits of a chunk size is unread up to CRLF",
    "B53": "LF ends a chunk line",
    "B54": "CR and any byte end a chunk line",
    "B55": "the two bytes after chunk data are skipped unread",
    "B56": "the final CRLF of chunked content may be missing",
    "B57": "trailers are left unread",
    "B58": "trailers are merged into the fields",
    "B59": "the connection goes on after a bad chunk",
    "B60": "content is left unread on 404 and 405",
    "B61": "the connection goes on after a 400",
    "B62": "requests after one that says close are answered",
    "B63": "Connection: close is ignored",
    "B64": "closes without saying so",
    "B65": "a pipelined request is lost in the buffer",
    "B66": "pipelined answers come out of order",
    "B67": "HEAD is answered with content",
    "B68": "100 is sent to HTTP/1.0",
    "B69": "100 waits for the content",
    "B70": "an expectation is answered at once, and the content is taken for a request",
    "B71": "the timer of the head starts anew with each byte",
    "B72": "a client that closes its side gets no answer",
    "B73": "a reset destroys the last answer where bytes are unread",
    "B74": "fields of one request leak into the next",
    "B75": "a CR at the end of a read is lost, inside the head",
    "B76": "errors carry no Date",
    "B77": "Date is that of the start",
    "B78": "Content-Length of a 404 is too large by one",
    "B79": "204 carries Content-Length",
    "B80": "a target that is too long draws 400",
    "B81": "percent pairs of a static path are decoded twice",
    "B82": "an encoded slash of a static path is decoded before its segments are walked",
    "B83": "after a slow answer and the one pipelined after it, no request is read any more",
    "B84": "0x before a chunk size is the last chunk",
    "B85": "a line ends with CRLF only, and LF alone is waited over",
    "B86": "an underscore in a field name counts as a hyphen",
    "B87": "the scheme of a target is compared with case",
    "B88": "an expectation that stands twice is malformed",
    "B89": "TRACE is handed to the handler of any method",
    "B90": "100-continue draws 400",
    "B91": "every IP literal but [::1] is refused",
    "B92": "what stands in the brackets of an IP literal is checked byte by byte only",
    "B93": "the third byte of a port of four is unchecked",
    "B94": "port 65535 is refused",
    "B95": "Host is unchecked where its line begins in the last four bytes of a block of 64",
    "B96": "a Host line that begins seven bytes into a block of 64 is overlooked",
    "B97": "a second point in the version is skipped",
    "B98": "an unknown method before a target of 64 bytes or more is taken for GET",
    "B99": "a quoted parameter of chunked is ignored",
    "B100": "a quoted parameter of chunked that does not end is ignored",
    "B101": "the path of an absolute-form begins at its first slash, even in the query",
    "B102": "nothing is read after a slow answer",
    "B103": "/big is as short as /hello",
    "B104": "/echo is answered with 500",
    "B105": "a tab in a quoted chunk extension draws 400",
    "B106": "the size of a streamed chunk has no line end",
}

# Limits in bytes; tests declare them.
TARGET_MAX = 8192
REQUEST_LINE_MAX = 16384
FIELD_MAX = 32768
SECTION_MAX = 65536
FIELDS_MAX = 128
CONTENT_MAX = 2 * 1024 * 1024
CHUNK_LINE_MAX = 4096
EXTENSIONS_MAX = 16384
LEADING_MAX = 4096  # empty lines before a request line
LINGER_S = 2.0
LINGER_BYTES = 16 * 1024 * 1024
SLOW_S = 0.5
MUTE_S = 60
BLOCK = 16
HOST_BLOCK = 64

HELLO = b"Hello World!"
BIG = b"a" * (1 << 20)
PLAIN = (b"Content-Type", b"text/plain")
METHODS = (b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS")
ALLOW = (b"Allow", b", ".join(METHODS))

TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110 5.6.2
VALUE = re.compile(rb"[\t -~\x80-\xff]*")  # RFC 9110 5.5
VERSION = re.compile(rb"HTTP/([0-9])\.([0-9])")  # RFC 9112 2.3
QUOTED = rb'"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"'
EXTENSIONS = re.compile(  # RFC 9112 7.1.1, BWS as a recipient must take it
    rb"(?:[ \t]*;[ \t]*" + TOKEN.pattern + rb"(?:[ \t]*=[ \t]*(?:" + TOKEN.pattern + rb"|" + QUOTED
    + rb"))?)*"
)  # fmt: skip
# Parameters of a coding that two bugs skip: a quoted one, and one whose quote does not end.
WHOLE = re.compile(rb"[ \t]*;[ \t]*" + TOKEN.pattern + rb"[ \t]*=[ \t]*" + QUOTED)
CUT = re.compile(rb"[ \t]*;[ \t]*" + TOKEN.pattern + rb'[ \t]*=[ \t]*"[^"]*\Z')
HEX = b"0123456789abcdefABCDEF"
SEGMENT = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/"
)
# RFC 3986 3.2.2, 3.2.3
HOST = re.compile(
    rb"(\[[0-9A-Fa-f:.]+\]|\[[vV][0-9A-Fa-f]+\.[\w.~!$&'()*+,;=:-]+\]"
    rb"|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::([0-9]*))?"
)
SCHEME = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)

Fields = list[tuple[bytes, bytes]]


class Refused(Exception):
    """A request that is not served: the status, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Ended(Exception):
    """The client closed its side."""


class Request:
    """A request as understood."""

    def __init__(self) -> None:
        self.method = b""
        self.target = b""
        self.path = b""
        self.authority: bytes | None = None
        self.version = b"HTTP/1.1"
        self.fields: Fields = []
        self.trailers: Fields = []
        self.content = b""
        self.length: int | None = 0  # None: chunked
        self.close = False
        self.keep_alive = False  # asked for by HTTP/1.0
        self.expects = False

    def values(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.fields if key.lower() == name]

    def members(self, name: bytes) -> list[bytes]:
        """A field's list without its empty elements (RFC 9110 5.6.1.2)."""
        pieces = b",".join(self.values(name)).split(b",")
        return [piece for piece in (one.strip(b" \t") for one in pieces) if piece]


class Rogue:
    """What all connections share: the bug, the clock, the folder, the timers."""

    def __init__(
        self,
        bug: str | None = None,
        *,
        static: Path | None = None,
        head_s: float = 10,
        idle_s: float = 30,
    ) -> None:
        self.bug = bug
        self.static = static.resolve() if static is not None else None
        self.head_s = head_s
        self.idle_s = idle_s
        self._started = time.time() - 60
        self._second = 0
        self._date = b""

    def date(self) -> bytes:
        now = int(self._started if self.bug == "B77" else time.time())
        if now != self._second:
            self._second, self._date = now, formatdate(now, usegmt=True).encode()
        return self._date

    def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Connection:
        """What a new connection is served by."""
        return Connection(self, reader, writer)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its first byte to its close."""
        connection = self.connection(reader, writer)
        with contextlib.suppress(ConnectionError, OSError):
            await connection.run()
        with contextlib.suppress(ConnectionError, OSError):
            writer.close()
            await writer.wait_closed()


class Connection:
    """One connection: reads requests, answers them in order."""

    def __init__(
        self, rogue: Rogue, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.rogue = rogue
        self.bug = rogue.bug
        self.reader = reader
        self.writer = writer
        self.buffer = bytearray()
        self.requests = 0
        self.deadline: float | None = None
        self.taken = 0  # bytes of the connection
        self.head_at = 0  # where the request line began
        self.in_chunks = False
        self.in_head = False
        self.ended_empty = False
        self.is_stuck = False
        self.unchecked = False
        self.was_slow = False
        self.leaked: Fields = []
        self.request = Request()
        self.later: set[asyncio.Task[None]] = set()

    # --- bytes -------------------------------------------------------------------------------

    async def more(self) -> None:
        """Wait for more bytes.

        :raises Ended: there are none.
        :raises TimeoutError: the phase took too long.
        """
        if self.bug == "B71" and self.in_head:
            self.deadline = asyncio.get_running_loop().time() + self.rogue.head_s
        is_over_lf = self.bug == "B85" and re.search(rb"(?<!\r)\n", self.buffer)
        async with asyncio.timeout_at(None if is_over_lf else self.deadline):
            data = await self.reader.read(65536)
        if not data:
            raise Ended
        if self.bug == "B75" and self.in_head and self.buffer.endswith(b"\r"):
            del self.buffer[-1:]
        self.buffer += data

    def take(self, count: int) -> bytes:
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        self.taken += count
        return taken

    async def exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            await self.more()
        return self.take(count)

    async def line(self, limit: int, status: int) -> bytes:
        """A line without its CRLF; a bare CR or LF in it is an error (RFC 9112 2.2)."""
        seen = 0
        while True:
            found = self._line_end(seen)
            if found is not None:
                end, size = found
                if end > limit:
                    raise Refused(status, "a line is too long")
                line = self.take(end + size)[:end]
                lenient = (self.bug == "B53" and self.in_chunks) or self.bug == "B30"
                if b"\r" in line or (size == 1 and not lenient):
                    raise Refused(400, "RFC 9112 2.2: a line ends with CRLF, and holds no CR")
                return line
            if len(self.buffer) > limit:
                raise Refused(status, "a line is too long")
            seen = max(0, len(self.buffer) - 1)
            await self.more()

    def _line_end(self, seen: int) -> tuple[int, int] | None:
        """Where the line ends, and how many bytes end it: CRLF, or a bare LF to be refused."""
        if self.bug == "B30" or (self.bug == "B54" and self.in_chunks):
            cr = self.buffer.find(b"\r")
            if 0 <= cr < len(self.buffer) - 1 and b"\n" not in self.buffer[:cr]:
                pair = self.buffer[cr + 1] == 0x0A or self.bug == "B54"
                return cr, 2 if pair else 1
            if cr >= 0 and b"\n" not in self.buffer[:cr]:
                return None
        if self.bug == "B85":
            at = self.buffer.find(b"\r\n", max(0, seen - 1))
            return (at, 2) if at >= 0 else None
        at = self.buffer.find(b"\n", seen)
        if at < 0:
            return None
        return (at - 1, 2) if at and self.buffer[at - 1] == 0x0D else (at, 1)

    # --- the head -----------------------------------------------------------------------------

    async def head(self) -> None:
        """Read the request's header section."""
        loop = asyncio.get_running_loop()
        self.deadline = loop.time() + self.rogue.idle_s
        if self.is_stuck:
            await asyncio.sleep(self.rogue.idle_s)
            raise Ended
        while not self.buffer:
            await self.more()
        self.in_head = True
        self.deadline = loop.time() + self.rogue.head_s
        await self._empty_lines()
        self.head_at = self.taken
        request = self.request
        self._start(request, await self._request_line())
        if request.version == b"HTTP/0.9":
            return
        request.fields = await self._section()
        self.in_head = False
        if self.bug == "B74":
            kept = (b"host", b"content-length", b"transfer-encoding", b"connection", b"expect")
            request.fields += self.leaked
            self.leaked = [pair for pair in request.fields if pair[0].lower() not in kept]
        self._host(request)
        self._options(request)
        self._framing(request)

    async def _empty_lines(self) -> None:
        """RFC 9112 2.2: at least one empty line before the request line is skipped."""
        skipped = 0
        while True:
            while bytes(self.buffer) in (b"", b"\r"):
                await self.more()
            if self.buffer[:2] != b"\r\n":
                return
            if self.bug == "B07":
                raise Refused(400, "an empty line before the request line")
            skipped += len(self.take(2))
            if self.bug == "B08":
                self.deadline = None
            elif skipped > LEADING_MAX:
                raise Refused(400, "RFC 9112 2.2: too many empty lines")

    async def _request_line(self) -> bytes:
        try:
            return await self.line(REQUEST_LINE_MAX, 414)
        except Refused as refused:
            if refused.status == 414 and b" " not in self.buffer[:REQUEST_LINE_MAX]:
                raise Refused(501, "RFC 9112 3: a method longer than any") from None
            raise

    def _start(self, request: Request, line: bytes) -> None:
        """RFC 9112 3: method SP request-target SP HTTP-version."""
        words = line.split(b" ")
        if self.bug == "B05":
            words = line.split()
            words = [*words[:2], *words[-1:]] if len(words) > 3 else words
        if self.bug == "B06" and len(words) == 2 and TOKEN.fullmatch(words[0]) and words[1]:
            request.method, request.target, request.version = words[0], words[1], b"HTTP/0.9"
            request.path = words[1].partition(b"?")[0]
            request.close = True
            return
        if len(words) != 3:
            raise Refused(400, "RFC 9112 3: a request line has three words")
        request.method, request.target, version = words
        if not TOKEN.fullmatch(request.method) and (self.bug != "B04" or not request.method):
            raise Refused(400, "RFC 9110 9.1: a method is a token")
        if self.bug == "B03":
            folded = request.method.upper()
            prefixes = [m for m in METHODS if folded.startswith(m) or m.startswith(folded)]
            request.method = prefixes[0] if prefixes else request.method
        if self.bug == "B98" and request.method not in METHODS and len(request.target) >= 64:
            request.method = b"GET"
        request.version = self._version(version)
        if len(request.target) > TARGET_MAX:
            raise Refused(414, "RFC 9112 3: the target is too long")
        self._target(request)

    def _version(self, version: bytes) -> bytes:
        if self.bug == "B01" and version.startswith(b"HTTP/1.1"):
            return b"HTTP/1.1"
        if self.bug == "B02" and (wide := re.fullmatch(rb"HTTP/([0-9]+)\.([0-9]+)", version)):
            version = b"HTTP/%d.%d" % (int(wide[1]) % 256, int(wide[2]) % 256)
        match = VERSION.fullmatch(version)
        if match is None and self.bug == "B97":
            match = VERSION.fullmatch(version.replace(b"..", b"."))
        if match is None:
            raise Refused(400, "RFC 9112 2.3: no HTTP version")
        if match[1] != b"1":
            raise Refused(505, "RFC 9110 15.6.6: another major version")
        return b"HTTP/1.0" if match[2] == b"0" else b"HTTP/1.1"

    def _target(self, request: Request) -> None:
        """RFC 9112 3.2: the four forms."""
        target = request.target
        if self.bug == "B16":
            target = target.partition(b"#")[0]
        if target == b"*":
            if request.method != b"OPTIONS" and self.bug != "B20":
                raise Refused(400, "RFC 9112 3.2.4: the asterisk is for OPTIONS")
            request.path = b"*"
            return
        if request.method == b"CONNECT":
            found = HOST.fullmatch(target)
            if not (found and found[1] and found[2] and int(found[2]) < 65536):
                raise Refused(400, "RFC 9110 9.3.6: CONNECT takes host and port")
            request.authority = target
            return
        if not target.startswith(b"/"):
            target = self._absolute(request, target)
        elif self.bug == "B19" and target.startswith(b"//"):
            raise Refused(400, "two slashes")
        path, _, query = target.partition(b"?")
        if not (self._well_formed(path, is_path=True) and self._well_formed(query, is_path=False)):
            raise Refused(400, "RFC 9112 3.2.1: a byte that no target may hold")
        request.path = path

    def _absolute(self, request: Request, target: bytes) -> bytes:
        """RFC 9112 3.2.2: the authority counts; what is left is path and query."""
        match = SCHEME.fullmatch(target)
        if match is None or self.bug == "B17" or not match[2].startswith(b"//"):
            raise Refused(400, "RFC 9112 3.2: none of the four forms")
        authority = re.split(rb"[/?#]", match[2][2:], maxsplit=1)[0]
        rest = match[2][2 + len(authority) :]
        found = HOST.fullmatch(authority)
        if self.bug == "B87" and match[1] != match[1].lower():
            raise Refused(400, "no http URI")
        if match[1].lower() not in (b"http", b"https") or not (found and found[1]):
            raise Refused(400, "RFC 9110 4.2.1, 4.2.4: no http URI, no host, or user information")
        if not self._is_ip_literal(found[1]):
            raise Refused(400, "RFC 3986 3.2.2: no IP address")
        if match[1].lower() == b"https":
            raise Refused(421, "RFC 9110 7.4: a secured resource over an unsecured connection")
        request.authority = authority
        if self.bug == "B101" and b"/" in rest:
            return rest[rest.find(b"/") :]
        return rest if rest.startswith(b"/") else b"/" + rest

    def _well_formed(self, text: bytes, *, is_path: bool) -> bool:
        """RFC 3986 3.3, 3.4, 2.1: the bytes, and the percent pairs."""
        if self.bug == "B11" and not is_path:
            return True
        allowed = SEGMENT if is_path else SEGMENT | {0x3F}
        checked = len(text) // BLOCK * BLOCK if self.bug == "B10" and is_path else len(text)
        for octet in text[:checked]:
            if octet in allowed or octet == 0x25:
                continue
            if self.bug == "B09" and is_path and octet >= 0x80:
                continue
            return False
        at = text.find(b"%")
        while 0 <= at < checked:
            if not self._pair(text[at + 1 : at + 3], at):
                return False
            at = text.find(b"%", at + 1)
        return True

    def _pair(self, digits: bytes, at: int) -> bool:
        if self.bug == "B14" and at % BLOCK >= BLOCK - 2:
            return True
        if len(digits) < 2:
            return self.bug == "B15" and all(digit in HEX for digit in digits)
        if self.bug == "B12":
            return digits.isalnum()
        if self.bug == "B13":
            return digits[0] in HEX
        return digits[0] in HEX and digits[1] in HEX

    # --- fields -------------------------------------------------------------------------------

    async def _section(self) -> Fields:
        """RFC 9112 5: field lines up to the empty line."""
        fields: Fields = []
        size = 0
        first = True
        while True:
            if self.bug == "B31":
                while len(self.buffer) < 2:
                    await self.more()
                if self.buffer[0] == 0x0D and self.buffer[1] != 0x0A:
                    self.take(2)
                    return fields
            offset = (self.taken - self.head_at) % HOST_BLOCK
            line = await self.line(FIELD_MAX, 431)
            if not line:
                return fields
            size += len(line) + 2
            if size > SECTION_MAX or len(fields) >= FIELDS_MAX:
                raise Refused(431, "RFC 9110 5.4: too many fields")
            if line[0] in b" \t":
                if self.bug == "B32" and not first:
                    continue
                if self.bug != "B33":
                    raise Refused(400, "RFC 9112 2.2, 5.2: a line that begins with whitespace")
                line = line.lstrip(b" \t")
            if self.bug == "B56" and self.in_chunks and b":" not in line:
                self.buffer[:0] = line + b"\r\n"
                return fields
            name, value = self._field(line)
            if name.lower() == b"host" and not self.in_chunks:
                self.unchecked = self.bug == "B95" and offset >= HOST_BLOCK - 4
                if self.bug == "B96" and offset == 7:
                    name = b"Overlooked"
            fields.append((name, value))
            first = False

    def _field(self, line: bytes) -> tuple[bytes, bytes]:
        """RFC 9112 5: field-name ":" OWS field-value OWS."""
        name, colon, value = line.partition(b":")
        if self.bug == "B86":
            name = name.replace(b"_", b"-")
        blank = b" \t\x85\xa0" if self.bug == "B27" else b" \t"
        if self.bug in ("B26", "B27"):
            name = name.rstrip(blank if self.bug == "B26" else b"\x85\xa0")
        if not colon:
            raise Refused(400, "RFC 9112 5: a field line has a colon")
        if name[-1:] in (b" ", b"\t"):
            raise Refused(400, "RFC 9112 5.1: whitespace before the colon")
        if not TOKEN.fullmatch(name):
            is_borne = self.bug == "B24" if not name else self.bug == "B25"
            if not is_borne:
                raise Refused(400, "RFC 9110 5.1: a field name is a token")
        if self.bug == "B29":
            value = value.partition(b"\0")[0]
        if not VALUE.fullmatch(value) and self.bug != "B28":
            raise Refused(400, "RFC 9110 5.5: a control in a value")
        if self.bug == "B44" and name.lower() == b"transfer-encoding":
            return name, value.removeprefix(b" ")
        return name, value.strip(blank)

    def _host(self, request: Request) -> None:
        """RFC 9112 3.2: one valid Host; RFC 9112 3.2.2: the target's own authority comes first."""
        hosts = request.values(b"host")
        if not hosts and request.version == b"HTTP/1.1" and self.bug != "B21":
            raise Refused(400, "RFC 9112 3.2: no Host")
        many = len(hosts) % 2 == 0 if self.bug == "B22" else len(hosts) > 1
        if hosts and many:
            raise Refused(400, "RFC 9112 3.2: more than one Host")
        for host in hosts:
            found = HOST.fullmatch(host)
            if self.bug == "B93" and (odd := re.fullmatch(rb"(.*:[0-9]{2}).([0-9])", host)):
                found = HOST.fullmatch(odd[1] + odd[2])
            fine = found is not None and found[1] and self._is_ip_literal(found[1])
            if self.bug == "B94" and host.endswith(b":65535"):
                fine = False
            if not fine and self.bug != "B23" and not self.unchecked:
                raise Refused(400, "RFC 9112 3.2: an invalid Host")
        if request.authority is None or (self.bug == "B18" and hosts):
            request.authority = hosts[0] if hosts else b""

    def _is_ip_literal(self, host: bytes) -> bool:
        """Whether what stands in brackets is an IP address; True for all that has no brackets."""
        if self.bug == "B91" and host.startswith(b"["):
            return host == b"[::1]"
        if self.bug == "B92" or not host.startswith(b"[") or host[1:2] in (b"v", b"V"):
            return True
        try:
            socket.inet_pton(socket.AF_INET6, host[1:-1].decode())
        except (OSError, UnicodeDecodeError):
            return False
        return True

    def _options(self, request: Request) -> None:
        """RFC 9112 9.3, 9.6: persistence; RFC 9110 10.1.1: expectations."""
        options = [option.lower() for option in request.members(b"connection")]
        is_old = request.version == b"HTTP/1.0"
        request.close = b"close" in options or (is_old and b"keep-alive" not in options)
        request.keep_alive = is_old and not request.close
        if self.bug == "B63":
            request.close = is_old and not request.keep_alive
        expected = [value.lower() for value in request.members(b"expect")]
        if expected and (
            self.bug == "B90" or (self.bug == "B88" and len(expected) > len(set(expected)))
        ):
            raise Refused(400, "an expectation that nobody meets")
        if is_old and self.bug != "B68":
            return
        if any(value != b"100-continue" for value in expected) and not is_old:
            if self.bug == "B70":
                request.expects = True
                return
            raise Refused(417, "RFC 9110 10.1.1: an unknown expectation")
        request.expects = bool(expected)

    # --- framing ------------------------------------------------------------------------------

    def _framing(self, request: Request) -> None:
        """RFC 9112 6.3: how the content is delimited."""
        lengths = request.values(b"content-length")
        codings = request.values(b"transfer-encoding")
        if codings and lengths:
            if self.bug == "B46":
                codings = []
            elif self.bug != "B47":
                raise Refused(400, "RFC 9112 6.1: Content-Length beside Transfer-Encoding")
        if codings:
            if request.version == b"HTTP/1.0":
                if self.bug != "B48":
                    raise Refused(400, "RFC 9112 6.1: Transfer-Encoding in HTTP/1.0")
                request.close = False
            request.length = None if self._is_chunked(codings) else 0
        elif lengths:
            request.length = self._length(lengths)
            if request.length > CONTENT_MAX:
                raise Refused(413, "RFC 9110 15.5.14: too much content")

    def _is_chunked(self, values: list[bytes]) -> bool:
        """Whether chunked is the final coding, once, and the only one.

        False is the answer of the bugs that take the message for one without content.
        """
        joined = b",".join(values)
        if self.bug == "B40" and b"chunked" in joined.lower():
            return True
        if self.bug in ("B99", "B100"):
            joined = (WHOLE if self.bug == "B99" else CUT).sub(b"", joined)
        strip = b"" if self.bug == "B44" else b" \t"
        names = [piece.strip(strip) if strip else piece for piece in joined.split(b",")]
        names = [name for name in names if name.strip(b" \t")]
        if self.bug != "B41":
            names = [name.lower() for name in names]
        if names == [b"chunked"]:
            return True
        if self.bug == "B45" and b"chunked" in names:
            return True
        unknown = [name for name in names if name != b"chunked"]
        if unknown and self.bug in ("B42", "B43"):
            return self.bug == "B42"
        if names[-1:] == [b"chunked"] and names.count(b"chunked") == 1:
            raise Refused(501, "RFC 9112 6.1: an unknown transfer coding")
        raise Refused(400, "RFC 9112 6.3: chunked is not the final coding, or is there twice")

    def _length(self, values: list[bytes]) -> int:
        """RFC 9110 8.6: one or more digits, once."""
        if self.bug == "B37":
            values = [value or b"0" for value in values]
        if self.bug == "B38" and len(values) > 1 and all(value.isdigit() for value in values):
            values = values[:1]
        if len(values) != 1:
            raise Refused(400, "RFC 9112 6.3: more than one Content-Length")
        value = values[0]
        if self.bug == "B34" and (match := re.match(rb"[+-]?[0-9]+", value)):
            return max(0, int(match[0]))
        if self.bug == "B36" and (match := re.fullmatch(rb"0x([0-9a-fA-F]+)|0([0-7]+)", value)):
            return int(match[1], 16) if match[1] else int(match[2], 8)
        if not re.fullmatch(rb"[0-9]+", value):
            raise Refused(400, "RFC 9112 6.3: an invalid Content-Length")
        if self.bug == "B39" and len(value) > 19:
            raise Refused(400, "more than 19 digits")
        if self.bug == "B35":
            return int(value) % 2**32
        digits = value.lstrip(b"0") or b"0"
        return int(digits) if len(digits) <= 19 else CONTENT_MAX + 1

    async def content(self, request: Request) -> None:
        """Read the content, and the trailers."""
        if request.length == 0:
            return
        waits = len(self.buffer) < (request.length or 1)
        if request.expects and waits and self.bug != "B69":
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.deadline = asyncio.get_running_loop().time() + self.rogue.head_s
        if self.bug == "B69" and request.expects and waits:
            self.deadline = None
        if request.length is not None:
            request.content = await self.exactly(request.length)
            return
        self.in_chunks = True
        request.content = await self._chunks()
        if self.bug == "B50" and self.ended_empty:
            self.ended_empty = False
        elif self.bug == "B57":
            while len(self.buffer) < 2:
                await self.more()
            if self.buffer[:2] == b"\r\n":
                self.take(2)
        else:
            request.trailers = await self._section()
        self.in_chunks = False
        if self.bug == "B58":
            request.fields += request.trailers

    async def _chunks(self) -> bytes:
        """RFC 9112 7.1: chunk-size [ chunk-ext ] CRLF chunk-data CRLF, up to the last."""
        pieces: list[bytes] = []
        total = extensions = 0
        while True:
            line = await self.line(CHUNK_LINE_MAX, 400)
            size, extension = self._chunk_size(line)
            extensions += extension
            total += size
            if extensions > EXTENSIONS_MAX:
                raise Refused(400, "RFC 9112 7.1.1: too many chunk extensions")
            if total > CONTENT_MAX:
                raise Refused(413, "RFC 9110 15.5.14: too much content")
            if size == 0:
                self.ended_empty = not line
                return b"".join(pieces)
            pieces.append(await self.exactly(size))
            if (await self._data_end()) != b"\r\n":
                raise Refused(400, "RFC 9112 7.1: no CRLF after chunk data")

    async def _data_end(self) -> bytes:
        """The line end after chunk data."""
        if self.bug == "B53":
            while not self.buffer:
                await self.more()
            if self.buffer[:1] == b"\n":
                self.take(1)
                return b"\r\n"
        end = await self.exactly(2)
        if self.bug == "B55" or (self.bug == "B54" and end[:1] == b"\r"):
            return b"\r\n"
        return end

    def _chunk_size(self, line: bytes) -> tuple[int, int]:
        """The size that a chunk line states, and the bytes of its extensions."""
        if self.bug == "B84" and line[:2] in (b"0x", b"0X"):
            return 0, 0
        digits = re.match(rb"[0-9A-Fa-f]*", line)
        assert digits is not None  # it matches the empty string too
        size, rest = digits[0], line[digits.end() :]
        if self.bug == "B49":
            rest = rest[rest.find(b";") :] if b";" in rest else b""
        if not size and self.bug != "B50":
            raise Refused(400, "RFC 9112 7.1: no chunk size")
        if self.bug == "B105" and b"\t" in rest.partition(b'"')[2]:
            raise Refused(400, "RFC 9112 7.1.1: a control in an extension")
        if self.bug != "B52" and not EXTENSIONS.fullmatch(rest):
            raise Refused(400, "RFC 9112 7.1.1: bytes after the chunk size")
        value = int(size or b"0", 16)
        if self.bug == "B51":
            value %= 2**32
        return value, len(rest)

    # --- answers ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve requests until one side closes."""
        while True:
            self.request = request = Request()
            try:
                await self.head()
                self.requests += 1
                if not await self.respond(request):
                    break
                if self.bug == "B65":
                    self.buffer.clear()
            except Refused as refused:
                if not await self.refuse(refused, request):
                    break
            except TimeoutError:
                if self.in_head or self.buffer or request.method:
                    await self.refuse(Refused(408, "RFC 9110 15.5.9: too slow"), request)
                break
            except Ended:
                if self.in_head:
                    await self.refuse(Refused(400, "RFC 9112 8: an incomplete message"), request)
                break
        await self.linger()

    async def refuse(self, refused: Refused, request: Request) -> bool:
        """Answer an error; whether the connection goes on."""
        status = refused.status
        if self.bug == "B80" and status == 414:
            status = 400
        goes_on = status == 400 and (
            (self.bug == "B61" and not self.in_chunks) or (self.bug == "B59" and self.in_chunks)
        )
        if goes_on and self.in_head:
            end = self.buffer.find(b"\r\n\r\n")
            self.take(end + 4 if end >= 0 else len(self.buffer))
        self.in_chunks = self.in_head = False
        await self.answer(request, status, f"{refused}\n".encode(), close=not goes_on)
        return goes_on

    async def respond(self, request: Request) -> bool:
        """Serve one request; whether the connection goes on."""
        path, method = request.path, request.method
        has_content = request.length != 0
        unread = has_content and (
            (self.bug == "B60" and (path == b"/404" or self._not_allowed(request)))
            or (self.bug == "B70" and request.expects)
        )
        if path == b"/early" and has_content:
            request.close = request.close or not unread
            await self.answer(request, 200, HELLO, close=not unread)
            return not request.close
        if not unread:
            await self.content(request)
        if self.bug == "B72":
            await asyncio.sleep(0.05)
            if self.reader.at_eof():
                return False
        if request.version == b"HTTP/0.9":
            self.writer.write(HELLO)
            return False
        if path == b"/slow":
            if self.bug == "B66":
                task = asyncio.create_task(self._slowly(request))
                self.later.add(task)
                task.add_done_callback(self.later.discard)
                return not request.close
            await asyncio.sleep(SLOW_S)
            self.is_stuck = self.bug == "B102" and not self.buffer
        is_last = self.bug == "B83" and self.was_slow
        self.was_slow = path == b"/slow"
        is_borne = self.bug == "B04" and not TOKEN.fullmatch(method)
        is_borne = is_borne or (self.bug == "B89" and method == b"TRACE")
        if method not in METHODS and not is_borne:
            await self.answer(request, 501, b"RFC 9110 9.1: an unknown method\n")
        else:
            await self._served(request)
        if is_last:
            await asyncio.sleep(MUTE_S)
        if self.bug == "B62" and request.close and self.buffer:
            return True
        return not request.close

    def _not_allowed(self, request: Request) -> bool:
        return request.path == b"/get-only" and request.method not in (b"GET", b"HEAD")

    async def _slowly(self, request: Request) -> None:
        await asyncio.sleep(SLOW_S)
        with contextlib.suppress(ConnectionError):
            await self.answer(request, 200, HELLO)

    async def _served(self, request: Request) -> None:
        """The places of the image contract."""
        path = request.path
        allow = [ALLOW] if request.method == b"OPTIONS" else []
        if path == b"/mirror":
            await self.answer(request, 200, self._mirror(request), kind=b"application/json",
                              fields=allow)  # fmt: skip
        elif path == b"/body" and request.method == b"POST":
            await self.answer(request, 200, request.content, kind=b"application/octet-stream")
        elif path == b"/204":
            await self.answer(request, 204)
        elif path == b"/304":
            await self.answer(request, 304, fields=[(b"ETag", b'"httpmark"')])
        elif path == b"/redirect":
            await self.answer(request, 302, fields=[(b"Location", b"/hello")])
        elif path == b"/big":
            await self.answer(request, 200, HELLO if self.bug == "B103" else BIG)
        elif path == b"/echo":
            query = request.target.partition(b"?")[2].decode()
            shown = json.dumps(dict(urllib.parse.parse_qsl(query))).encode()
            await self.answer(request, 500 if self.bug == "B104" else 200, shown,
                              kind=b"application/json")  # fmt: skip
        elif path == b"/events":
            await self._stream(request)
        elif path == b"/404":
            await self.answer(request, 404, b"nothing here\n")
        elif self._not_allowed(request):
            await self.answer(request, 405, b"GET or HEAD\n", fields=[(b"Allow", b"GET, HEAD")])
        elif self.rogue.static is not None and path.startswith(b"/static/"):
            await self._static(request, self.rogue.static)
        else:
            await self.answer(request, 200, HELLO, fields=allow)

    def _mirror(self, request: Request) -> bytes:
        def text(value: bytes | None) -> str | None:
            return None if value is None else base64.b64encode(value).decode()

        shown = {
            "method": text(request.method),
            "target": text(request.target),
            "authority": text(request.authority),
            "version": text(request.version),
            "content": text(request.content),
            "fields": [[text(name), text(value)] for name, value in request.fields],
            "trailers": [[text(name), text(value)] for name, value in request.trailers],
            "request_number": self.requests,
        }
        return json.dumps(shown).encode()

    async def _static(self, request: Request, root: Path) -> None:
        """A file below the folder, by segments that are decoded once, each for itself."""
        file = _file(root, request.path.removeprefix(b"/static/"), self.bug)
        if file is None or (file.is_dir() and request.path.endswith(b"/")):
            await self.answer(request, 404, b"nothing here\n")
            return
        if file.is_dir():
            await self.answer(request, 301, fields=[(b"Location", request.path + b"/")])
            return
        content = file.read_bytes()
        etag = tag(content)
        fields = [(b"ETag", etag)]
        wanted, unwanted = request.members(b"if-match"), request.members(b"if-none-match")
        if wanted and b"*" not in wanted and etag not in wanted:
            await self.answer(request, 412, b"RFC 9110 13.1.1\n")
        elif b"*" in unwanted or etag in [one.removeprefix(b"W/") for one in unwanted]:
            await self.answer(request, 304, fields=fields)
        elif request.method not in (b"GET", b"HEAD"):
            await self.answer(request, 405, b"GET or HEAD\n", fields=[(b"Allow", b"GET, HEAD")])
        else:
            await self.answer(request, 200, content, kind=b"text/html", fields=fields)

    async def _stream(self, request: Request) -> None:
        """Server-sent events: chunked, or up to the close for a client of HTTP/1.0."""
        head = [
            b"HTTP/1.1 200 OK",
            b"Date: " + self.rogue.date(),
            b"Content-Type: text/event-stream",
        ]
        is_old = request.version == b"HTTP/1.0"
        request.close = request.close or is_old
        if not is_old:
            head.append(b"Transfer-Encoding: chunked")
        if request.close:
            head.append(b"Connection: close")
        self.writer.write(b"\r\n".join(head) + b"\r\n\r\n")
        for number in range(3):
            event = b"id: %d\ndata: one of three\n\n" % number
            size = b"%x" % len(event) + (b"" if self.bug == "B106" else b"\r\n")
            self.writer.write(event if is_old else size + event + b"\r\n")
        if not is_old:
            self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def answer(
        self,
        request: Request,
        status: int,
        content: bytes = b"",
        *,
        kind: bytes = b"text/plain",
        fields: Fields | None = None,
        close: bool = False,
    ) -> None:
        """Write one final answer, and wait while the client does not take it."""
        head = [b"HTTP/1.1 %d %s" % (status, http.HTTPStatus(status).phrase.encode())]
        if not (self.bug == "B76" and status >= 400):
            head.append(b"Date: " + self.rogue.date())
        head += [b"%s: %s" % field for field in fields or ()]
        if content:
            head.append(b"Content-Type: " + kind)
        wrong = self.bug == "B78" and status == 404
        if status not in (204, 304) or (self.bug == "B79" and status == 204):
            head.append(b"Content-Length: %d" % (len(content) + wrong))
        request.close = request.close or close or wrong
        if request.close:
            if not (self.bug == "B64" and close):
                head.append(b"Connection: close")
        elif request.keep_alive:
            head.append(b"Connection: keep-alive")
        octets = b"\r\n".join(head) + b"\r\n\r\n"
        if request.method != b"HEAD" or self.bug == "B67":
            octets += content
        if self.bug == "B73" and request.close and self.buffer:
            self._destroy(octets)
            return
        self.writer.write(octets)
        await self.writer.drain()

    def _destroy(self, octets: bytes) -> None:
        """An answer that a reset overtakes, as when close() meets bytes that nobody has read."""
        peer = self.writer.get_extra_info("socket")
        if peer.family in (socket.AF_INET, socket.AF_INET6):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.write(octets[:1024])
        self.writer.transport.abort()

    async def linger(self) -> None:
        """RFC 9112 9.6: close in stages, so that the last answer survives."""
        for task in tuple(self.later):
            await task
        if self.writer.is_closing():
            return
        self.writer.write_eof()
        left = LINGER_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while left > 0:
                    data = await self.reader.read(65536)
                    if not data:
                        return
                    left -= len(data)


def tag(content: bytes) -> bytes:
    """The ETag of a file (RFC 9110 8.8.3)."""
    return b'"%s"' % hashlib.sha256(content).hexdigest()[:16].encode()


def _decoded(text: bytes) -> bytes:
    return re.sub(rb"%([0-9A-Fa-f]{2})", lambda match: bytes((int(match[1], 16),)), text)


def _file(root: Path, path: bytes, bug: str | None) -> Path | None:
    """The file or folder that a path below the mount names, or None."""
    segments: list[bytes] = []
    for raw in path.split(b"/"):
        segment = _decoded(raw)
        if segment == b"..":
            if not segments:
                return None
            segments.pop()
        elif segment not in (b"", b"."):
            if bug != "B82" and any(octet in segment for octet in (b"/", b"\\", b"\0")):
                return None
            segments.append(_decoded(segment) if bug == "B81" else segment)
    try:
        file = Path(root, *(segment.decode() for segment in segments))
        resolved = file.resolve()
        inside = resolved.is_relative_to(root) or bug in ("B81", "B82")
        named_as_folder = path.endswith((b"/", b"/.", b"/.."))
        fits = resolved.is_dir() if named_as_folder else resolved.exists()
        return resolved if inside and fits else None
    except (ValueError, OSError):  # NUL, no UTF-8, a name too long
        return None


async def listen(rogue: Rogue, address: str, port: int) -> None:
    """Serve until a signal comes."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = await asyncio.start_server(rogue.serve, address, port, backlog=4096, limit=1 << 17)
    print(f"rogue: port {server.sockets[0].getsockname()[1]}", flush=True)
    await stopped.wait()
    os._exit(0)  # open connections have nothing to tell


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="A strict HTTP/1.1 server with one seeded bug.")
    parser.add_argument("--bug", choices=list(BUGS), metavar="BNN", help="one of BUGS")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any; the first line names it")
    parser.add_argument("--static", type=Path, help="the folder that /static/ shows")
    parser.add_argument("--head-timeout-s", type=float, default=10)
    parser.add_argument("--idle-timeout-s", type=float, default=30)
    given = parser.parse_args()
    rogue = Rogue(
        given.bug, static=given.static, head_s=given.head_timeout_s, idle_s=given.idle_timeout_s
    )
    asyncio.run(listen(rogue, given.address, given.port))


if __name__ == "__main__":
    main()
