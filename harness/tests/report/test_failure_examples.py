"""Each failure of a stored run is shown by an exchange of its own kind."""

from __future__ import annotations

import html
import shlex
import socket
import subprocess
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.gate import findings
from httpmark.harness.gate.findings import Status
from httpmark.harness.http import shell_lines
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Level
from httpmark.harness.model.exchanges import Outcome
from httpmark.harness.report import failure_examples
from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.command_process import COMMAND
from httpmark.harness.tests.shared.made_findings import CONTROLS_FAIL, run_of
from httpmark.harness.tests.shared.made_run import OK, MadeEvidence


def store(folder: Path, server: str) -> Path:
    made = MadeEvidence(only=("path_byte", "field_name_byte"))
    with Evidence(folder / "evidence.sqlite", create=True) as evidence:
        evidence.add(server, made.exchanges(server))
        if (facts := made.facts(server)) is not None:
            evidence.set_facts(server, facts)
    return folder


def test_what_was_let_through_is_shown_by_a_request_that_was(tmp_path: Path) -> None:
    run = run_of("go_net_http")
    asked = msgspec.structs.replace(run.servers[0], again=("http://127.0.0.1:1/", "--path", "/a b"))
    found = findings.findings(run)
    shown = failure_examples.of_run(
        found,
        store(tmp_path, "go_net_http"),
        msgspec.structs.replace(run, servers=(asked,)),
    )
    family = next(finding for finding in shown if finding.id == "path_byte")
    replay, by_hand = family.reproducers
    assert replay.startswith("httpmark replay path_byte-")
    assert replay.endswith(" http://127.0.0.1:1/ --path '/a b'")
    assert by_hand.startswith("printf ")
    assert " | timeout 2 nc 127.0.0.1 18080; printf " in by_hand
    assert "HTTP/1.1 200 OK" in family.wire
    by_id = {finding.id: finding for finding in shown}
    assert not by_id["field_name_byte"].reproducers, "it passes"
    assert not by_id["query_byte"].reproducers, "no evidence of it"


def test_silence_is_shown_by_silence(tmp_path: Path) -> None:
    run = run_of("go_net_http")
    (finding,) = [f for f in findings.findings(run) if f.id == "path_byte"]
    finding = msgspec.structs.replace(finding, outcome="hung")
    (shown,) = failure_examples.of_run([finding], store(tmp_path, "go_net_http"), run)
    assert not shown.reproducers, "none was silent"
    with Evidence(tmp_path / "evidence.sqlite") as evidence:
        exchange = next(evidence.exchanges("go_net_http", family="path_byte"))
        silent = msgspec.structs.replace(
            exchange, outcome=Outcome.HUNG, received=b"", attempt=2, first_us=None
        )
        evidence.add("go_net_http", [silent])
    (shown,) = failure_examples.of_run([finding], tmp_path, run)
    assert "(nothing)" in shown.wire
    assert len(shown.reproducers) == 1, "nothing listens any more"


def test_a_failed_control_is_shown(tmp_path: Path) -> None:
    run = run_of("reference", CONTROLS_FAIL)
    (finding,) = [f for f in findings.findings(run) if f.id == "controls"]
    with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
        (exchange, *_) = MadeEvidence(only=("path_byte",)).exchanges("reference")
        control = msgspec.structs.replace(
            exchange, case="control_hello", family="control_hello", received=OK
        )
        evidence.add("reference", [control])
    (shown,) = failure_examples.of_run([finding], tmp_path, run)
    assert shown.status is Status.FAILED
    assert shown.wire.startswith("control_hello, sent:")


def test_no_evidence_no_proof(tmp_path: Path) -> None:
    run = run_of("go_net_http")
    found = findings.findings(run)
    assert failure_examples.of_run(found, tmp_path, run) == found


def picky(connection: socket.socket) -> None:
    """Answers 2xx to its own path, host and key alone, and takes what it should refuse."""
    while request := peers.head(connection):
        own = request.startswith(b"GET /app") and b"\r\nX-Key: k\r\n" in request
        known = own and b"\r\nHost: a.example\r\n" in request
        connection.sendall(peers.OK if known else peers.NOT_FOUND)


