"""A suite against servers with known behaviour: who is scored, who is not, and that evidence
alone gives the same result again."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.catalogue.family_rules import WAIT_MS
from httpmark.harness.firing import (
    case_stream,
    conformance,
    targets,
)
from httpmark.harness.firing.probe_frames import Play
from httpmark.harness.judging import suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Family, Level
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.verdicts import SuiteResult, Word
from httpmark.harness.tests.shared import peers

KNOWN = loading.load()
SMALL = ("path_byte", "query_byte", "field_name_byte", "field_value_byte")


def small(family: Family) -> bool:
    """The byte families and all controls: seconds, not minutes, against a Python peer."""
    return family.level is Level.CTRL or family.id in SMALL


def check(tmp_path: Path, handler: peers.Handler, **changes: object) -> SuiteResult:
    path = tmp_path / "evidence.sqlite"
    with peers.peer(handler) as peer:
        given = {"name": "peer", "address": "127.0.0.1", "port": peer.port, "host": "a", **changes}
        target = targets.Target(**given)  # type: ignore[arg-type]
        with Evidence(path, create=True) as evidence:
            conformance.fire(
                KNOWN, "seed", target, evidence, suite_results.Fired(),
                progress=lambda _: None, selected=small,
            )  # fmt: skip
            live = suite_results.score_suite(KNOWN, "seed", "peer", evidence)
    with Evidence(path) as evidence:
        assert suite_results.score_suite(KNOWN, "seed", "peer", evidence) == live
    return live


@pytest.mark.process
def test_a_server_that_checks_bytes_is_told_from_one_that_does_not(tmp_path: Path) -> None:
    checked = check(tmp_path, peers.naive)
    assert checked.controls is not None
    assert checked.controls.failed == 0
    assert checked.families["field_value_byte"].rejected == 30
    # Visible but forbidden in a target: " # % < > [ \ ] ^ ` { | }, which this peer lets through.
    assert checked.families["path_byte"].undetected == 13


@pytest.mark.process
def test_a_server_that_takes_all_detects_nothing(tmp_path: Path) -> None:
    taken = check(tmp_path, peers.answering(peers.OK))
    for family in SMALL:
        assert taken.families[family].detected == 0
        assert taken.families[family].accepted == taken.families[family].requests


@pytest.mark.process
@pytest.mark.parametrize(
    "handler",
    [peers.mute, peers.closing(b""), peers.resetting, peers.answering(peers.NOT_FOUND),
     peers.closing(peers.BAD), peers.closing(b"garbage")],
)  # fmt: skip
def test_a_server_that_refuses_the_good_is_not_scored(
    tmp_path: Path, handler: peers.Handler
) -> None:
    result = check(tmp_path, handler)
    assert result.score_percent is None
    assert "positive controls failed" in (result.reason or "")
    assert result.families == {}


@pytest.mark.process
def test_a_404_that_any_unknown_path_gets_detects_nothing(tmp_path: Path) -> None:
    def router(connection: socket.socket) -> None:
        while request := peers.head(connection):
            good = request.startswith((b"GET /hello HTTP", b"GET /hello?"))
            connection.sendall(peers.OK if good else peers.NOT_FOUND)

    result = check(tmp_path, router)
    assert result.score_percent is not None
    for name in ("path_byte", "query_byte"):
        family = result.families[name]
        assert family.undetected == family.accepted > 0, name
        # A bad byte may end the target, so that the path itself is asked for.
        assert family.detected < family.undetected, name


@pytest.mark.process
def test_silence_is_confirmed_alone_before_it_counts(tmp_path: Path) -> None:
    tries: dict[bytes, int] = {}

    def forgetful(connection: socket.socket) -> None:
        request = peers.head(connection)
        tries[request] = tries.get(request, 0) + 1
        if b"\x01" in request and tries[request] == 1:
            connection.recv(1)
        else:
            connection.sendall(peers.OK if b"\x02" not in request else b"")
            if b"\x02" in request:
                connection.recv(1)

    result = check(tmp_path, forgetful)
    assert result.families["path_byte"].mute == 1
    assert result.families["path_byte"].accepted == 174


def test_a_suite_that_asks_for_nothing_forgets_nothing_of_another(tmp_path: Path) -> None:
    """What was found out of a server is needed to judge it again."""
    with peers.peer(peers.naive) as peer, Evidence(tmp_path / "e", create=True) as evidence:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        found = msgspec.structs.replace(target.facts(), limits={"fields": 100}, slowest_ms=7)
        evidence.set_facts("peer", found)
        conformance.fire(
            KNOWN, "seed", target, evidence, suite_results.Fired(),
            progress=lambda _: None, selected=lambda _: False,
        )  # fmt: skip
        assert evidence.facts("peer") == found


@pytest.mark.process
def test_a_target_that_goes_away_is_said(tmp_path: Path) -> None:
    with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
        with peers.peer(peers.answering(peers.OK)) as peer:
            target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")

            def progress(_: int) -> None:
                if peer.connections > 100:
                    peer.stop()

            with pytest.raises(Unusable, match="refuses connections since case"):
                conformance.fire(
                    KNOWN, "seed", target, evidence, suite_results.Fired(), progress=progress
                )
        assert list(evidence.exchanges("peer")) != []


@pytest.mark.process
@pytest.mark.parametrize(
    ("unknown", "fired"), [(peers.NOT_FOUND, 80), (peers.OK, 80), (peers.BAD, 0)]
)
def test_paths_are_judged_where_the_answer_to_an_unknown_one_is_no_refusal(
    tmp_path: Path, unknown: bytes, fired: int
) -> None:
    """A 404 is the application's own answer. A 400 may be the refusal of what is malformed."""

    def router(connection: socket.socket) -> None:
        while request := peers.head(connection):
            path = request.split(b" ")[1].partition(b"?")[0]
            connection.sendall(peers.OK if path == b"/hello" else unknown)

    with peers.peer(router) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
            conformance.fire(
                KNOWN, "rfc", target, evidence, suite_results.Fired(),
                progress=lambda _: None, selected=lambda one: one.id == "path_octet_good",
            )  # fmt: skip
            assert len(list(evidence.exchanges("peer"))) == fired
            conformance.fire(
                KNOWN, "smuggling", target, evidence, suite_results.Fired(),
                progress=lambda _: None, selected=lambda one: one.id == "smuggling-two-lengths",
            )  # fmt: skip
            result = suite_results.score_suite(KNOWN, "rfc", "peer", evidence)
    assert result.requests == fired


