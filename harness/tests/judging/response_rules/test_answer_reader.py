"""All answers of an exchange are read, also after one that breaks a rule."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from httpmark.harness.http import response_reader
from httpmark.harness.judging.response_rules.exchange_view import ExchangeView
from httpmark.harness.judging.response_rules.judge_answers import judge_answers
from httpmark.harness.tests.shared.made_exchanges import (
    CONNECT,
    DATE,
    GET,
    HEAD,
    PIECES,
    asked,
    bare,
    names,
    ok,
    seen,
)


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
    "request_bytes", [b"GET /hello\r\n\r\n", b"GET /hello\nHTTP/1.1\r\n\r\n", b"GET /x \r\n\r\n",
                       b"\x16\x03\x01\x02\x00abc\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
)  # fmt: skip
def test_a_request_without_a_version_may_be_answered_without_a_status_line(
    request_bytes: bytes,
) -> None:
    found = judge_answers(asked(request_bytes, b"Hello World!", close="fin"))
    assert not names(found)


def test_an_answer_of_which_only_the_head_was_read_is_judged_by_its_head() -> None:
    one = seen(("send", GET), ("recv", ok()[:-3]), "fin", head_only=True)
    assert not names(judge_answers(one))
    one = seen(("send", GET), ("recv", ok().replace(DATE, b"")[:-3]), head_only=True)
    assert names(judge_answers(one)) == {"RESP-20"}


def test_reading_goes_on_after_a_wrong_length_and_a_body_to_head() -> None:
    wrong = bare(b"200 OK", b"Content-Length: 6\r\n", b"hello")
    found = judge_answers(asked(GET + GET, wrong, ok(DATE)))
    assert {"RESP-09", "RESP-08"} <= names(found)
    found = judge_answers(asked(HEAD + GET, ok(), ok(DATE)))
    assert {"RESP-16", "RESP-08"} <= names(found)


@settings(deadline=None, max_examples=400)
@given(PIECES, st.sampled_from([b"GET", b"HEAD", b"CONNECT"]), st.booleans())
def test_the_strict_reader_and_the_one_that_reads_on_agree(
    data: bytes, method: bytes, ended: bool
) -> None:
    """What the strict reader takes is read alike; what it refuses has a finding."""
    request = {b"GET": GET, b"HEAD": HEAD, b"CONNECT": CONNECT}[method]
    found = judge_answers(
        asked(request, data, close="fin" if ended else None) if data else asked(request)
    )
    at = 0
    try:
        response = response_reader.read(data, at, method=method, ended=ended)
    except response_reader.Malformed:
        assert {one.rule for one in found.found} - {"RESP-18", "RESP-20"}
        return
    except response_reader.Incomplete:
        return
    reading = response_reader.read_on(data, at, method=method, ended=ended)
    assert reading is not None
    assert reading.response == response
    assert not reading.faults