def spoken(*words: str) -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    done = subprocess.run(
        [*COMMAND, *words],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def to_copy(said: str, part: str) -> str:
    """The one line that asks again, without the label before it."""
    [line] = {
        line.strip().removeprefix("again").lstrip() for line in said.splitlines() if part in line
    }
    return line


@pytest.mark.process
@pytest.mark.parametrize("in_url", [True, False])
def test_the_line_to_be_copied_draws_the_same_verdict(tmp_path: Path, in_url: bool) -> None:
    """Whatever the target was asked with; but a secret is left for its owner to fill in."""
    with peers.peer(picky) as peer:
        target = f"http://127.0.0.1:{peer.port}/"
        own = [f"{target}app"] if in_url else [target, "--path", "/app"]
        code, said = spoken(
            "check", *own, "--host", "a.example", "--header", "X-Key: k", "--suite", "rfc",
            "--case", "host-twice-different", "--out", str(tmp_path / "run"),
        )  # fmt: skip
        assert code == 1, said
        line = to_copy(said, "replay host-twice")
        assert "X-Key: ***" in line
        words = shlex.split(line)[1:]
        code, masked = spoken(*words)
        assert (code, masked) == (2, "")
        code, replayed = spoken(*(word.replace("***", "k") for word in words))
        assert code == 1, "the case fails"
        assert "verdict:  fail" in replayed.splitlines()
        other = spoken("replay", "host-twice-different", target)[1]
        assert "\nactual:   200" in replayed
        assert "\nactual:   404" in other, "what is left out matters"


@pytest.mark.process
def test_a_served_command_is_started_again(tmp_path: Path) -> None:
    """Nothing listens any more where the server was: the line starts it."""
    command = f"{binaries.need('null')} --address 127.0.0.1 --port {{port}} --workers 1"
    code, said = spoken(
        "check", "--serve", command, "--path", "/x", "--suite", "rfc", "--case", "host-missing",
        "--out", str(tmp_path / "run"), "--junit", str(tmp_path / "junit.xml"),
    )  # fmt: skip
    assert code == 1, said
    assert "| nc " not in (tmp_path / "junit.xml").read_text()
    line = to_copy(said, "httpmark check")
    words = shlex.split(line)
    assert words[:6] == ["httpmark", "check", "--serve", command, "--path", "/x"]
    code, said = spoken(*words[1:], "--out", str(tmp_path / "again"))
    assert code == 1
    assert "Breaks 1 of " in said
    assert "--case host-missing" in said


def gluing(connection: socket.socket) -> None:
    """Takes a header section that comes in one piece alone."""
    while request := connection.recv(65536):
        is_whole = request.endswith(b"\r\n\r\n") and request.startswith(b"GET ")
        connection.sendall(peers.OK if is_whole else peers.BAD)
        if not is_whole:
            return


@pytest.mark.process
def test_a_delivery_that_disagrees_has_a_line_that_shows_it(tmp_path: Path) -> None:
    with peers.peer(gluing) as peer:
        target = f"http://127.0.0.1:{peer.port}/"
        code, said = spoken(
            "check", target, "--suite", "rfc", "--case", "get-plain", "--full",
            "--out", str(tmp_path / "run"), "--junit", str(tmp_path / "junit.xml"),
        )  # fmt: skip
        assert code == 1, said
        line = to_copy(said, "--delivery")
        assert line.startswith(f"httpmark replay get-plain {target} --delivery ")
        code, replayed = spoken(*shlex.split(line)[1:])
        assert code == 1, "the answers differ"
        assert "the answer differs: 400 instead of 200 (3 of 3 times)" in replayed
        shown = (tmp_path / "junit.xml").read_text()
        assert line in html.unescape(shown)
        assert "get-plain, sent:" in shown
        other = spoken("replay", "get-plain", target, "--delivery", "two@1", "--minimise")
        assert other[0] == 2


def test_a_delivery_of_a_served_command_is_asked_for_whole() -> None:
    finding = findings.Finding(
        server="s", suite="rfc", id=f"get-plain{findings.CUT}", title="", level=Level.MUST,
        clause="",
        status=Status.FAILED, message="", witness="get-plain", delivery="two@17",
    )  # fmt: skip
    line = shell_lines.command(
        finding.witness, "rfc", ("--serve", "./s {port}"), delivery=finding.delivery
    )
    assert line == "httpmark check --serve './s {port}' --suite rfc --case get-plain --full"
