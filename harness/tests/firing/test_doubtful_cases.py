"""What is asked again, and what is believed then."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.firing import (
    conformance,
    targets,
)
from httpmark.harness.judging import family_results, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.family_results import StoredServer
from httpmark.harness.judging.response_rules import close_rules
from httpmark.harness.model.cases import Level
from httpmark.harness.model.exchanges import Attempt
from httpmark.harness.model.verdicts import Word
from httpmark.harness.tests.shared import peers

KNOWN = loading.load()


@pytest.mark.process
def test_a_server_that_was_late_under_load_is_asked_again_and_believed(tmp_path: Path) -> None:
    """The first time around nothing is answered in time; afterwards everything is, and at once."""
    family = "field_value_octet_good"
    late = set()

    def at_first_late(connection: socket.socket) -> None:
        asked = connection.recv(65536)
        if b"X-A" in asked and asked not in late:
            late.add(asked)
            connection.recv(65536)  # the canary, sent when the time is over; then a close
            return
        while asked:
            connection.sendall(peers.OK)
            asked = connection.recv(65536)

    with peers.peer(at_first_late) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
            conformance.fire(
                KNOWN, "rfc", target, evidence, suite_results.Fired(),
                progress=lambda _: None, selected=lambda one: one.id == family,
            )  # fmt: skip
            words = {
                verdict.word
                for verdict, _ in family_results.judged(
                    StoredServer(KNOWN, target.facts(), evidence, "peer"), family
                )
            }
    assert len(late) == 224
    assert words == {Word.PASS}


@pytest.mark.process
@pytest.mark.parametrize("quick", [True, False])
def test_a_quick_look_asks_again_once_and_only_what_decides(tmp_path: Path, quick: bool) -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
            conformance.fire(
                KNOWN, "rfc", target, evidence, suite_results.Fired(), progress=lambda _: None,
                selected=lambda one: one.group in ("BASE", "HN"), quick=quick,
            )  # fmt: skip
            facts = evidence.facts("peer")
            assert facts is not None
            levels: dict[Level, set[int]] = {}
            for family in KNOWN.of_suite("rfc"):
                if family.group != "HN":
                    continue
                for verdict, attempts in family_results.judged(
                    StoredServer(KNOWN, facts, evidence, "peer"), family.id
                ):
                    if verdict.word is Word.FAIL:
                        levels.setdefault(verdict.level, set()).update(
                            exchange.attempt for exchange in attempts
                        )
    again = {Attempt.DOUBTED} if quick else {Attempt.DOUBTED, Attempt.DOUBTED_AGAIN, Attempt.ALONE}
    assert levels[Level.MUST] - {Attempt.FIRST, Attempt.REPEAT} == again
    assert levels[Level.SHOULD] - {Attempt.FIRST, Attempt.REPEAT} == (set() if quick else again)


@pytest.mark.process
def test_a_server_that_chooses_otherwise_the_second_time_is_unstable(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def fickle(connection: socket.socket) -> None:
        while octets := peers.head(connection):
            if b"Host:\r\n" in octets:
                seen.append(octets)
                if len(seen) % 2 == 0:
                    connection.sendall(peers.BAD)
                    return
            connection.sendall(peers.OK)

    with peers.peer(fickle) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
            conformance.fire(
                KNOWN, "rfc", target, evidence, suite_results.Fired(),
                progress=lambda _: None, selected=lambda family: family.id == "host-empty",
            )  # fmt: skip
            found = suite_results.score_suite(KNOWN, "rfc", "peer", evidence).cases["host-empty"]
    assert found.word is Word.UNSTABLE
    assert "200" in found.actual
    assert "400" in found.actual


@pytest.mark.process
def test_a_close_that_is_announced_and_never_comes_is_waited_for_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(close_rules, "CLOSE_LATE_US", 2_000_000)
    promise = peers.OK.replace(b"Content-Type", b"Connection: close\r\nContent-Type")
    with peers.peer(peers.answering(promise)) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
            fired = suite_results.Fired()
            conformance.fire(
                KNOWN, "rfc", target, evidence, fired,
                progress=lambda _: None, selected=lambda family: family.id == "connection-close",
            )  # fmt: skip
            result = suite_results.score_suite(KNOWN, "rfc", "peer", evidence, fired)
    assert result.answers["RESP-33"].words == {Level.MUST: {Word.FAIL: 1}}
    assert result.cases["connection-close"].word is Word.FAIL
