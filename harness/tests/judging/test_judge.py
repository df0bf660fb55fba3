"""Judging is pure: equal exchanges have equal verdicts, whoever asks and how often."""

from __future__ import annotations

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.judging import judge
from httpmark.harness.model.exchanges import (
    SLOW_ANSWER_US,
    Attempt,
    Doubt,
    End,
    Exchange,
    ExchangeFlag,
    Outcome,
)
from httpmark.harness.model.verdicts import Verdict, Word

KNOWN = loading.load()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
EXCHANGE = Exchange(
    "path_byte-80", "path_byte", b"GET", ANSWER, Outcome.ANSWERED, End.OPEN, 10, 20, 3
)


@pytest.mark.parametrize("flags", [2, 4, 6])
def test_a_first_attempt_that_ran_out_of_time_does_not_count_beside_others(flags: int) -> None:
    late = msgspec.structs.replace(EXCHANGE, flags=flags)
    again = msgspec.structs.replace(EXCHANGE, attempt=Attempt.LATE)
    fail, passed = (Verdict("c", word, "", "") for word in (Word.FAIL, Word.PASS))
    assert judge.settled([fail, passed], [late, again]).word is Word.PASS
    assert judge.settled([fail], [late]).word is Word.FAIL
    reset = msgspec.structs.replace(EXCHANGE, outcome=Outcome.RESET, end=End.RESET, received=b"")
    assert judge.settled([fail, passed], [reset, again]).word is Word.PASS
    assert judge.settled([fail, fail], [reset, again]).word is Word.FAIL
    assert judge.settled([fail, passed], [EXCHANGE, again]).word is Word.UNSTABLE
    slow = msgspec.structs.replace(fail, late=True)  # nothing ran out, yet it was held up
    assert judge.settled([slow, passed], [EXCHANGE, again]).word is Word.PASS
    assert judge.settled([slow, fail], [EXCHANGE, again]).word is Word.FAIL
    assert judge.settled([slow], [EXCHANGE]).word is Word.FAIL
    repeat = msgspec.structs.replace(late, attempt=Attempt.REPEAT)
    assert judge.settled([passed, fail], [EXCHANGE, repeat]).word is Word.PASS
    assert judge.settled([fail, fail], [late, repeat]).word is Word.FAIL


def test_silence_that_ends_once_a_case_is_asked_alone_does_not_count() -> None:
    silent = msgspec.structs.replace(EXCHANGE, flags=int(ExchangeFlag.AWAIT_RAN_OUT))
    fail, passed = (Verdict("c", word, "", "") for word in (Word.FAIL, Word.PASS))
    tries = (Attempt.DOUBTED, Attempt.DOUBTED_AGAIN, Attempt.ALONE)

    def said(*heard: bool) -> Word:
        attempts = [
            msgspec.structs.replace(EXCHANGE if one else silent, attempt=attempt)
            for one, attempt in zip(heard, tries, strict=True)
        ]
        return judge.settled([passed if one else fail for one in heard], attempts).word

    assert said(False, False, True) is Word.PASS
    assert said(True, False, True) is Word.PASS  # late now and then
    assert said(False, True, False) is Word.UNSTABLE
    assert said(False, False, False) is Word.FAIL


@pytest.mark.parametrize("attempt", [Attempt.FIRST, Attempt.DOUBTED])
@pytest.mark.parametrize("end", End)
@pytest.mark.parametrize("flag", [ExchangeFlag.HELD_UP, ExchangeFlag.LOOK_RAN_OUT])
def test_an_attempt_that_a_busy_machine_disturbed_does_not_count_beside_others(
    attempt: Attempt, flag: ExchangeFlag, end: End
) -> None:
    refused = b"HTTP/1.1 400 No\r\n\r\n"
    held = msgspec.structs.replace(
        EXCHANGE, received=refused, flags=int(flag), attempt=attempt, end=end
    )
    again = msgspec.structs.replace(EXCHANGE, attempt=Attempt.ALONE)
    fail, passed = (Verdict("c", word, "", "") for word in (Word.FAIL, Word.PASS))
    assert held.was_disturbed
    assert judge.settled([fail, passed], [held, again]).word is Word.PASS
    assert judge.settled([passed, fail], [held, again]).word is Word.FAIL
    assert judge.settled([fail], [held]).word is Word.FAIL


