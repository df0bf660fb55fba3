"""How a server read one message, and where two servers differ."""

from __future__ import annotations

import pytest

from httpmark.harness.judging import message_readings, observation
from httpmark.harness.judging.message_readings import Reading, Rest
from httpmark.harness.tests.shared.made_answers import answer, shown
from httpmark.harness.tests.shared.made_talk import CANARY, FIN, GET, OTHER, OWN, POST, Talk

CHUNKED = (
    r"POST {p} HTTP/1.1\r\nHost: {h}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
)
ONE, TWO = Reading(1, Rest.READ), Reading(2, Rest.READ)
LEFT, TAKEN, CLOSED = (Reading(1, rest) for rest in (Rest.LEFT, Rest.TAKEN, Rest.UNKNOWN))


def read(talk: Talk) -> Reading | None:
    return message_readings.reading(talk.case, observation.sight(talk.case, talk.exchange()))


@pytest.mark.parametrize(
    ("talk", "reading"),
    [
        (Talk(shown(), canary=OWN), ONE),
        (Talk(shown(), shown(), canary=OWN, answers=2), TWO),
        (Talk(shown(), answer(400, close=True), end=FIN, answers=2), LEFT),
        (Talk(shown(), answer(405), end=FIN, answers=2), CLOSED),  # the second is no bad request
        (Talk(shown(), answer(400), end=FIN, methods=("GET", "GET")), CLOSED),  # or is a bad one
        # The rest spoiled the next request, or the next one alone was refused.
        (Talk(shown(method="POST"), canary=OTHER, send=POST), LEFT),
        (Talk(shown(method="POST", content=b"hel"), canary=OTHER, send=POST), LEFT),
        (Talk(shown(method="POST", content=b"hello"), canary=OTHER, send=POST), CLOSED),
        (Talk(shown(), canary=OTHER), CLOSED),
        (Talk(shown(), canary=OTHER, send=r"\r\n" + GET), CLOSED),
        (Talk(shown(method="POST", content=b"hello"), canary=OTHER, send=CHUNKED), CLOSED),
        (Talk(shown(), canary=OWN, unsent=(GET,), methods=("GET", "GET")), None),
        (Talk(canary=shown(content=b"5\r\n" + CANARY)), TAKEN),
        (Talk(shown(), canary=shown(content=b"x" + CANARY)), TAKEN),
        (Talk(shown(), canary=b"", end=FIN), CLOSED),
        (Talk(answer(400, close=True), end=FIN), None),  # refused, which is safe
        (Talk(end=FIN), None),
        (Talk(canary=b""), None),  # silent for whatever reason
        (Talk(canary=OTHER), None),
        (Talk(shown(), b"junk", end=FIN), None),
    ],
)
def test_what_a_server_read(talk: Talk, reading: Reading | None) -> None:
    assert read(talk) == reading


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        (ONE, ONE, False),
        (ONE, TWO, True),
        (ONE, LEFT, True),
        (ONE, TAKEN, True),
        (LEFT, TAKEN, True),
        (ONE, CLOSED, False),  # it may have read on as the other one did
        (CLOSED, CLOSED, False),
        (TWO, CLOSED, False),
        (ONE, Reading(2, Rest.UNKNOWN), True),
        (TWO, Reading(2, Rest.UNKNOWN), False),
        (CLOSED, Reading(2, Rest.UNKNOWN), False),
    ],
)
def test_two_differ_where_they_end_a_request_at_two_places(
    one: Reading, other: Reading, differs: bool
) -> None:
    assert message_readings.differ(one, other) is differs
    assert message_readings.differ(other, one) is differs


def test_a_split_names_who_reads_a_message_how() -> None:
    assert Reading(2, Rest.UNKNOWN).said == "2 requests at least"
    read = {"a": ONE, "b": TWO, "c": ONE, "d": CLOSED, "e": LEFT}
    found = message_readings.split("case", "title", "RFC 9112 6.3", read, ["e", "d", "c", "b", "a"])
    assert found is not None
    assert found.readings == (
        ("1 request", ("c", "a")),
        ("1 request, what follows refused", ("e",)),
        ("2 requests", ("b",)),
    )
    same = {"a": ONE, "d": CLOSED}
    assert message_readings.split("case", "title", "", same, ["a", "d"]) is None
