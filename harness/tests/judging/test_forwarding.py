"""What reaches the origin: for each rule a message that keeps it, and one that does not."""

from __future__ import annotations

import pytest

from httpmark.harness.judging import forwarding
from httpmark.harness.judging.forwarding_rules import BY_ID
from httpmark.harness.model.cases import Level
from httpmark.harness.model.forwarding import Passage, Upstream
from httpmark.harness.tests.shared.repository import ROOT

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
NO = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
HEAD = b"GET /a HTTP/1.1\r\nHost: h\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: h\r\n"
VIA = b"Via: 1.1 p\r\n"
TE = b"Transfer-Encoding: chunked\r\n"
HELLO = b"5\r\nhello\r\n0\r\n\r\n"
NEXT = b"GET /b HTTP/1.1\r\nHost: h\r\n"


def passage(sent: bytes, *reached: bytes, answers: bytes = OK, received: bytes = OK) -> Passage:
    return Passage(
        case="c", family="c", suite="rfc", sent=sent, received=received,
        upstreams=tuple(
            Upstream(number=number, opened_us=number, to_origin=octets, from_origin=answers)
            for number, octets in enumerate(reached)
        ),
    )  # fmt: skip


def rules(sent: bytes, *reached: bytes, **more: bytes) -> set[str]:
    return {one.rule for one in forwarding.remarks(passage(sent, *reached, **more))}


def got(*fields: bytes) -> bytes:
    """The plain GET as it reaches the origin, with fields."""
    return HEAD + b"".join(fields) + VIA + b"\r\n"


