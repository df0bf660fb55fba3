"""Each rule of answers: a model exchange that keeps it, one that breaks it, and the exceptions."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from httpmark.harness.http import response_reader
from httpmark.harness.judging.response_rules.collector import Collector
from httpmark.harness.judging.response_rules.exchange_view import Declared, ExchangeView, view
from httpmark.harness.judging.response_rules.findings import Findings
from httpmark.harness.judging.response_rules.judge_answers import judge_answers
from httpmark.harness.judging.response_rules.rule_table import RULES
from httpmark.harness.model.cases import Case, Facts, Level, Op, Step
from httpmark.harness.model.exchanges import End, Exchange, Outcome
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


def seen(*events: Event, began_s: float | None = None, head_only: bool = False) -> ExchangeView:
    """An exchange from its events, 1 ms apart: octets sent and received, pauses, ends."""
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
    )


def asked(request: bytes, *answers: bytes, close: str | None = None) -> ExchangeView:
    """One request, its answers, and an end."""
    return seen(
        ("send", request), *(("recv", one) for one in answers), *((close,) if close else ())
    )


def names(found: Findings, word: Word | None = None) -> set[str]:
    return {one.rule for one in found.found if word in (None, one.word)}


def mirrored(target: bytes) -> bytes:
    return ok(content=json.dumps({"target": base64.b64encode(target).decode()}).encode())


def get(target: bytes) -> bytes:
    return GET.replace(b"/hello", target)


CHUNKED = b"Transfer-Encoding: chunked\r\n"
LATER = ("pause", 2500)
TAG = b'GET /f HTTP/1.1\r\nHost: a\r\nIf-None-Match: "x"\r\n\r\n'
FULL = ok(b'ETag: "x"\r\nVary: Accept\r\n')
TWO = get(b"/mirror?1") + get(b"/mirror?2")
XSS = GET.replace(b"/hello HTTP", b'/"><script>alert HTTP')
HTML = b"Connection: close\r\nContent-Type: text/html\r\n"

# For each check: exchanges that keep it, and exchanges that break it.
MODELS: dict[str, tuple[list[ExchangeView], list[ExchangeView]]] = {
    "RESP-01": (
        [asked(GET, ok()), asked(GET, ok(status=b"200 "))],
        [
            asked(GET, ok(status=b"200")),
            asked(GET, ok().replace(b"HTTP/1.1", b"HTTP/2")),
            asked(GET, ok().replace(b"HTTP/1.1 ", b"HTTP/1.1  ")),
            asked(GET, b"Hello World!", close="fin"),
            asked(GET, b"Hello World!"),
            asked(BROKEN, b"<html>", close="fin"),
            asked(GET, b"HTTP/1.1 200 OK\r\nDa", close="fin"),
        ],
    ),
    "RESP-02": (
        [asked(GET, ok()), asked(OLD, ok())],
        [
            asked(OLD, ok().replace(b"1.1", b"1.0", 1)),
            asked(GET, ok().replace(b"1.1", b"1.0", 1)),
            asked(BROKEN, ok().replace(b"1.1", b"1.0", 1)),
            asked(GET, ok().replace(b"1.1", b"1.2", 1)),
        ],
    ),
    "RESP-03": (
        [asked(GET, ok(status=b"599 x")), asked(GET, ok(status=b"299 x"))],
        [asked(GET, ok(status=b"600 x")), asked(GET, ok(status=b"099 x"))],
    ),
    "RESP-04": (
        [asked(GET, ok(status=b"200 O\tK \xff"))],
        [asked(GET, ok(status=b"200 O\x00K")), asked(GET, ok(status=b"200 \x7f"))],
    ),
    "RESP-05": (
        [asked(GET, ok(content=b"a\nb\rc"))],
        [
            asked(GET, ok().replace(b"OK\r\n", b"OK\n")),
            asked(GET, ok().replace(b"\r\n", b"\n")),
            asked(GET, ok(b"a: b\rc\r\n")),
            asked(GET, ok(status=b"200 O\rK")),
        ],
    ),
    "RESP-06": (
        [asked(GET, ok(b"!x:\t y \r\n"))],
        [
            asked(GET, ok(b"a : b\r\n")),
            asked(GET, ok(b"a(: b\r\n")),
            asked(GET, ok(b": b\r\n")),
            asked(GET, ok(b"a\r\n")),
            asked(GET, ok(b"a: b\r\n c\r\n")),
        ],
    ),
    "RESP-07": (
        [asked(GET, ok(b"a: b\tc \xff\r\n"))],
        [asked(GET, ok(b"a: \x00\r\n")), asked(GET, ok(b"a: b\x7f\r\n"))],
    ),
    "RESP-08": (
        [asked(GET, ok(b"Set-Cookie: a=b\r\nSet-Cookie: c=d\r\n"))],
        [asked(GET, ok(DATE)), asked(GET, ok(b"Server: a\r\nserver: a\r\n"))],
    ),
    "RESP-09": (
        [asked(GET, ok(), close="fin"), asked(HEAD, bare(b"200 OK", b"Content-Length: 5\r\n"))],
        [
            asked(GET, bare(b"200 OK", b"Content-Length: +5\r\n", b"hello")),
            asked(GET, bare(b"200 OK", b"Content-Length: 5, 5\r\n", b"hello")),
            asked(GET, bare(b"200 OK", b"Content-Length: 6\r\n", b"hello"), close="fin"),
            asked(GET, bare(b"200 OK", b"Content-Length: 4\r\n", b"hello")),
            asked(GET + GET, bare(b"200 OK", b"Content-Length: 6\r\n", b"hello"), ok()),
            asked(GET, bare(b"200 OK", b"Content-Length: " + b"9" * 5000 + b"\r\n"), close="fin"),
        ],
    ),
    "RESP-10": (
        [asked(GET, ok())],
        [asked(GET, bare(b"200 OK", b"Content-Length: 10\r\n" + CHUNKED, b"0\r\n\r\n"))],
    ),
    "RESP-11": (
        [asked(POST, bare(b"100 Continue"), ok()), asked(GET, bare(b"204 No Content"))],
        [
            asked(GET, bare(b"204 No Content", CHUNKED)),
            asked(POST, bare(b"100 Continue", CHUNKED), ok()),
            asked(CONNECT, bare(b"200 OK", CHUNKED)),
            asked(OLD, bare(b"100 Continue"), ok(), close="fin"),
        ],
    ),
    "RESP-12": (
        [asked(GET, bare(b"204 No Content")), asked(CONNECT, bare(b"200 OK"))],
        [
            asked(GET, bare(b"204 No Content", b"Content-Length: 0\r\n")),
            asked(POST, bare(b"100 Continue", b"Content-Length: 0\r\n"), ok()),
            asked(CONNECT, bare(b"200 OK", b"Content-Length: 0\r\n")),
        ],
    ),
    "RESP-13": (
        [asked(GET, bare(b"200 OK", CHUNKED, b"0\r\n\r\n"))],
        [
            asked(OLD, bare(b"200 OK", CHUNKED, b"0\r\n\r\n"), close="fin"),
            asked(
                GET.replace(b"1.1", b"2.0"), bare(b"505 No", CHUNKED, b"0\r\n\r\n"), close="fin"
            ),
        ],
    ),
    "RESP-14": (
        [
            asked(GET, bare(b"200 OK", b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n")),
            asked(GET, bare(b"200 OK", b"Transfer-Encoding: gzip\r\n", b"x"), close="fin"),
        ],
        [
            asked(GET, bare(b"200 OK", b"Transfer-Encoding: gzip\r\n", b"x")),
            asked(GET, bare(b"200 OK", CHUNKED + CHUNKED, b"0\r\n\r\n")),
        ],
    ),
    "RESP-15": (
        [asked(GET, bare(b"200 OK", CHUNKED, b'1;a="b"\r\nx\r\n0\r\nT: u\r\n\r\n'))],
        [
            asked(GET, bare(b"200 OK", CHUNKED, b"1 \r\nx\r\n0\r\n\r\n")),
            asked(GET, bare(b"200 OK", CHUNKED, b"1\r\nxx\r\n0\r\n\r\n")),
            asked(GET, bare(b"200 OK", CHUNKED, b"1\r\nx\r\n"), close="fin"),
            asked(GET, bare(b"200 OK", CHUNKED, b"0\r\nbad\r\n\r\n")),
        ],
    ),
    "RESP-16": (
        [asked(HEAD, bare(b"200 OK", b"Content-Length: 5\r\n")), asked(GET, bare(b"204 x"))],
        [
            asked(HEAD, ok()),
            asked(GET, bare(b"204 x", b"", b"hello")),
            asked(GET, bare(b"304 x", b"Content-Length: 5\r\n", b"hello")),
            asked(POST, bare(b"100 Continue", b"", b"hello"), ok()),
            asked(HEAD.replace(b"Host: a", b"Host: a\r\nX : y"), REFUSED),
        ],
    ),
    "RESP-17": (
        [asked(GET, ok(content=b"", status=b"205 Reset"))],
        [asked(GET, ok(status=b"205 Reset")), asked(GET, bare(b"205 x", b"", b"x"), close="fin")],
    ),
    "RESP-18": (
        [asked(GET, ok()), asked(GET + GET, ok(), ok())],
        [
            asked(GET, ok(), ok()),
            asked(GET, ok(), b"\r\n"),
            asked(GET, ok(), REFUSED, close="fin"),
            asked(POST, ok(), REFUSED, close="fin"),
            asked(GET, ok(), bare(b"100 Continue")),
            seen(("send", GET), ("recv", ok()), ("recv", ok()), ("send", BROKEN)),
        ],
    ),
    "RESP-19": (
        [
            asked(GET, ok()),
            asked(TWO, mirrored(b"/mirror?1"), mirrored(b"/mirror?2")),
        ],
        [
            asked(GET, ok(), ok()),
            seen(("send", GET), LATER),
            seen(("send", GET + GET), ("recv", ok()), LATER),
            asked(TWO, mirrored(b"/mirror?2"), mirrored(b"/mirror?1")),
        ],
    ),
    "RESP-20": (
        [asked(GET, ok())],
        [
            asked(GET, ok().replace(DATE, b"")),
            asked(BROKEN, REFUSED.replace(DATE, b""), close="fin"),
            asked(GET, bare(b"304 x").replace(DATE, b"")),
        ],
    ),
    "RESP-21": (
        [asked(GET, ok(b"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"))],
        [
            asked(GET, ok().replace(b"Sun", b"Mon")),
            asked(GET, ok().replace(b"Sun, 06 Nov", b"Sun, 6 Nov")),
            asked(GET, ok(b"Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT\r\n")),
            asked(GET, ok(b"Last-Modified: Tue, 30 Feb 1999 08:49:37 GMT\r\n")),
        ],
    ),
    "RESP-22": (
        [
            asked(GET, ok(b"Allow: GET, HEAD\r\n", status=b"405 x")),
            asked(GET, ok(b"Allow:\r\n", status=b"405 x")),
        ],
        [asked(GET, ok(status=b"405 x")), asked(GET, ok(b"Allow: GET HEAD\r\n"))],
    ),
    "RESP-23": (
        [asked(GET, ok(b"WWW-Authenticate: Basic\r\n", status=b"401 x"))],
        [asked(GET, ok(status=b"401 x"))],
    ),
    "RESP-24": (
        [
            asked(GET, ok(b"Upgrade: a\r\nConnection: x, Upgrade\r\n", status=b"426 x")),
            asked(GET, bare(b"101 x", b"Upgrade: websocket\r\nConnection: upgrade\r\n")),
        ],
        [
            asked(GET, ok(b"Connection: upgrade\r\n", status=b"426 x")),
            asked(GET, bare(b"101 x", b"Connection: upgrade\r\n")),
            asked(GET, ok(b"Upgrade: h2c\r\n")),
        ],
    ),
    "RESP-25": (
        [
            asked(GET, ok(b"Content-Range: bytes 0-4/9\r\n", status=b"206 x")),
            asked(GET, ok(b"Content-Type: multipart/byteranges; boundary=a\r\n", status=b"206 x")),
        ],
        [
            asked(GET, ok(status=b"206 x")),
            asked(
                GET,
                ok(
                    b"Content-Type: multipart/byteranges\r\nContent-Range: bytes 0-4/9\r\n",
                    status=b"206 x",
                ),
            ),
        ],
    ),
    "RESP-26": (
        [
            asked(get(b"/f") + TAG, FULL, bare(b"304 x", b'ETag: "x"\r\nVary: Accept\r\n')),
        ],
        [
            asked(get(b"/f") + TAG, FULL, bare(b"304 x", b'ETag: "x"\r\n')),
            asked(get(b"/f") + TAG, FULL, bare(b"304 x", b'ETag: "y"\r\nVary: Accept\r\n')),
            asked(get(b"/f") + TAG, FULL, bare(b"304 x", b"Vary: Accept\r\n")),
        ],
    ),
    "RESP-27": (
        [asked(BROKEN, REFUSED, close="fin")],
        [asked(BROKEN, ok(b"Connection: close\r\n", status=b"400 x"), close="fin")],
    ),
    "RESP-28": (
        [asked(GET, ok()), asked(BROKEN, REFUSED, close="fin")],
        [
            asked(GET, bare(b"200 OK", b"Connection: close\r\n", b"hi"), close="fin"),
            asked(BROKEN, bare(b"400 x", b"Connection: close\r\n"), close="fin"),
        ],
    ),
    "RESP-29": (
        [asked(GET, ok(b"Connection: close\r\n"), close="fin")],
        [
            asked(GET, ok(), close="fin"),
            asked(GET, ok(), close="rst"),
            asked(GET.replace(b"Host", b"Connection: close\r\nHost"), ok(), close="fin"),
            asked(POST[:-2], ok(status=b"413 x"), close="fin"),
        ],
    ),
    "RESP-30": (
        [seen(("send", GET), ("recv", ok()), ("send", GET), ("recv", ok()))],
        [
            seen(("send", GET), ("recv", ok()), ("send", GET), "fin"),
            seen(("send", GET), ("recv", ok()), ("send", GET), "rst"),
            seen(("send", GET), ("recv", ok()), ("send", GET), LATER),
        ],
    ),
    "RESP-31": (
        [
            asked(
                GET,
                ok(b'Location: /a?b#c\r\nETag: W/"a"\r\nServer: a/1 (b (c)) d\r\nVary: *\r\n'),
            ),
            asked(GET, ok(b"Vary:\r\n")),
        ],
        [
            asked(GET, ok(b"Location: /a b\r\n")),
            asked(GET, ok(b"Location: /%zz\r\n")),
            asked(GET, ok(b"ETag: abc\r\n")),
            asked(GET, ok(b"Server: (a)\r\n")),
            asked(GET, ok(b"Server:\r\n")),
            asked(GET, ok(b"Vary: a b\r\n")),
            asked(GET, ok(b"Last-Modified: now\r\n")),
        ],
    ),
    "RESP-32": (
        [
            asked(XSS, ok(HTML, b"<html>no &lt;script&gt;", b"400 x"), close="fin"),
            asked(XSS, ok(HTML, b"<html>no</html>", b"400 x"), close="fin"),
        ],
        [asked(XSS, ok(HTML, b'<p>"><script>alert is bad', b"400 x"), close="fin")],
    ),
    "RESP-33": (
        [
            asked(BROKEN, REFUSED, close="fin"),
            asked(BROKEN, REFUSED, close="rst"),
            seen(("send", GET), ("recv", REFUSED), ("pause", 1400), "fin"),
        ],
        [
            asked(BROKEN, REFUSED, ok(), close="fin"),
            asked(GET + GET, REFUSED, ok(), close="fin"),
            seen(("send", BROKEN), ("recv", REFUSED), ("pause", 11000)),
            seen(("send", BROKEN), ("recv", REFUSED), ("pause", 11000), "fin"),
        ],
    ),
    "RESP-34": (
        [
            seen(("send", GET), ("recv", ok()), began_s=THEN_S),
            seen(("send", GET), ("recv", ok()), began_s=THEN_S + 5),
            seen(("send", GET), ("recv", ok()), began_s=THEN_S - 4),
        ],
        [
            seen(("send", GET), ("recv", ok()), began_s=THEN_S + 8),
            seen(("send", GET), ("recv", ok()), began_s=THEN_S - 8),
            seen(("send", GET), ("recv", ok()), ("pause", 2100), ("send", GET), ("recv", ok())),
        ],
    ),
    "RESP-35": (
        [asked(GET, ok(b"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"))],
        [asked(GET, ok(b"Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n"))],
    ),
}  # fmt: skip


def pairs(keeps: bool) -> list[tuple[str, ExchangeView]]:
    return [(name, one) for name, (good, bad) in MODELS.items() for one in (good if keeps else bad)]


def test_every_check_has_models_of_both_kinds() -> None:
    assert list(MODELS) == list(RULES) == [f"RESP-{number:02}" for number in range(1, 36)]
    assert all(good and bad for good, bad in MODELS.values())
    assert RULES["RESP-28"].level is Level.SHOULD
    assert RULES["RESP-32"].level is Level.SEC
    assert RULES["RESP-33"].level is Level.MUST


@pytest.mark.parametrize(("name", "one"), pairs(keeps=True))
def test_a_model_that_keeps_a_check_passes_it(name: str, one: ExchangeView) -> None:
    found = judge_answers(one)
    assert name not in names(found), found
    assert name in found.judged


@pytest.mark.parametrize(("name", "one"), pairs(keeps=False))
def test_a_model_that_breaks_a_check_is_named(name: str, one: ExchangeView) -> None:
    found = judge_answers(one)
    assert name in names(found), found
    assert name in found.judged
    for finding in found.found:
        assert 0 <= finding.span[0] <= finding.span[1] <= len(one.received)


@pytest.mark.parametrize(("name", "one"), pairs(keeps=True))
def test_a_good_model_breaks_nothing_else(name: str, one: ExchangeView) -> None:
    unrelated = names(judge_answers(one)) - {
        # What the models of these leave out for shortness.
        "RESP-27",
        "RESP-28" if b"gzip" in one.received else "",
        "RESP-29" if one.end is not End.OPEN and b"close" not in one.received else "",
    }
    assert not unrelated, judge_answers(one)


# --- attribution ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [
        asked(BROKEN, ok(), ok()),
        asked(BROKEN, ok(), REFUSED, close="fin"),
        asked(BROKEN, ok(), close="fin"),
        seen(("send", BROKEN), LATER),
        seen(("send", GET), ("recv", ok()), ("send", BROKEN), LATER),
        seen(("send", GET), ("recv", ok()), ("send", BROKEN), "fin"),
        seen(("send", BROKEN), ("recv", ok()), ("send", GET), "fin"),
        asked(b"\r\n" + GET, ok(), close="fin"),
        asked(BROKEN + GET, ok(), ok(), ok()),
    ],
)
def test_after_octets_that_are_no_request_order_is_not_judged(one: ExchangeView) -> None:
    unjudged = {"RESP-18", "RESP-19", "RESP-29", "RESP-30"}
    assert not unjudged & names(judge_answers(one))


def test_what_came_before_those_octets_is_judged() -> None:
    one = seen(("send", GET), ("recv", ok() + ok()), ("send", BROKEN), ("recv", REFUSED), "fin")
    assert {"RESP-18", "RESP-19"} <= names(judge_answers(one))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("RESP-02", ok().replace(b"1.1", b"1.0", 1)),
        ("RESP-28", bare(b"400 x", b"Connection: close\r\n")),
    ],
)
def test_an_unreadable_request_line_binds_no_version(name: str, answer: bytes) -> None:
    assert name in names(judge_answers(asked(BROKEN, answer, close="fin")))
    for request in (BROKEN_LINE, GET + BROKEN_LINE, b"GET /a HTTP/1.1x\r\n\r\n"):
        answers = (ok(),) if request.startswith(GET) else ()
        found = judge_answers(asked(request, *answers, answer, close="fin"))
        assert name not in names(found)


def test_chunks_to_an_unreadable_version_are_not_judged() -> None:
    answer = bare(b"400 x", CHUNKED + b"Connection: close\r\n", b"0\r\n\r\n")
    request = GET.replace(b"HTTP/1.1", b"HTTP/1.x")
    assert "RESP-13" not in names(judge_answers(asked(request, answer, close="fin")))


@pytest.mark.parametrize(
    "request_octets",
    [HEAD.replace(b"HEAD ", b"HEAD  "), BROKEN_LINE + HEAD, b"head /hello HTTP/1.1 x\r\n\r\n"],
)
def test_what_may_answer_a_head_is_not_cut_short(request_octets: bytes) -> None:
    answer = bare(b"400 x", b"Content-Length: 5\r\nConnection: close\r\n")
    found = judge_answers(asked(request_octets, answer, close="fin"))
    assert not names(found) & {"RESP-09", "RESP-16"}
    with_body = judge_answers(asked(request_octets, answer + b"hello", close="fin"))
    assert not names(with_body) & {"RESP-09", "RESP-16", "RESP-01"}


def test_a_body_to_a_head_refused_as_malformed_is_tolerated_when_the_close_follows() -> None:
    request = HEAD.replace(b"Host: a", b"Host: a\r\nX : y")
    found = judge_answers(asked(request, REFUSED, close="fin"))
    assert names(found, Word.WARN) == {"RESP-16"}
    assert not names(found, Word.FAIL)
    assert "RESP-16" in names(judge_answers(asked(HEAD, REFUSED, close="fin")), Word.FAIL)


def test_content_length_on_2xx_to_what_may_be_connect_is_not_judged() -> None:
    request = CONNECT.replace(b"CONNECT a:80", b"CONNECT /a")
    assert "RESP-12" not in names(judge_answers(asked(request, ok(), close="fin")))


@pytest.mark.parametrize(
    "tunnel",
    [
        asked(CONNECT, bare(b"200 OK"), b"\x00\x01 anything"),
        asked(GET, bare(b"101 x", b"Upgrade: a\r\nConnection: upgrade\r\n"), b"\x81\x00"),
        asked(CONNECT, bare(b"200 OK"), close="fin"),
    ],
)
def test_nothing_is_judged_in_a_tunnel(tunnel: ExchangeView) -> None:
    assert not names(judge_answers(tunnel))


@pytest.mark.parametrize(
    "request_octets", [b"GET /hello\r\n\r\n", b"GET /hello\nHTTP/1.1\r\n\r\n", b"GET /x \r\n\r\n",
                       b"\x16\x03\x01\x02\x00abc\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
)  # fmt: skip
def test_a_request_without_a_version_may_be_answered_without_a_status_line(
    request_octets: bytes,
) -> None:
    found = judge_answers(asked(request_octets, b"Hello World!", close="fin"))
    assert not names(found)


# --- cut short, by whom ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("RESP-09", bare(b"200 OK", b"Content-Length: 9\r\n", b"x")),
        ("RESP-15", bare(b"200 OK", CHUNKED, b"5\r\nhe")),
    ],
)
def test_a_length_cut_short_counts_by_fin_only(name: str, answer: bytes) -> None:
    assert name in names(judge_answers(asked(GET, answer, close="fin")))
    assert name not in names(judge_answers(asked(GET, answer, close="rst")))
    assert name not in names(judge_answers(asked(GET, answer)))
    half = seen(("send", GET), "own fin", ("recv", answer), "fin")
    assert name not in names(judge_answers(half))


def test_a_client_that_closed_cannot_ask_for_more() -> None:
    found = judge_answers(seen(("send", GET), "own fin", ("recv", ok()), "fin"))
    assert not names(found)
    found = judge_answers(seen(("send", GET), "own fin", LATER))
    assert not names(found)
    reset = ExchangeView(sent=GET, received=ok(), end=End.OPEN, end_us=50_000_000, own_close=True)
    assert not names(judge_answers(reset))


# --- time -----------------------------------------------------------------------------------------


def test_a_408_or_a_late_400_may_end_an_idle_connection() -> None:
    timed_out = REFUSED.replace(b"400 Bad Request", b"408 Request Timeout")
    assert not names(judge_answers(asked(GET, ok(), timed_out, close="fin")))
    late = seen(("send", GET), ("recv", ok()), ("pause", 1500), ("recv", REFUSED), "fin")
    assert not names(judge_answers(late))
    begun = asked(GET + b"GET /h", ok(), REFUSED, close="fin")
    assert not names(judge_answers(begun))
    early = asked(POST[:-1], ok(), timed_out, close="fin")
    assert not names(judge_answers(early))
    open_still = asked(GET, ok(), timed_out.replace(b"Connection: close\r\n", b""))
    assert "RESP-18" in names(judge_answers(open_still))


def test_a_close_after_an_idle_while_need_not_be_announced() -> None:
    late = seen(("send", GET), ("recv", ok()), ("pause", 1600), "fin")
    assert not names(judge_answers(late))
    soon = seen(("send", GET), ("recv", ok()), ("pause", 1000), "fin")
    assert "RESP-29" in names(judge_answers(soon))
    assert not names(judge_answers(soon, Declared(idle_s=1)))


def test_a_1_0_request_is_closed_without_a_word() -> None:
    assert not names(judge_answers(asked(OLD, ok(), close="fin")))
    kept = OLD.replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n")
    assert "RESP-29" in names(judge_answers(asked(kept, ok(), close="fin")))


def test_a_close_before_the_next_request_is_29_and_after_it_30() -> None:
    before = names(judge_answers(asked(GET, ok(), close="fin")))
    after = seen(("send", GET), ("recv", ok()), ("send", GET), "fin")
    assert (before & {"RESP-29", "RESP-30"}) == {"RESP-29"}
    assert (names(judge_answers(after)) & {"RESP-29", "RESP-30"}) == {"RESP-30"}


def test_a_server_that_tired_of_waiting_broke_no_promise() -> None:
    one = seen(("send", GET), ("recv", ok()), ("pause", 1600), ("send", GET), "fin")
    assert not names(judge_answers(one))


def test_what_follows_an_announced_close_need_not_be_answered() -> None:
    closing = ok(b"Connection: close\r\n")
    assert not names(judge_answers(asked(GET + GET, closing, close="fin")))
    said = GET.replace(b"Host", b"Connection: close\r\nHost")
    assert not names(judge_answers(asked(said + GET, closing, close="fin")))


def test_a_late_close_is_tolerated_for_ten_seconds() -> None:
    late = seen(("send", BROKEN), ("recv", REFUSED), ("pause", 5000), "fin")
    assert names(judge_answers(late), Word.WARN) == {"RESP-33"}
    waiting = seen(("send", BROKEN), ("recv", REFUSED), ("pause", 1800))
    assert names(judge_answers(waiting), Word.WARN) == {"RESP-33"}
    unknown = seen(("send", BROKEN), ("recv", REFUSED), ("pause", 800))
    assert not names(judge_answers(unknown))


def test_silence_proves_nothing_while_this_machine_drops_packets() -> None:
    silent = seen(("send", GET), LATER)
    dropped = ExchangeView(
        sent=GET, received=b"", end=End.OPEN, end_us=silent.end_us, timeline=silent.timeline,
        machine_dropped=True,
    )  # fmt: skip
    assert "RESP-19" in names(judge_answers(silent))
    assert not names(judge_answers(dropped))
    assert not names(judge_answers(seen(("send", GET), ("pause", 1000))))


def test_an_unfinished_request_may_stay_unanswered() -> None:
    for request in (POST[:-1], GET[:-2], GET[:6], b"POST / HTTP/1.1\r\nHost: a\r\n" + CHUNKED):
        assert not names(judge_answers(seen(("send", request), LATER)))


def test_without_a_timeline_only_what_octets_and_ends_prove_is_judged() -> None:
    def plain(received: bytes, end: End, end_us: int = 9000) -> set[str]:
        one = ExchangeView(sent=GET, received=received, end=end, end_us=end_us)
        return names(judge_answers(one))

    assert plain(ok(), End.CLOSED) == {"RESP-29"}
    assert not plain(ok(), End.CLOSED, 1_600_000)
    assert not plain(REFUSED, End.CLOSED)
    assert not plain(REFUSED, End.OPEN, 30_000_000)
    assert not plain(b"", End.OPEN, 30_000_000)
    assert "RESP-18" in plain(ok() + ok(), End.OPEN)


# --- declarations and details ---------------------------------------------------------------------


def test_declarations_bind() -> None:
    old = asked(OLD, ok().replace(b"1.1", b"1.0", 1), close="fin")
    assert names(judge_answers(old)) == {"RESP-02"}
    assert not names(judge_answers(old, Declared(answers_1_0_as_1_0=True)))
    undated = asked(GET, ok().replace(DATE, b""))
    assert not names(judge_answers(undated, Declared(clock=False)))


def test_a_handler_answers_for_its_own_content() -> None:
    request = get(b"/404?x")
    found = judge_answers(asked(request, ok(status=b"404 x")))
    assert names(found, Word.WARN) == {"RESP-27"}


def test_an_answer_of_which_only_the_head_was_read_is_judged_by_its_head() -> None:
    one = seen(("send", GET), ("recv", ok()[:-3]), "fin", head_only=True)
    assert not names(judge_answers(one))
    one = seen(("send", GET), ("recv", ok().replace(DATE, b"")[:-3]), head_only=True)
    assert names(judge_answers(one)) == {"RESP-20"}


def test_reading_goes_on_behind_a_wrong_length_and_a_body_to_head() -> None:
    wrong = bare(b"200 OK", b"Content-Length: 6\r\n", b"hello")
    found = judge_answers(asked(GET + GET, wrong, ok(DATE)))
    assert {"RESP-09", "RESP-08"} <= names(found)
    found = judge_answers(asked(HEAD + GET, ok(), ok(DATE)))
    assert {"RESP-16", "RESP-08"} <= names(found)


def test_what_is_not_asked_of_an_answer_is_not_judged() -> None:
    undated = ok(b"Content-Type: a/b\r\n", status=b"500 x").replace(DATE, b"")
    assert not names(judge_answers(asked(GET, undated)))
    until_close = bare(b"200 OK", b"", b"hi")
    assert not names(judge_answers(asked(OLD, until_close, close="fin")))
    other_major = GET.replace(b"HTTP/1.1", b"HTTP/2.0")
    assert not names(judge_answers(asked(other_major, until_close, close="fin")))


def test_a_fixed_304_is_not_compared() -> None:
    found = judge_answers(asked(get(b"/304"), bare(b"304 x", b'ETag: "x"\r\n')))
    assert "RESP-26" not in found.judged


def test_a_refused_connection_has_no_findings() -> None:
    found = judge_answers(ExchangeView(sent=GET, received=b"", end=End.OPEN, end_us=5))
    assert found == Findings()


# --- many exchanges -------------------------------------------------------------------------------


def played(
    steps: list[Step], writes: list[int], received: bytes = b"", **changes: Any
) -> ExchangeView:
    """An exchange of these steps, of which these writes were recorded, as the checks see it."""
    case = Case("c", "f", tuple(steps))
    timeline = b"".join(EVENT_RECORD.pack(1, 10, octets) for octets in writes)
    made = Exchange(
        "c", "f", case.sent, received, Outcome.ANSWERED, End.OPEN, 1, 9000, sum(writes),
        timeline=timeline,
    )  # fmt: skip
    return view(case, msgspec.structs.replace(made, **changes))


def test_what_was_skipped_was_not_sent() -> None:
    first, rest, last = Step(Op.SEND, b"a" * 9), Step(Op.SEND, b"b" * 5), Step(Op.SEND, b"c" * 7)
    rest = msgspec.structs.replace(rest, if_unanswered=True)
    last = msgspec.structs.replace(last, if_open=True)
    steps = [first, rest, last]
    assert played(steps, [9, 5, 7]).sent == b"a" * 9 + b"b" * 5 + b"c" * 7
    assert played(steps, [9, 7]).sent == b"a" * 9 + b"c" * 7
    assert played(steps, [9, 5]).sent == b"a" * 9 + b"b" * 5
    assert played(steps, [9]).sent == b"a" * 9
    assert played(steps, [4, 5, 3, 4]).sent == b"a" * 9 + b"c" * 7
    assert played(steps, [6]).sent == b"a" * 6
    assert played(steps, [9, 5, 2]).sent == b"a" * 9 + b"b" * 5 + b"c" * 2
    assert played([first, last], []).sent == b""


def test_without_records_the_octets_went_out_in_order() -> None:
    steps = [Step(Op.SEND, b"a" * 9), Step(Op.SEND, b"c" * 7, if_open=True)]
    assert played(steps, [9], timeline=b"").sent == b"a" * 9
    assert played(steps, [9, 7], timeline=b"").sent == b"a" * 9 + b"c" * 7


def test_what_an_exchange_says_of_its_end_is_taken_over() -> None:
    one = played([Step(Op.SEND, GET), Step(Op.FIN)], [len(GET)], ended_s=100.0, end_us=2_000_000)
    assert one.own_close
    assert one.began_s == 98.0
    assert played([Step(Op.SEND, GET)], [len(GET)], flags=16).cut
    assert played([Step(Op.SEND, GET)], [len(GET)]).began_s is None


def test_a_check_counts_once_for_each_exchange_and_keeps_the_first_few() -> None:
    collected = Collector(Facts(host="a", answers_1_0_as_1_0=False))
    undated = ok().replace(DATE, b"")
    for number in range(9):
        case = Case(f"c{number}", "f", (Step(Op.SEND, GET + GET),))
        received = undated + undated if number % 2 else ok() + ok()
        exchange = Exchange(
            case.id, "f", case.sent, received, Outcome.ANSWERED, End.OPEN, 1, 9, len(case.sent)
        )
        collected.add(case, exchange)
    tallies = collected.tallies()
    assert tallies["RESP-20"].words == {Level.MUST: {Word.PASS: 5, Word.FAIL: 4}}
    assert [one.case for one in tallies["RESP-20"].failures] == ["c1", "c3", "c5", "c7"]
    assert tallies["RESP-01"].words == {Level.MUST: {Word.PASS: 9}}
    assert "RESP-23" not in tallies


def test_what_is_collected_in_parts_is_the_same_as_in_one() -> None:
    facts = Facts(host="a")
    whole, parts = Collector(facts), Collector(facts)
    undated = ok().replace(DATE, b"")
    for numbers in (range(3), range(3, 9)):
        part = Collector(facts)
        for number in numbers:
            case = Case(f"c{number}", "f", (Step(Op.SEND, GET),))
            received = undated if number % 3 else ok()
            exchange = Exchange(
                case.id, "f", case.sent, received, Outcome.ANSWERED, End.OPEN, 1, 9, len(GET)
            )
            whole.add(case, exchange)
            part.add(case, exchange)
        parts.merge(part)
    assert parts.tallies() == whole.tallies()
    assert len(whole.tallies()["RESP-20"].failures) == 5, "of six, one too many for the kept"


@pytest.mark.parametrize(
    ("host", "judged"),
    [("127.0.0.1:80", True), ("localhost", True), ("[::1]:8080", True), ("example.org", False),
     ("10.0.0.1:80", False), ("127.example.org", False)],
)  # fmt: skip
def test_the_clock_of_another_machine_is_not_ours(host: str, judged: bool) -> None:
    collected = Collector(Facts(host=host))
    case = Case("c", "f", (Step(Op.SEND, GET),))
    collected.add(
        case,
        Exchange(
            "c", "f", GET, ok(), Outcome.ANSWERED, End.OPEN, 1, 9, len(GET), ended_s=THEN_S + 60
        ),
    )  # fmt: skip
    assert ("RESP-34" in collected.tallies()) is judged


def test_a_worse_finding_of_one_exchange_hides_the_tolerated_one() -> None:
    collected = Collector(Facts(host="a"))
    case = Case("c", "f", (Step(Op.SEND, get(b"/404") + BROKEN),))
    plain = ok(status=b"404 x") + ok(b"Connection: close\r\n", status=b"400 x")
    collected.add(
        case,
        Exchange(
            "c", "f", case.sent, plain, Outcome.ANSWERED, End.CLOSED, 1, 9, len(case.sent)
        ),
    )  # fmt: skip
    assert collected.tallies()["RESP-27"].words == {Level.SHOULD: {Word.FAIL: 1}}


# --- laws -----------------------------------------------------------------------------------------

_PIECES = st.lists(
    st.sampled_from(
        [b"HTTP/1.1 ", b"200 OK", b"204 ", b"100 Continue", b"\r\n", b"\n", b"\r", b"a: b\r\n",
         b"Content-Length: 3\r\n", CHUNKED, b"\r\n\r\n", b"abc", b"3\r\nabc\r\n", b"0\r\n\r\n",
         b" ", b"\x00", DATE, b"HTTP/1.1 200 OK\r\n", b"Connection: close\r\n", ok(), REFUSED]
    ),
    max_size=8,
).map(b"".join)  # fmt: skip


@settings(deadline=None, max_examples=400)
@given(_PIECES, st.sampled_from([b"GET", b"HEAD", b"CONNECT"]), st.booleans())
def test_the_strict_reader_and_the_one_that_reads_on_agree(
    octets: bytes, method: bytes, ended: bool
) -> None:
    """What the strict reader takes is read alike; what it refuses has a finding."""
    request = {b"GET": GET, b"HEAD": HEAD, b"CONNECT": CONNECT}[method]
    found = judge_answers(
        asked(request, octets, close="fin" if ended else None) if octets else asked(request)
    )
    at = 0
    try:
        response = response_reader.read(octets, at, method=method, ended=ended)
    except response_reader.Malformed:
        assert {one.rule for one in found.found} - {"RESP-18", "RESP-20"}
        return
    except response_reader.Incomplete:
        return
    reading = response_reader.read_on(octets, at, method=method, ended=ended)
    assert reading is not None
    assert reading.response == response
    assert not reading.faults


@settings(deadline=None, max_examples=400)
@given(_PIECES, _PIECES, st.sampled_from([None, "fin", "rst"]))
def test_any_octets_are_judged_and_judged_alike(
    first: bytes, second: bytes, close: str | None
) -> None:
    one = asked(GET + first, *(piece for piece in (second,) if piece), close=close)
    found = judge_answers(one)
    assert found == judge_answers(one)
    for finding in found.found:
        assert finding.rule in found.judged
        assert 0 <= finding.span[0] <= finding.span[1] <= len(one.received)


def test_a_hundred_thousand_like_exchanges_take_seconds() -> None:
    plain = [
        seen(("send", GET.replace(b"hello", b"hel%dlo" % n)), ("recv", ok())) for n in range(1000)
    ]
    refused = [asked(BROKEN.replace(b"X", b"X%d" % n), REFUSED, close="fin") for n in range(1000)]
    for exchanges in (plain, refused):
        started = time.process_time()
        for one in exchanges:
            judge_answers(one)
        assert time.process_time() - started < 0.25  # 250 us each; about 15 are usual
