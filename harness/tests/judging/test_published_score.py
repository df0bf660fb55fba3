"""The suite seed: nothing is scored whose controls failed or whose requests are void."""

from __future__ import annotations

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.judging import (
    published_score,
)
from httpmark.harness.model.cases import Level
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.verdicts import SeedFamily, SuiteResult, Verdict, Word

FAMILIES = loading.load().of_suite("seed")
SCORED = [family for family in FAMILIES if family.level is not Level.CTRL]


def exchange(received: bytes, outcome: Outcome = Outcome.ANSWERED, **changes: bool) -> Exchange:
    return Exchange(
        "c", "path_byte", b"GET", received, outcome, End.OPEN, None, 1, 3,
        machine_dropped=changes.get("dropped", False),
    )  # fmt: skip


def counts(**odd: SeedFamily) -> dict[str, SeedFamily]:
    whole = {f.id: SeedFamily(f.count, 0, f.count, 0, 0, 0) for f in SCORED}
    return {**whole, **odd}


PASSED = [Verdict("control", Word.PASS, "", "")]


def suite(
    found: dict[str, SeedFamily], verdicts: list[Verdict] = PASSED, blocked: tuple[str, ...] = ()
) -> SuiteResult:
    return published_score.seed_suite(FAMILIES, found, verdicts, blocked)


def test_every_exchange_is_counted_once_in_each_reading() -> None:
    family = published_score.seed_family(
        [
            exchange(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            exchange(b"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n"),
            exchange(b"", Outcome.HUNG),
            exchange(b"", Outcome.CLOSED),
            exchange(b"", Outcome.RESET),
            exchange(b"what"),
            exchange(b"", Outcome.HUNG, dropped=True),
        ],
        None,
    )
    assert family == SeedFamily(5, 1, rejected=1, closed=2, accepted=1, mute=1, malformed=1, void=1)
    assert family.requests == 6


def test_a_perfect_server_scores_100() -> None:
    assert suite(counts()).score_percent == 100.0
    assert suite(counts()).requests == 123_942


def test_the_score_is_detected_over_all_requests() -> None:
    result = suite(counts(path_byte=SeedFamily(35, 140, 35, 0, 140, 0)))
    assert result.score_percent == pytest.approx(100 * (123_942 - 140) / 123_942)


def test_a_failed_control_leaves_no_score() -> None:
    failed = [*PASSED, Verdict("control_hello", Word.FAIL, "2xx", "404 Not Found")]
    result = suite(counts(), failed, ("path_byte",))
    assert result.score_percent is None
    assert result.reason is not None
    assert "1 of 2 positive controls failed (control_hello: 404 Not Found)" in result.reason


def test_controls_that_were_never_fired_leave_no_score() -> None:
    result = suite(counts(), PASSED, ("path_byte",))
    assert result.score_percent is None
    assert result.reason == "not scored: 1 of 587 positive controls have an outcome"


def test_part_of_the_requests_is_no_score() -> None:
    void = SeedFamily(174, 0, 174, 0, 0, 0, void=1)
    assert suite(counts(path_byte=void)).score_percent is None
    missing = counts()
    del missing["query_byte"]
    result = suite(missing)
    assert result.score_percent is None
    assert "175 of 123942" in (result.reason or "")


@pytest.mark.parametrize("detected", [[], [True], [False, False, True], [True, False] * 5])
def test_run_lengths_round_trip(detected: list[bool]) -> None:
    assert published_score.expand(published_score.run_lengths(detected)) == detected


def test_a_difference_names_the_requests() -> None:
    found = [("a", True), ("b", False), ("c", True), ("d", True)]
    assert published_score.difference("f", "1d 1u 2d", found) is None
    difference = published_score.difference("f", "3d 1u", found, keep=1)
    assert difference is not None
    assert (difference.cases, difference.more) == (("b",), 1)
    assert (difference.published_detected, difference.detected) == (3, 3)
