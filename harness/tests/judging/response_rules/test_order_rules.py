"""The rules of how many answers come: what they ask for, and when nothing is judged."""

from __future__ import annotations

import pytest

from httpmark.harness.judging.response_rules.exchange_view import ExchangeView
from httpmark.harness.judging.response_rules.judge_answers import judge_answers
from httpmark.harness.model.exchanges import End
from httpmark.harness.tests.shared.made_exchanges import (
    BROKEN,
    CHUNKED,
    GET,
    LATER,
    POST,
    REFUSED,
    asked,
    names,
    ok,
    seen,
)


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
def test_after_bytes_that_are_no_request_order_is_not_judged(one: ExchangeView) -> None:
    unjudged = {"RESP-18", "RESP-19", "RESP-29", "RESP-30"}
    assert not unjudged & names(judge_answers(one))


def test_what_came_before_those_bytes_is_judged() -> None:
    one = seen(("send", GET), ("recv", ok() + ok()), ("send", BROKEN), ("recv", REFUSED), "fin")
    assert {"RESP-18", "RESP-19"} <= names(judge_answers(one))


def test_a_client_that_closed_cannot_ask_for_more() -> None:
    found = judge_answers(seen(("send", GET), "own fin", ("recv", ok()), "fin"))
    assert not names(found)
    found = judge_answers(seen(("send", GET), "own fin", LATER))
    assert not names(found)
    reset = ExchangeView(sent=GET, received=ok(), end=End.OPEN, end_us=50_000_000, own_close=True)
    assert not names(judge_answers(reset))


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
