"""What the rules may know of the request that an answer belongs to.

Whose answer a response is, is certain only while every byte sent so far is part of valid requests.
From the first that is not, RESP-18, 19, 29 and 30 are not judged, and RESP-02, 13, 28 and the HEAD
and CONNECT parts of 11, 12 and 16 only where that message's request line is valid.
"""

from __future__ import annotations

import re

import msgspec

from httpmark.harness.http import request_reader


class Asked(msgspec.Struct, frozen=True):
    """The parts of a request on which the judgement of its answer depends."""

    method: bytes = b""  # HEAD, CONNECT, another as "GET", or empty where it is not known
    major: int | None = None  # None: not known
    minor: int = 1
    valid: bool = False
    line_valid: bool = False
    may_be_head: bool = False
    may_be_connect: bool = False
    may_be_no_http: bool = False  # a request line without a version, or of HTTP/2
    handled: bool = False  # the answer's content comes from a handler of the image


_HANDLED = re.compile(rb"/(?:404|get-only|redirect|304|early|slow)(?:[/?]|$)")
# A line with a method and a target, and no version.
_NO_VERSION = rb"(?![^\r\n]*HTTP/)[^\s:]+[ \t]+[^\s]*[ \t]*(?=[\r\n]|\Z)"
_WITHOUT_VERSION = re.compile(_NO_VERSION)
_LATER_WITHOUT_VERSION = re.compile(rb"[\r\n]" + _NO_VERSION)
_FIRST_LINE = re.compile(rb"[\r\n]*([^\r\n]*)")


def asked(sent: bytes, requests: request_reader.Requests) -> tuple[Asked, ...]:
    """One for each request whose line can be read, and a last one for what comes after them."""
    found = []
    unread = requests.certain
    for request in requests.requests:
        if not request.line_valid:
            unread = request.start
            continue
        kind = request.method if request.method in (b"HEAD", b"CONNECT") else b"GET"
        found.append(
            Asked(
                kind,
                request.major,
                request.minor,
                request.valid,
                True,
                handled=_HANDLED.match(request.target) is not None,
            )
        )
    return (*found, _beyond(sent[unread:]))


def _beyond(uncertain: bytes) -> Asked:
    """Nothing is known of which request is answered; but of what it may be."""
    if not uncertain:
        return Asked(valid=True)
    upper = uncertain.upper()
    match = _FIRST_LINE.match(uncertain)
    line = match[1] if match else b""
    return Asked(
        may_be_head=b"HEAD" in upper,
        may_be_connect=b"CONNECT" in upper,
        may_be_no_http=(
            b"HTTP/" not in line
            or line == b"PRI * HTTP/2.0"
            or _WITHOUT_VERSION.match(uncertain) is not None
            or _LATER_WITHOUT_VERSION.search(uncertain) is not None
        ),
    )
