"""The rules of framing and content, where the request or the end of the connection decides."""

from __future__ import annotations

import pytest

from httpmark.harness.judging.response_rules.judge_answers import judge_answers
from httpmark.harness.model.verdicts import Word
from httpmark.harness.tests.shared.made_exchanges import (
    BROKEN_LINE,
    CHUNKED,
    CONNECT,
    GET,
    HEAD,
    REFUSED,
    asked,
    bare,
    get,
    names,
    ok,
    seen,
)


def test_chunks_to_an_unreadable_version_are_not_judged() -> None:
    answer = bare(b"400 x", CHUNKED + b"Connection: close\r\n", b"0\r\n\r\n")
    request = GET.replace(b"HTTP/1.1", b"HTTP/1.x")
    assert "RESP-13" not in names(judge_answers(asked(request, answer, close="fin")))


@pytest.mark.parametrize(
    "request_bytes",
    [HEAD.replace(b"HEAD ", b"HEAD  "), BROKEN_LINE + HEAD, b"head /hello HTTP/1.1 x\r\n\r\n"],
)
def test_what_may_answer_a_head_is_not_cut_short(request_bytes: bytes) -> None:
    answer = bare(b"400 x", b"Content-Length: 5\r\nConnection: close\r\n")
    found = judge_answers(asked(request_bytes, answer, close="fin"))
    assert not names(found) & {"RESP-09", "RESP-16"}
    with_body = judge_answers(asked(request_bytes, answer + b"hello", close="fin"))
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


def test_a_handler_answers_for_its_own_content() -> None:
    request = get(b"/404?x")
    found = judge_answers(asked(request, ok(status=b"404 x")))
    assert names(found, Word.WARN) == {"RESP-27"}
