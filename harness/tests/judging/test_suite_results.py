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
from httpmark.harness.model.verdicts import Verdict, Word
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


def _cases_of(handler: peers.Handler, wanted: tuple[str, ...], path: Path) -> dict[str, Verdict]:
    """The verdicts of some cases of ``rfc``, asked of a small server."""
    with peers.peer(handler) as peer:
        target = targets.Target(
            name="peer", address="127.0.0.1", port=peer.port, host="a",
            capabilities=("hello",),
        )  # fmt: skip
        with Evidence(path / "evidence.sqlite", create=True) as evidence:
            fired = suite_results.Fired()
            conformance.fire(
                KNOWN, "rfc", target, evidence, fired,
                progress=lambda _: None, selected=lambda family: family.id in wanted,
            )  # fmt: skip
            return suite_results.score_suite(KNOWN, "rfc", "peer", evidence, fired).cases


LOOKING_LIKE_FRAMING = ("transfer-encoding-name-percent-encoded", "x-transfer-encoding",
                        "content-encoding-chunked", "te-chunked")  # fmt: skip


@pytest.mark.process
def test_silence_to_what_states_no_content_is_counted_once(tmp_path: Path) -> None:
    def waiting(connection: socket.socket) -> None:
        """Waits for the content of all but GET, unless a length says how much it is."""
        while octets := peers.head(connection):
            if not octets.startswith(b"GET") and b"Content-Length" not in octets:
                connection.recv(65536)
                connection.recv(65536)
                return
            connection.sendall(peers.OK)

    named = ("connect-no-port", "whitespace-led-content-length", "te-chunked")
    cases = _cases_of(waiting, ("post-no-content", "host-missing", *named), tmp_path)
    assert cases["post-no-content"].word is Word.FAIL
    assert cases["host-missing"].word is Word.FAIL
    for name in named:
        assert cases[name].word is Word.NOT_APPLICABLE, name
        assert cases[name].actual.startswith("needs BASE-06, which is not accepted (silence")


@pytest.mark.process
@pytest.mark.parametrize("first", [b"411 Length Required", b"200 OK"])
def test_a_field_that_looks_like_framing_may_be_told_by_the_next_refusal(
    tmp_path: Path, first: bytes
) -> None:
    def peer(connection: socket.socket) -> None:
        """Reads no content here, and refuses the chunk, at once or after what follows it."""
        while octets := peers.head(connection):
            if octets.startswith((b"GET ", b"POST ")):
                is_long = b"Content-Length" in octets or octets.startswith(b"GET")
                status = b"200 OK" if is_long else first
                connection.sendall(peers.OK.replace(b"200 OK", status))
                continue
            if first.startswith(b"200"):
                peers.head(connection)
            connection.sendall(peers.BAD.replace(b"400", b"501"))
            return

    cases = _cases_of(peer, ("post-no-content", *LOOKING_LIKE_FRAMING), tmp_path)
    assert {cases[name].word for name in LOOKING_LIKE_FRAMING} == {Word.WARN}


@pytest.mark.process
def test_a_field_that_looks_like_framing_must_not_frame(tmp_path: Path) -> None:
    def peer(connection: socket.socket) -> None:
        """Decodes chunked wherever the word stands."""
        while octets := peers.head(connection):
            if b"chunked" in octets:
                while b"0\r\n\r\n" not in octets:
                    octets += connection.recv(65536)
            connection.sendall(peers.OK)

    cases = _cases_of(peer, ("post-no-content", *LOOKING_LIKE_FRAMING), tmp_path)
    assert {cases[name].word for name in LOOKING_LIKE_FRAMING} == {Word.FAIL}


@pytest.mark.process
@pytest.mark.parametrize(
    ("status", "word"),
    [(b"413 Content Too Large", Word.WARN), (b"500 Internal Server Error", Word.FAIL)],
)
def test_a_length_that_is_valid_and_too_large_may_get_413_while_its_content_is_skipped(
    tmp_path: Path, status: bytes, word: Word
) -> None:
    def peer(connection: socket.socket) -> None:
        while octets := peers.head(connection):
            if b"9223372036854775807" not in octets:
                connection.sendall(peers.OK)
                continue
            connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
            while connection.recv(65536):
                pass

    wanted = ("post-content-length", "content-length-2-63-minus-1")
    cases = _cases_of(peer, wanted, tmp_path)
    assert cases["content-length-2-63-minus-1"].word is word
