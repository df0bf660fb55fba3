"""The estimate of a run over many servers."""

from __future__ import annotations

import pytest

from httpmark.harness.command.remaining import Remaining, told


def test_it_is_of_those_that_took_time() -> None:
    moments = iter([0.0, 0.1, 60.1, 180.1, 240.1, 300.0])
    clock = Remaining(4, now=lambda: next(moments))
    assert clock.after_one() is None  # done in an earlier sitting
    assert clock.after_one() == (
        "2 of 4 servers have had the suites; about 2 min left for the others, at this pace"
    )
    assert clock.after_one() == (
        "3 of 4 servers have had the suites; about 2 min left for the others, at this pace"
    )
    assert clock.after_one() is None  # nothing is left


def test_few_servers_need_no_estimate() -> None:
    clock = Remaining(3, now=iter([0.0, 50.0]).__next__)
    assert clock.after_one() is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(3, "about 10 s"), (44, "about 40 s"), (300, "about 5 min"), (9000, "about 2.5 h")],
)
def test_a_duration_is_told_roughly(seconds: float, words: str) -> None:
    assert told(seconds) == words
