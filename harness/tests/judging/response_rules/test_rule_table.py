"""Each rule on answers: model exchanges that keep it, and model exchanges that break it."""

from __future__ import annotations

import base64
import json

import pytest

from httpmark.harness.judging.response_rules.exchange_view import ExchangeView
from httpmark.harness.judging.response_rules.judge_answers import judge_answers
from httpmark.harness.judging.response_rules.rule_table import RULES
from httpmark.harness.model.cases import Level
from httpmark.harness.model.exchanges import End
from httpmark.harness.tests.shared.made_exchanges import (
    BROKEN,
    CHUNKED,
    CONNECT,
    DATE,
    GET,
    HEAD,
    LATER,
    OLD,
    POST,
    REFUSED,
    THEN_S,
    asked,
    bare,
    get,
    names,
    ok,
    seen,
)


def mirrored(target: bytes) -> bytes:
    return ok(content=json.dumps({"target": base64.b64encode(target).decode()}).encode())


TAG = b'GET /f HTTP/1.1\r\nHost: a\r\nIf-None-Match: "x"\r\n\r\n'
FULL = ok(b'ETag: "x"\r\nVary: Accept\r\n')

TWO = get(b"/mirror?1") + get(b"/mirror?2")
XSS = GET.replace(b"/hello HTTP", b'/"><script>alert HTTP')
# The same Date, more than two seconds later.
TWICE_LATER = (("send", GET), ("recv", ok()), ("pause", 2100), ("send", GET), ("recv", ok()))
HTML = b"Connection: close\r\nContent-Type: text/html\r\n"

# For each rule: exchanges that keep it, and exchanges that break it.
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
            # It lay unread for 20 s, which is not the server's doing.
            seen(("send", GET), ("pause", 20_000), ("recv", ok()), began_s=THEN_S),
            # The server was kept from its timer, by us.
            seen(("send", GET), ("recv", ok()), began_s=THEN_S + 50, among_many=True),
            seen(*TWICE_LATER, began_s=THEN_S, among_many=True),
        ],
        [
            seen(("send", GET), ("recv", ok()), began_s=THEN_S + 8),
            seen(("send", GET), ("recv", ok()), began_s=THEN_S - 8),
            seen(("pause", 20_000), ("send", GET), ("recv", ok()), began_s=THEN_S),
            seen(("send", GET), ("recv", ok()), began_s=THEN_S - 8, among_many=True),
            seen(("send", GET), ("recv", ok()), began_s=THEN_S + 63, among_many=True),
            seen(*TWICE_LATER),
        ],
    ),
    "RESP-35": (
        [asked(GET, ok(b"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"))],
        [asked(GET, ok(b"Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n"))],
    ),
    "RESP-36": (
        [asked(POST, bare(b"100 Continue"), ok())],
        [asked(OLD, bare(b"100 Continue"), ok(), close="fin")],
    ),
}  # fmt: skip


def pairs(keeps: bool) -> list[tuple[str, ExchangeView]]:
    return [(name, one) for name, (good, bad) in MODELS.items() for one in (good if keeps else bad)]


def test_every_rule_has_models_of_both_kinds() -> None:
    assert list(MODELS) == list(RULES) == [f"RESP-{number:02}" for number in range(1, 37)]
    assert all(good and bad for good, bad in MODELS.values())
    assert RULES["RESP-28"].level is Level.SHOULD
    assert RULES["RESP-32"].level is Level.SEC
    assert RULES["RESP-33"].level is Level.MUST


@pytest.mark.parametrize(("name", "one"), pairs(keeps=True))
def test_a_model_that_keeps_a_rule_passes_it(name: str, one: ExchangeView) -> None:
    found = judge_answers(one)
    assert name not in names(found), found
    assert name in found.judged


@pytest.mark.parametrize(("name", "one"), pairs(keeps=False))
def test_a_model_that_breaks_a_rule_is_named(name: str, one: ExchangeView) -> None:
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
