"""The rules over many exchanges: each rule counts once for an exchange."""

from __future__ import annotations

import pytest

from httpmark.harness.judging.response_rules.collector import Collector
from httpmark.harness.model.cases import Case, Facts, Level, Op, Step
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.verdicts import Word
from httpmark.harness.tests.shared.made_exchanges import BROKEN, DATE, GET, THEN_S, get, ok


def test_a_rule_counts_once_for_each_exchange_and_keeps_the_first_few() -> None:
    collected = Collector(Facts(host="a", answers_1_0_as_1_0=False))
    undated = ok().replace(DATE, b"")
    for number in range(9):
        case = Case(f"c{number}", "f", (Step(Op.SEND, GET + GET),))
        received = undated + undated if number % 2 else ok() + ok()
        exchange = Exchange(
            case.id, "f", case.sent, received, Outcome.ANSWERED, End.OPEN, 1, 9, len(case.sent)
        )
        collected.add(case, exchange)
    tallies = collected.tallies()
    assert tallies["RESP-20"].words == {Level.MUST: {Word.PASS: 5, Word.FAIL: 4}}
    assert [one.case for one in tallies["RESP-20"].failures] == ["c1", "c3", "c5", "c7"]
    assert tallies["RESP-01"].words == {Level.MUST: {Word.PASS: 9}}
    assert "RESP-23" not in tallies


def test_what_is_collected_in_parts_is_the_same_as_in_one() -> None:
    facts = Facts(host="a")
    whole, parts = Collector(facts), Collector(facts)
    undated = ok().replace(DATE, b"")
    for numbers in (range(3), range(3, 9)):
        part = Collector(facts)
        for number in numbers:
            case = Case(f"c{number}", "f", (Step(Op.SEND, GET),))
            received = undated if number % 3 else ok()
            exchange = Exchange(
                case.id, "f", case.sent, received, Outcome.ANSWERED, End.OPEN, 1, 9, len(GET)
            )
            whole.add(case, exchange)
            part.add(case, exchange)
        parts.merge(part)
    assert parts.tallies() == whole.tallies()
    assert len(whole.tallies()["RESP-20"].failures) == 5, "of six, one too many for the kept"


@pytest.mark.parametrize(
    ("host", "judged"),
    [("127.0.0.1:80", True), ("localhost", True), ("[::1]:8080", True), ("example.org", False),
     ("10.0.0.1:80", False), ("127.example.org", False)],
)  # fmt: skip
def test_the_clock_of_another_machine_is_not_ours(host: str, judged: bool) -> None:
    collected = Collector(Facts(host=host))
    case = Case("c", "f", (Step(Op.SEND, GET),))
    collected.add(
        case,
        Exchange(
            "c", "f", GET, ok(), Outcome.ANSWERED, End.OPEN, 1, 9, len(GET), ended_s=THEN_S + 60
        ),
    )  # fmt: skip
    assert ("RESP-34" in collected.tallies()) is judged


def test_a_worse_finding_of_one_exchange_hides_the_tolerated_one() -> None:
    collected = Collector(Facts(host="a"))
    case = Case("c", "f", (Step(Op.SEND, get(b"/404") + BROKEN),))
    plain = ok(status=b"404 x") + ok(b"Connection: close\r\n", status=b"400 x")
    collected.add(
        case,
        Exchange(
            "c", "f", case.sent, plain, Outcome.ANSWERED, End.CLOSED, 1, 9, len(case.sent)
        ),
    )  # fmt: skip
    assert collected.tallies()["RESP-27"].words == {Level.SHOULD: {Word.FAIL: 1}}
