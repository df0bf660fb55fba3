"""The rules of the end of a connection: which closes have to be announced, and when they come."""

from __future__ import annotations

from httpmark.harness.judging.response_rules.exchange_view import Declared
from httpmark.harness.judging.response_rules.judge_answers import judge_answers
from httpmark.harness.model.verdicts import Word
from httpmark.harness.tests.shared.made_exchanges import (
    BROKEN,
    GET,
    OLD,
    REFUSED,
    asked,
    names,
    ok,
    seen,
)


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
