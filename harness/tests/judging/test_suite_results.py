"""What was fired is judged from what was stored: by one process or two, at once or later."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.firing import conformance, targets
from httpmark.harness.judging import suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Family
from httpmark.harness.model.verdicts import Word
from httpmark.harness.tests.shared import peers

KNOWN = loading.load()


@pytest.mark.process
def test_what_was_judged_in_firing_is_what_evidence_says(tmp_path: Path) -> None:
    def chosen(family: Family) -> bool:
        return family.id in ("get-plain", "path_octet_good", "method_octet", "host-missing")

    with peers.peer(peers.naive) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
            fired = suite_results.Fired()
            conformance.fire(
                KNOWN, "rfc", target, evidence, fired, progress=lambda _: None, selected=chosen
            )
            live = suite_results.score_suite(KNOWN, "rfc", "peer", evidence, fired)
            again = suite_results.score_suite(KNOWN, "rfc", "peer", evidence)
    left = {name: len(folded.left) for name, folded in fired.folded.items()}
    assert left["path_octet_good"] == 0
    assert 0 < left["method_octet"] < KNOWN.families["method_octet"].count, "only some are left"
    assert live.must is not None
    assert live.must["passed"] > 0
    wall = {"wall_seconds": live.wall_seconds, "probe_cpu_seconds": live.probe_cpu_seconds}
    assert msgspec.structs.replace(again, **wall) == live


@pytest.mark.process
def test_a_generated_family_asked_by_itself_is_scored(tmp_path: Path) -> None:
    with peers.peer(peers.naive) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
            fired = suite_results.Fired()
            conformance.fire(
                KNOWN, "rfc", target, evidence, fired,
                progress=lambda _: None, selected=lambda family: family.id == "host_port",
            )  # fmt: skip
            found = suite_results.score_suite(KNOWN, "rfc", "peer", evidence, fired)
            unasked = suite_results.score_suite(KNOWN, "smuggling", "peer", evidence, fired)
    assert found.reason is None
    assert found.requirements["host-port-invalid"] is Word.FAIL
    assert found.score_percent is not None
    assert unasked.reason == "not scored: nothing was fired"


@pytest.mark.process
def test_refusing_all_content_is_no_merit_where_content_is_refused_wrongly(
    tmp_path: Path,
) -> None:
    def without_content(connection: socket.socket) -> None:
        while octets := peers.head(connection):
            if not octets.startswith(b"GET"):
                connection.sendall(peers.BAD)
                return
            connection.sendall(peers.OK)

    wanted = ("post-content-length", "content-length-plus-sign", "field-name-space-before-colon")
    with peers.peer(without_content) as peer:
        target = targets.Target(
            name="peer", address="127.0.0.1", port=peer.port, host="a",
            capabilities=("hello", "body"),
        )  # fmt: skip
        with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
            fired = suite_results.Fired()
            conformance.fire(
                KNOWN, "rfc", target, evidence, fired,
                progress=lambda _: None, selected=lambda family: family.id in wanted,
            )  # fmt: skip
            cases = suite_results.score_suite(KNOWN, "rfc", "peer", evidence, fired).cases
    assert cases["post-content-length"].word is Word.FAIL
    found = cases["content-length-plus-sign"]
    assert found.word is Word.NOT_APPLICABLE
    assert found.actual.startswith("needs BASE-03, which is not accepted (400")
    assert cases["field-name-space-before-colon"].word is not Word.NOT_APPLICABLE
