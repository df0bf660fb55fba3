"""Deliveries against made servers: one that does not care for cuts, and some that do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from httpmark.harness.catalogue import delivery_modes, loading
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.firing import delivery_firing
from httpmark.harness.gate import findings
from httpmark.harness.judging import delivery_comparison
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.response_rules.collector import Collector
from httpmark.harness.model.cases import Case, Facts, Level, Op
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.timeline import EVENT_RECORD
from httpmark.harness.model.verdicts import Deliveries, Disagreement, Word

FACTS = Facts(host="h", capabilities=("hello",), path="/")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

# Takes the bytes so far and the pieces they came in; how often it has answered by now, or -1 for a
# refusal and a close.
Rule = Callable[[list[bytes]], int]

FILES = {
    "rfc9112/good.toml": """
suite = "rfc"
family = "BASE"
title = "good"
level = "CTRL"
clause = "RFC 9112 3"
why = "It must be."
pass = "ACC"
[[case]]
id = "plain"
ref = "BASE-01"
send = 'GET {p} HTTP/1.1\\r\\nHost: {h}\\r\\n\\r\\n'
deliver = true
[[case]]
id = "not-delivered"
ref = "BASE-02"
send = 'GET {p} HTTP/1.1\\r\\nHost: {h}\\r\\nA: b\\r\\n\\r\\n'
[[case]]
id = "content-at-a-place-that-does-not-read-it"
ref = "BASE-03"
send = 'POST {p} HTTP/1.1\\r\\nHost: {h}\\r\\nContent-Length: +5\\r\\n\\r\\nhello'
pass = "R400C"
deliver = true
"""
}


def strict(pieces: list[bytes]) -> int:
    """Answers each header section that is whole; takes at most 16 KiB of one."""
    octets = b"".join(pieces)
    if octets.find(b"\r\n\r\n") > 16_384 or (b"\r\n\r\n" not in octets and len(octets) > 20_000):
        return -1
    return octets.count(b"\r\n\r\n")


def split_crlf(pieces: list[bytes]) -> int:
    """Takes a CR at the end of what it has read for the end of the line, then fails on the LF."""
    return -1 if any(piece.startswith(b"\n") for piece in pieces[1:]) else strict(pieces)


def eager(pieces: list[bytes]) -> int:
    """Answers once it has seen the Host line."""
    return max(strict(pieces), int(b"Host: h\r\n" in b"".join(pieces)))


def flaky() -> Rule:
    """Refuses every second connection."""
    turns: dict[int, int] = {}

    def rule(pieces: list[bytes]) -> int:
        if len(pieces) == 1:
            turns[0] = turns.get(0, 0) + 1
        return -1 if turns[0] % 2 else strict(pieces)

    return rule


def played(
    case: Case, attempt: int, rule: Rule, ok: Callable[[list[bytes]], bytes] = lambda _: OK
) -> Exchange:
    """What a made server draws from a case, with the probe's records.

    :param ok: what it answers to a request, by the pieces that came so far.
    """
    pieces: list[bytes] = []
    received = b""
    records: list[tuple[int, int]] = []
    answers = 0
    closed = False
    for step in case.steps:
        skipped = (closed and step.if_open) or (answers and step.if_unanswered)
        if step.op is not Op.SEND or skipped:
            continue
        pieces.append(step.data)
        records.append((1, len(step.data)))
        now = rule(pieces)
        said = BAD if now < 0 else ok(pieces) * (now - answers)
        closed = now < 0
        answers = answers + 1 if now < 0 else now
        if said:
            received += said
            records.append((2, len(said)))
        if closed:
            records.append((3, 0))
    return Exchange(
        case.id,
        case.family,
        case.sent,
        received,
        Outcome.ANSWERED if received else Outcome.HUNG,
        End.CLOSED if closed else End.OPEN,
        1,
        1000,
        sum(octets for kind, octets in records if kind == 1),
        attempt=attempt,
        delivery=case.delivery,
        timeline=b"".join(
            EVENT_RECORD.pack(kind, 1000 * at, octets) for at, (kind, octets) in enumerate(records)
        ),
    )


@pytest.fixture
def known(tmp_path: Path) -> Catalogue:
    for name, text in FILES.items():
        path = tmp_path / "scenarios" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return loading.load(tmp_path / "scenarios")


def told(known: Catalogue, folder: Path, rule: Rule, *modes: str) -> tuple[Deliveries, list[str]]:
    """What comes of firing modes at a made server, and the cuts that were asked again."""
    again: list[str] = []
    folder.mkdir(exist_ok=True)
    with Evidence(folder / "evidence.sqlite", create=True) as evidence:

        def play(
            cases: Iterable[Case],
            *,
            in_flight: int,
            attempt: int,
            keep: Callable[[Exchange], bool] = lambda _: True,
        ) -> Iterator[Exchange]:
            assert in_flight > 0
            for case in cases:
                if attempt > 1 and case.delivery != "one":
                    again.append(case.delivery)
                evidence.add("s", filter(keep, [played(case, attempt, rule)]))
            yield from ()

        totals: list[int] = []
        done: list[int] = []

        def begin(total: int) -> Callable[[int], None]:
            totals.append(total)
            return done.append

        delivery_firing.fire(
            known, "rfc", FACTS, evidence, "s", modes=modes, play=play, begin=begin
        )
        assert totals == [sum(done)], "as many as were said to come"
        found = delivery_comparison.compare(known, "rfc", FACTS, evidence, "s")
        assert found is not None
        kept = [one.delivery for one in evidence.exchanges("s", case="plain", delivery=None)]
        cuts = {name for one in found.disagreements for name in one.deliveries}
        assert {name for name in kept if name != "one" and "room" not in name} >= cuts
        if not cuts:
            assert set(kept) <= {"one", *(f"room@{count}" for count in delivery_modes.BUFFERS)}
        return found, again


ALL = ("byte", "two", "three", "crlf", "buf", "join", "tail")


def test_a_server_that_does_not_care_for_cuts_agrees_with_itself(
    known: Catalogue, tmp_path: Path
) -> None:
    found, again = told(known, tmp_path, strict, *ALL)
    assert found.messages == 1
    assert found.disagreements == ()
    assert found.unstable == ()
    assert again == []
    assert set(found.fired) == set(ALL)
    assert found.fired["two"] == len(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n") - 1


def test_padding_beyond_what_the_server_takes_is_not_fired(
    known: Catalogue, tmp_path: Path
) -> None:
    found, _ = told(known, tmp_path, strict, "buf")
    # Two bytes behind the Host line, three places at each of the buffers it has room for.
    assert found.fired == {"buf": 2 * 3 * 2}
    assert found.disagreements == ()


def test_the_room_for_padding_is_asked_for_once(known: Catalogue, tmp_path: Path) -> None:
    asked: list[str] = []
    with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:

        def play(cases: Iterable[Case], *, attempt: int, **_: object) -> Iterator[Exchange]:
            for case in cases:
                asked.append(case.delivery)
                if case.delivery.startswith("room@"):
                    evidence.add("s", [played(case, attempt, strict)])
            yield from ()

        for _ in ("rfc", "smuggling"):
            delivery_firing.fire(known, "rfc", FACTS, evidence, "s", modes=("buf",), play=play)
    assert sum(name.startswith("room@") for name in asked) == len(delivery_modes.BUFFERS)


def test_a_line_end_that_may_not_be_cut_is_found_and_asked_three_times(
    known: Catalogue, tmp_path: Path
) -> None:
    found, again = told(known, tmp_path, split_crlf, "two", "crlf", "tail")
    (one,) = found.disagreements
    assert one.case == "plain"
    assert one.level is Level.CTRL
    assert one.what == "400 instead of 200"
    assert set(one.deliveries) == {"two@15", "two@24", "two@26", "crlf", "tail"}
    assert one.count == 5
    assert sorted(again) == sorted(2 * one.deliveries)


def test_of_many_cuts_that_differ_the_first_of_each_mode_are_asked_again(
    known: Catalogue, tmp_path: Path
) -> None:
    def whole_only(pieces: list[bytes]) -> int:
        return -1 if len(pieces[0]) < 20 else strict(pieces)

    found, again = told(known, tmp_path, whole_only, "byte", "two")
    (one,) = found.disagreements
    assert {name.partition("@")[0] for name in again} == {"byte", "two"}
    assert len(again) == 2 * one.count == 2 * (1 + 8)


def test_an_answer_before_the_header_section_is_whole_is_found(
    known: Catalogue, tmp_path: Path
) -> None:
    found, _ = told(known, tmp_path, eager, "tail")
    assert found.fired == {"tail": 1}
    (one,) = found.disagreements
    assert "before the header section" in one.what
    assert found.early == ("plain",)
    (tally,) = delivery_comparison.tallies(found).values()
    assert tally.words == {Level.MUST: {Word.FAIL: 1}}
    good, _ = told(known, tmp_path / "good", strict, "tail")
    assert delivery_comparison.tallies(good)["SEG-TAIL"].words == {Level.MUST: {Word.PASS: 1}}
    assert delivery_comparison.tallies(None) == {}


def test_a_message_that_differs_from_itself_is_unstable_and_not_compared(
    known: Catalogue, tmp_path: Path
) -> None:
    found, again = told(known, tmp_path, flaky(), "two")
    assert found.unstable == ("plain",)
    assert found.fired == {}
    assert again == []


def test_nothing_is_said_of_what_was_not_fired(known: Catalogue, tmp_path: Path) -> None:
    with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
        assert delivery_comparison.compare(known, "rfc", FACTS, evidence, "s") is None


def test_a_place_that_answers_before_it_reads_is_not_asked_to_refuse_content(
    known: Catalogue,
) -> None:
    def ids(facts: Facts) -> list[str]:
        base = delivery_comparison.corpus_of(known, "rfc", facts, lambda _: True)
        return [planned.case.id for _, planned in base]

    assert ids(FACTS) == ["plain"]
    with_body = Facts(host="h", capabilities=("hello", "body"), path="/")
    assert ids(with_body) == ["plain", "content-at-a-place-that-does-not-read-it"]


def test_a_disagreement_is_a_finding_that_fails_the_gate() -> None:
    told = Deliveries(
        messages=2,
        fired={"two": 50},
        disagreements=(
            Disagreement(
                case="plain", level=Level.MUST, count=3, deliveries=("two@15",), what="silence"
            ),
            Disagreement(
                case="other", level=Level.SHOULD, count=1, deliveries=("tail",), what="silence"
            ),
        ),
    )
    failed, warned = findings._of_deliveries("s", "rfc", told, {})
    assert failed.status is findings.Status.FAILED
    assert failed.id == "plain-delivery"
    assert "3 deliveries of plain" in failed.message
    assert "two@15" in failed.details[0]
    assert (failed.witness, failed.delivery) == ("plain", "two@15")
    assert warned.status is findings.Status.WARNED
    (passed,) = findings._of_deliveries("s", "rfc", Deliveries(messages=2, fired={"two": 50}), {})
    assert passed.status is findings.Status.PASSED


def test_an_answer_that_is_malformed_only_to_pieces_is_kept_and_told(
    known: Catalogue, tmp_path: Path
) -> None:
    """The same status, so the deliveries agree; but each answer to a cut is an answer."""
    another_day = OK.replace(b"\r\n\r\n", b"\r\nDate: Mon, 06 Nov 1994 08:49:37 GMT\r\n\r\n")

    def said(pieces: list[bytes]) -> bytes:
        return OK if b"\r\n\r\n" in pieces[0] else another_day

    with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:

        def play(
            cases: Iterable[Case],
            *,
            in_flight: int,
            attempt: int,
            keep: Callable[[Exchange], bool] = lambda _: True,
        ) -> Iterator[Exchange]:
            for case in cases:
                evidence.add("s", filter(keep, [played(case, attempt, strict, said)]))
            yield from ()

        delivery_firing.fire(known, "rfc", FACTS, evidence, "s", modes=["crlf"], play=play)
        found = delivery_comparison.compare(known, "rfc", FACTS, evidence, "s")
        assert found is not None
        assert found.disagreements == ()
        answers = Collector(FACTS)
        for cut, exchange in delivery_comparison.answered(known, "rfc", FACTS, evidence, "s"):
            answers.add_cut(cut, exchange)
    told = answers.tallies()
    kept = told["RESP-21"].failures
    assert kept
    assert all("delivery crlf" in verdict.actual for verdict in kept)
