"""Failing requests get smaller by themselves, beside their finding; no verdict is changed by it."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.command import check_options, check_session, named_target
from httpmark.harness.firing import conformance, shrinking
from httpmark.harness.gate import findings, junit, sarif
from httpmark.harness.http import shell_lines, tolerances
from httpmark.harness.http.request_reader import Broken
from httpmark.harness.judging import evidence as judging_evidence
from httpmark.harness.judging import judge, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.crashes import Blame, CrashKind
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import Word
from httpmark.harness.report import failure_examples, verdict_text
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.silent_events import SilentEvents

CASES = ("get-plain", "host-three-lines", "content-length-plus-sign")


def checked(folder: Path, handler: peers.Handler, *, quick: bool = False) -> Run:
    with peers.peer(handler) as peer:
        options = check_options.Options(
            target=f"http://127.0.0.1:{peer.port}/", suites=("rfc",), cases=CASES, out=folder,
            quick=quick,
        )  # fmt: skip
        return check_session.Checker(options, SilentEvents()).check()


def found(run: Run, folder: Path) -> dict[str, findings.Finding]:
    families = loading.load().families
    shown = failure_examples.of_run(findings.findings(run, families=families), folder, run)
    return {finding.id: finding for finding in shown}


def accepting(connection: socket.socket) -> None:
    """Takes every header section for a request, says when, and reads no content."""
    answer = peers.OK.replace(b"\r\n\r\n", b"\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n", 1)
    while b"\r\n\r\n" in peers.head(connection):
        connection.sendall(answer)


@pytest.mark.process
def test_a_failing_request_gets_smaller_and_shows_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = checked(folder, accepting)
    finding = found(run, folder)["host-three-lines"]
    assert finding.status is findings.Status.FAILED
    first, line = finding.fewest.splitlines()
    assert "bytes do the same" in first
    assert line.startswith("printf ")
    assert finding.reproducers[-2:] == (f"# {first}", line)
    assert first in sarif.sarif(run, [finding])
    assert first in junit.junit(run, [finding])
    with Evidence(folder / "evidence.sqlite") as evidence:
        [small] = evidence.exchanges(
            "target", case=finding.id, delivery=judging_evidence.kept_as(finding.id)
        )
        [whole] = evidence.exchanges("target", case=finding.id)
    assert len(shell_lines.own(small)) < len(shell_lines.own(whole))
    assert tolerances.broken(shell_lines.own(small)) is Broken.HOST
    assert shell_lines.own(small).lower().count(b"\nhost:") == 2, "it is about two of them"
    assert small.received.startswith(b"HTTP/1.1 200")
    judged = verdict_text.Judged(run=run, found=(finding,), code=1)
    lines = [one.text for one in verdict_text.verdict_lines(judged)]
    assert any(first in text for text in lines)
    assert any(line in text for text in lines)


@pytest.mark.process
def test_verdicts_are_those_of_a_check_that_does_not(tmp_path: Path) -> None:
    """And those that the evidence gives, with the smaller requests among it."""
    shrunk, plain = tmp_path / "shrunk", tmp_path / "plain"
    results = [checked(shrunk, accepting), checked(plain, accepting, quick=True)]
    suites = [run.servers[0].compliance.suites["rfc"] for run in results]
    with Evidence(plain / "evidence.sqlite") as evidence:
        assert not evidence.holds("target", judging_evidence.kept_as("host-three-lines"))
    with Evidence(shrunk / "evidence.sqlite") as evidence:
        assert evidence.holds("target", judging_evidence.kept_as("host-three-lines"))
        again = suite_results.score_suite(loading.load(), "rfc", "target", evidence)
    words = [{id: verdict.word for id, verdict in suite.cases.items()} for suite in suites]
    assert words[0] == words[1]
    assert again.cases == suites[0].cases
    assert again.requests == suites[0].requests
    assert again.answers == suites[0].answers


def closing_down() -> tuple[peers.Handler, threading.Event]:
    """Takes all until it is told to stop, then only closes."""
    stopped = threading.Event()

    def handler(connection: socket.socket) -> None:
        if not stopped.is_set():
            accepting(connection)

    return handler, stopped


@pytest.mark.process
def test_a_target_that_stops_answering_meanwhile_keeps_its_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, stopped = closing_down()
    real = shrinking.of_suite

    def gone(*words: object, **more: object) -> None:
        stopped.set()
        real(*words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(shrinking, "of_suite", gone)
    folder = tmp_path / "run"
    run = checked(folder, handler)
    [crash] = run.servers[0].crashes
    assert (crash.kind, crash.blame, crash.went_on) == (CrashKind.HUNG, Blame.SUSPECTED, False)
    suite = run.servers[0].compliance.suites["rfc"]
    assert suite.cases["host-three-lines"].word is Word.FAIL
    assert suite.score_percent is not None
    finding = found(run, folder)["host-three-lines"]
    assert not finding.fewest
    assert finding.reproducers, "the whole request is there"


@pytest.mark.process
def test_a_target_that_answers_this_and_that_has_nothing_kept(tmp_path: Path) -> None:
    """What is left in the end is asked once more by itself: then it must hold, too."""
    seen: dict[bytes, int] = {}
    lock = threading.Lock()

    def forgetting(connection: socket.socket) -> None:
        # Whoever asks the same a second time is refused, but for the case's own bytes.
        while b"\r\n\r\n" in (request := peers.head(connection)):
            with lock:
                seen[request] = seen.get(request, 0) + 1
                whole = b"canary" in request or request.count(b"\nHost:") != 2
            connection.sendall(peers.OK if whole or seen[request] == 1 else peers.BAD)
            if not (whole or seen[request] == 1):
                return

    folder = tmp_path / "run"
    run = checked(folder, forgetting)
    assert not found(run, folder)["host-three-lines"].fewest


@pytest.mark.process
def test_no_time_no_search(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with peers.peer(accepting) as peer:
        target = named_target.asked(check_options.Options(target=f"127.0.0.1:{peer.port}"))
        known = loading.load()
        with Evidence(folder.with_suffix(".sqlite"), create=True) as evidence:
            fired = suite_results.Fired()
            conformance.fire(
                known, "rfc", target, evidence, fired, progress=lambda _: None, quick=True,
                selected=lambda family: family.id in CASES,
            )  # fmt: skip
            suite = suite_results.score_suite(known, "rfc", target.name, evidence, fired)
            shrinking.of_suite(known, suite, target, evidence, seconds=0.0)
            assert not evidence.holds("target", judging_evidence.kept_as("host-three-lines"))


def test_what_is_silent_or_passes_is_left_alone() -> None:
    known = loading.load()
    family = known.families["host-missing"]
    facts = Facts(host="h")
    planned = next(known.planned(family.id, facts))
    seen = Exchange(
        family.id, family.id, planned.case.sent, b"", Outcome.HUNG, End.OPEN, None, 2_000_000,
        len(planned.case.sent),
    )  # fmt: skip
    assert judge.Judge().judge(planned, seen).word is Word.FAIL
    assert shrinking.subject(family, planned, seen) is None
    passing = msgspec.structs.replace(
        seen, received=peers.BAD, outcome=Outcome.ANSWERED, end=End.CLOSED
    )
    assert judge.Judge().judge(planned, passing).word is Word.PASS
    assert shrinking.subject(family, planned, passing) is None
    failing = msgspec.structs.replace(passing, received=peers.OK)
    assert shrinking.subject(family, planned, failing) is not None


@pytest.mark.process
def test_a_request_whose_answer_fails_a_check_gets_smaller_too() -> None:
    """Whatever the request asks: the check is of the answer."""
    known = loading.load()
    family = next(one for one in known.families.values() if "BASE-08" in one.refs)
    with peers.peer(peers.answering(peers.OK)) as peer:
        target = named_target.asked(check_options.Options(target=f"127.0.0.1:{peer.port}"))
        planned = next(known.planned(family.id, target.facts()))
        with target.probe() as probe:
            [[whole]] = probe.fire([planned.case])
        facts = target.facts()
        assert shrinking.of_answer("RESP-01", family, planned, whole, facts) is None, "it holds"
        one = shrinking.of_answer("RESP-20", family, planned, whole, facts)
        assert one is not None
        [(subject, small)] = shrinking.smallest([one], target)
    assert subject.finding == "RESP-20"
    assert small.delivery == judging_evidence.kept_as("RESP-20")
    assert shell_lines.own(whole).count(b"\r\n") > 8
    assert shell_lines.own(small).count(b"\r\n") == 3, "a request line, Host, and the end"
