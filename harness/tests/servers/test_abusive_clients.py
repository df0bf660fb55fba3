"""Clients that mean harm: they do what they are told, and nothing of them stays."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from httpmark.harness.servers import abusive_clients
from httpmark.harness.servers.abusive_clients import Crowd, Manner
from httpmark.harness.tests.shared.tiny_server import until


@dataclass
class Heard:
    """A server in a thread: what each connection sent it."""

    port: int
    answer: bytes = b""
    received: list[bytearray] = field(default_factory=list)
    ended: int = 0

    def until(self, connections: int, *, seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while len(self.received) < connections and time.monotonic() < end:
            time.sleep(0.01)
        assert len(self.received) >= connections

    def serve(self, wire: socket.socket) -> None:
        mine = bytearray()
        self.received.append(mine)
        with wire, contextlib.suppress(OSError):
            while piece := wire.recv(65536):
                mine += piece
                wire.sendall(self.answer)
        self.ended += 1


@contextlib.contextmanager
def hearing(answer: bytes = b"") -> Iterator[Heard]:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        heard = Heard(listener.getsockname()[1], answer)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    wire, _ = listener.accept()
                    threading.Thread(target=heard.serve, args=(wire,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield heard
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_abusers_let_the_others_go_first() -> None:
    """The niceness is that of their thread alone."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    manner = Manner(opening=b"a", repeated=b"a", every_s=0.02)
    with hearing() as heard, Crowd("127.0.0.1", heard.port, manner, clients=1):
        heard.until(1)
        threads = [int(one) for one in os.listdir("/proc/self/task")]
        nice = [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads]
        assert nice.count(own + abusive_clients.NICENESS) == 1
        assert os.getpriority(os.PRIO_PROCESS, 0) == own


def test_each_client_sends_its_opening_once_and_the_rest_again_and_again() -> None:
    manner = Manner(opening=b"open", beginning=b"-begin", repeated=b"a", every_s=0.02)
    with hearing() as heard, Crowd("127.0.0.1", heard.port, manner, clients=5) as crowd:
        heard.until(5)
        assert until(lambda: all(len(sent) > len(b"open-begin") + 3 for sent in heard.received), 60)
    assert crowd.tally.held_max == 5
    for sent in heard.received:
        assert sent.startswith(b"open-begina")
        assert set(sent[len(b"open-begin") :]) == set(b"a")
    assert crowd.tally.sent_bytes >= sum(map(len, heard.received))


def test_nothing_is_open_when_the_crowd_has_gone() -> None:
    with hearing() as heard:
        with Crowd("127.0.0.1", heard.port, Manner(opening=b"x"), clients=20):
            heard.until(20)
        until(lambda: heard.ended == len(heard.received), deadline_s=60)
        assert heard.ended == len(heard.received) == 20
    assert "abusers" not in {thread.name for thread in threading.enumerate()}


def test_a_client_that_awaits_an_answer_does_not_go_on_without_it() -> None:
    manner = Manner(opening=b"open", repeated=b"a", every_s=0.02, awaits_answer=True)
    with hearing() as heard, Crowd("127.0.0.1", heard.port, manner, clients=1):
        heard.until(1)
        time.sleep(0.2)
    assert bytes(heard.received[0]) == b"open"
    with hearing(b"!") as heard, Crowd("127.0.0.1", heard.port, manner, clients=1):
        heard.until(1)
        assert until(lambda: bytes(heard.received[0]).startswith(b"opena"), 60)


def test_a_client_that_does_not_read_makes_the_server_wait() -> None:
    manner = Manner(repeated=b"x" * 1000, reads=False)
    with hearing(b"y" * 100_000) as heard, Crowd("127.0.0.1", heard.port, manner, clients=1):
        heard.until(1)

        def is_still() -> bool:
            before = len(heard.received[0])
            time.sleep(0.5)
            return len(heard.received[0]) == before > 0

        assert until(is_still, deadline_s=60)


def test_a_client_that_greets_leaves_when_the_server_has_answered() -> None:
    with (
        hearing(b"!") as heard,
        Crowd("127.0.0.1", heard.port, Manner(greets=True), clients=2),
    ):
        heard.until(10)
    for hello in heard.received[:2]:
        assert hello.startswith(b"\x16\x03")


def test_the_greeting_is_one_that_tls_takes() -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    session = context.wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(abusive_clients.client_hello("localhost"))
    # It is understood: what is missing is a certificate of ours.
    with pytest.raises(ssl.SSLError, match=r"NO_SHARED_CIPHER|no shared cipher"):
        session.do_handshake()


def test_a_flood_opens_so_many_connections_a_second_and_is_counted() -> None:
    with hearing() as heard:
        began = time.monotonic()
        with Crowd("127.0.0.1", heard.port, Manner(), clients=1, per_second=200) as crowd:
            assert until(lambda: crowd.tally.opened >= 50, deadline_s=60)
        took = time.monotonic() - began
        assert crowd.tally.opened <= 200 * took + 4
        assert crowd.tally.sent_bytes == 0
        assert crowd.tally.refused == 0


def test_where_nobody_listens_nothing_is_opened_and_the_crowd_still_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with Crowd("127.0.0.1", port, Manner(opening=b"x"), clients=3) as crowd:
        time.sleep(0.3)
    assert crowd.tally.opened == 0
    assert crowd.tally.refused >= 3
    with Crowd("127.0.0.1", port, Manner(), clients=1, per_second=100) as flood:
        time.sleep(0.3)
    assert flood.tally.opened == 0
    assert flood.tally.refused > 0


@pytest.mark.process
def test_the_descriptors_of_a_process_are_limited_and_given_back() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        had = abusive_clients.limit_descriptors(process.pid, 100)
        assert had == before[0]
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (100, before[1])
        abusive_clients.limit_descriptors(process.pid, had)
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == before
        process.kill()
    assert abusive_clients.limit_descriptors(process.pid, 100) is None
