"""What the application answers to good requests decides what its answer to a bad one says."""

from __future__ import annotations

import pytest

from httpmark.harness.catalogue import expectation, loading
from httpmark.harness.judging import matching, observation, own_answers, published_rule
from httpmark.harness.model.cases import Case, Facts, Op, OwnAnswers, Step
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.verdicts import Word
from httpmark.harness.tests.shared.made_answers import answer

ROUTER = Facts(
    host="a", path="/", post_path="/form",
    own=OwnAnswers(unknown_path=404, query=200, head=405, post=303, post_empty=422),
)  # fmt: skip
OPEN = Facts(
    host="a", own=OwnAnswers(unknown_path=200, query=200, head=200, post=200, post_empty=201)
)
TAIL = " HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize(
    ("line", "own"),
    [
        ("GET /", set()),
        ("GET /?a=1", set()),
        ("GET /a", {404}),
        ("GET /\x01", {404}),
        ("GET /a b", {404}),
        ("GET http://a/", set()),
        ("GET http://a", set()),
        ("GET http:///p", set()),
        ("GET http://a/p", {404}),
        ("\r\nGET /a", {404}),
        ("HEAD /", {405}),
        ("HEAD /a", {404, 405}),
        ("POST /form", {303, 422}),
        ("POST /form?a", {303, 422}),
        ("POST /", set()),
        ("DELETE /a", set()),
    ],
)
def test_each_place_has_its_own_answer(line: str, own: set[int]) -> None:
    found = own_answers.of((line + TAIL).encode("latin-1"), ROUTER)
    assert own_answers.at(found, 0) == own


def test_an_application_that_takes_everything_has_none() -> None:
    assert own_answers.of(f"GET /a{TAIL}".encode(), OPEN) == ()
    assert own_answers.of(f"GET /a{TAIL}".encode(), Facts(host="a")) == ()
    assert own_answers.of(b"", ROUTER) == ()


def test_a_later_answer_may_be_that_of_any_request_sent() -> None:
    found = own_answers.of(f"GET /{TAIL}HEAD /{TAIL}GET /x{TAIL}".encode(), ROUTER)
    assert own_answers.at(found, 0) == set()
    assert own_answers.at(found, 1) == own_answers.at(found, 7) == {404, 405}


def test_a_400_is_no_answer_of_an_application() -> None:
    facts = Facts(host="a", path="/", own=OwnAnswers(unknown_path=400, query=200))
    assert own_answers.at(own_answers.of(f"GET /a{TAIL}".encode(), facts), 0) == set()


def _exchange(case: str, sent: bytes, received: bytes, end: End) -> Exchange:
    return Exchange(
        case=case, family=case.partition("-")[0], outcome=Outcome.ANSWERED, end=end, first_us=1000,
        end_us=2000, sent_octets=len(sent), sent=sent, received=received,
    )  # fmt: skip


def _word(wanted: str, line: str, status: int, facts: Facts) -> Word:
    octets = (line + TAIL).encode("latin-1")
    case = Case("c", "c", (Step(Op.SEND, octets),), methods=(line.split()[0].encode(),))
    exchange = _exchange("c", octets, answer(status, b"", "Connection: close"), End.CLOSED)
    asked = expectation.expectation((wanted,), values={})
    sight = observation.sight(case, exchange)
    own = own_answers.of(octets, facts)
    return matching.judge(case, exchange, sight, asked, own=own).word


@pytest.mark.parametrize(
    ("wanted", "line", "status", "word"),
    [
        # A router that answers every unknown path 404 accepts a path in that way.
        ("ACC", "GET /a", 404, Word.PASS),
        ("REJ", "GET /\x01", 404, Word.FAIL),
        ("REJ301", "GET /\x01", 404, Word.FAIL),
        ("EITHER", "GET /\x01", 404, Word.PASS),
        ("REJ", "GET /\x01", 400, Word.PASS),
        ("REJ", "GET /\x01", 403, Word.PASS),
        ("PARSED", "GET /a", 404, Word.PASS),
        # The path itself is answered 200: a 404 there is another answer.
        ("ACC", "GET /", 404, Word.FAIL),
        ("REJ", "GET /", 404, Word.PASS),
        ("ACC", "HEAD /", 405, Word.PASS),
        ("ACC", "POST /form", 303, Word.PASS),
        ("ACC", "POST /form", 404, Word.FAIL),
    ],
)
def test_an_answer_is_compared_with_that_of_its_good_neighbour(
    wanted: str, line: str, status: int, word: Word
) -> None:
    assert _word(wanted, line, status, ROUTER) is word


def test_without_a_router_a_404_refuses() -> None:
    assert _word("REJ", "GET /\x01", 404, OPEN) is Word.PASS
    assert _word("ACC", "GET /a", 404, OPEN) is Word.FAIL


@pytest.mark.parametrize(
    ("status", "facts", "detected", "read"),
    [
        (404, ROUTER, False, "accepted"),
        (400, ROUTER, True, "rejected"),
        (404, OPEN, True, "rejected"),
    ],
)
def test_the_published_suite_uses_the_same_yardstick(
    status: int, facts: Facts, detected: bool, read: str
) -> None:
    exchange = _exchange("path_byte-01", f"GET /\x01{TAIL}".encode(), answer(status), End.OPEN)
    assert published_rule.reading_of(exchange, facts) == (detected, read)
    control = loading.load().families["control_path_octet"]
    verdict = published_rule.verdict_by_word(control, exchange, facts)
    assert (verdict.word is Word.PASS) is (not detected)
