"""The requests on both sides of a proxy: those that a client sent, those that reached the origin,
what the origin answered to each, and which of them are the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

import msgspec

from httpmark.harness.http import request_reader, response_reader
from httpmark.harness.http.request_reader import Broken, Request, Requests
from httpmark.harness.model.forwarding import Upstream

_ABSOLUTE = re.compile(rb"(?i)https?://([^/?#]*)")
_NUMBER = re.compile(rb"[0-9]+")
_LENGTH_LINE = re.compile(rb"(?i)\r\ncontent-length:[^\r\n]*(?=\r\n)")


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """One request that reached the origin, as far as it came."""

    request: Request
    octets: bytes  # of the whole connection; the offsets of ``request`` are in these
    status: int  # of the origin's answer; 0: none came

    @property
    def raw(self) -> bytes:
        return self.octets[self.request.start : self.request.end]

    def values(self, name: bytes) -> list[bytes]:
        return values(self.request, name)


def values(request: Request, name: bytes) -> list[bytes]:
    """The values of all header field lines of a name (in small letters)."""
    return [value for key, value in request.fields if key == name]


def options(request: Request, name: bytes = b"connection") -> list[bytes]:
    """The elements of a list field, in small letters."""
    return [
        word
        for value in values(request, name)
        for element in value.split(b",")
        if (word := element.strip(b" \t").lower())
    ]


def reached(upstreams: tuple[Upstream, ...]) -> list[Reached]:
    """The requests that reached the origin, in order, each once.

    A proxy may send a request again on a new connection where no answer came: that is one request.
    """
    found: list[Reached] = []
    for upstream in upstreams:
        octets = upstream.to_origin
        read = request_reader.read(octets).requests
        statuses = _statuses(upstream, [request.method for request in read])
        for request in read:
            one = Reached(request=request, octets=octets, status=next(statuses, 0))
            if not any(other.status == 0 and other.raw == one.raw for other in found):
                found.append(one)
    return found


def answers(upstreams: tuple[Upstream, ...]) -> int:
    """How many final answers the origin gave."""
    found = 0
    for one in upstreams:
        methods = [request.method for request in request_reader.read(one.to_origin).requests]
        found += sum(1 for _ in _statuses(one, methods))
    return found


def _statuses(upstream: Upstream, methods: list[bytes]) -> Iterator[int]:
    """The statuses of the final answers on one connection."""
    octets, at, number = upstream.from_origin, 0, 0
    while at < len(octets):
        method = methods[number] if number < len(methods) else b"GET"
        reading = response_reader.read_on(octets, at, method=method, ended=True)
        if reading is None:
            return
        if not reading.response.interim:
            number += 1
            yield reading.response.status
        if reading.cut or reading.lost or reading.response.end <= at:
            return
        at = reading.response.end


def authority(target: bytes) -> bytes | None:
    """The authority of a target in absolute form."""
    match = _ABSOLUTE.match(target)
    return match[1].lower() if match else None


def relative(target: bytes) -> bytes:
    """A target in origin form."""
    match = _ABSOLUTE.match(target)
    if match is None:
        return target
    rest = target[match.end() :]
    return rest if rest.startswith(b"/") else b"/" + rest


def _place(target: bytes) -> tuple[bytes, bytes]:
    """A target, however its path is spelt."""
    path, _, query = relative(target).partition(b"?")
    return unquote_to_bytes(path), query


def pairs(client: Requests, forwarded: list[Reached]) -> list[tuple[Request, Reached]]:
    """The valid requests of a client that surely are those that reached the origin, in order."""
    valid = [one for one in client.requests if one.valid and one.method]
    is_one = len(client.requests) == 1 and len(forwarded) == 1
    found: list[tuple[Request, Reached]] = []
    after = 0
    for one in forwarded:
        if not one.request.valid or not one.request.line_valid:
            continue
        for number in range(after, len(valid)):
            sent = valid[number]
            same = _place(sent.target) == _place(one.request.target)
            if sent.method == one.request.method and (same or is_one):
                found.append((sent, one))
                after = number + 1
                break
    return found


def is_same(sent: Request, one: Reached) -> bool:
    """Whether a request that came whole, or with faults, is one that reached the origin."""
    is_named = bool(sent.method) and sent.method == one.request.method
    return is_named and _place(sent.target) == _place(one.request.target)


def by_chunks(sent: bytes) -> tuple[bytes, Requests]:
    """The bytes of a client without the Content-Length that Transfer-Encoding overrides, and what
    they hold: the one reading that RFC 9112 6.3 leaves of such a message."""
    read = request_reader.read(sent)
    while read.requests and read.requests[-1].broken is Broken.BOTH:
        start = read.requests[-1].start
        head, end, rest = sent[start:].partition(b"\r\n\r\n")
        sent = sent[:start] + _LENGTH_LINE.sub(b"", head + b"\r\n")[:-2] + end + rest
        read = request_reader.read(sent)
    return sent, read


_LENGTHS = frozenset({Broken.LENGTH, Broken.LENGTHS})
_ENDS_THE_CONNECTION = _LENGTHS | {Broken.BOTH, Broken.OLD, Broken.CODING}


def most(client: Requests) -> int | None:
    """How many requests can reach the origin of what a client sent; None: nobody can say.

    After a message whose framing is invalid or doubtful the connection must be closed (RFC 9112
    6.1, 6.3), so nothing after it is a request, whatever became of the message itself.
    """
    if not client.requests:
        return 0
    last = client.requests[-1]
    if last.broken is None and (last.valid or not last.line_valid):
        return len(client.requests)
    is_repeated = last.broken in _LENGTHS and _says_one_length(last)
    if last.broken in _ENDS_THE_CONNECTION and not is_repeated:
        return len(client.requests)
    return None


def must_be_refused(client: Requests) -> bool:
    """Whether the last message is one that a server must refuse with 400 in any case."""
    if not client.requests:
        return False
    last = client.requests[-1]
    if last.broken in _LENGTHS:
        return not _says_one_length(last)
    return last.broken in (Broken.SPACE, Broken.HOST, Broken.CODING)


def _says_one_length(request: Request) -> bool:
    """Whether Content-Length is one number, repeated: a recipient may take it (RFC 9112 6.3)."""
    words = options(request, b"content-length")
    if not words or not all(_NUMBER.fullmatch(word) for word in words):
        return False
    return len({word.lstrip(b"0") for word in words}) == 1
