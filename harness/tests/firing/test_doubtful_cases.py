"""What is asked again, and what is believed then."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.firing import asking_alone, conformance, targets
from httpmark.harness.judging import family_results, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.family_results import StoredServer
from httpmark.harness.judging.response_rules import close_rules
from httpmark.harness.model.cases import Level
from httpmark.harness.model.exchanges import Attempt, Doubt, Exchange
from httpmark.harness.model.verdicts import SuiteResult, Word
from httpmark.harness.tests.shared import peers

KNOWN = loading.load()
_LAST_VISIBLE = range(0x70, 0x7F)


@pytest.mark.process
@pytest.mark.parametrize("quick", [True, False])
def test_a_server_that_was_late_under_load_is_asked_again_and_believed(
    tmp_path: Path, quick: bool
) -> None:
    """The first time around nothing is answered in time; afterwards everything is, and at once."""
    family = "field_value_octet_good"
    late = set()
    rounds: list[int] = []
    counted: list[int] = []

    def begin(total: int) -> Callable[[int], None]:
        rounds.append(total)
        return counted.append

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
                progress=lambda _: None, again=begin, selected=lambda one: one.id == family,
                quick=quick,
            )  # fmt: skip
            words = {
                one.verdict.word
                for one in family_results.judged(
                    StoredServer(KNOWN, target.facts(), evidence, "peer"), family
                )
            }
    assert len(late) == 224
    assert sum(rounds) == sum(counted) >= 224, "who waits sees what is asked again"
    assert words == {Word.PASS}


def _fired(tmp_path: Path, peer: peers.Peer, *families: str, quick: bool = False) -> SuiteResult:
    """What is said of families of the suite rfc that were fired at a peer."""
    target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
    with Evidence(tmp_path / "evidence.sqlite", create=True) as evidence:
        fired = suite_results.Fired()
        conformance.fire(
            KNOWN, "rfc", target, evidence, fired, quick=quick,
            progress=lambda _: None, selected=lambda one: one.id in families,
        )  # fmt: skip
        return suite_results.score_suite(KNOWN, "rfc", "peer", evidence, fired)


@pytest.mark.process
@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("lasting_s", [0.0, 1.0])
def test_a_close_that_only_a_crowd_causes_is_not_believed(
    tmp_path: Path, lasting_s: float, quick: bool
) -> None:
    """Nor where the server goes on closing for a while when the crowd has gone."""
    family = "field_value_octet_good"
    with peers.peer(peers.crowded(24, lasting_s=lasting_s)) as peer:
        result = _fired(tmp_path, peer, family, quick=quick)
    assert result.generated[family].words == {
        Level.CTRL: {Word.PASS: 96}, Level.SHOULD: {Word.PASS: 128},
    }  # fmt: skip
    assert 32 < result.asked_again[Doubt.CLOSED_UNANNOUNCED] <= 224


@pytest.mark.process
@pytest.mark.parametrize(("quick", "sample"), [(True, 4), (False, 32)])
def test_of_closes_that_are_the_servers_own_only_a_sample_is_asked_again(
    tmp_path: Path, quick: bool, sample: int
) -> None:
    family = "field_value_octet_good"
    with peers.peer(peers.closing(peers.OK)) as peer:
        result = _fired(tmp_path, peer, family, quick=quick)
    assert result.generated[family].words == {
        Level.CTRL: {Word.WARN: 96}, Level.SHOULD: {Word.WARN: 128},
    }  # fmt: skip
    assert result.asked_again == {Doubt.CLOSED_UNANNOUNCED: sample}


@pytest.mark.process
@pytest.mark.parametrize("quick", [True, False])
def test_two_writes_that_came_as_one_are_asked_again_though_they_pass(
    tmp_path: Path, quick: bool
) -> None:
    """A server that takes a head for the whole message refuses the rest. Where it is held up, both
    come as one, and the refusal seems to be of the message."""
    case = "transfer-encoding-gzip"
    seen: list[bytes] = []

    def slow_at_first(connection: socket.socket) -> None:
        asked = peers.head(connection)
        if b"Transfer-Encoding" in asked:
            seen.append(asked)
            if len(seen) == 1:
                time.sleep(0.15)
                connection.recv(65536)
                connection.sendall(peers.BAD)
                return
        while asked:
            is_request = asked.startswith((b"GET", b"POST"))
            connection.sendall(peers.OK if is_request else peers.BAD)
            if not is_request:
                return
            asked = connection.recv(65536)

    with peers.peer(slow_at_first) as peer:
        result = _fired(tmp_path, peer, case, quick=quick)
    assert result.cases[case].word is Word.FAIL
    assert result.asked_again == {Doubt.LOOK_RAN_OUT: 1}


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
                for one in family_results.judged(
                    StoredServer(KNOWN, facts, evidence, "peer"), family.id
                ):
                    if one.verdict.word is Word.FAIL:
                        levels.setdefault(one.verdict.level, set()).update(
                            exchange.attempt for exchange in one.exchanges
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


def _silent_at_first(times: int) -> peers.Handler:
    """Says nothing the first times that it is asked for a field X-A, each time anew, then OK."""
    asked_before = Counter[bytes]()

    def handler(connection: socket.socket) -> None:
        while asked := connection.recv(65536):
            asked_before[asked] += 1
            if b"X-A" in asked and asked_before[asked] <= times:
                connection.recv(65536)  # the canary, sent when the time is over
                return
            connection.sendall(peers.OK)

    return handler


@pytest.mark.process
def test_silence_proves_nothing_where_time_is_up_and_others_are_answered_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_alone, "_QUICK_S", 0.0)
    family = "field_value_octet_good"
    with peers.peer(_silent_at_first(2)) as peer:
        result = _fired(tmp_path, peer, family, quick=True)
    words = result.generated[family].words[Level.CTRL]
    assert words[Word.PASS] + words[Word.VOID] == 96
    assert 0 < words[Word.PASS] <= 16


@contextlib.contextmanager
def looked_at(handler: peers.Handler, chosen: set[str], folder: Path) -> Iterator[Evidence]:
    """What a quick look at a peer leaves, of families of the suite rfc."""
    with (
        peers.peer(handler) as peer,
        Evidence(folder / "e.sqlite", create=True) as evidence,
    ):
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        evidence.set_facts("peer", target.facts())
        conformance.fire(
            KNOWN, "rfc", target, evidence, suite_results.Fired(), quick=True,
            progress=lambda _: None, selected=lambda family: family.id in chosen,
        )  # fmt: skip
        yield evidence


@pytest.mark.timed
@pytest.mark.process
@pytest.mark.parametrize("answer_s", [0.0, 0.55], ids=["prompt", "slow"])
def test_a_quick_look_asks_again_what_ran_out_of_time(tmp_path: Path, answer_s: float) -> None:
    chosen = {"get-plain", "method_octet", "host-missing"}
    with looked_at(without_host(answer_s), chosen, tmp_path) as evidence:
        [made] = evidence.attempts("peer", family="host-missing")
        said = suite_results.score_suite(KNOWN, "rfc", "peer", evidence).cases["host-missing"]
    # What binds and stays silent is asked alone before it counts.
    assert [one.attempt for one in made] == [Attempt.FIRST, Attempt.DOUBTED, Attempt.ALONE]
    assert said.word is Word.FAIL


def silent_to_bad_names(connection: socket.socket) -> None:
    """Says OK, but nothing to a field name with a byte that it may not hold."""
    head = peers.head(connection)
    if b"\r\nna" in head:
        time.sleep(10)
    else:
        connection.sendall(peers.OK)


@pytest.mark.process
def test_those_that_ran_out_of_time_do_not_take_the_place_of_other_failures(tmp_path: Path) -> None:
    """At first 80 are silent, and 15 behind them are refused: all of them are asked again."""
    family = "field_value_octet_good"
    met: set[bytes] = set()

    def at_first_wrong(connection: socket.socket) -> None:
        while asked := connection.recv(65536):
            if b"X-A" not in asked or asked in met:
                connection.sendall(peers.OK)
                continue
            met.add(asked)
            if any(b"X-A: a%cb" % octet in asked for octet in _LAST_VISIBLE):
                connection.sendall(peers.BAD)
            else:
                connection.recv(65536)  # the canary, sent when the time is over
            return

    with looked_at(at_first_wrong, {"get-plain", family}, tmp_path) as evidence:
        made = {one[0].case: one for one in evidence.attempts("peer", family=family)}
    last = [made[f"{family}-{octet:02x}"] for octet in _LAST_VISIBLE]
    assert all(one[0].received.startswith(b"HTTP/1.1 400") for one in last)
    assert {len(one) for one in made.values()} == {2}
    assert all(one[-1].received.startswith(b"HTTP/1.1 200") for one in made.values())


@pytest.mark.process
def test_a_case_that_binds_is_asked_alone_in_a_family_that_does_not(tmp_path: Path) -> None:
    family = "field_name_octet_middle"
    chosen = {"get-plain", family}
    with looked_at(silent_to_bad_names, chosen, tmp_path) as evidence:
        alone = {
            made[0].case
            for made in evidence.attempts("peer", family=family)
            if made[-1].attempt == Attempt.ALONE
        }
    assert KNOWN.families[family].level is Level.SHOULD
    assert alone == {f"{family}-0d"}


_HOLDER, _WAITER = "content-length-plus-sign", "content-length-underscore"


def held_by_a_sign(worker: contextlib.AbstractContextManager[object]) -> peers.Handler:
    """Says nothing to a length with a plus sign as long as the client stays, 400 to one with an
    underscore, and OK to others.

    :param worker: what a connection holds while it is served.
    """

    def handler(connection: socket.socket) -> None:
        with worker:
            head = peers.head(connection)
            if b"Length: +" in head:
                while connection.recv(65536):
                    pass
            elif head:
                connection.sendall(peers.BAD if b"_" in head else peers.OK)

    return handler


@pytest.mark.process
def test_who_waits_behind_a_case_that_never_ends_is_asked_with_nothing_else(
    tmp_path: Path,
) -> None:
    """The only worker is held: plain requests beside the cases show it."""
    with looked_at(
        held_by_a_sign(threading.Lock()), {"get-plain", _HOLDER, _WAITER}, tmp_path
    ) as evidence:
        said = suite_results.score_suite(KNOWN, "rfc", "peer", evidence).cases
        crowd = [_attempts(evidence, case)[0] for case in (_HOLDER, _WAITER)]
    assert all(one.ran_out for one in crowd)
    assert said[_HOLDER].word is Word.FAIL
    assert said[_WAITER].word is Word.PASS


@pytest.mark.process
def test_who_waits_because_of_itself_does_so_beside_others(tmp_path: Path) -> None:
    silent = ("host-missing", _HOLDER)

    def handler(connection: socket.socket) -> None:
        head = peers.head(connection)
        if b"Length: +" in head or b"Host:" not in head:
            connection.recv(65536)
            time.sleep(10)
        connection.sendall(peers.OK)

    with looked_at(handler, {"get-plain", *silent}, tmp_path) as evidence:
        alone = [_attempts(evidence, case)[-1] for case in silent]
    assert {one.attempt for one in alone} == {Attempt.ALONE}
    assert all(one.ran_out for one in alone)
    began = [one.ended_s - one.end_us / 1e6 for one in alone if one.ended_s is not None]
    ended = [one.ended_s for one in alone if one.ended_s is not None]
    assert max(began) < min(ended)


def _attempts(evidence: Evidence, family: str) -> tuple[Exchange, ...]:
    [made] = evidence.attempts("peer", family=family)
    return tuple(made)
