"""The numbers that are stored with an exchange keep their meaning."""

from __future__ import annotations

import msgspec
import pytest

from httpmark.harness.model.cases import Level
from httpmark.harness.model.exchanges import Attempt, End, Exchange, ExchangeFlag, Outcome
from httpmark.harness.model.timeline import EventKind

PLAIN = Exchange("a", "a", b"x", b"y", Outcome.ANSWERED, End.OPEN, 1, 2, 1)


def test_stored_numbers_are_those_of_earlier_runs() -> None:
    assert {one.name: one.value for one in Attempt} == {
        "FIRST": 1, "REPEAT": 2, "LATE": 3, "DOUBTED": 4, "DOUBTED_AGAIN": 5, "ALONE": 6,
        "TO_THE_END": 7, "CRASHED": 8,
    }  # fmt: skip
    assert {one.name: one.value for one in ExchangeFlag} == {
        "UNSENT": 1, "DEADLINE": 2, "AWAIT_RAN_OUT": 4, "ANNOUNCED_CLOSE": 8, "CUT": 16,
        "LOOK_RAN_OUT": 32, "REACHED": 64, "HELD_UP": 128,
    }  # fmt: skip
    assert {one.name: one.value for one in EventKind} == {
        "SENT": 1, "RECEIVED": 2, "FIN": 3, "RST": 4, "OWN_FIN": 5, "CLOSE_NOTIFY": 6,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "ran_out"),
    [
        ({}, False),
        ({"flags": ExchangeFlag.UNSENT | ExchangeFlag.ANNOUNCED_CLOSE | ExchangeFlag.CUT}, False),
        ({"flags": 2}, True),
        ({"flags": 4}, True),
        ({"outcome": Outcome.HUNG}, True),
        ({"outcome": Outcome.REFUSED}, True),
        ({"outcome": Outcome.RESET}, False),
    ],
)
def test_time_ran_out_where_an_answer_or_a_connection_did_not_come(
    changes: dict[str, object], ran_out: bool
) -> None:
    assert msgspec.structs.replace(PLAIN, **changes).ran_out is ran_out


def test_only_the_first_two_attempts_are_made_among_many() -> None:
    among = [one for one in Attempt if msgspec.structs.replace(PLAIN, attempt=one).among_many]
    assert among == [Attempt.FIRST, Attempt.REPEAT]


def test_musts_and_controls_bind_and_no_other_level() -> None:
    assert {level for level in Level if level.is_binding} == {Level.MUST, Level.CTRL}
