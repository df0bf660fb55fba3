"""A quick look in its time: what there is no time for is void, and says so."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.firing import (
    conformance,
    targets,
    time_budget,
)
from httpmark.harness.gate import findings
from httpmark.harness.judging import suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Level
from httpmark.harness.model.exchanges import Attempt
from httpmark.harness.model.verdicts import SuiteResult, Word
from httpmark.harness.tests.shared import made_findings, peers

KNOWN = loading.load()


def in_a_hurry(begin_s: float, wait_s: float = 60, end_s: float = 90) -> time_budget.TimeBudget:
    now = time.monotonic()
    return time_budget.TimeBudget(begin=now + begin_s, wait=now + wait_s, end=now + end_s)


@pytest.mark.process
def test_a_family_that_time_cuts_short_is_not_judged_by_a_part(tmp_path: Path) -> None:
    def slow(connection: socket.socket) -> None:
        time.sleep(0.02)
        peers.naive(connection)

    chosen = {"get-plain", "method_octet"}
    with (
        peers.peer(slow) as peer,
        Evidence(tmp_path / "e.sqlite", create=True) as evidence,
    ):
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a", jobs=1)
        evidence.set_facts("peer", target.facts())
        fired = suite_results.Fired()
        conformance.fire(
            KNOWN, "rfc", target, evidence, fired, progress=lambda _: None,
            budget=in_a_hurry(1),
            selected=lambda family: family.id in chosen,
        )  # fmt: skip
        assert 10 < fired.exchanges < KNOWN.families["method_octet"].count
        for known in (fired, None):
            said = suite_results.score_suite(KNOWN, "rfc", "peer", evidence, known)
            tally = said.generated["method_octet"]
            assert tally.words == {Level.SHOULD: {Word.VOID: 1}}
            assert [one.actual for one in tally.failures] == [time_budget.NOT_ASKED]


def without_host(answer_s: float) -> peers.Handler:
    """Says nothing to a request without Host, and OK to others after a while."""

    def handler(connection: socket.socket) -> None:
        head = peers.head(connection)
        time.sleep(answer_s)
        if b"Host:" in head:
            connection.sendall(peers.OK)
        else:
            time.sleep(10)

    return handler


@pytest.mark.process
def test_what_a_look_in_a_hurry_would_wait_for_is_void(tmp_path: Path) -> None:
    chosen = {"get-plain", "host-missing", "host-empty"}
    with (
        peers.peer(without_host(0)) as peer,
        Evidence(tmp_path / "e.sqlite", create=True) as evidence,
    ):
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        began = time.monotonic()
        conformance.fire(
            KNOWN, "rfc", target, evidence, suite_results.Fired(), quick=True,
            progress=lambda _: None,
            budget=in_a_hurry(60, 0.5), selected=lambda family: family.id in chosen,
        )  # fmt: skip
        assert time.monotonic() < began + 2, "the case waits for longer than that"
        said = suite_results.score_suite(KNOWN, "rfc", "peer", evidence).cases
    assert said["host-missing"].word is Word.VOID
    assert said["host-missing"].actual == time_budget.NOT_AWAITED
    assert said["host-empty"].word is not Word.VOID


@pytest.mark.timed
@pytest.mark.process
@pytest.mark.parametrize(
    ("answer_s", "end_s", "attempts", "word"),
    [
        (0.0, 90, [Attempt.FIRST], Word.FAIL),
        (0.55, 90, [Attempt.FIRST, Attempt.DOUBTED], Word.FAIL),
        (0.55, 0, [Attempt.FIRST], Word.VOID),
    ],
    ids=["prompt", "slow", "slow-and-no-time"],
)
def test_a_quick_look_believes_in_the_silence_of_a_prompt_target_only(
    tmp_path: Path, answer_s: float, end_s: float, attempts: list[int], word: Word
) -> None:
    chosen = {"get-plain", "method_octet", "host-missing"}
    with (
        peers.peer(without_host(answer_s)) as peer,
        Evidence(tmp_path / "e.sqlite", create=True) as evidence,
    ):
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        evidence.set_facts("peer", target.facts())
        conformance.fire(
            KNOWN, "rfc", target, evidence, suite_results.Fired(), quick=True,
            progress=lambda _: None,
            budget=in_a_hurry(60, 60, end_s), selected=lambda family: family.id in chosen,
        )  # fmt: skip
        [made] = evidence.attempts("peer", family="host-missing")
        said = suite_results.score_suite(KNOWN, "rfc", "peer", evidence).cases["host-missing"]
    assert [one.attempt for one in made] == attempts
    assert said.word is word


@pytest.mark.timed
@pytest.mark.process
@pytest.mark.parametrize("at_once", [16, 256])
def test_a_look_in_a_hurry_says_what_it_had_no_time_for(tmp_path: Path, at_once: int) -> None:
    """Bursts, which a short queue makes slow, are left out with that alone."""
    chosen = {"get-plain", "method_octet", "reset-at-connect", "pipeline-split-everywhere"}
    chosen.add("host-missing")
    said: dict[bool, SuiteResult] = {}
    for hurry in (True, False):
        with (
            peers.peer(peers.naive) as peer,
            Evidence(tmp_path / f"{hurry}.sqlite", create=True) as evidence,
        ):
            target = targets.Target(
                name="peer", address="127.0.0.1", port=peer.port, host=f"127.0.0.1:{peer.port}"
            )
            evidence.set_facts("peer", msgspec.structs.replace(target.facts(), at_once=at_once))
            fired = suite_results.Fired()
            conformance.fire(
                KNOWN, "rfc", target, evidence, fired, progress=lambda _: None, quick=True,
                budget=in_a_hurry(0) if hurry else None,
                selected=lambda family: family.id in chosen,
            )  # fmt: skip
            said[hurry] = suite_results.score_suite(KNOWN, "rfc", "peer", evidence, fired)
            again = suite_results.score_suite(KNOWN, "rfc", "peer", evidence)
            assert again.generated == said[hurry].generated
    hurried, whole = said[True], said[False]
    assert hurried.cases["host-missing"].word is Word.FAIL, "designed cases are asked, all of them"
    assert whole.cases["pipeline-split-everywhere"].word is not Word.NOT_APPLICABLE
    left_out = {"method_octet", *(["reset-at-connect"] if at_once == 16 else [])}
    run = made_findings.run_of("reference", hurried)
    told = {one.id: one for one in findings.findings(run, families=KNOWN.families)}
    for id in ("method_octet", "reset-at-connect", "pipeline-split-everywhere"):
        not_asked = told[id].message == time_budget.NOT_ASKED
        assert not_asked is (id in left_out)
        assert not_asked is (told[id].status is findings.Status.UNDECIDED)
    assert whole.cases["reset-at-connect"].word is not Word.VOID
    words = whole.generated["method_octet"].words.values()
    assert sum(sum(counts.values()) for counts in words) > 100
