"""The doors to load generators: their output read in full, their failures said in one line."""

from __future__ import annotations

import email.utils
import os
import socket
import time

import pytest

from httpmark.harness import engines
from httpmark.harness.model import LoadPlan, Unusable

from . import peers

PLAN = LoadPlan(name="p", title="t", why="w", connections=8, depth=4, duration_s=0.3, warmup_s=0.1)

WRK = """Running 2s test @ http://127.0.0.1:18080/hello
  1 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.00ms  100.00us   9.00ms   90.00%
    Req/Sec   100.00k     1.00k  110.00k    70.00%
  200000 requests in 2.00s, 20.00MB read
Requests/sec: 100000.00
Transfer/sec:     10.00MB
"""


def parsed(out: str, plan: LoadPlan = PLAN) -> engines.Measured:
    return engines.parse_wrk(
        out, failure="said why", plan=plan, client_cpu_ns=1_000_000_000,
        server_cpu_ns=2_000_000_000, server_run_delay_ratio=0.01,
    )  # fmt: skip


def test_wrks_text_is_read() -> None:
    measured = parsed(WRK)
    assert (measured.requests, measured.seconds) == (200_000, 2.0)
    assert measured.errors == {}
    assert measured.established == 8
    assert measured.client_on_cpu_ratio == 0.5
    assert measured.client_ns_per_request == 5_000
    assert measured.server_ns_per_request == 10_000
    assert measured.server_on_cpu_ratio == 1.0


def test_wrks_latency_is_never_shown() -> None:
    measured = parsed(WRK)
    assert measured.latency_us is None
    assert measured.latency_reason
    assert measured.littles_law_ratio is None


def test_wrks_errors_are_counted() -> None:
    out = WRK + "  Socket errors: connect 1, read 2, write 0, timeout 3\n"
    out += "  Non-2xx or 3xx responses: 7\n"
    measured = parsed(out)
    assert measured.errors == {"connect": 1, "read": 2, "timeout": 3, "status": 7}
    assert measured.established == 7


@pytest.mark.parametrize(("unit", "seconds"), [("ms", 0.002), ("m", 120.0), ("us", 2e-6)])
def test_wrks_units_are_read(unit: str, seconds: float) -> None:
    assert parsed(WRK.replace("2.00s,", f"2.00{unit},")).seconds == pytest.approx(seconds)


def test_wrk_drops_connections_that_do_not_divide() -> None:
    odd = LoadPlan(name="p", title="t", why="w", connections=512, depth=1, duration_s=1, threads=6)
    assert parsed(WRK, odd).established == 510


def test_output_without_a_total_is_no_measurement() -> None:
    with pytest.raises(Unusable, match="said why"):
        parsed("unable to connect")


def test_the_native_generator_measures_a_good_peer() -> None:
    def pipelined(connection: socket.socket) -> None:
        held = b""
        while piece := connection.recv(65536):
            held += piece
            heads = held.count(b"\r\n\r\n")
            held = held.rpartition(b"\r\n\r\n")[2]
            connection.sendall(dated() * heads)

    with peers.peer(pipelined) as peer:
        target = engines.Target("127.0.0.1", peer.port, (os.getpid(),))
        measured = engines.Native().measure(PLAN, target, duration_s=0.3, cpus=None)
    assert measured.errors == {}
    assert measured.requests > 100
    assert measured.established == 8
    assert measured.client_ns_per_request
    assert measured.server_ns_per_request
    assert measured.littles_law_ratio == pytest.approx(1.0, abs=0.25)
    assert (measured.histogram or "").startswith("HISTF")


def dated() -> bytes:
    """An answer whose Date is now: the generator looks at it."""
    date = email.utils.formatdate(usegmt=True).encode()
    return b"HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Length: 5\r\n\r\nhello" % date


def test_what_is_drained_is_no_throughput() -> None:
    # 40 requests under way, 20 ms each one after the other: 50 a second, 0.8 s to drain.
    def slow(connection: socket.socket) -> None:
        held = b""
        while piece := connection.recv(65536):
            held += piece
            for _ in range(held.count(b"\r\n\r\n")):
                time.sleep(0.02)
                connection.sendall(dated())
            held = held.rpartition(b"\r\n\r\n")[2]

    plan = LoadPlan(
        name="p", title="t", why="w", connections=1, depth=40, duration_s=0.4, warmup_s=0.0
    )
    with peers.peer(slow) as peer:
        measured = engines.Native().measure(
            plan, engines.Target("127.0.0.1", peer.port), duration_s=0.4, cpus=None
        )
    assert measured.errors == {}
    assert measured.requests / measured.seconds < 55


def test_the_native_generator_says_who_is_not_there() -> None:
    with peers.peer(peers.mute) as peer:
        pass
    with pytest.raises(Unusable, match="httpmark-load"):
        engines.Native().measure(
            PLAN, engines.Target("127.0.0.1", peer.port), duration_s=0.2, cpus=None
        )


def test_wrong_answers_are_a_result_with_errors() -> None:
    count = 0

    def lying(connection: socket.socket) -> None:
        nonlocal count
        while peers.head(connection):
            count += 1
            body = b"other" if count > 20 else b"hello"
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + body)

    plan = LoadPlan(
        name="p", title="t", why="w", connections=1, depth=1, duration_s=0.3, warmup_s=0.0
    )
    with peers.peer(lying) as peer:
        measured = engines.Native().measure(
            plan, engines.Target("127.0.0.1", peer.port), duration_s=0.3, cpus=None
        )
    assert sum(measured.errors.values()) > 0


def test_a_server_that_only_says_no_is_a_result_with_errors() -> None:
    with peers.peer(peers.closing(peers.BAD)) as peer:
        measured = engines.Native().measure(
            PLAN, engines.Target("127.0.0.1", peer.port, (os.getpid(),)), duration_s=0.2, cpus=None
        )
    assert measured.requests == 0
    assert sum(measured.errors.values()) > 0


@pytest.mark.needs("wrk")
def test_wrk_runs() -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        plan = LoadPlan(
            name="p", title="t", why="w", connections=2, depth=1, duration_s=1, warmup_s=0.0
        )
        engine = engines.engine("wrk")
        assert engine.version().startswith("wrk")
        measured = engine.measure(
            plan, engines.Target("127.0.0.1", peer.port, (os.getpid(),)), duration_s=1, cpus=None
        )
    assert measured.requests > 10
    assert measured.errors == {}


def test_a_missing_engine_is_said() -> None:
    with pytest.raises(Unusable, match="apt-get install wrk"):
        engines.Wrk("wrk-that-is-not-here")