@pytest.mark.process
@pytest.mark.parametrize("handler", [peers.closing(b""), peers.answering(peers.NOT_FOUND)])
def test_who_does_not_accept_the_plain_request_is_asked_nothing_else(
    tmp_path: Path, handler: peers.Handler
) -> None:
    with peers.peer(handler) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
            for suite in ("rfc", "smuggling"):
                conformance.fire(
                    KNOWN, suite, target, evidence, suite_results.Fired(),
                    progress=lambda _: None,
                    selected=lambda one: one.group in ("BASE", "RL", "CLTE"),
                )  # fmt: skip
            fired = {exchange.family for exchange in evidence.exchanges("peer")}
            result = suite_results.score_suite(KNOWN, "rfc", "peer", evidence)
    assert fired == {"get-plain"}
    assert result.score_percent is None
    assert "a plain request is not accepted" in (result.reason or "")


def content_first(connection: socket.socket) -> None:
    while request := peers.head(connection):
        head, _, content = request.partition(b"\r\n\r\n")
        length = int((re.search(rb"Content-Length: ([0-9]+)", head) or [b"", b"0"])[1])
        while len(content) < length:
            if not (piece := connection.recv(65536)):
                return
            content += piece
        connection.sendall(peers.OK)


@pytest.mark.process
@pytest.mark.parametrize(
    ("handler", "is_early"), [(peers.answering(peers.OK), True), (content_first, False)]
)
def test_who_reads_the_content_first_is_not_asked_what_needs_an_early_answer(
    tmp_path: Path, handler: peers.Handler, is_early: bool
) -> None:
    with peers.peer(handler) as peer:
        target = targets.Target(
            name="peer", address="127.0.0.1", port=peer.port, host="a",
            capabilities=("hello", "behave"),
        )  # fmt: skip
        with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
            conformance.fire(
                KNOWN, "smuggling", target, evidence, suite_results.Fired(),
                progress=lambda _: None,
                selected=lambda one: one.id == "smuggle-content-request-early-answer",
            )  # fmt: skip
            facts = evidence.facts("peer")
            cases = suite_results.score_suite(KNOWN, "smuggling", "peer", evidence).cases
    assert facts is not None
    assert ("early" in facts.capabilities) is is_early
    word = cases["smuggle-content-request-early-answer"].word
    assert (word is Word.NOT_APPLICABLE) is not is_early


