"""Each failure of a stored run is shown by an exchange of its own kind."""

from __future__ import annotations

from pathlib import Path

import msgspec

from httpmark.harness import gates, proof
from httpmark.harness.evidence import Evidence
from httpmark.harness.gates import Said
from httpmark.harness.model import Outcome

from .made_findings import CONTROLS_FAIL, run_of
from .made_run import OK, MadeEvidence


def store(folder: Path, server: str) -> Path:
    with Evidence(folder / "evidence.sqlite", create=True) as evidence:
        evidence.add(server, MadeEvidence(only=("path_byte", "field_name_byte")).exchanges(server))
    return folder


def test_what_was_let_through_is_shown_by_a_request_that_was(tmp_path: Path) -> None:
    found = gates.findings(run_of("go_net_http"))
    shown = proof.of_run(found, store(tmp_path, "go_net_http"), target="http://127.0.0.1:1/")
    family = next(finding for finding in shown if finding.id == "path_byte")
    replay, by_hand = family.reproducers
    assert replay.startswith("httpmark replay path_byte-")
    assert replay.endswith(" http://127.0.0.1:1/")
    assert by_hand.startswith("printf ")
    assert by_hand.endswith(" | nc -q 2 127.0.0.1 18080")
    assert "HTTP/1.1 200 OK" in family.wire
    by_id = {finding.id: finding for finding in shown}
    assert not by_id["field_name_byte"].reproducers, "it passes"
    assert not by_id["query_byte"].reproducers, "no evidence of it"


def test_silence_is_shown_by_silence(tmp_path: Path) -> None:
    (finding,) = [f for f in gates.findings(run_of("go_net_http")) if f.id == "path_byte"]
    finding = msgspec.structs.replace(finding, outcome="hung")
    (shown,) = proof.of_run([finding], store(tmp_path, "go_net_http"))
    assert not shown.reproducers, "none was silent"
    with Evidence(tmp_path / "evidence.sqlite") as evidence:
        exchange = next(evidence.exchanges("go_net_http", family="path_byte"))
        silent = msgspec.structs.replace(
            exchange, outcome=Outcome.HUNG, received=b"", attempt=2, first_us=None
        )
        evidence.add("go_net_http", [silent])
    (shown,) = proof.of_run([finding], tmp_path)
    assert "(nothing)" in shown.wire
    assert len(shown.reproducers) == 1, "nothing listens any more"


def test_a_failed_control_is_shown(tmp_path: Path) -> None:
    (finding,) = [
        f for f in gates.findings(run_of("reference", CONTROLS_FAIL)) if f.id == "controls"
    ]
    with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
        (exchange, *_) = MadeEvidence(only=("path_byte",)).exchanges("reference")
        control = msgspec.structs.replace(
            exchange, case="control_hello", family="control_hello", received=OK
        )
        evidence.add("reference", [control])
    (shown,) = proof.of_run([finding], tmp_path)
    assert shown.said is Said.FAILED
    assert shown.wire.startswith("control_hello, sent:")


def test_no_evidence_no_proof(tmp_path: Path) -> None:
    found = gates.findings(run_of("go_net_http"))
    assert proof.of_run(found, tmp_path) == found
