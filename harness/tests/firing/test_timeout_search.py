"""Timeouts found by asking, with servers that are functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from httpmark.harness.firing import timeout_search
from httpmark.harness.model.cases import Case, Facts
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.timeline import EVENT_RECORD
from httpmark.harness.tests.shared.made_answers import answer

FACTS = Facts(host="a")
OK, LATE = answer(200), answer(408, close=True)
SENT, RECEIVED, FIN = 1, 2, 3

# How long a client is kept that has sent this, in seconds; None: longer than anyone looks.
Keeps = Callable[[bytes], float | None]


def served(
    keeps: Keeps, *, says_408: bool = False, is_answered: bool = True
) -> timeout_search.Fire:
    def fire(cases: Iterable[Case]) -> list[Exchange]:
        exchanges = []
        for case in cases:
            sent = case.steps[0].data
            is_whole = sent.endswith(b"\r\n\r\n") and is_answered
            records = EVENT_RECORD.pack(SENT, 1000, len(sent))
            received = OK if is_whole else b""
            if is_whole:
                records += EVENT_RECORD.pack(RECEIVED, 2000, len(OK))
            kept = keeps(sent)
            if kept is not None:
                at_us = (2000 if is_whole else 1000) + round(kept * 1e6)
                if says_408:
                    received += LATE
                    records += EVENT_RECORD.pack(RECEIVED, at_us, len(LATE))
                records += EVENT_RECORD.pack(FIN, at_us + 10, 0)
            exchanges.append(
                Exchange(
                    case.id, case.family, sent, received,
                    Outcome.ANSWERED if received else Outcome.HUNG,
                    End.OPEN if kept is None else End.CLOSED,
                    2000, 30_000_000, len(sent), timeline=records,
                )
            )  # fmt: skip
        return exchanges

    return fire


def is_whole(sent: bytes) -> bool:
    return sent.endswith(b"\r\n\r\n")


def found(keeps: Keeps, **how: bool) -> dict[str, float]:
    told = timeout_search.found(served(keeps, **how), FACTS, timeout_search.NAMES)
    return {name: round(seconds, 1) for name, seconds in told.items()}


@pytest.mark.parametrize("says_408", [False, True])
def test_a_server_that_ends_silent_clients_has_timeouts(says_408: bool) -> None:
    seen = found(lambda sent: 5.0 if is_whole(sent) else 10.0, says_408=says_408)
    assert seen == {"head_s": 10.0, "idle_s": 5.0}


def test_a_server_that_keeps_one_of_them_has_no_such_timeout() -> None:
    assert found(lambda sent: None) == {}
    assert found(lambda sent: None if sent == b"GET" else 5.0) == {"idle_s": 5.0}
    assert found(lambda sent: None if is_whole(sent) else 5.0) == {"head_s": 5.0}


def test_a_timeout_that_differs_from_place_to_place_is_none() -> None:
    assert found(lambda sent: 10.0 if sent == b"GET" else 5.0) == {"idle_s": 5.0}
    assert found(lambda sent: 5.9 if sent == b"GET" else 5.0)["head_s"] == 5.9


def test_a_close_at_once_is_no_timeout() -> None:
    assert found(lambda sent: 0.01) == {}


def test_a_server_that_does_not_answer_has_no_idle_timeout() -> None:
    assert found(lambda sent: 5.0, is_answered=False) == {"head_s": 5.0}


def test_what_is_not_asked_for_sends_nothing() -> None:
    def fire(cases: Iterable[Case]) -> list[Exchange]:
        raise AssertionError

    assert timeout_search.found(fire, FACTS, ["content_s"]) == {}
