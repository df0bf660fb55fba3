"""The bytes that a client sent to requests, as far as they are certain.

It tells which answer belongs to which request. A message is valid only if it keeps all rules of RFC
9110, 9112 and 3986 for which a server may refuse it. After the first message that is not valid,
nobody can say which request an answer belongs to, so reading ends there. A reader that is too
strict leaves answers without a judgement; one that is too loose leads to wrong judgements.
"""

from __future__ import annotations

import enum
import re

import msgspec

from httpmark.harness.http import grammar


class Broken(enum.StrEnum):
    """The first rule of the grammar that a message breaks, in reading order."""

    EMPTY_LINE = "an empty line before the request line"
    LINE = "the request line"
    METHOD = "the method"
    TARGET = "the target"
    AUTHORITY = "the authority in the target"
    VERSION = "the version"
    MAJOR = "the major version"
    FIRST_LINE = "a first field line led by whitespace"
    FOLD = "a folded line"
    BARE_LF = "a bare LF"
    BARE_CR = "a bare CR"
    COLON = "a field line without colon"
    SPACE = "whitespace before the colon"
    NAME = "a field name"
    NUL = "a NUL in a value"
    VALUE = "a control in a value"
    HOST = "Host"
    CONNECT = "content of CONNECT"
    BOTH = "Content-Length beside Transfer-Encoding"
    OLD = "Transfer-Encoding in HTTP/1.0"
    CODING = "Transfer-Encoding without chunked at its end"
    CODINGS = "Transfer-Encoding with more than chunked"
    LENGTHS = "several Content-Lengths"
    LENGTH = "Content-Length"
    HUGE = "a length beyond all measure"
    SIZE = "a chunk's line"
    CHUNK_CR = "a bare CR between chunks"
    DATA_END = "the end of a chunk"
    TRAILER = "a trailer line"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request. ``start`` and ``end`` are offsets in what was sent.

    Of a message that is not valid, only the request line is given, and only if it is valid.
    """

    start: int
    end: int
    method: bytes = b""  # empty: unknown
    target: bytes = b""
    major: int | None = None  # None: unreadable
    minor: int = 1
    line_valid: bool = False
    valid: bool = False  # so far, where it is not whole
    whole: bool = False
    says_close: bool = False  # asks for it, or is 1.0 without keep-alive
    conditional: bool = False  # If-… or Range
    fields: tuple[tuple[bytes, bytes], ...] = ()  # names in small letters
    trailers: tuple[tuple[bytes, bytes], ...] = ()
    pieces: tuple[tuple[int, int], ...] = ()  # where the content stands: one, or a chunk each
    broken: Broken | None = None  # why it is not valid

    def content(self, sent: bytes) -> bytes:
        """The content of a whole request, decoded."""
        return b"".join(sent[start:end] for start, end in self.pieces)

    @property
    def is_1_x(self) -> bool:
        return self.line_valid and self.major == 1


class Requests(msgspec.Struct, frozen=True):
    """The requests of one exchange, in order; only the last can be not valid or not whole.

    ``certain`` is the offset of the first byte that belongs to no valid request.
    """

    requests: tuple[Request, ...]
    certain: int


_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARTIAL_VERSION = rb"(?:" + b"|".join(b"HTTP/1."[:n].replace(b".", rb"\.") for n in range(8))
_PARTIAL_VERSION += rb"|HTTP/1\.[0-9]\r?)"
_PARTIAL_LINE = re.compile(
    rb"(?:" + _TOKEN + rb"(?: (?:[!-~]+(?: " + _PARTIAL_VERSION + rb")?)?)?)?"
)  # fmt: skip
_METHOD = re.compile(_TOKEN)
_NO_HOST = re.compile(rb"(?i)https?://(?:[:/?#]|\Z)")
_VERSION = re.compile(rb"HTTP/[0-9]\.[0-9]")
_PARTIAL_FIELD = re.compile(rb"\r?|" + _TOKEN + rb"(?::[\t -~\x80-\xff]*\r?)?")
_PARTIAL_CHUNK_LINE = re.compile(rb"[0-9A-Fa-f]*\r?|[0-9A-Fa-f]+[ \t]*;[\t -~\x80-\xff]*\r?")
_CONDITIONS = frozenset(
    (b"if-match", b"if-none-match", b"if-modified-since", b"if-unmodified-since", b"if-range",
     b"range")
)  # fmt: skip
_CONTENT_BYTES_MAX = 10**15


def read(sent: bytes) -> Requests:
    """All requests of ``sent``, up to and including the first that is not valid or not whole."""
    found: list[Request] = []
    at = 0
    while at < len(sent):
        request = _request(sent, at)
        found.append(request)
        if not request.valid:
            return Requests(tuple(found), at)
        at = request.end
        if not request.whole:
            break
    return Requests(tuple(found), at)


def _request(sent: bytes, start: int) -> Request:
    end = sent.find(b"\r\n\r\n", start)
    line_end = sent.find(b"\r\n", start)
    line = sent[start : line_end if line_end >= 0 else len(sent)]
    match = grammar.REQUEST_LINE.fullmatch(line) if line_end >= 0 else None
    if match is None:
        so_far = line_end < 0 and _PARTIAL_LINE.fullmatch(line) is not None
        broken = None if so_far else _line_broken(line)
        return Request(start=start, end=len(sent), valid=so_far, broken=broken)
    method, target, minor = match[1], match[2], int(match[4])

    def seen(broken: Broken | None = None, *, valid: bool = False) -> Request:
        return Request(
            start=start,
            end=len(sent),
            method=method,
            target=target,
            major=int(match[3]),
            minor=minor,
            line_valid=True,
            valid=valid,
            broken=broken,
        )

    if not _target_valid(method, target):
        # The line has three words and a version, but the target is unclear: it is not valid.
        has_authority = (method == b"CONNECT" and b"/" not in target) or _NO_HOST.match(target)
        broken = Broken.AUTHORITY if has_authority else Broken.TARGET
        return msgspec.structs.replace(seen(broken), method=b"", line_valid=False)
    if match[3] != b"1":
        return seen(Broken.MAJOR)
    lines = sent[line_end + 2 : end + 2 if end >= 0 else len(sent)]
    complete = lines if end >= 0 else lines[: lines.rfind(b"\r\n") + 2 if b"\r\n" in lines else 0]
    if not grammar.FIELD_LINES.fullmatch(complete):
        return seen(_field_broken(complete))
    if end < 0:
        rest = lines[len(complete) :]
        so_far = _PARTIAL_FIELD.fullmatch(rest) is not None
        return seen(None if so_far else _field_broken(rest, first=not complete), valid=so_far)
    fields = _fields(complete)
    options = _list(fields, b"connection")
    request = msgspec.structs.replace(
        seen(),
        fields=fields,
        says_close=b"close" in options or (minor == 0 and b"keep-alive" not in options),
        conditional=not _CONDITIONS.isdisjoint([name for name, _ in fields]),
    )
    hosts = [value for name, value in fields if name == b"host"]
    if len(hosts) > 1 or (not hosts and minor != 0):
        return msgspec.structs.replace(request, broken=Broken.HOST)
    if hosts and grammar.HOST.fullmatch(hosts[0]) is None:
        return msgspec.structs.replace(request, broken=Broken.HOST)
    return _with_content(sent, end + 4, request)


def _line_broken(line: bytes) -> Broken:
    """What is wrong with a line that is no request line."""
    if not line:
        return Broken.EMPTY_LINE
    if b"\n" in line:
        return Broken.BARE_LF
    words = line.split(b" ")
    if len(words) != 3 or not all(words) or any(octet in line for octet in b"\t\v\f\r"):
        return Broken.LINE
    if _METHOD.fullmatch(words[0]) is None:
        return Broken.METHOD
    return Broken.TARGET if _VERSION.fullmatch(words[2]) else Broken.VERSION


def _field_broken(lines: bytes, *, first: bool = True) -> Broken:
    """What is wrong with the first line that is no field line."""
    for number, line in enumerate(lines.split(b"\r\n")):
        if grammar.FIELD_LINES.fullmatch(line + b"\r\n"):
            continue
        if b"\n" in line:
            return Broken.BARE_LF
        if b"\r" in line:
            return Broken.BARE_CR
        if line[:1] in (b" ", b"\t"):
            return Broken.FOLD if number or not first else Broken.FIRST_LINE
        name, colon, value = line.partition(b":")
        if not colon:
            return Broken.COLON
        if _METHOD.fullmatch(name.rstrip(b" \t")) is None:
            return Broken.NAME
        if name != name.rstrip(b" \t"):
            return Broken.SPACE
        return Broken.NUL if b"\x00" in value else Broken.VALUE
    return Broken.COLON


def _fields(lines: bytes) -> tuple[tuple[bytes, bytes], ...]:
    return tuple(
        (name.lower(), value.strip(b" \t"))
        for name, _, value in (one.partition(b":") for one in lines.split(b"\r\n")[:-1])
    )


def _target_valid(method: bytes, target: bytes) -> bool:
    if method == b"CONNECT":
        return grammar.AUTHORITY_FORM.fullmatch(target) is not None
    if target[:1] == b"/":
        return grammar.ORIGIN_FORM.fullmatch(target) is not None
    if target == b"*":
        return method == b"OPTIONS"
    return grammar.ABSOLUTE_FORM.fullmatch(target) is not None


def _list(fields: tuple[tuple[bytes, bytes], ...], name: bytes) -> list[bytes]:
    return [
        element.strip(b" \t").lower()
        for key, value in fields
        if key == name
        for element in value.split(b",")
    ]


def _with_content(sent: bytes, at: int, request: Request) -> Request:
    """The request with its end, by RFC 9112 6.3."""
    replace = msgspec.structs.replace
    lengths = [value for name, value in request.fields if name == b"content-length"]
    codings = [value for name, value in request.fields if name == b"transfer-encoding"]
    if request.method == b"CONNECT" and (lengths or codings):
        return replace(
            request, broken=Broken.CONNECT
        )  # content of a CONNECT means nothing (RFC 9110 9.3.6)
    if codings:
        # Transfer-Encoding in 1.0, or beside Content-Length, is faulty framing (9112 6.1).
        if lengths:
            return replace(request, broken=Broken.BOTH)
        if request.minor == 0:
            return replace(request, broken=Broken.OLD)
        if [c.lower() for c in codings] != [b"chunked"]:
            elements = [one for one in _list(request.fields, b"transfer-encoding") if one]
            is_last = bool(elements) and elements[-1].partition(b";")[0].strip() == b"chunked"
            return replace(request, broken=Broken.CODINGS if is_last else Broken.CODING)
        return _chunked(sent, at, request)
    length = 0
    if lengths:
        if len(lengths) > 1:
            return replace(request, broken=Broken.LENGTHS)
        if not grammar.CONTENT_LENGTH.fullmatch(lengths[0]):
            return replace(request, broken=Broken.LENGTH)
        if len(lengths[0]) > 18 or int(lengths[0]) > _CONTENT_BYTES_MAX:
            return replace(request, broken=Broken.HUGE)
        length = int(lengths[0])
    if len(sent) - at < length:
        return replace(request, valid=True)
    end = at + length
    pieces = ((at, end),) if length else ()
    return replace(request, end=end, valid=True, whole=True, pieces=pieces)


def _chunked(sent: bytes, at: int, request: Request) -> Request:
    replace = msgspec.structs.replace
    unfinished = replace(request, valid=True)
    pieces: list[tuple[int, int]] = []
    while True:
        end = sent.find(b"\r\n", at)
        if end < 0:
            so_far = _PARTIAL_CHUNK_LINE.fullmatch(sent[at:]) is not None
            broken = Broken.CHUNK_CR if b"\r" in sent[at:] else Broken.SIZE
            return unfinished if so_far else replace(request, broken=broken)
        line = grammar.CHUNK_LINE.fullmatch(sent[at:end])
        if line is None:
            broken = Broken.CHUNK_CR if b"\r" in sent[at:end] else Broken.SIZE
            return replace(request, broken=broken)
        size = int(line[1], 16)
        at = end + 2
        if size == 0:
            break
        if size > _CONTENT_BYTES_MAX:
            return replace(request, broken=Broken.HUGE)
        after = sent[at + size : at + size + 2]
        if after != b"\r\n"[: len(after)]:
            broken = Broken.CHUNK_CR if after[:1] == b"\r" else Broken.DATA_END
            return replace(request, broken=broken)
        if len(after) < 2:
            return unfinished
        pieces.append((at, at + size))
        at += size + 2
    trailers = at
    end = sent.find(b"\r\n\r\n", trailers - 2)
    section = sent[trailers : end + 2 if end >= 0 else len(sent)]
    complete = section if end >= 0 else section[: section.rfind(b"\r\n") + 2]
    if end < 0 and b"\r\n" not in section:
        complete = b""
    if not grammar.FIELD_LINES.fullmatch(complete):
        return replace(request, broken=Broken.TRAILER)
    if end < 0:
        so_far = _PARTIAL_FIELD.fullmatch(section[len(complete) :]) is not None
        return unfinished if so_far else replace(request, broken=Broken.TRAILER)
    return replace(
        request,
        end=end + 4,
        valid=True,
        whole=True,
        trailers=_fields(complete),
        pieces=tuple(pieces),
    )