@pytest.mark.parametrize(
    "changes",
    [
        {"end": End.CLOSED},
        {"end": End.RESET},
        {"flags": int(ExchangeFlag.ANNOUNCED_CLOSE), "first_us": SLOW_ANSWER_US + 1},
    ],
)
def test_what_load_may_cause_does_not_count_beside_an_attempt_with_few_in_flight(
    changes: dict[str, object],
) -> None:
    loaded = msgspec.structs.replace(EXCHANGE, **changes)
    again = msgspec.structs.replace(EXCHANGE, attempt=Attempt.LATE)
    fail, passed = (Verdict("c", word, "", "") for word in (Word.FAIL, Word.PASS))
    assert judge.settled([passed, fail], [loaded, again]).word is Word.FAIL
    assert judge.settled([fail, passed], [loaded, again]).word is Word.PASS
    # Seen with few in flight, it is the server's own doing.
    own = msgspec.structs.replace(loaded, attempt=Attempt.LATE)
    alone = msgspec.structs.replace(EXCHANGE, attempt=Attempt.ALONE)
    assert judge.settled([fail, passed], [own, alone]).word is Word.UNSTABLE


@pytest.mark.parametrize(
    ("first", "attempts", "why"),
    [
        ({}, [], None),
        ({}, [Attempt.REPEAT], None),
        ({"end": End.RESET}, [Attempt.LATE], Doubt.RESET),
        ({"flags": 4}, [Attempt.LATE, Attempt.DOUBTED], Doubt.TIME_RAN_OUT),
        ({}, [Attempt.DOUBTED, Attempt.DOUBTED_AGAIN, Attempt.ALONE], Doubt.FAILED),
        ({}, [Attempt.REPEAT, Attempt.TO_THE_END], Doubt.CLOSE_AWAITED),
        ({}, [Attempt.DOUBTED, Attempt.TO_THE_END], Doubt.FAILED),
    ],
)
def test_why_a_case_was_asked_again_is_told_by_its_attempts(
    first: dict[str, object], attempts: list[Attempt], why: Doubt | None
) -> None:
    asked = [msgspec.structs.replace(EXCHANGE, **first)]
    asked += [msgspec.structs.replace(EXCHANGE, attempt=one) for one in attempts]
    assert judge.why_again(asked) is why


def test_what_a_server_may_choose_it_chooses_the_same_each_time() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    taken, refused, closed = (
        msgspec.structs.replace(EXCHANGE, received=octets, attempt=attempt)
        for octets, attempt in (
            (interim + ANSWER, Attempt.FIRST),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", Attempt.REPEAT),
            (b"", Attempt.DOUBTED),
        )
    )
    both = [Verdict("c", Word.PASS, "EITHER", actual) for actual in ("200", "400")]
    found = judge.settled(both, [taken, refused], has_choice=True)
    assert (found.word, found.actual) == (Word.UNSTABLE, "pass: 200, pass: 400")
    assert judge.settled(both, [taken, refused]).word is Word.PASS
    assert judge.settled(both, [refused, closed], has_choice=True).word is Word.PASS
    assert judge.settled(both, [taken, EXCHANGE], has_choice=True).word is Word.PASS


@pytest.mark.parametrize(
    ("case", "offered"),
    [
        ("content-length-get", True),
        ("lf-between-fields", True),
        ("get-plain", False),
        ("pipeline-slow-get", False),
        ("path_octet_good", False),
        ("field_name_octet_only", True),
    ],
)
def test_a_case_that_may_be_taken_or_refused_offers_a_choice(case: str, offered: bool) -> None:
    assert KNOWN.offers_choice(case) is offered