@pytest.mark.process
def test_what_keeps_a_server_busy_goes_after_the_other_designed_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[list[str]] = []
    play_all = case_stream.CaseStream.play_all

    def noting(
        stream: case_stream.CaseStream, plays: Iterable[Play], **options: Any
    ) -> Iterator[Exchange]:
        made = list(plays)
        played.append([case.id for case, _ in made])
        return play_all(stream, made, **options)

    monkeypatch.setattr(case_stream.CaseStream, "play_all", noting)
    chosen = ["get-plain", "host-missing", "chunk-hundred-thousand-of-one", "end-in-fields"]
    assert [family.id for family in KNOWN.of_suite("rfc") if family.id in chosen] == chosen
    with (
        peers.peer(peers.naive) as peer,
        Evidence(tmp_path / "e.sqlite", create=True) as evidence,
    ):
        target = targets.Target(
            name="peer", address="127.0.0.1", port=peer.port, host="a",
            capabilities=("hello", "body"),
        )  # fmt: skip
        conformance.fire(
            KNOWN, "rfc", target, evidence, suite_results.Fired(), quick=True,
            progress=lambda _: None,
            selected=lambda family: family.id in chosen,
        )  # fmt: skip
    assert played[0] == ["get-plain"]
    assert [case for case in played[1] if case in chosen][-1] == "chunk-hundred-thousand-of-one"
    assert set(played[1]) == set(chosen) - {"get-plain"}


@pytest.mark.process
def test_suites_that_are_fired_in_one_go_say_what_they_say_apart(tmp_path: Path) -> None:
    chosen = {"get-plain", "host-missing", "post-chunked"}
    chosen |= {family.id for family in KNOWN.of_suite("smuggling") if family.group == "CLTE"}
    said: list[dict[str, dict[str, Word]]] = []
    for groups in ([("rfc", "smuggling")], [("rfc",), ("smuggling",)]):
        with (
            peers.peer(peers.naive) as peer,
            Evidence(tmp_path / f"{len(groups)}.sqlite", create=True) as evidence,
        ):
            target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
            for suite, *along in groups:
                conformance.fire(
                    KNOWN, suite, target, evidence, suite_results.Fired(), along=tuple(along),
                    progress=lambda _: None, quick=True,
                    selected=lambda family: family.id in chosen,
                )  # fmt: skip
            said.append(
                {
                    suite: {
                        id: verdict.word
                        for id, verdict in suite_results.score_suite(
                            KNOWN, suite, "peer", evidence
                        ).cases.items()
                    }
                    for suite in ("rfc", "smuggling")
                }
            )
    assert said[0] == said[1]
    assert all(said[0].values())


@pytest.mark.process
def test_who_refuses_all_chunked_content_is_not_praised_for_refusing_the_bad(
    tmp_path: Path,
) -> None:
    """411 to the control is permitted; refusals after it prove nothing all the same."""

    def refusing(connection: socket.socket) -> None:
        while request := peers.head(connection):
            if b"chunked" in request.lower():
                connection.sendall(peers.BAD.replace(b"400 Bad Request", b"411 Length Required"))
                return
            connection.sendall(peers.OK)

    with peers.peer(refusing) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with Evidence(tmp_path / "e.sqlite", create=True) as evidence:
            conformance.fire(
                KNOWN, "rfc", target, evidence, suite_results.Fired(), progress=lambda _: None,
                selected=lambda one: one.group == "BASE" or "CHK-29" in one.refs,
            )  # fmt: skip
            cases = suite_results.score_suite(KNOWN, "rfc", "peer", evidence).cases
    assert cases["post-chunked"].word is Word.WARN
    refused = next(family.id for family in KNOWN.families.values() if "CHK-29" in family.refs)
    assert cases[refused].word is Word.NOT_APPLICABLE
    assert "post-chunked" in cases[refused].actual or "BASE-04" in cases[refused].actual


