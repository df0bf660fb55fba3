"""All rules on one exchange: what they need to know, and that equal exchanges are judged alike."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from httpmark.harness.judging.response_rules.exchange_view import Declared, ExchangeView
from httpmark.harness.judging.response_rules.findings import Findings
from httpmark.harness.judging.response_rules.judge_answers import judge_answers
from httpmark.harness.model.exchanges import End
from httpmark.harness.tests.shared.made_exchanges import (
    BROKEN,
    DATE,
    GET,
    OLD,
    PIECES,
    REFUSED,
    asked,
    bare,
    names,
    ok,
    seen,
)


def test_without_a_timeline_only_what_bytes_and_ends_prove_is_judged() -> None:
    def plain(received: bytes, end: End, end_us: int = 9000) -> set[str]:
        one = ExchangeView(sent=GET, received=received, end=end, end_us=end_us)
        return names(judge_answers(one))

    assert plain(ok(), End.CLOSED) == {"RESP-29"}
    assert not plain(ok(), End.CLOSED, 1_600_000)
    assert not plain(REFUSED, End.CLOSED)
    assert not plain(REFUSED, End.OPEN, 30_000_000)
    assert not plain(b"", End.OPEN, 30_000_000)
    assert "RESP-18" in plain(ok() + ok(), End.OPEN)


def test_declarations_bind() -> None:
    old = asked(OLD, ok().replace(b"1.1", b"1.0", 1), close="fin")
    assert names(judge_answers(old)) == {"RESP-02"}
    assert not names(judge_answers(old, Declared(answers_1_0_as_1_0=True)))
    undated = asked(GET, ok().replace(DATE, b""))
    assert not names(judge_answers(undated, Declared(clock=False)))


def test_what_is_not_asked_of_an_answer_is_not_judged() -> None:
    undated = ok(b"Content-Type: a/b\r\n", status=b"500 x").replace(DATE, b"")
    assert not names(judge_answers(asked(GET, undated)))
    until_close = bare(b"200 OK", b"", b"hi")
    assert not names(judge_answers(asked(OLD, until_close, close="fin")))
    other_major = GET.replace(b"HTTP/1.1", b"HTTP/2.0")
    assert not names(judge_answers(asked(other_major, until_close, close="fin")))


def test_a_refused_connection_has_no_findings() -> None:
    found = judge_answers(ExchangeView(sent=GET, received=b"", end=End.OPEN, end_us=5))
    assert found == Findings()


@settings(deadline=None, max_examples=400)
@given(PIECES, PIECES, st.sampled_from([None, "fin", "rst"]))
def test_any_bytes_are_judged_and_judged_alike(
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
