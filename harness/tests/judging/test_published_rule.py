"""Each word: what conforms passes, what does not fails, and silence is never a pass."""

from __future__ import annotations

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.judging import published_rule
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.verdicts import Word

KNOWN = loading.load()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
EXCHANGE = Exchange(
    "path_byte-80", "path_byte", b"GET", ANSWER, Outcome.ANSWERED, End.OPEN, 10, 20, 3
)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def seen(
    received: bytes = b"", outcome: Outcome = Outcome.ANSWERED, *,
    end: End = End.OPEN, head_only: bool = False, dropped: bool = False,
) -> published_rule.Seen:  # fmt: skip
    return published_rule.Seen(outcome, end, received, head_only, dropped)


HUNG = seen(outcome=Outcome.HUNG)
CLOSED = seen(outcome=Outcome.CLOSED, end=End.CLOSED)
RESET = seen(outcome=Outcome.RESET, end=End.RESET)
REFUSED = seen(outcome=Outcome.REFUSED)


@pytest.mark.parametrize(
    ("sight", "detected", "strict"),
    [
        (seen(OK), False, "accepted"),
        (seen(OK[:40], head_only=True), False, "accepted"),
        (seen(BAD_REQUEST), True, "rejected"),
        (seen(b"HTTP/1.1 200 Fine\r\nContent-Length: 0\r\n\r\n"), True, "accepted"),
        (seen(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"), True, "accepted"),
        (seen(b"HTTP/1.1 200 OK\n\n"), False, "malformed"),
        (seen(b"hello", end=End.CLOSED), True, "malformed"),
        (seen(BAD_REQUEST[:20]), True, "malformed"),
        (CLOSED, True, "closed"),
        (RESET, True, "closed"),
        (HUNG, True, "mute"),
        (seen(outcome=Outcome.HUNG, dropped=True), True, "void"),
        (REFUSED, True, "void"),
    ],
)
def test_both_readings(sight: published_rule.Seen, detected: bool, strict: str) -> None:
    assert published_rule.reading(sight) == (detected, strict)


def test_the_published_rule_passes_all_but_200_ok() -> None:
    assert published_rule.seed(seen(OK)).word is Word.FAIL
    assert published_rule.seed(seen(OK)).span == (0, 15)
    for sight in (seen(BAD_REQUEST), CLOSED, RESET, HUNG):
        assert published_rule.seed(sight).word is Word.PASS


@pytest.mark.parametrize("word", published_rule.WORDS)
def test_what_the_harness_may_have_lost_is_void(word: str) -> None:
    for sight in (REFUSED, seen(outcome=Outcome.HUNG, dropped=True)):
        assert published_rule.WORDS[word](sight).word is Word.VOID


def test_a_control_passes_only_by_a_whole_2xx() -> None:
    assert published_rule.accepted(seen(OK)).word is Word.PASS
    for sight in (
        HUNG,
        CLOSED,
        RESET,
        seen(OK[:-1]),
        seen(BAD_REQUEST),
        seen(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        seen(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"),
        seen(b"HTTP/1.1 100 Continue\r\n\r\n"),
        seen(b"200"),
    ):
        assert published_rule.accepted(sight).word is Word.FAIL


def test_an_interim_answer_is_not_the_answer() -> None:
    assert published_rule.accepted(seen(b"HTTP/1.1 100 Continue\r\n\r\n" + OK)).word is Word.PASS


@pytest.mark.parametrize("word", published_rule.WORDS)
def test_judging_twice_gives_the_same(word: str) -> None:
    for sight in (seen(OK), HUNG, CLOSED, seen(b"\xff")):
        assert published_rule.WORDS[word](sight) == published_rule.WORDS[word](sight)


def test_the_family_decides_by_which_word_an_exchange_is_judged() -> None:
    assert (
        published_rule.verdict_by_word(KNOWN.families["path_byte"], EXCHANGE, None).word
        is Word.FAIL
    )
    assert (
        published_rule.verdict_by_word(KNOWN.families["control_hello"], EXCHANGE, None).word
        is Word.PASS
    )


def test_only_what_came_back_counts() -> None:
    first = published_rule.verdict_by_word(KNOWN.families["path_byte"], EXCHANGE, None)
    other = msgspec.structs.replace(EXCHANGE, sent=b"PUT", end_us=9, attempt=2)
    assert published_rule.verdict_by_word(KNOWN.families["path_byte"], other, None) == first


def test_a_verdict_names_its_case_and_points_at_bytes() -> None:
    verdict = published_rule.verdict_by_word(KNOWN.families["path_byte"], EXCHANGE, None)
    assert verdict.case == "path_byte-80"
    assert verdict.span is not None
    assert EXCHANGE.received[slice(*verdict.span)] == b"HTTP/1.1 200 OK"


def test_both_readings_of_a_seed_exchange() -> None:
    assert published_rule.reading_of(EXCHANGE, None) == (False, "accepted")
    hung = msgspec.structs.replace(EXCHANGE, outcome=Outcome.HUNG, received=b"")
    assert published_rule.reading_of(hung, None) == (True, "mute")
