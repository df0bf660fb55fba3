"""A server that dies or hangs: the request is found and told, and the rest is asked."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.firing import case_stream, crash_recovery, liveness
from httpmark.harness.firing.crash_recovery import Recovery
from httpmark.harness.firing.targets import Target
from httpmark.harness.judging import suite_results
from httpmark.harness.judging.evidence import Evidence, is_beside
from httpmark.harness.model.cases import Case, Op, Step
from httpmark.harness.model.crashes import Blame, Crash, CrashKind
from httpmark.harness.model.errors import ServerDied
from httpmark.harness.model.exchanges import Attempt, Outcome
from httpmark.harness.tests.shared import crashing_server, peers

KNOWN = loading.load()
pytestmark = pytest.mark.process


def asking(id: str, *lines: str) -> Case:
    octets = f"GET /hello HTTP/1.1\r\nHost: a\r\nX-Id: {id}\r\n{''.join(lines)}\r\n".encode()
    steps = (Step(Op.SEND, octets), Step(Op.AWAIT, wait_ms=2000))
    return Case(id, id, steps, deadline_ms=2500)


def good(name: str, number: int) -> list[Case]:
    return [asking(f"{name}-{at}") for at in range(number)]


KILLING = asking("killing", "Accept: */*\r\n", "X-Kill: now\r\n")


def played(target: Target, cases: list[Case], path: Path, *, in_flight: int = 8) -> list[Crash]:
    """What a stream of cases met; each good case was answered once, as if nothing had happened."""
    recovery = Recovery(KNOWN, quick=True)
    recovery.meet(target)
    with Evidence(path / "e.sqlite", create=True) as evidence:
        stream = case_stream.CaseStream(
            KNOWN, target, evidence, suite_results.Fired(), recovery=recovery
        )
        plays = stream.play(cases, in_flight=in_flight, attempt=Attempt.FIRST)
        case_stream.exhaust(plays)
        kept = list(evidence.attempts("target"))
        beside = list(evidence.exchanges("target", delivery=None))
    blamed = {name for crash in recovery.crashes for name in crash.cases}
    unharmed = [one for one in kept if one[0].case not in blamed]
    assert {one[0].case for one in unharmed} == {case.id for case in cases} - blamed
    assert all(len(one) == 1 and one[0].outcome is Outcome.ANSWERED for one in unharmed)
    assert any(is_beside(one.delivery) for one in beside), "what was in flight is not kept"
    assert all(one[-1].crashed for one in kept if one not in unharmed)
    return recovery.crashes


@pytest.mark.parametrize(
    ("manner", "how"), [("abort", "killed by SIGABRT"), ("exit", "exit code 3")]
)
def test_the_request_is_named_and_the_rest_is_asked(tmp_path: Path, manner: str, how: str) -> None:
    with crashing_server.started(manner) as target:
        cases = [*good("before", 20), KILLING, *good("after", 20)]
        [crash] = played(target, cases, tmp_path)
    assert (crash.kind, crash.how, crash.blame) == (CrashKind.DIED, how, Blame.ALONE)
    assert (crash.cases, crash.went_on) == (("killing",), True)
    assert 0 < crash.fewest < crash.octets
    [line] = crash.by_hand
    assert "X-Kill" in line
    assert "X-Id" not in line
    assert "PORT" in line
    words = [one for one in crash.last_words if crashing_server.LAST_WORDS in one]
    assert bool(words) is (manner == "abort")
    assert all(one.isprintable() for one in words)


def test_each_of_several_is_named(tmp_path: Path) -> None:
    killing = [asking(f"killing-{at}", "X-Kill: now\r\n") for at in range(3)]
    with crashing_server.started("exit") as target:
        cases = [killing[0], *good("one", 5), killing[1], killing[2], *good("two", 5)]
        crashes = played(target, cases, tmp_path)
    assert sorted(name for crash in crashes for name in crash.cases) == [
        "killing-0", "killing-1", "killing-2",
    ]  # fmt: skip
    assert {crash.blame for crash in crashes} == {Blame.ALONE}


def test_a_server_that_spins_is_told_from_one_that_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "_HUNG_S", 2.0)  # the case waits for less
    monkeypatch.setattr(liveness, "_RECOVERS_S", 2.0)
    with crashing_server.started("spin") as target:
        [crash] = played(target, [*good("a", 4), KILLING, *good("b", 4)], tmp_path)
    assert (crash.kind, crash.blame) == (CrashKind.HUNG, Blame.ALONE)
    assert crash.cases == ("killing",)
    assert "answers no request" in crash.how


def test_a_request_that_hangs_the_server_twice_in_flight_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "_HUNG_S", 2.0)
    monkeypatch.setattr(liveness, "_RECOVERS_S", 2.0)
    recovery = Recovery(KNOWN, quick=True)
    plays = [
        (KILLING, Attempt.FIRST), *((case, Attempt.FIRST) for case in good("a", 2)),
        (KILLING, Attempt.REPEAT),
    ]  # fmt: skip
    with (
        crashing_server.started("spin") as target,
        Evidence(tmp_path / "e.sqlite", create=True) as evidence,
    ):
        recovery.meet(target)
        stream = case_stream.CaseStream(
            KNOWN, target, evidence, suite_results.Fired(), recovery=recovery
        )
        case_stream.exhaust(stream.play_all(plays, in_flight=8))
        kept = {one[0].case: [exchange.attempt for exchange in one]
                for one in evidence.attempts("target")}  # fmt: skip
    [crash] = recovery.crashes
    assert (crash.blame, crash.cases) == (Blame.ALONE, ("killing",))
    assert kept == {"killing": [Attempt.CRASHED], "a-0": [Attempt.FIRST], "a-1": [Attempt.FIRST]}


def test_two_requests_that_do_it_in_their_order_are_both_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crash_recovery, "_ONE_S", 120.0)  # on a busy machine, too
    arming = asking("arming", "X-Arm: now\r\n")
    recovery = Recovery(KNOWN, quick=True)
    cases = [*good("a", 3), arming, *good("b", 3), KILLING, *good("c", 3)]
    with (
        crashing_server.started("two") as target,
        Evidence(tmp_path / "e.sqlite", create=True) as evidence,
    ):
        stream = case_stream.CaseStream(
            KNOWN, target, evidence, suite_results.Fired(), recovery=recovery
        )
        plays = stream.play(cases, in_flight=1, attempt=Attempt.FIRST)
        case_stream.exhaust(plays)
        asked = {one[0].case for one in evidence.attempts("target")}
    [crash] = recovery.crashes
    assert (crash.blame, crash.cases) == (Blame.SEQUENCE, ("arming", "killing"))
    assert crash.is_proven
    assert asked == {case.id for case in cases}, "nothing is left out: no one is to blame alone"


def test_a_server_that_dies_of_the_number_of_requests_is_stopped_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crash_recovery, "_QUICK_S", 10.0)
    recovery = Recovery(KNOWN, quick=True)
    with (
        crashing_server.started("tenth") as target,
        Evidence(tmp_path / "e.sqlite", create=True) as evidence,
    ):
        stream = case_stream.CaseStream(
            KNOWN, target, evidence, suite_results.Fired(), recovery=recovery
        )
        with pytest.raises(ServerDied, match="exit code 3"):
            case_stream.exhaust(stream.play(good("a", 200), in_flight=1, attempt=Attempt.FIRST))
        assert any(evidence.attempts("target")), "what was answered stays"
    assert Blame.ALONE not in {crash.blame for crash in recovery.crashes}
    first = recovery.crashes[0]
    assert first.blame is Blame.SEQUENCE
    # Of ten, one shows that the server is ready; on a busy machine it may take two.
    assert 1 < first.requests < crashing_server.TENTH
    assert [crash.went_on for crash in recovery.crashes] == [
        *[True] * (len(recovery.crashes) - 1), False,
    ]  # fmt: skip


def test_nobody_is_accused_where_nothing_can_be_asked_again(tmp_path: Path) -> None:
    def dying(connection: socket.socket) -> None:
        while request := peers.head(connection):
            if b"X-Kill" in request:
                peer.stop()
                return
            connection.sendall(peers.OK)

    recovery = Recovery(KNOWN)
    with (
        peers.peer(dying) as peer,
        Evidence(tmp_path / "e.sqlite", create=True) as evidence,
    ):
        target = Target(name="target", address="127.0.0.1", port=peer.port, host="a")
        recovery.meet(target)
        stream = case_stream.CaseStream(
            KNOWN, target, evidence, suite_results.Fired(), recovery=recovery
        )
        cases = [*good("a", 5), KILLING, *good("b", 100)]
        with pytest.raises(ServerDied, match="refuses connections since case"):
            case_stream.exhaust(stream.play(cases, in_flight=4, attempt=Attempt.FIRST))
    [crash] = recovery.crashes
    assert (crash.blame, crash.went_on) == (Blame.SUSPECTED, False)
    assert "killing" in crash.cases


def test_a_question_that_kills_is_not_asked_again(tmp_path: Path) -> None:
    recovery = Recovery(KNOWN, quick=True)
    deadly = KILLING.sent
    with crashing_server.started("exit") as target:
        answers = recovery.survived(
            target,
            lambda asked: [asked.ask(one, deadline_s=1) for one in (asking("a").sent, deadly)],
        )
    assert answers[0] is not None
    assert answers[0].startswith(b"HTTP/1.1 200")
    assert answers[1] == b""
    [crash] = recovery.crashes
    assert (crash.blame, crash.cases) == (Blame.ALONE, ())
    assert "X-Kill" in crash.by_hand[0]


def test_what_killed_a_server_is_not_asked_again(tmp_path: Path) -> None:
    recovery = Recovery(KNOWN, quick=True)
    with (
        crashing_server.started("exit") as target,
        Evidence(tmp_path / "e.sqlite", create=True) as evidence,
    ):
        stream = case_stream.CaseStream(
            KNOWN, target, evidence, suite_results.Fired(), recovery=recovery
        )
        for attempt in (Attempt.FIRST, Attempt.REPEAT, Attempt.ALONE):
            cases = [KILLING, *good("a", 2)]
            case_stream.exhaust(stream.play(cases, in_flight=4, attempt=attempt))
    assert len(recovery.crashes) == 1
