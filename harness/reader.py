"""Response octets to messages with spans: strict, so that a verdict can point at octets.

h11 is the second opinion and lives behind the same door: it accepts bare LF, obs-fold and a
missing SP after the status code, so it cannot be the judge's reader (cases.md, section 3).
"""

from __future__ import annotations

import re

import h11
import msgspec

from httpmark.harness import grammar

_CHUNK_LINE_OCTETS_MAX = 16384


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """One response as read. Spans are (start, end) in the octets that were read."""

    minor: int
    status: int
    reason: bytes
    fields: tuple[tuple[bytes, bytes], ...]
    content: bytes
    head: tuple[int, int]
    end: int  # one past the last octet of this message
    complete: bool  # content whole as far as it was asked for
    framing: str  # "length", "chunked", "close" or "none"

    @property
    def interim(self) -> bool:
        """1xx, but for 101, which is the last word of HTTP on its connection."""
        return 100 <= self.status < 200 and self.status != 101

    def values(self, name: bytes) -> list[bytes]:
        """The values of all field lines of a name, in order; names are case-insensitive."""
        wanted = name.lower()
        return [value for key, value in self.fields if key.lower() == wanted]

    @property
    def announces_close(self) -> bool:
        """``Connection: close``, or HTTP/1.0 without keep-alive (RFC 9112 9.3, 9.6)."""
        options = [
            option.strip(b" \t").lower()
            for value in self.values(b"connection")
            for option in value.split(b",")
        ]
        return b"close" in options or (self.minor == 0 and b"keep-alive" not in options)


class Malformed(Exception):
    """Octets that are no HTTP/1.1 response; ``at`` is the octet that proves it."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(f"{why} at octet {at}")
        self.why = why
        self.at = at


class Incomplete(Exception):
    """The octets end inside a message that is well-formed so far."""


def read(
    octets: bytes, start: int = 0, *, method: bytes = b"GET", ended: bool, head_only: bool = False
) -> Response:
    """Read one response that begins at ``start``.

    :param method: of the request that is answered: HEAD and CONNECT change the framing.
    :param ended: whether the server closed after the last octet.
    :param head_only: stop at the end of the header section.
    :raises Malformed: the octets break RFC 9112.
    :raises Incomplete: they end too early.
    """
    status_line, at = _status_line(octets, start)
    status = int(status_line[2])
    fields, at = _fields(octets, at)
    response = Response(
        minor=int(status_line[1]),
        status=status,
        reason=status_line[3],
        fields=fields,
        content=b"",
        head=(start, at),
        end=at,
        complete=True,
        framing="none",
    )
    if head_only:
        return msgspec.structs.replace(response, complete=False)
    return _with_content(octets, response, method=method, ended=ended)


def _line(octets: bytes, at: int) -> tuple[bytes, int]:
    """The line that starts at ``at``, and where the next one starts."""
    end = octets.find(b"\r\n", at)
    stray = _stray(octets, at, len(octets) if end < 0 else end)
    if stray is not None:
        raise Malformed("a bare CR or LF (RFC 9112 2.2)", stray)
    if end < 0:
        raise Incomplete
    return octets[at:end], end + 2


def _status_line(octets: bytes, start: int) -> tuple[re.Match[bytes], int]:
    prefix = octets[start : start + 7]
    if not b"HTTP/1.".startswith(prefix):
        raise Malformed("not a status line (RFC 9112 4)", start)
    line, at = _line(octets, start)
    match = grammar.STATUS_LINE.fullmatch(line)
    if match is None:
        raise Malformed("not a status line (RFC 9112 4)", start)
    if not 100 <= int(match[2]) <= 599:
        raise Malformed("a status outside 100 to 599 (RFC 9110 15)", start + 9)
    return match, at


def _fields(octets: bytes, at: int) -> tuple[tuple[tuple[bytes, bytes], ...], int]:
    """Field lines up to the empty line (header or trailer section), and where the section ends."""
    fields: list[tuple[bytes, bytes]] = []
    while True:
        line, after = _line(octets, at)
        if not line:
            return tuple(fields), after
        match = grammar.FIELD_LINE.fullmatch(line)
        if match is None:
            raise Malformed("not a field line (RFC 9112 5)", at)
        fields.append((match[1], match[2]))
        at = after


def _stray(octets: bytes, start: int, end: int) -> int | None:
    """The first CR or LF of a line's inside; a CR as the very last octet may yet become CRLF."""
    for octet in (b"\r", b"\n"):
        at = octets.find(octet, start, end)
        if at >= 0 and not (octet == b"\r" and at == len(octets) - 1):
            return at
    return None


def _with_content(octets: bytes, response: Response, *, method: bytes, ended: bool) -> Response:
    """Content by the rules of RFC 9112 6.3, in their order."""
    at = response.end
    replace = msgspec.structs.replace
    codings = [
        coding.strip(b" \t").lower()
        for value in response.values(b"transfer-encoding")
        for coding in value.split(b",")
        if coding.strip(b" \t")
    ]
    lengths = response.values(b"content-length")
    if method == b"HEAD" or response.status < 200 or response.status in (204, 304):
        return response
    if method == b"CONNECT" and 200 <= response.status < 300:
        return response
    if codings:
        if lengths:
            raise Malformed("Content-Length beside Transfer-Encoding (RFC 9112 6.2)", at)
        if codings[-1] == b"chunked":
            content, end = _chunked(octets, at)
            return replace(response, content=content, end=end, framing="chunked")
    elif lengths:
        if len(lengths) > 1 or not grammar.CONTENT_LENGTH.fullmatch(lengths[0]):
            raise Malformed("an invalid Content-Length (RFC 9110 8.6)", response.head[0])
        length = int(lengths[0])
        if len(octets) - at < length:
            raise Incomplete
        return replace(
            response, content=octets[at : at + length], end=at + length, framing="length"
        )
    return replace(response, content=octets[at:], end=len(octets), complete=ended, framing="close")


def _chunked(octets: bytes, at: int) -> tuple[bytes, int]:
    """Chunks and trailer section (RFC 9112 7.1): the content, and where the message ends."""
    content = bytearray()
    while True:
        end = octets.find(b"\r\n", at, at + _CHUNK_LINE_OCTETS_MAX)
        if end < 0:
            raise Incomplete
        line = grammar.CHUNK_LINE.fullmatch(octets[at:end])
        if line is None:
            raise Malformed("not a chunk line (RFC 9112 7.1)", at)
        size = int(line[1], 16)
        at = end + 2
        if size == 0:
            return bytes(content), _fields(octets, at)[1]
        if len(octets) < at + size + 2:
            raise Incomplete
        if octets[at + size : at + size + 2] != b"\r\n":
            raise Malformed("chunk data not followed by CRLF (RFC 9112 7.1)", at + size)
        content += octets[at : at + size]
        at += size + 2


def second_opinion(octets: bytes, *, ended: bool) -> int | None:
    """The status h11 reads from the octets, or None where h11 finds no response in them."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    connection.send(h11.EndOfMessage())
    try:
        connection.receive_data(octets)
        if ended:
            connection.receive_data(b"")
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Response):
                return event.status_code
            if not isinstance(event, h11.InformationalResponse):
                return None
    except h11.RemoteProtocolError:
        return None