def wrapping(delay_s: float) -> peers.Handler:
    """A mirror whose lengths wrap at 2^64, and that takes its time for each answer."""

    def text(octets: bytes) -> str:
        return base64.b64encode(octets).decode()

    def handler(connection: socket.socket) -> None:
        received = b""
        while True:
            while b"\r\n\r\n" not in received:
                if not (piece := connection.recv(65536)):
                    return
                received += piece
            head, _, received = received.partition(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n")[0].split(b" ")
            length = re.search(rb"Content-Length: ([0-9]+)", head)
            size = int(length[1]) % 2**64 if length else 0
            while len(received) < size:
                if not (piece := connection.recv(65536)):
                    return
                received += piece
            content, received = received[:size], received[size:]
            lines = [line.split(b": ") for line in head.split(b"\r\n")[1:]]
            told = {
                "method": text(method), "target": text(target), "authority": None,
                "version": text(b"HTTP/1.1"), "content": text(content), "trailers": [],
                "fields": [[text(name), text(value)] for name, value in lines],
                "request_number": None,
            }  # fmt: skip
            body = json.dumps(told).encode()
            time.sleep(delay_s)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b"
                % (len(body), body)
            )

    return handler


@pytest.mark.process
def test_a_server_that_is_slow_is_waited_for_and_fails_what_its_fast_twin_fails(
    tmp_path: Path,
) -> None:
    """Silence passes where an incomplete message is due; an answer later than a deadline is none.

    The delay is longer than what silence is waited for on a server that answers at once.
    """
    words: dict[float, Word] = {}
    for delay_s in (0.0, WAIT_MS / 1000 + 0.1):
        with peers.peer(wrapping(delay_s)) as peer:
            target = targets.Target(
                name="peer", address="127.0.0.1", port=peer.port, host="a",
                capabilities=("hello", "mirror"),
            )  # fmt: skip
            with Evidence(tmp_path / f"{delay_s}.sqlite", create=True) as evidence:
                conformance.fire(
                    KNOWN, "rfc", target, evidence, suite_results.Fired(),
                    progress=lambda _: None,
                    selected=lambda one: one.id == "content-length-2-64",
                )  # fmt: skip
                facts = evidence.facts("peer")
                assert facts is not None
                assert facts.slowest_ms >= 1000 * delay_s
                scored = suite_results.score_suite(KNOWN, "rfc", "peer", evidence)
        words[delay_s] = scored.cases["content-length-2-64"].word
    assert list(words.values()) == [Word.FAIL, Word.FAIL]


@pytest.mark.process
def test_limits_are_searched_for_once(tmp_path: Path) -> None:
    """What cases name and only asking can tell is known before they go out, and kept."""
    asked: list[bytes] = []

    def limited(connection: socket.socket) -> None:
        while request := peers.head(connection):
            asked.append(request)
            target = request.split(b" ")[1]
            if len(target) > 2000:
                connection.sendall(peers.BAD)
                return
            connection.sendall(peers.OK)

    of_limits = {"target-at-limit", "target-above-limit", "fields-above-limit"}
    with peers.peer(limited) as peer:
        target = targets.Target(
            name="peer", address="127.0.0.1", port=peer.port, host="a", limits={"fields": 50}
        )
        with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
            for suite, wanted in (("rfc", of_limits), ("resilience", {"target-1m"})):
                asked.clear()
                conformance.fire(
                    KNOWN, suite, target, evidence, suite_results.Fired(),
                    progress=lambda _: None,
                    selected=lambda family, wanted=wanted: family.id in wanted,  # type: ignore[misc]
                )  # fmt: skip
                facts = evidence.facts("peer")
                assert facts is not None
                assert facts.limits["request_target_bytes"] == 2000
                assert facts.limits["fields"] == 50
                assert facts.values == {}
            assert len(asked) < 10, "what is known is not searched for again"
            cases = suite_results.score_suite(KNOWN, "rfc", "peer", evidence).cases
    assert cases["target-at-limit"].word is Word.PASS
    assert cases["target-above-limit"].word is Word.FAIL  # 400 instead of 414
    assert cases["fields-above-limit"].word is Word.FAIL  # taken, although declared as too many


