"""The messages that the servers of a run read in two ways, from made evidence."""

from __future__ import annotations

from pathlib import Path

from httpmark.harness.catalogue import loading
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Facts, Op
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.timeline import EVENT_RECORD
from httpmark.harness.report import field_splits
from httpmark.harness.tests.shared.made_answers import answer, shown

CASE = "content-length-plus-sign"
FACTS = Facts(host="a:1", capabilities=("hello", "body", "mirror"))


def exchange(*answers: bytes, canary: bool) -> Exchange:
    """The case played: its answers, and the canary answered as itself where it was sent."""
    [case] = [one.case for one in loading.load().planned(CASE, FACTS)]
    *own, last = [step.data for step in case.steps if step.op is Op.SEND]
    sent, received = b"".join(own), b"".join(answers)
    timeline = EVENT_RECORD.pack(1, 10, len(sent)) + EVENT_RECORD.pack(2, 20, len(received))
    if canary:
        told = shown(f"/mirror?canary-{CASE}")
        timeline += EVENT_RECORD.pack(1, 1000, len(last)) + EVENT_RECORD.pack(2, 1100, len(told))
        sent, received = sent + last, received + told
    else:
        timeline += EVENT_RECORD.pack(3, 1000, 0)
    end = End.OPEN if canary else End.CLOSED
    return Exchange(
        CASE, CASE, sent, received, Outcome.ANSWERED, end, 20, 2000, len(sent), timeline=timeline
    )


def test_servers_that_end_a_request_at_two_places_are_told(tmp_path: Path) -> None:
    with Evidence(tmp_path / "evidence", create=True) as evidence:
        played = {
            "one": exchange(shown(method="POST", content=b"hello"), canary=True),
            "two": exchange(shown(method="POST"), answer(400, close=True), canary=False),
            "three": exchange(answer(400, close=True), canary=False),
        }
        for name, made in played.items():
            evidence.set_facts(name, FACTS)
            evidence.add(name, [made])
        evidence.flush()
        [found] = field_splits.splits(loading.load(), dict.fromkeys(played, evidence))
        assert found.case == CASE
        assert found.readings == (
            ("1 request", ("one",)),
            ("1 request, what follows refused", ("two",)),
        )
        assert field_splits.splits(loading.load(), {"one": evidence, "three": evidence}) == ()


def test_servers_of_two_runs_are_compared_each_by_its_own_evidence(tmp_path: Path) -> None:
    with (
        Evidence(tmp_path / "first", create=True) as first,
        Evidence(tmp_path / "second", create=True) as second,
    ):
        first.set_facts("one", FACTS)
        first.add("one", [exchange(shown(method="POST", content=b"hello"), canary=True)])
        second.set_facts("two", FACTS)
        second.add("two", [exchange(shown(method="POST"), answer(400, close=True), canary=False)])
        first.flush()
        second.flush()
        [found] = field_splits.splits(loading.load(), {"one": first, "two": second})
    assert [names for _, names in found.readings] == [("one",), ("two",)]
