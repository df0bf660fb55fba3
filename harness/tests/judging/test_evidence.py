"""The store: what goes in comes out, the last attempt counts, trouble is one clear line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from httpmark.harness.http import masking
from httpmark.harness.judging import evidence as evidence_module
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model import digests
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.exchanges import (
    SLOW_ANSWER_US,
    Doubt,
    End,
    Exchange,
    ExchangeFlag,
    Outcome,
)
from httpmark.harness.model.verdicts import Verdict, Word


def exchange(case: str, family: str = "f", **changes: object) -> Exchange:
    made = Exchange(
        case, family, b"GET " + case.encode(), b"\x00\xffanswer", Outcome.ANSWERED, End.CLOSED,
        12, 34, 5, 8, True,
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    stored = [
        exchange("a"),
        exchange("b", outcome=Outcome.HUNG, end=End.OPEN, first_us=None, received=b""),
        exchange("c", outcome=Outcome.RESET, end=End.RESET, machine_dropped=True, head_only=False),
        exchange("d", "g", outcome=Outcome.REFUSED, sent_octets=0, ended_s=1.5, timeline=b"t" * 9),
    ]
    with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
        evidence.add("one", stored)
        assert list(evidence.exchanges("one")) == stored
    with Evidence(tmp_path / "e.sqlite") as evidence:
        assert evidence.servers() == ["one"]
        assert evidence.families("one") == ["f", "g"]
        assert list(evidence.exchanges("one")) == stored
        assert list(evidence.exchanges("one", family="g")) == stored[3:]
        assert list(evidence.exchanges("one", case="b")) == stored[1:2]
        assert list(evidence.exchanges("one", family="none")) == []
        assert list(evidence.exchanges("two")) == []


def test_what_a_peer_floods_us_with_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_module, "_BYTES_HELD", 10_000)
    monkeypatch.setattr(evidence_module, "_HELD_S", 1000.0)
    with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
        for number in range(7):
            evidence.add("one", [exchange(str(number), received=bytes([number]) * 3000)])
        # Another reader sees what was handed over: all but the last few.
        with Evidence(tmp_path / "e.sqlite", masked=True) as reader:
            assert len(list(reader.exchanges("one"))) in range(4, 7)
        assert len(list(evidence.exchanges("one"))) == 7


def test_reading_keeps_the_planned_order_whatever_came_first(tmp_path: Path) -> None:
    with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
        evidence.plan([("a", "f"), ("b", "f"), ("c", "f")])
        evidence.add("one", [exchange("c"), exchange("a"), exchange("b")])
        assert [e.case for e in evidence.exchanges("one")] == ["a", "b", "c"]


def test_what_is_taken_from_another_file_is_as_if_added_here(tmp_path: Path) -> None:
    """Numbers of cases and octets differ between the files, and nothing is mixed up."""
    facts = Facts(host="127.0.0.1:1")
    seen = Verdict("q", Word.FAIL, "x", "y")
    ones = [exchange("a"), exchange("b", received=b"one")]
    twos = [
        exchange("b", received=b"two"),
        exchange("b", attempt=2, received=b"again"),
        exchange("b", delivery="halves"),
        exchange("n", "g", timeline=b"t" * 9),
    ]
    with Evidence(tmp_path / "other.sqlite", create=True) as other:
        other.plan([("n", "g"), ("b", "f"), ("never", "g")])
        other.add("two", twos)
        other.set_facts("two", facts)
        other.observe("two", seen)
        other.agree("two", {("b", "bytes"): 7})
    with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
        evidence.plan([("a", "f"), ("b", "f")])
        evidence.add("one", ones)
        for _ in range(2):  # a second time changes nothing
            evidence.take(tmp_path / "other.sqlite", "two")
            assert list(evidence.exchanges("one")) == ones
            assert list(evidence.exchanges("two")) == twos[1::2]
            assert list(evidence.exchanges("two", case="b", delivery="halves")) == [twos[2]]
            assert evidence.planned("g") == 2
            assert evidence.facts("two") == facts
            assert evidence.facts("one") is None
            assert evidence.observed("two") == {seen.case: seen}
            assert evidence.agreed("two", "b") == {"bytes": 7}
        later = exchange("c", received=b"later")
        evidence.add("one", [later])
        assert list(evidence.exchanges("one")) == [*ones, later]


def test_a_file_that_is_no_evidence_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "other.sqlite").write_bytes(b"no database" * 100)
    with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
        evidence.add("one", [exchange("a")])
        with pytest.raises(HarnessError):
            evidence.take(tmp_path / "other.sqlite", "two")
        evidence.add("one", [exchange("b")])
        assert [one.case for one in evidence.exchanges("one")] == ["a", "b"]


def test_the_last_attempt_counts(tmp_path: Path) -> None:
    with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
        evidence.add("one", [exchange("a", outcome=Outcome.HUNG), exchange("b")])
        evidence.add("one", [exchange("a", attempt=2)])
        assert [(e.case, e.attempt) for e in evidence.exchanges("one")] == [("a", 2), ("b", 1)]


def test_what_load_may_have_caused_is_found_by_the_last_attempt(tmp_path: Path) -> None:
    looked = int(ExchangeFlag.LOOK_RAN_OUT)
    closed: dict[str, object] = {"end": End.CLOSED, "end_us": 9, "flags": 0}
    left: dict[str, object] = {"end": End.OPEN}
    said: dict[str, tuple[dict[str, object], Doubt | None]] = {
        "hung": ({"outcome": Outcome.HUNG}, Doubt.TIME_RAN_OUT),
        "late": ({"flags": 6}, Doubt.TIME_RAN_OUT),
        "unsent": ({**left, "flags": 1}, None),
        "closed": (closed, Doubt.CLOSED_UNANNOUNCED),
        "announced": ({**closed, "flags": 8}, None),
        "timed-out": ({**closed, "end_us": 5_000_000}, None),
        "reset": ({**closed, "end": End.RESET}, Doubt.RESET),
        "reset-late": ({**closed, "end": End.RESET, "end_us": 5_000_000}, Doubt.RESET),
        "looked": ({**left, "flags": looked, "received": b"HTTP/1.1 400 No"}, Doubt.LOOK_RAN_OUT),
        "slow": ({**left, "flags": 8, "first_us": SLOW_ANSWER_US + 1}, Doubt.SLOW_TO_CLOSE),
        "lingering": ({**left, "flags": 8, "first_us": SLOW_ANSWER_US}, None),
        "slow-and-kept": ({**left, "flags": 0, "first_us": SLOW_ANSWER_US + 1}, None),
        "looked-and-taken": ({**left, "flags": looked, "received": b"HTTP/1.1 200 OK"}, None),
    }
    with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
        evidence.plan([(case, "f") for case in (*said, "again", "cut")])
        evidence.add(
            "one",
            [
                msgspec.structs.replace(exchange(case), **changes)
                for case, (changes, _) in said.items()
            ],
        )
        evidence.add("one", [exchange("cut", delivery="byte", outcome=Outcome.HUNG)])
        evidence.add("one", [exchange("again", outcome=Outcome.HUNG)])
        evidence.add("two", [exchange("unsent", outcome=Outcome.HUNG)])
        evidence.add("one", [exchange("again", attempt=2)])
        assert list(evidence.doubtful("one")) == [
            ("f", case, why) for case, (_, why) in said.items() if why is not None
        ]
        assert {one.case: one.doubt for one in evidence.exchanges("one")} == {
            case: why for case, (_, why) in said.items()
        } | {"again": None}


def test_bytes_are_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    with Evidence(path, create=True) as evidence:
        for server in ("one", "two"):
            evidence.add(server, [exchange(f"c{n}", received=bytes(50_000)) for n in range(50)])
    assert path.stat().st_size < 200_000


def test_it_is_known_which_deliveries_a_server_was_asked_in(tmp_path: Path) -> None:
    with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
        evidence.add("one", [exchange("a"), exchange("a", delivery="byte")])
        assert evidence.holds("one", "byte")
        assert not evidence.holds("one", "two@3")
        assert not evidence.holds("two", "byte")
        assert [e.delivery for e in evidence.exchanges("one", case="a", delivery="byte")] == [
            "byte"
        ]
        assert list(evidence.exchanges("one", case="b")) == []


def test_cuts_that_agreed_are_counted_and_add_up(tmp_path: Path) -> None:
    with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
        evidence.agree("one", {("a", "two"): 3, ("a", "buf"): 1})
        evidence.agree("one", {("a", "two"): 4, ("b", "two"): 9})
    with Evidence(tmp_path / "e.sqlite") as evidence:
        assert evidence.agreed("one", "a") == {"two": 7, "buf": 1}
        assert evidence.agreed("two", "a") == {}


def test_what_is_known_by_heart_is_bounded_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_module, "_KNOWN_BYTES_MAX", 1000)
    stored = [exchange(f"c{n}", received=b"%03d" % (n % 70) * 10) for n in range(200)]
    with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
        evidence.plan((one.case, one.family) for one in stored)
        evidence.add("one", stored)
        assert sum(map(len, evidence._octets)) <= 1000
        assert list(evidence.exchanges("one")) == stored


def test_evidence_may_be_continued(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    with Evidence(path, create=True) as evidence:
        evidence.add("one", [exchange("a")])
    with Evidence(path) as evidence:
        evidence.add("two", [exchange("a"), exchange("b", received=b"new")])
    with Evidence(path) as evidence:
        assert [e.case for e in evidence.exchanges("two")] == ["a", "b"]
        assert [e.received for e in evidence.exchanges("two")] == [b"\x00\xffanswer", b"new"]


def test_one_file_is_left(tmp_path: Path) -> None:
    with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
        evidence.add("one", [exchange("a")])
    assert {path.name for path in tmp_path.iterdir()} == {"e.sqlite", digests.NAME}


def test_a_file_that_is_written_has_no_digest_until_the_last_one_closes_it(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    with Evidence(path, create=True) as evidence:
        evidence.add("one", [exchange("a")])
        evidence.flush()
        with Evidence(path) as reader:
            assert reader.servers() == ["one"]
        assert not digests.is_known(path)
    assert digests.is_known(path)
    before = path.read_bytes()
    with Evidence(path, masked=True) as reader:
        assert reader.servers() == ["one"]
    assert path.read_bytes() == before
    path.write_bytes(before[:-1])
    for masked in (True, False):
        with pytest.raises(Unusable, match="it is not what was written"):
            Evidence(path, masked=masked)


def test_a_missing_or_foreign_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="no such file"):
        Evidence(tmp_path / "none.sqlite")
    foreign = tmp_path / "foreign.sqlite"
    foreign.write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(HarnessError, match="is this an evidence file"):
        Evidence(foreign)


def test_a_secret_is_stored_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a request, an answer, what is known of a server or what a program saw."""
    monkeypatch.setattr(masking, "_marked", [])
    monkeypatch.setattr(masking, "_mask", masking.Mask(()))
    file = tmp_path / "evidence.sqlite"
    octets = b"GET / HTTP/1.1\r\nHost: h\r\nX-Key: s3cr3t\r\n\r\n"
    masking.mark(["X-Key: s3cr3t"])
    with Evidence(file, create=True) as evidence:
        evidence.set_facts("a", Facts(host="h", header=("X-Key: s3cr3t",)))
        evidence.add("a", [exchange("c", sent=octets, received=b"it is s3cr3t")])
        evidence.observe("a", Verdict("p", Word.FAIL, "expected", "it said s3cr3t"))
        assert evidence.facts("a") == Facts(host="h", header=("X-Key: ******",))
        [shown] = evidence.exchanges("a")
        assert shown.sent == octets.replace(b"s3cr3t", b"******")
        assert shown.received == b"it is ******"
        assert evidence.observed("a")["p"].actual == "it said ******"
    assert b"s3cr3t" not in file.read_bytes()


def test_what_an_older_version_stored_is_masked_where_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "evidence.sqlite"
    octets = b"GET / HTTP/1.1\r\nX-Key: s3cr3t\r\n\r\n"
    with monkeypatch.context() as older, Evidence(file, create=True) as evidence:
        older.setattr(masking, "facts", lambda facts: facts)
        evidence.set_facts("a", Facts(host="h", header=("X-Key: s3cr3t",)))
        evidence.add("a", [exchange("c", sent=octets, received=b"s3cr3t")])
    for masked, told in ((False, b"s3cr3t"), (True, b"******")):
        with Evidence(file, masked=masked) as evidence:
            [shown] = evidence.exchanges("a")
            assert shown.sent == octets.replace(b"s3cr3t", told)
            assert shown.received == told
            assert [answer[1] for answer in evidence.answers()] == [told]