@pytest.mark.process
def test_answers_are_checked_beside_the_cases(tmp_path: Path) -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
            conformance.fire(
                KNOWN, "rfc", target, evidence, suite_results.Fired(),
                progress=lambda _: None, selected=lambda family: family.id == "get-plain",
            )  # fmt: skip
            result = suite_results.score_suite(KNOWN, "rfc", "peer", evidence)
    assert result.answers["RESP-01"].words == {Level.MUST: {Word.PASS: 1}}
    assert result.answers["RESP-20"].words == {Level.MUST: {Word.FAIL: 1}}
    assert result.answers["RESP-20"].failures[0].case == "get-plain"
    assert "RESP-23" not in result.answers


def _switches(*, accept: bytes = b"", always: bool = False) -> peers.Handler:
    """A server of websockets at ``/websocket`` (RFC 6455 4.2), or one that makes mistakes.

    :param accept: says this to every key.
    :param always: switches whatever it is asked.
    """

    def refusal(line: bytes, fields: dict[bytes, list[bytes]]) -> bytes | None:
        keys = fields.get(b"sec-websocket-key", [])
        options = b",".join(fields.get(b"connection", [])).lower().replace(b" ", b"").split(b",")
        protocols = b",".join(fields.get(b"upgrade", [])).lower().replace(b" ", b"").split(b",")
        if b"content-length" in fields or not line.startswith(b"GET "):
            return peers.BAD
        if not line.endswith(b" HTTP/1.1") or b"upgrade" not in options:
            return peers.BAD
        if b"websocket" not in protocols or fields.get(b"sec-websocket-version") != [b"13"]:
            return _REQUIRED
        good = len(keys) == 1 and len(base64.b64decode(keys[0])) == 16
        return None if good else peers.BAD

    def handler(connection: socket.socket) -> None:
        while octets := peers.head(connection):
            line, *rest = octets.partition(b"\r\n\r\n")[0].split(b"\r\n")
            fields: dict[bytes, list[bytes]] = {}
            for one in rest:
                name, _, value = one.partition(b":")
                fields.setdefault(name.lower(), []).append(value.strip())
            if b"/websocket" not in line:
                connection.sendall(peers.OK)
                continue
            if not always and (said := refusal(line, fields)):
                connection.sendall(said)
                return
            key = fields.get(b"sec-websocket-key", [b""])[0]
            made = base64.b64encode(hashlib.sha1(key + _GUID).digest())
            connection.sendall(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + (accept or made) + b"\r\n\r\n"
            )
            connection.recv(1)
            return

    return handler


_REQUIRED = peers.BAD.replace(
    b"400 Bad Request\r\n",
    b"426 Upgrade Required\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
).replace(b"Connection: close", b"Connection: close, upgrade")
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_NEVER = {"upgrade-not-in-connection", "upgrade-missing", "upgrade-unknown-protocol",
          "upgrade-http-1-0", "websocket-post", "upgrade-h2c", "websocket-version-12",
          "websocket-key-15-octets", "websocket-key-twice", "websocket-key-missing"}  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize(
    ("handler", "failed"),
    [
        (_switches(), set()),
        (
            _switches(accept=b"c3VyZWx5IG5vdA=="),
            {"websocket-handshake", "upgrade-capitals", "upgrade-among-options"},
        ),
        (_switches(always=True), _NEVER),
    ],
)
def test_upgrades_are_judged_where_a_server_has_websockets(
    handler: peers.Handler, failed: set[str], tmp_path: Path
) -> None:
    with peers.peer(handler) as peer:
        target = targets.Target(
            name="peer", address="127.0.0.1", port=peer.port, host="a",
            capabilities=("hello", "websocket"),
        )  # fmt: skip
        with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
            conformance.fire(
                KNOWN, "rfc", target, evidence, suite_results.Fired(),
                progress=lambda _: None,
                selected=lambda family: family.group == "UPG",
            )  # fmt: skip
            cases = suite_results.score_suite(KNOWN, "rfc", "peer", evidence).cases
    wrong = {id for id, verdict in cases.items() if verdict.word is Word.FAIL}
    assert wrong == failed
    assert cases["websocket-handshake"].word is not Word.NOT_APPLICABLE