GOOD = {
    "a plain GET": (HEAD + b"\r\n", got()),
    "a POST": (POST + b"Content-Length: 5\r\n\r\nhello", POST + VIA + TE + b"\r\n" + HELLO),
    "chunks made one length": (
        POST + TE + b"\r\n" + HELLO, POST + VIA + b"Content-Length: 5\r\n\r\nhello"
    ),
    "both framings, and the chunks are read": (
        POST + TE + b"Content-Length: 3\r\n\r\n" + HELLO,
        POST + VIA + b"Content-Length: 5\r\n\r\nhello",
    ),
    "nothing reaches the origin": (HEAD + b"X : a\r\n\r\n",),
    "a named field is removed": (HEAD + b"Connection: X-A\r\nX-A: 1\r\n\r\n", got()),
    "its own options": (
        HEAD + b"Connection: Upgrade, close\r\nUpgrade: a/1\r\n\r\n",
        got(b"Connection: upgrade\r\nUpgrade: a/1\r\n"),
    ),
    "what is meant for all stays, be it named": (
        HEAD + b"Connection: Host, Cache-Control\r\nCache-Control: no-cache\r\n\r\n",
        got(b"Cache-Control: no-cache\r\n"),
    ),
    "TE is made anew": (HEAD + b"TE: gzip\r\n\r\n", got(b"TE: trailers\r\nConnection: TE\r\n")),
    "the authority of the target": (
        b"GET http://a.example/a HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a.example\r\n" + VIA + b"\r\n",
    ),
    "a Host of the configuration": (
        b"GET http://a.example/a HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: origin:81\r\n" + VIA + b"\r\n",
    ),
    "Max-Forwards is counted down": (
        b"TRACE /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 5\r\n\r\n",
        b"TRACE /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 4\r\n" + VIA + b"\r\n",
    ),
    "Max-Forwards of GET is as it was": (
        HEAD + b"Max-Forwards: 0\r\n\r\n", got(b"Max-Forwards: 0\r\n")
    ),
    "a trailer that is a field of its own": (
        POST + TE + b"X-T: a\r\n\r\n5\r\nhello\r\n0\r\nX-T: a\r\n\r\n",
        POST + VIA + b"X-T: a\r\nContent-Length: 5\r\n\r\nhello",
    ),
    "a length that is also a trailer": (
        POST + TE + b"\r\n5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n",
        POST + VIA + b"Content-Length: 5\r\n\r\nhello",
    ),
    "the length that stands twice, once": (
        POST + b"Content-Length: 5, 05\r\n\r\nhello" + NEXT + b"\r\n",
        POST + VIA + b"Content-Length: 5\r\n\r\nhello", NEXT + VIA + b"\r\n",
    ),
    "two codings": (
        POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + HELLO,
        POST + VIA + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + HELLO,
    ),
    "content of a GET is left out": (HEAD + b"Content-Length: 5\r\n\r\nhello", got()),
    "values of one name are joined": (
        HEAD + b"X-A: b\r\nX-A: a\r\n\r\n", got(b"X-A: b, a\r\n")
    ),
    "an empty line is ignored": (b"\r\n" + HEAD + b"\r\n", got()),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_message_that_is_forwarded_well_breaks_no_rule(name: str) -> None:
    sent, *reached = GOOD[name]
    assert rules(sent, *reached) == set()


BAD = {
    "smuggled": (
        POST + b"Content-Length: 28\r\n\r\n" + NEXT + b"\r\n",
        POST + VIA + b"\r\n" + NEXT + b"\r\n",
    ),
    "read-on": (
        POST + TE + b"Content-Length: 3\r\n\r\n" + HELLO + NEXT + b"\r\n",
        POST + VIA + TE + b"\r\n" + HELLO, NEXT + VIA + b"\r\n",
    ),
    "both-framings": (
        POST + TE + b"Content-Length: 5\r\n\r\n" + HELLO,
        POST + VIA + TE + b"Content-Length: 5\r\n\r\n" + HELLO,
    ),
    "invalid-length": (
        POST + b"Content-Length: +5\r\n\r\nhello", POST + VIA + b"Content-Length: +5\r\n\r\nhello"
    ),
    "transfer-coding": (
        POST + b"Transfer-Encoding: x\r\n\r\n" + HELLO,
        POST + VIA + b"Transfer-Encoding: x\r\n\r\n" + HELLO,
    ),
    "chunks": (POST + TE + b"\r\n0x5\r\nhello", POST + VIA + TE + b"\r\n0x5\r\nhello"),
    "content": (
        POST + TE + b"\r\n" + HELLO, POST + VIA + b"Content-Length: 4\r\n\r\nhell"
    ),
    "bare-cr": (HEAD + b"X: a\rb\r\n\r\n", got(b"X: a\rb\r\n")),
    "nul": (HEAD + b"X: a\x00b\r\n\r\n", got(b"X: a\x00b\r\n")),
    "folded-line": (HEAD + b"X: a\r\n b\r\n\r\n", got(b"X: a\r\n b\r\n")),
    "space-before-colon": (HEAD + b"X : a\r\n\r\n", got(b"X : a\r\n")),
    "space-before-fields": (
        b"GET /a HTTP/1.1\r\n X: a\r\nHost: h\r\n\r\n",
        b"GET /a HTTP/1.1\r\n X: a\r\nHost: h\r\n" + VIA + b"\r\n",
    ),
    "field-line": (HEAD + b"(: a\r\n\r\n", got(b"(: a\r\n")),
    "invalid-host": (
        b"GET /a HTTP/1.1\r\n\r\n", b"GET /a HTTP/1.1\r\n" + VIA + b"\r\n"
    ),
    "own-version": (
        b"GET /a HTTP/1.2\r\nHost: h\r\n\r\n", b"GET /a HTTP/1.2\r\nHost: h\r\n" + VIA + b"\r\n"
    ),
    "connection-options": (
        HEAD + b"Connection: X-A\r\nX-A: 1\r\n\r\n", got(b"X-A: 1\r\n")
    ),
    "trailers": (
        POST + TE + b"\r\n5\r\nhello\r\n0\r\nX-T: a\r\n\r\n",
        POST + VIA + b"X-T: a\r\nContent-Length: 5\r\n\r\nhello",
    ),
    "host-of-target": (
        b"GET http://a.example/a HTTP/1.1\r\nHost: h\r\n\r\n", got()
    ),
    "max-forwards": (
        b"TRACE /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 5\r\n\r\n",
        b"TRACE /a HTTP/1.1\r\nHost: h\r\nMax-Forwards: 5\r\n" + VIA + b"\r\n",
    ),
    "via": (HEAD + b"\r\n", HEAD + b"\r\n"),
    "hop-by-hop": (HEAD + b"TE: trailers\r\n\r\n", got(b"TE: trailers\r\n")),
    "request-line": (
        b"GET /<a HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /<a HTTP/1.1\r\nHost: h\r\n" + VIA + b"\r\n",
    ),
    "control-in-value": (HEAD + b"X: a\x01b\r\n\r\n", got(b"X: a\x01b\r\n")),
    "repaired": (b"GET /a HTTP/1.1\r\n\r\n", got()),
    "completed": (
        POST + TE + b"\r\n5\r\nhel", POST + VIA + TE + b"\r\n3\r\nhel\r\n0\r\n\r\n"
    ),
    "follows-version": (
        b"GET /a HTTP/1.0\r\nHost: h\r\n\r\n", b"GET /a HTTP/1.0\r\nHost: h\r\n" + VIA + b"\r\n"
    ),
    "order": (HEAD + b"X-A: b\r\nX-A: a\r\n\r\n", got(b"X-A: a\r\nX-A: b\r\n")),
    "unknown-field": (HEAD + b"X-A: b\r\n\r\n", got()),
    "target-changed": (
        b"GET /%61 HTTP/1.1\r\nHost: h\r\n\r\n", b"GET /a HTTP/1.1\r\nHost: h\r\n" + VIA + b"\r\n"
    ),
}  # fmt: skip
# What the strict reader refuses, the origin refuses too, or nothing is said of it.
REFUSED = {
    "both-framings", "invalid-length", "transfer-coding", "chunks", "bare-cr", "nul",
    "folded-line", "space-before-colon", "space-before-fields", "field-line", "invalid-host",
    "request-line", "control-in-value",
}  # fmt: skip


@pytest.mark.parametrize("rule", BAD)
def test_a_message_that_is_forwarded_badly_breaks_its_rule_alone(rule: str) -> None:
    sent, *reached = BAD[rule]
    answers = NO if rule in REFUSED else OK
    if rule == "smuggled":
        answers = OK + OK
    also = {"via", "content"} if rule == "smuggled" else {"via"}
    found = rules(sent, *reached, answers=answers)
    assert rule in found
    assert found <= {rule} | also


def test_every_rule_has_a_pair() -> None:
    assert set(BY_ID) == set(BAD) | {"tolerated"}


@pytest.mark.parametrize("rule", sorted(REFUSED - {"control-in-value", "field-line"}))
def test_what_the_origin_takes_is_not_held_against_the_proxy(rule: str) -> None:
    sent, *reached = BAD[rule]
    found = rules(sent, *reached, answers=OK)
    assert rule not in found
    assert "tolerated" in found


def test_a_request_that_is_sent_again_without_an_answer_is_one() -> None:
    upstreams = passage(b"", got(), answers=b"").upstreams + passage(b"", got()).upstreams
    again = passage(HEAD + b"\r\n").__class__(
        case="c", family="c", suite="rfc", sent=HEAD + b"\r\n", received=OK, upstreams=upstreams
    )
    assert forwarding.remarks(again) == []


def test_content_of_a_request_that_the_client_was_refused_is_a_note() -> None:
    sent, *reached = BAD["content"]
    refused = b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"
    assert rules(sent, *reached, received=refused) == {"completed"}


def test_a_request_that_the_origin_did_not_answer_is_not_smuggled() -> None:
    sent, *reached = BAD["smuggled"]
    assert "smuggled" not in rules(sent, *reached, answers=OK)


def test_bytes_that_are_no_http_are_read_without_harm() -> None:
    for octets in (b"\x00", b"\r\n\r\n", b"GET", b"\xff" * 99, b"GET / HTTP/1.1\r\n"):
        assert rules(octets, octets, answers=b"\x00") <= set(BY_ID)


def test_a_1_0_proxy_does_not_follow_the_client() -> None:
    sent, reached = BAD["follows-version"]
    assert forwarding.remarks(passage(sent, reached), own_minor=0) == []


def test_the_page_lists_every_rule() -> None:
    page = (ROOT / "docs" / "forwarding.md").read_text("utf-8")
    words = {Level.MUST: "MUST", Level.SHOULD: "SHOULD", Level.INFO: "note"}
    rows = [
        f"| `{rule.id}` | {rule.title} | {words[rule.level]} | {rule.clause} |"
        for rule in BY_ID.values()
    ]
    assert [line for line in page.splitlines() if line.startswith("| `")] == rows


def test_a_remark_shows_the_request_that_breaks_the_rule() -> None:
    sent, first, second = BAD["read-on"]
    (remark,) = forwarding.remarks(passage(sent, first, second))
    assert remark.shown == second
