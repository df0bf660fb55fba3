"""Verdicts to scores: nothing is scored whose controls failed or whose requests are void."""

from __future__ import annotations

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.judging import scoring
from httpmark.harness.model.cases import Level, Requirement
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
    return scoring.seed_suite(FAMILIES, found, verdicts, blocked)


def test_every_exchange_is_counted_once_in_each_reading() -> None:
    family = scoring.seed_family(
        [
            exchange(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            exchange(b"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n"),
            exchange(b"", Outcome.HUNG),
            exchange(b"", Outcome.CLOSED),
            exchange(b"", Outcome.RESET),
            exchange(b"what"),
            exchange(b"", Outcome.HUNG, dropped=True),
        ]
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


def test_a_void_control_does_not_pass() -> None:
    assert scoring.controls([Verdict("c", Word.VOID, "", "")]).failed == 1


def test_part_of_the_requests_is_no_score() -> None:
    void = SeedFamily(174, 0, 174, 0, 0, 0, void=1)
    assert suite(counts(path_byte=void)).score_percent is None
    missing = counts()
    del missing["query_byte"]
    result = suite(missing)
    assert result.score_percent is None
    assert "175 of 123942" in (result.reason or "")


def test_a_gate_with_a_star_blocks_the_whole_suite() -> None:
    assert set(scoring.gated(FAMILIES, ["control_hello"])) == {family.id for family in SCORED}
    assert scoring.gated(FAMILIES, ["control_query_octet"]) == ("query_byte", "query_pct_pair")
    assert scoring.gated(FAMILIES, []) == ()


def test_every_scored_family_has_a_control_of_its_own() -> None:
    gates = {gate for f in FAMILIES if f.level is Level.CTRL for gate in f.gates}
    assert gates == {family.id for family in SCORED} | {"*"}


@pytest.mark.parametrize("detected", [[], [True], [False, False, True], [True, False] * 5])
def test_run_lengths_round_trip(detected: list[bool]) -> None:
    assert scoring.expand(scoring.run_lengths(detected)) == detected


def test_a_difference_names_the_requests() -> None:
    found = [("a", True), ("b", False), ("c", True), ("d", True)]
    assert scoring.difference("f", "1d 1u 2d", found) is None
    difference = scoring.difference("f", "3d 1u", found, keep=1)
    assert difference is not None
    assert (difference.cases, difference.more) == (("b",), 1)
    assert (difference.published_detected, difference.detected) == (3, 3)


@pytest.mark.parametrize(("unanswered", "only_closed"), [(True, True), (False, False)])
def test_a_close_at_a_level_that_is_not_counted_excuses_no_failure(
    unanswered: bool, only_closed: bool
) -> None:
    must, should = (
        next(f for f in loading.load().families.values() if f.level is level and not f.generated)
        for level in (Level.MUST, Level.SHOULD)
    )
    row = Requirement(id="row", clause="", level=Level.MUST, title="", cases=(must.ref, should.ref))
    tallies = {
        family.id: scoring.tally(
            [Verdict(family.id, Word.FAIL, "", "", None, family.level, closed_unanswered=closed)]
        )
        for family, closed in ((must, unanswered), (should, True))
    }
    found = scoring.requirements([row], [must, should], tallies, {})
    assert found["row"] == (Level.MUST, Word.FAIL, only_closed)
