"""The bytes of a server to responses with spans: strict, so that a verdict can point at bytes.

h11 gives a second opinion, and only this module uses it. It accepts a bare LF, obs-fold and a
missing SP after the status code, so it cannot be the judge's reader.
"""

from __future__ import annotations

import re
import sys

import h11
import msgspec

from httpmark.harness.http import grammar

_CHUNK_LINE_BYTES_MAX = 16384

# The status of the first final answer, after any number of interim answers (RFC 9110 15.2).
# Possessive: bytes without a final answer must not be tried in every other way.
_FIRST_FINAL = re.compile(
    rb"(?:HTTP/1\.[01] 1[0-9]{2} (?s:.*?)\r\n\r\n)*+HTTP/1\.[01] ([2-5][0-9]{2})"
)


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """One response as read. Spans are (start, end) offsets in the bytes that were read."""

    minor: int
    status: int
    reason: bytes
    fields: tuple[tuple[bytes, bytes], ...]
    content: bytes
    head: tuple[int, int]
    end: int  # one past the last byte of this message
    complete: bool  # the content is whole, as far as it was asked for
    framing: str  # "length", "chunked", "close" or "none"

    @property
    def interim(self) -> bool:
        """1xx, except 101, which ends HTTP on its connection."""
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
    """The bytes are no HTTP/1.1 response; ``at`` is the offset of the byte that proves it."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(f"{why} at byte {at}")
        self.why = why
        self.at = at


class Incomplete(Exception):
    """The bytes end inside a message that is well-formed so far."""


def read(
    octets: bytes, start: int = 0, *, method: bytes = b"GET", ended: bool, head_only: bool = False
) -> Response:
    """Read one response that begins at ``start``.

    :param method: of the request; HEAD and CONNECT change the framing.
    :param ended: whether the server closed after the last byte.
    :param head_only: stop at the end of the header section.
    :raises Malformed: the bytes break RFC 9112.
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


def final_status(octets: bytes | None) -> int:
    """The status of the first final answer, whatever else is wrong with it; 0 if there is none.

    A quick way to know whether a message was accepted.
    """
    found = _FIRST_FINAL.match(octets or b"")
    return int(found[1]) if found else 0


def read_final(octets: bytes, *, method: bytes = b"GET", ended: bool) -> Response:
    """The first final response: any number of interim ones may come before it (RFC 9110 15.2).

    :raises Malformed: as :func:`read`.
    :raises Incomplete: as :func:`read`.
    """
    at = 0
    while True:
        response = read(octets, at, method=method, ended=ended)
        if not response.interim:
            return response
        at = response.end


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
    """The first CR or LF inside a line; a CR as the very last byte may still become CRLF."""
    cr = octets.find(b"\r", start, end)
    lf = octets.find(b"\n", start, end if cr < 0 else cr)
    if lf >= 0:
        return lf
    return cr if 0 <= cr != len(octets) - 1 else None


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
        length = _number(lengths[0])
        if len(octets) - at < length:
            raise Incomplete
        return replace(
            response, content=octets[at : at + length], end=at + length, framing="length"
        )
    return replace(response, content=octets[at:], end=len(octets), complete=ended, framing="close")


def _number(digits: bytes) -> int:
    """Digits as a number; one that is too large for any machine counts as the largest."""
    return int(digits) if len(digits) <= 1000 else sys.maxsize


def _chunked(octets: bytes, at: int) -> tuple[bytes, int]:
    """Chunks and trailer section (RFC 9112 7.1): the content, and where the message ends."""
    content = bytearray()
    while True:
        end = octets.find(b"\r\n", at, at + _CHUNK_LINE_BYTES_MAX)
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


