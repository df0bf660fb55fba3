"""The answers of an exchange, as they were read, and a few questions that several rules ask."""

from __future__ import annotations

import msgspec

from httpmark.harness.http import response_reader
from httpmark.harness.judging.response_rules.findings import Findings

_SHOWN_BYTES = 80  # of a server's own value, in a finding


class Answer(msgspec.Struct, frozen=True):
    """One response read, and which request it belongs to (-1: none that is known)."""

    reading: response_reader.Reading
    request: int

    @property
    def response(self) -> response_reader.Response:
        return self.reading.response


class DatedAnswer(msgspec.Struct, frozen=True):
    """An answer with one readable Date."""

    answer: Answer
    date: bytes
    now: float  # Unix time


class Answers(msgspec.Struct, frozen=True):
    """All answers of an exchange, and what their bytes alone decide."""

    answers: tuple[Answer, ...]
    findings: Findings
    finals: tuple[Answer, ...] = ()
    closing: int | None = None  # the first of the finals that says close
    garbage: int | None = None  # where bytes begin that are no response
    stopped: bool = False  # by a 101, a 2xx to CONNECT, or an end that cannot be told
    html: bool = False  # an error page in HTML
    dated: tuple[DatedAnswer, ...] = ()
    not_modified: bool = False  # a 304 is among them


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What besides the bytes decides about answers.

    :param fin: the server ended the exchange with its FIN, and the client had closed nothing.
    :param closed: the connection ended.
    :param head_only: only header sections were waited for.
    :param as_1_0: the server may answer a request of HTTP/1.0 with HTTP/1.0.
    :param has_clock: the server has one, so its answers need a Date.
    """

    fin: bool
    closed: bool
    head_only: bool
    as_1_0: bool
    has_clock: bool


def says_close(response: response_reader.Response) -> bool:
    return b"close" in connection_options(response)


def connection_options(response: response_reader.Response) -> list[bytes]:
    """The options of Connection, in lower case."""
    return [
        option.strip(b" \t").lower()
        for value in response.values(b"connection")
        for option in value.split(b",")
    ]


def is_html(response: response_reader.Response) -> bool:
    kinds = response.values(b"content-type")
    return bool(kinds) and kinds[0].lower().startswith((b"text/html", b"application/xhtml"))


def shown(value: bytes) -> str:
    """The beginning of a server's own value, for a finding."""
    return value[:_SHOWN_BYTES].decode("latin-1")
