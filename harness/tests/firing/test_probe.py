"""The native probe: five outcomes told apart, every byte both ways, the steps a case may state."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from httpmark.harness.firing.probe import Probe
from httpmark.harness.model.cases import Await, Case, Op, Step
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.exchanges import End, Exchange, ExchangeFlag, Outcome
from httpmark.harness.model.timeline import EventKind, events
from httpmark.harness.servers import certificates
from httpmark.harness.tests.shared import peers

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def play(port: int, cases: Iterable[Case], *, in_flight: int = 64) -> dict[str, Exchange]:
    with Probe("127.0.0.1", port, in_flight=in_flight) as probe:
        return {e.case: e for batch in probe.fire(cases) for e in batch}


def case(name: str = "c", *steps: Step, **changes: object) -> Case:
    given = {"deadline_ms": 1000, "close_ms": 500, **changes}
    return Case(name, "f", steps or (Step(Op.SEND, GET), Step(Op.AWAIT, wait_ms=400)), **given)  # type: ignore[arg-type]


@pytest.mark.process
@pytest.mark.parametrize(
    ("handler", "outcome", "end", "received"),
    [
        (peers.answering(peers.OK), Outcome.ANSWERED, End.OPEN, peers.OK),
        (peers.closing(peers.BAD), Outcome.ANSWERED, End.CLOSED, peers.BAD),
        (peers.closing(b"\x00no http"), Outcome.ANSWERED, End.CLOSED, b"\x00no http"),
        (peers.closing(b""), Outcome.CLOSED, End.CLOSED, b""),
        (peers.resetting, Outcome.RESET, End.RESET, b""),
        (peers.mute, Outcome.HUNG, End.OPEN, b""),
    ],
)
def test_outcomes_are_told_apart(
    handler: peers.Handler, outcome: Outcome, end: End, received: bytes
) -> None:
    with peers.peer(handler) as peer:
        exchange = play(peer.port, [case()])["c"]
    assert (exchange.outcome, exchange.end, exchange.received) == (outcome, end, received)
    assert exchange.sent == GET
    assert exchange.sent_octets == len(GET)
    assert (exchange.first_us is None) == (received == b"")


@pytest.mark.process
def test_when_an_exchange_ended_is_told() -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        before = time.time()
        exchange = play(peer.port, [case()])["c"]
    assert exchange.ended_s is not None
    assert before <= exchange.ended_s <= time.time()


@pytest.mark.process
def test_no_listener_is_refused() -> None:
    with peers.peer(peers.mute) as peer:
        pass
    assert play(peer.port, [case()])["c"].outcome is Outcome.REFUSED


@pytest.mark.process
def test_every_case_has_a_connection_of_its_own() -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        patient = (Step(Op.SEND, GET), Step(Op.AWAIT, wait_ms=9000))
        found = play(peer.port, [case(f"c{n}", *patient, deadline_ms=9500) for n in range(500)])
        assert peer.connections == 500
    assert len(found) == 500
    assert {e.outcome for e in found.values()} == {Outcome.ANSWERED}


@pytest.mark.process
def test_answers_belong_to_their_cases() -> None:
    def echo(connection: socket.socket) -> None:
        line = peers.head(connection).split(b"\r\n")[0]
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(line), line))

    cases = [
        case(
            f"c{n}",
            Step(Op.SEND, b"GET /%d\r\n\r\n" % n),
            Step(Op.AWAIT, wait_ms=20_000),
            deadline_ms=20_000,
        )
        for n in range(300)
    ]
    with peers.peer(echo) as peer:
        found = play(peer.port, cases)
    for n in range(300):
        assert found[f"c{n}"].received.endswith(b"GET /%d" % n)


@pytest.mark.process
def test_silence_costs_no_more_than_its_deadline() -> None:
    started = time.monotonic()
    with peers.peer(peers.mute) as peer:
        found = play(peer.port, [case(f"c{n}") for n in range(200)], in_flight=8)
    assert {e.outcome for e in found.values()} == {Outcome.HUNG}
    # 200 deadlines one after the other on 8 places would take 10 s.
    assert time.monotonic() - started < 6


@pytest.mark.process
def test_a_head_is_enough_where_only_the_head_is_awaited() -> None:
    def half(connection: socket.socket) -> None:
        peers.head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        connection.recv(1)

    with peers.peer(half) as peer:
        started = time.monotonic()
        found = play(peer.port, [case("head", head_only=True, deadline_ms=5000)])
        assert time.monotonic() - started < 3
    assert found["head"].outcome is Outcome.ANSWERED


@pytest.mark.process
def test_steps_are_played_in_their_order() -> None:
    seen: list[tuple[float, bytes]] = []

    def watch(connection: socket.socket) -> None:
        while piece := connection.recv(65536):
            seen.append((time.monotonic(), piece))
        connection.sendall(peers.OK)

    steps = (
        Step(Op.SEND, b"one"),
        Step(Op.PAUSE, wait_ms=150),
        Step(Op.SEND, b"two"),
        Step(Op.FIN),
        Step(Op.AWAIT, wait_ms=900),
    )
    with peers.peer(watch) as peer:
        exchange = play(peer.port, [case("c", *steps, deadline_ms=3000)])["c"]
    assert [piece for _, piece in seen] == [b"one", b"two"]
    assert seen[1][0] - seen[0][0] > 0.1
    assert exchange.sent == b"onetwo"
    assert exchange.received == peers.OK


@pytest.mark.process
def test_a_second_request_goes_out_only_while_the_connection_lives() -> None:
    steps = (
        Step(Op.SEND, GET),
        Step(Op.AWAIT, wait_ms=500),
        Step(Op.SEND, GET, if_open=True),
        Step(Op.AWAIT, wait_ms=500, if_open=True),
    )
    with peers.peer(peers.answering(peers.OK)) as peer:
        assert play(peer.port, [case("c", *steps)])["c"].received == peers.OK * 2
    with peers.peer(peers.closing(peers.BAD)) as peer:
        exchange = play(peer.port, [case("c", *steps)])["c"]
    assert exchange.received == peers.BAD
    assert exchange.sent_octets == len(GET)


@pytest.mark.process
def test_announced_close_is_waited_for() -> None:
    def late(connection: socket.socket) -> None:
        peers.head(connection)
        connection.sendall(peers.BAD)
        time.sleep(0.2)

    with peers.peer(late) as peer:
        assert play(peer.port, [case(close_ms=1500, deadline_ms=3000)])["c"].end is End.CLOSED


@pytest.mark.process
def test_surplus_bytes_are_seen_when_the_case_settles() -> None:
    def twice(connection: socket.socket) -> None:
        peers.head(connection)
        connection.sendall(peers.OK)
        time.sleep(0.05)
        connection.sendall(peers.OK)
        connection.recv(1)

    with peers.peer(twice) as peer:
        assert play(peer.port, [case(settle_ms=300)])["c"].received == peers.OK * 2


@pytest.mark.process
def test_a_reset_step_resets() -> None:
    ended: list[str] = []

    def watch(connection: socket.socket) -> None:
        try:
            while connection.recv(65536):
                pass
            ended.append("FIN")
        except ConnectionResetError:
            ended.append("RST")

    with peers.peer(watch) as peer:
        play(
            peer.port,
            [case("c", Step(Op.SEND, b"GET"), Step(Op.PAUSE, wait_ms=50), Step(Op.RESET))],
        )
        time.sleep(0.1)
    assert ended == ["RST"]


@pytest.mark.process
def test_big_requests_and_answers_come_whole() -> None:
    content = bytes(range(256)) * 2048
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content)

    def swallow(connection: socket.socket) -> None:
        taken = 0
        while taken < len(content):
            taken += len(connection.recv(65536))
        connection.sendall(answer)

    with peers.peer(swallow) as peer:
        steps = (Step(Op.SEND, content), Step(Op.AWAIT, wait_ms=3000))
        exchange = play(peer.port, [case("c", *steps, deadline_ms=5000)])["c"]
    assert exchange.received == answer
    assert exchange.sent_octets == len(content)


@pytest.mark.process
def test_a_look_leaves_the_answer_and_the_timeline_tells_when() -> None:
    steps = (
        Step(Op.SEND, GET),
        Step(Op.AWAIT, wait_ms=500, kind=Await.LOOK_FINAL),
        Step(Op.SEND, b"late", if_unanswered=True),
        Step(Op.AWAIT, wait_ms=500),
    )
    with peers.peer(peers.answering(peers.OK)) as peer:
        exchange = play(peer.port, [case("c", *steps, timeline=True, delivery="tail")])["c"]
        plain = play(peer.port, [case()])["c"]
    assert exchange.sent_octets == len(GET)
    assert exchange.end_us < 400_000
    assert exchange.delivery == "tail"
    told = [(event.kind, event.octets) for event in events(exchange.timeline)]
    assert told == [(EventKind.SENT, len(GET)), (EventKind.RECEIVED, len(peers.OK))]
    assert plain.timeline == b""


def _tls(pair: certificates.Pair, handler: peers.Handler) -> peers.Handler:
    """The handler in a TLS session of its own."""

    def serve(connection: socket.socket) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        with context.wrap_socket(connection, server_side=True) as session:
            handler(session)

    return serve


def _kinds(exchange: Exchange) -> set[EventKind]:
    return {event.kind for event in events(exchange.timeline)}


@pytest.mark.process
def test_a_session_carries_the_same_bytes_and_says_how_it_ended(tmp_path: Path) -> None:
    pair = certificates.make(tmp_path, address="127.0.0.1")

    def clean(session: socket.socket) -> None:
        peers.head(session)
        session.sendall(peers.BAD)
        assert isinstance(session, ssl.SSLSocket)
        with contextlib.suppress(OSError):
            session.unwrap()

    def cut(session: socket.socket) -> None:
        peers.head(session)
        session.sendall(peers.BAD)
        session.shutdown(socket.SHUT_RDWR)

    for handler, notified in ((clean, True), (cut, False)):
        with peers.peer(_tls(pair, handler)) as peer:
            for ca_file in (None, pair.certificate):
                with Probe("127.0.0.1", peer.port, tls=True, ca_file=ca_file) as probe:
                    [exchange] = next(iter(probe.fire([case(timeline=True)])))
                assert (exchange.outcome, exchange.end) == (Outcome.ANSWERED, End.CLOSED)
                assert exchange.received == peers.BAD
                assert (EventKind.CLOSE_NOTIFY in _kinds(exchange)) == notified


@pytest.mark.process
def test_a_session_that_is_not_agreed_on_is_no_connection(tmp_path: Path) -> None:
    with peers.peer(peers.answering(peers.OK)) as plain:
        with Probe("127.0.0.1", plain.port, tls=True) as probe:
            [exchange] = next(iter(probe.fire([case()])))
        assert exchange.outcome is Outcome.REFUSED
    pair = certificates.make(tmp_path, address="127.0.0.1")
    with peers.peer(_tls(pair, peers.answering(peers.OK))) as peer:
        (tmp_path / "stranger").mkdir()
        stranger = certificates.make(tmp_path / "stranger", address="127.0.0.1").certificate
        with Probe("127.0.0.1", peer.port, tls=True, ca_file=stranger) as probe:
            [exchange] = next(iter(probe.fire([case()])))
        assert exchange.outcome is Outcome.REFUSED


@pytest.mark.process
def test_a_half_close_comes_after_the_handshake(tmp_path: Path) -> None:
    pair = certificates.make(tmp_path, address="127.0.0.1")
    seen: list[bytes] = []

    def until_the_end(session: socket.socket) -> None:
        while piece := session.recv(100):
            seen.append(piece)
        session.sendall(peers.BAD)

    steps = (Step(Op.SEND, b"ab"), Step(Op.FIN), Step(Op.AWAIT, wait_ms=900))
    with (
        peers.peer(_tls(pair, until_the_end)) as peer,
        Probe("127.0.0.1", peer.port, tls=True) as probe,
    ):
        [exchange] = next(iter(probe.fire([case("c", *steps, deadline_ms=3000)])))
    assert seen == [b"ab"]
    assert exchange.received == peers.BAD


@pytest.mark.process
def test_a_unix_socket_is_a_place_like_any_other(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(4)

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            peers.head(connection)
            connection.sendall(peers.BAD)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with Probe("", 0, unix=path) as probe:
        [exchange] = next(iter(probe.fire([case()])))
    thread.join(5)
    listener.close()
    assert (exchange.outcome, exchange.received) == (Outcome.ANSWERED, peers.BAD)


@pytest.mark.process
def test_trouble_in_making_cases_is_never_taken_for_their_end() -> None:
    def broken() -> Iterator[Case]:
        yield case("good")
        raise LookupError("no more")

    with peers.peer(peers.closing(peers.BAD)) as peer, pytest.raises(LookupError):
        play(peer.port, broken())


def _without_end(connection: socket.socket) -> None:
    peers.head(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(bytes(1 << 16))


@pytest.mark.process
def test_a_server_that_sends_without_end_is_left_before_the_deadline() -> None:
    with peers.peer(_without_end) as peer:
        one = case("c", Step(Op.SEND, GET), Step(Op.AWAIT, wait_ms=60_000), deadline_ms=60_000)
        began = time.monotonic()
        exchange = play(peer.port, [one])["c"]
    assert time.monotonic() - began < 30
    assert exchange.ran_out
    assert exchange.flags & ExchangeFlag.CUT
    assert len(exchange.received) == 1 << 16


@pytest.mark.process
def test_many_answers_without_end_are_told_in_one_line() -> None:
    """Else each of thousands of cases would be sent as much."""
    steps = (Step(Op.SEND, GET), Step(Op.AWAIT, wait_ms=60_000))
    with peers.peer(_without_end) as peer:
        cases = [case(str(number), *steps, deadline_ms=60_000) for number in range(100)]
        with pytest.raises(Unusable, match="the server sends without end"):
            play(peer.port, cases)
