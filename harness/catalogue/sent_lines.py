"""Where the lines of the requests stand in the bytes of a case, and what is expected of each."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import msgspec

from httpmark.harness.catalogue.expectation import Expectation
from httpmark.harness.catalogue.grammar_rules import Where
from httpmark.harness.http import grammar, request_reader
from httpmark.harness.http.request_reader import Request

_REFUSING = re.compile(r"REJ|REJ301|R400C?|CLOSE|talk\.in_sync_after_refusal|[45]..(?:,[45]..)*")
_ACCEPTING = re.compile(r"ACC|PARSED|405,501|(?:[123]..|40[1-69]|41[0-35-7]|501)(?:,...)*|talk\..*")


class Wanted(msgspec.Struct, frozen=True):
    """What a case wants of one of its requests."""

    accepted: bool = False
    refused: bool = False


class Line(msgspec.Struct, frozen=True):
    """A line of a request: what may stand there, and its offset. ``request`` is the number of the
    request."""

    where: Where
    at: int
    request: int


@functools.lru_cache
def wanted(expected: Expectation | str, request: int) -> Wanted:
    """What is wanted of one request of a case.

    :param expected: a word of the published suite, or the case's expectation.
    """
    if isinstance(expected, str):
        return Wanted(accepted=expected == "accepted", refused=expected == "seed")
    words = [
        one.answers[request].word if request < len(one.answers) else "" for one in expected.passes
    ]
    return Wanted(
        accepted=all(_ACCEPTING.fullmatch(word) for word in words),
        refused=all(_REFUSING.fullmatch(word) for word in words),
    )


def lines(sent: bytes) -> Iterator[tuple[Line, Request]]:
    """The lines of all requests, up to and with the first request that is not valid."""
    for number, request in enumerate(request_reader.read(sent).requests):
        yield Line(Where.REQUEST_LINE, request.start, number), request
        head_end = sent.find(b"\r\n\r\n", request.start, request.end)
        fields_end = head_end if head_end >= 0 else request.end
        at = sent.find(b"\r\n", request.start, request.end)
        while 0 <= at <= fields_end:
            yield Line(Where.FIELD_LINE, at + 2, number), request
            at = sent.find(b"\r\n", at + 2, request.end)
        if head_end >= 0 and _is_chunked(request):
            for where, at in _chunk_lines(sent, head_end + 4):
                yield Line(where, at, number), request


def _is_chunked(request: Request) -> bool:
    return any(
        name == b"transfer-encoding" and value.lower() == b"chunked"
        for name, value in request.fields
    )


def _chunk_lines(sent: bytes, at: int) -> Iterator[tuple[Where, int]]:
    while True:
        yield Where.CHUNK_LINE, at
        end = sent.find(b"\r\n", at)
        line = grammar.CHUNK_LINE.fullmatch(sent[at:end]) if end >= 0 else None
        if line is None:
            return
        at = end + 2
        size = int(line[1], 16)
        if size == 0:
            break
        yield Where.CHUNK_END, at + size
        if sent[at + size : at + size + 2] != b"\r\n":
            return
        at += size + 2
    while True:
        yield Where.TRAILER_LINE, at
        end = sent.find(b"\r\n", at)
        if end < 0 or end == at:
            return
        at = end + 2
