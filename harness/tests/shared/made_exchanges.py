"""Exchanges made event by event, as the rules on answers see them, and messages to make them of."""

from __future__ import annotations

from hypothesis import strategies as st

from httpmark.harness.judging.response_rules.exchange_view import ExchangeView
from httpmark.harness.judging.response_rules.findings import Findings
from httpmark.harness.model.exchanges import End
from httpmark.harness.model.timeline import EVENT_RECORD
from httpmark.harness.model.verdicts import Word

GET = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
HEAD = GET.replace(b"GET", b"HEAD")
CONNECT = b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"
OLD = b"GET /hello HTTP/1.0\r\n\r\n"
POST = b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
BROKEN = b"GET /hello HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n"
BROKEN_LINE = b"GET  /hello HTTP/1.1\r\nHost: a\r\n\r\n"
DATE = b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
THEN_S = 784111777.0  # that date

Event = tuple[str, bytes | int] | str


def ok(fields: bytes = b"", content: bytes = b"hello", status: bytes = b"200 OK") -> bytes:
    length = b"Content-Length: %d\r\n" % len(content)
    return b"HTTP/1.1 " + status + b"\r\n" + DATE + length + fields + b"\r\n" + content


def bare(status: bytes, fields: bytes = b"", content: bytes = b"") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\n" + DATE + fields + b"\r\n" + content


REFUSED = ok(b"Connection: close\r\nContent-Type: text/plain\r\n", b"no", b"400 Bad Request")


def seen(
    *events: Event,
    began_s: float | None = None,
    head_only: bool = False,
    among_many: bool = False,
) -> ExchangeView:
    """An exchange from its events, 1 ms apart: bytes sent and received, pauses, ends."""
    at_us = 1000
    sent = received = timeline = b""
    end = End.OPEN
    for event in events:
        at_us += 1000
        kind, value = event if isinstance(event, tuple) else (event, b"")
        if kind == "pause":
            assert isinstance(value, int)
            at_us += value * 1000
            continue
        assert isinstance(value, bytes)
        number = {"send": 1, "recv": 2, "fin": 3, "rst": 4, "own fin": 5}[kind]
        timeline += EVENT_RECORD.pack(number, at_us, len(value))
        sent += value if kind == "send" else b""
        received += value if kind == "recv" else b""
        end = {"fin": End.CLOSED, "rst": End.RESET}.get(kind, end)
    return ExchangeView(
        sent=sent,
        received=received,
        end=end,
        end_us=at_us + 1000,
        timeline=timeline,
        began_s=began_s,
        head_only=head_only,
        among_many=among_many,
    )


def asked(request: bytes, *answers: bytes, close: str | None = None) -> ExchangeView:
    """One request, its answers, and an end."""
    return seen(
        ("send", request), *(("recv", one) for one in answers), *((close,) if close else ())
    )


def names(found: Findings, word: Word | None = None) -> set[str]:
    return {one.rule for one in found.found if word in (None, one.word)}


def get(target: bytes) -> bytes:
    return GET.replace(b"/hello", target)


CHUNKED = b"Transfer-Encoding: chunked\r\n"
LATER = ("pause", 2500)

PIECES = st.lists(
    st.sampled_from(
        [b"HTTP/1.1 ", b"200 OK", b"204 ", b"100 Continue", b"\r\n", b"\n", b"\r", b"a: b\r\n",
         b"Content-Length: 3\r\n", CHUNKED, b"\r\n\r\n", b"abc", b"3\r\nabc\r\n", b"0\r\n\r\n",
         b" ", b"\x00", DATE, b"HTTP/1.1 200 OK\r\n", b"Connection: close\r\n", ok(), REFUSED]
    ),
    max_size=8,
).map(b"".join)  # fmt: skip