class Fault(msgspec.Struct, frozen=True):
    """Something that is wrong with one response: the check that names it, and where."""

    check: str  # "RESP-05"
    span: tuple[int, int]
    text: str


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One response, read on after its faults, so that each can be named.

    ``response.end`` is the best guess of where the next one begins.
    """

    response: Response
    faults: tuple[Fault, ...] = ()
    cut: bool = False  # the bytes end inside it
    lost: bool = False  # nobody can say where it ends: what follows must not be read


_LOOSE_STATUS = re.compile(rb"HTTP/([0-9]+)(?:\.([0-9]+))?[ \t]+([0-9]+)(?:[ \t](.*)|)", re.DOTALL)
_SECTION_END = re.compile(rb"\r?\n\r?\n")


def read_on(octets: bytes, start: int, *, method: bytes, ended: bool) -> Reading | None:
    """Read one response as :func:`read` does, but go on after each fault.

    Where :func:`read` gives a response, this gives the same without faults. The meaning of fields
    (their number, their grammar) is judged in ``judging.response_rules``. None where the bytes are
    no response, nor the beginning of one.
    """
    first = octets.find(b"\n", start)
    line = octets[start : first if first >= 0 else len(octets)].removesuffix(b"\r")
    match = _LOOSE_STATUS.fullmatch(line)
    if first < 0:
        if not b"HTTP/1.".startswith(octets[start : start + 7]):
            return None
        match = match or _LOOSE_STATUS.fullmatch(b"HTTP/1.1 000 ")  # begun, not ended
    if match is None:
        return None
    end = _SECTION_END.search(octets, start)
    faults: list[Fault] = []
    minor = _number(match[2] or b"0") if match[1] == b"1" else 1
    status = _number(match[3])
    if first >= 0:
        faults += _status_line_faults(line, start, match)
    at = end.end() if end is not None else len(octets)
    fields = _loose_fields(octets, start, at, faults)
    response = Response(
        minor=minor,
        status=status,
        reason=match[4] or b"",
        fields=fields,
        content=b"",
        head=(start, at),
        end=at,
        complete=end is not None,
        framing="none",
    )
    if end is None:
        return Reading(response=response, faults=tuple(faults), cut=True)
    if match[1] != b"1":
        # Another major version has other rules: nothing after this head can be read.
        return Reading(response=response, faults=tuple(faults), lost=True)
    return _loose_content(octets, response, faults, method=method, ended=ended)


def _status_line_faults(line: bytes, start: int, match: re.Match[bytes]) -> list[Fault]:
    span = (start, start + len(line))
    if b"\r" in line:
        return []  # named as a bare CR
    found = []
    strict = grammar.STATUS_LINE.fullmatch(line)
    if strict is None:
        reason = match[4]
        good = re.fullmatch(rb"HTTP/1\.[0-9] [0-9]{3} ", line[: len(line) - len(reason or b"")])
        if good and reason is not None:
            found.append(Fault("RESP-04", span, "a control byte in the reason phrase"))
        else:
            found.append(Fault("RESP-01", span, "not a status line"))
    if len(match[3]) == 3 and not 100 <= int(match[3]) <= 599:
        found.append(Fault("RESP-03", span, f"status {int(match[3])}"))
    return found


def _loose_fields(
    octets: bytes, start: int, end: int, faults: list[Fault]
) -> tuple[tuple[bytes, bytes], ...]:
    """The field lines of a head, and what is wrong with each."""
    fields: list[tuple[bytes, bytes]] = []
    at = start
    while at < end:
        newline = octets.find(b"\n", at, end)
        if newline < 0:
            # A line that has not ended can still end in any way; a CR inside it is bare.
            bare = octets.find(b"\r", at, end - 1)
            if bare >= 0:
                faults.append(Fault("RESP-05", (bare, bare + 1), "a bare CR"))
            break
        line = octets[at:newline]
        if line.endswith(b"\r"):
            line = line[:-1]
        else:
            faults.append(Fault("RESP-05", (newline, newline + 1), "a line that ends in a bare LF"))
        if b"\r" in line:
            bare = at + line.index(b"\r")
            faults.append(Fault("RESP-05", (bare, bare + 1), "a bare CR"))
        if at > start and line:
            fields += _loose_field(line, at, faults)
        at = newline + 1
    return tuple(fields)


def _loose_field(line: bytes, at: int, faults: list[Fault]) -> list[tuple[bytes, bytes]]:
    match = grammar.FIELD_LINE.fullmatch(line)
    if match is not None:
        return [(match[1], match[2])]
    span = (at, at + len(line))
    if line[:1] in (b" ", b"\t"):
        faults.append(Fault("RESP-06", span, "a folded line (obs-fold)"))
        return []
    name, colon, value = line.partition(b":")
    if not colon:
        faults.append(Fault("RESP-06", span, "a field line without a colon"))
        return []
    if name.rstrip(b" \t") != name:
        faults.append(Fault("RESP-06", span, "whitespace before the colon"))
    elif not name or not set(name) <= grammar.TCHAR:
        faults.append(Fault("RESP-06", span, "a field name that is no token"))
    if not set(value) <= grammar.FIELD_VALUE | grammar.CR:
        faults.append(Fault("RESP-07", span, "a control byte in a field value"))
    return [(name.rstrip(b" \t"), value.strip(b" \t"))]


def _loose_content(
    octets: bytes, response: Response, faults: list[Fault], *, method: bytes, ended: bool
) -> Reading:
    replace = msgspec.structs.replace
    at = response.end
    codings = [
        coding.strip(b" \t").lower()
        for value in response.values(b"transfer-encoding")
        for coding in value.split(b",")
        if coding.strip(b" \t")
    ]
    lengths = response.values(b"content-length")
    bodiless = response.status < 200 or response.status in (204, 304)
    if bodiless or method == b"HEAD" or (method == b"CONNECT" and 200 <= response.status < 300):
        return Reading(response=response, faults=tuple(faults))
    if codings and codings[-1] == b"chunked":
        response = replace(response, framing="chunked")
        try:
            content, end = _chunked(octets, at)
        except Malformed as error:
            faults.append(Fault("RESP-15", (error.at, error.at + 1), error.why))
            response = replace(response, end=len(octets), complete=False)
            return Reading(response=response, faults=tuple(faults), lost=True)
        except Incomplete:
            response = replace(response, end=len(octets), complete=False)
            return Reading(response=response, faults=tuple(faults), cut=True)
        response = replace(response, content=content, end=end)
        return Reading(response=response, faults=tuple(faults))
    if lengths and not codings:
        return _loose_length(octets, response, faults, lengths)
    response = replace(
        response, content=octets[at:], end=len(octets), complete=ended, framing="close"
    )
    return Reading(response=response, faults=tuple(faults), cut=not ended)


def _loose_length(
    octets: bytes, response: Response, faults: list[Fault], lengths: list[bytes]
) -> Reading:
    replace = msgspec.structs.replace
    at = response.end
    response = replace(response, framing="length")
    numeric = all(grammar.CONTENT_LENGTH.fullmatch(value) for value in lengths)
    if numeric and len({_number(value) for value in lengths}) == 1:
        length = _number(lengths[0])
        whole = len(octets) - at >= length
        response = replace(
            response,
            content=octets[at : at + length],
            end=min(at + length, len(octets)),
            complete=whole,
        )
        return Reading(response=response, faults=tuple(faults), cut=not whole)
    response = replace(response, end=len(octets), complete=False)
    return Reading(response=response, faults=tuple(faults), lost=True)


def second_opinion(octets: bytes, *, ended: bool) -> int | None:
    """The status that h11 reads from the bytes, or None where h11 finds no response in them."""
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
