"""The doors to load generators: their output read in full, their failures said in one line."""

from __future__ import annotations

import email.utils
import hashlib
import json
import math
import os
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest
from hdrh.histogram import HdrHistogram

from httpmark.harness.load.engines import by_name, h2load, launch, native, wrk
from httpmark.harness.load.engines import wrk2 as load_engines_wrk2
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.load import LoadMode, LoadPlan, LoadRequest
from httpmark.harness.servers import binaries, certificates, proc_files
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.tiny_server import until

PLAN = LoadPlan(name="p", title="t", why="w", connections=8, depth=4, duration_s=0.3, warmup_s=0.1)

ACCOUNTS = launch.Accounts(2_000_000_000, 0.01, 400_000)

WRK = """Running 2s test @ http://127.0.0.1:18080/hello
  1 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.00ms  100.00us   9.00ms   90.00%
    Req/Sec   100.00k     1.00k  110.00k    70.00%
  200000 requests in 2.00s, 20.00MB read
Requests/sec: 100000.00
Transfer/sec:     10.00MB
"""


def parsed(out: str, plan: LoadPlan = PLAN) -> launch.Measured:
    return wrk.parse_wrk(
        out, failure="said why", plan=plan, client_cpu_ns=1_000_000_000, accounts=ACCOUNTS
    )


PARENT = """
import os, signal, sys, time
def child():
    told, tells = os.pipe()
    if os.fork() == 0:
        while time.process_time() < 0.1: pass
        os.write(tells, b"!")
        while time.process_time() < 0.3: pass
        os._exit(0)
    os.read(told, 1)
def wait():
    try:
        os.wait()
    except ChildProcessError:
        pass  # waited until all were gone
{before}
print("up", flush=True)
sys.stdin.readline()
{then}
print("done", flush=True)
sys.stdin.readline()
"""


def booked(before: str, then: str) -> launch.Accounts:
    """The accounts of a parent that does so before they are opened, and so meanwhile."""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", PARENT.format(before=before, then=then)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as parent:  # fmt: skip
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdout.readline()
        close = launch.open_books([parent.pid])
        parent.stdin.write("\n")
        parent.stdin.flush()
        parent.stdout.readline()
        found = close()
        parent.stdin.close()
    return found


@pytest.mark.process
def test_children_that_begin_and_end_meanwhile_are_in_the_books_of_a_foreign_engine() -> None:
    one = booked("", "child(); wait()")
    assert one.cpu_ns is not None
    assert 0.28e9 < one.cpu_ns < 0.5e9
    assert one.run_delay_ratio is None
    assert one.switches is None
    ended = booked("child()", "wait()")
    assert ended.cpu_ns is not None
    assert 0 <= ended.cpu_ns < 0.5e9
    calm = booked("", "")
    assert calm.cpu_ns is not None
    assert calm.cpu_ns < 0.1e9
    assert calm.switches is not None


@pytest.mark.process
def test_what_nobody_waited_for_leaves_a_foreign_engine_without_a_cost() -> None:
    before = "signal.signal(signal.SIGCHLD, signal.SIG_IGN); child()"
    lost = booked(before, "wait()")
    assert lost.cpu_ns is None
    assert lost.reason == "a process of the server ended, and no process waited for it"
    measured = wrk.parse_wrk(WRK, failure="", plan=PLAN, client_cpu_ns=1, accounts=lost)
    assert measured.cost_reason == lost.reason


def test_wrks_text_is_read() -> None:
    measured = parsed(WRK)
    assert (measured.requests, measured.seconds) == (200_000, 2.0)
    assert measured.errors == {}
    assert measured.established == 8
    assert measured.client_on_cpu_ratio == 0.5
    assert measured.client_ns_per_request == 5_000
    assert measured.server_ns_per_request == 10_000
    assert measured.server_on_cpu_ratio == 1.0
    assert measured.run_delay_ratio == 0.01
    assert measured.server_switches_per_request == 2.0


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


def test_a_window_that_wrk_spent_on_connecting_is_no_measurement() -> None:
    nothing = WRK.replace("200000 requests", "0 requests")
    with pytest.raises(Unusable, match=r"no answer in 2\.00 s: it opens its connections within"):
        parsed(nothing)
    failed = parsed(nothing + "  Socket errors: connect 0, read 3, write 0, timeout 5\n")
    assert (failed.requests, failed.errors) == (0, {"read": 3, "timeout": 5})


@pytest.mark.process
def test_the_native_generator_measures_a_good_peer() -> None:
    def pipelined(connection: socket.socket) -> None:
        held = b""
        while piece := connection.recv(65536):
            held += piece
            heads = held.count(b"\r\n\r\n")
            held = held.rpartition(b"\r\n\r\n")[2]
            connection.sendall(dated() * heads)

    with peers.peer(pipelined) as peer:
        target = launch.Target("127.0.0.1", peer.port, (os.getpid(),))
        measured = native.Native().measure(PLAN, target, duration_s=0.3, cpus=None)
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


def drained(answer_s: float, depth: int) -> launch.Measured:
    """What is measured for 0.4 s of a server that takes so long for each answer, one after the
    other, with so many requests under way."""

    def slow(connection: socket.socket) -> None:
        held = b""
        while piece := connection.recv(65536):
            held += piece
            for _ in range(held.count(b"\r\n\r\n")):
                time.sleep(answer_s)
                connection.sendall(dated())
            held = held.rpartition(b"\r\n\r\n")[2]

    plan = LoadPlan(
        name="p", title="t", why="w", connections=1, depth=depth, duration_s=0.4, warmup_s=0.0
    )
    with peers.peer(slow) as peer:
        return native.Native().measure(
            plan, launch.Target("127.0.0.1", peer.port), duration_s=0.4, cpus=None
        )


@pytest.mark.process
def test_what_is_drained_is_no_throughput() -> None:
    measured = drained(0.02, 40)  # 50 a second, 0.8 s to drain
    assert measured.errors == {}
    assert measured.requests / measured.seconds < 55


@pytest.mark.process
def test_a_slow_server_is_not_waited_for_to_the_last_answer() -> None:
    begun_s = time.monotonic()
    measured = drained(0.1, 60)  # 6 s to drain
    took_s = time.monotonic() - begun_s
    assert (measured.errors, measured.unanswered) == ({}, 0)
    assert took_s < 0.4 + launch.DRAIN_SLOW_S + 3


@pytest.mark.process
def test_the_native_generator_says_who_is_not_there() -> None:
    with peers.peer(peers.mute) as peer:
        pass
    with pytest.raises(Unusable, match="httpmark-load"):
        native.Native().measure(
            PLAN, launch.Target("127.0.0.1", peer.port), duration_s=0.2, cpus=None
        )


@pytest.mark.process
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
        measured = native.Native().measure(
            plan, launch.Target("127.0.0.1", peer.port), duration_s=0.3, cpus=None
        )
    assert sum(measured.errors.values()) > 0


@pytest.mark.process
def test_a_server_that_only_says_no_is_a_result_with_errors() -> None:
    with peers.peer(peers.closing(peers.BAD)) as peer:
        measured = native.Native().measure(
            PLAN, launch.Target("127.0.0.1", peer.port, (os.getpid(),)), duration_s=0.2, cpus=None
        )
    assert measured.requests == 0
    assert sum(measured.errors.values()) > 0


@pytest.mark.process
@pytest.mark.needs("wrk")
def test_wrk_runs() -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        plan = LoadPlan(
            name="p", title="t", why="w", connections=2, depth=1, duration_s=1, warmup_s=0.0
        )
        engine = by_name.engine("wrk")
        assert engine.version().startswith("wrk")
        measured = engine.measure(
            plan, launch.Target("127.0.0.1", peer.port, (os.getpid(),)), duration_s=1, cpus=None
        )
    assert measured.requests > 10
    assert measured.errors == {}


def test_a_missing_engine_is_said() -> None:
    with pytest.raises(Unusable, match="apt-get install wrk"):
        wrk.Wrk("wrk-that-is-not-here")


OPEN = msgspec.structs.replace(PLAN, mode=LoadMode.OPEN, rate=100.0, depth=1)


def test_an_unknown_engine_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(HarnessError, match="no engine is called 'ab': use one of native, wrk, "):
        by_name.engine("ab")
    assert [by_name.engine("native").name, *by_name.NAMES[1:]] == list(by_name.NAMES)


# --- h2load ------------------------------------------------------------------------------------

# As h2load 1.52.0 printed it, against httpmark-null.
H2LOAD = """finished in 2.00s, 326328.00 req/s, 35.48MB/s
requests: 652656 total, 652784 started, 652656 done, 652656 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 652656 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 70.96MB (74402784) total, 44.20MB (46345392) headers (space savings 0.00%), 7.47MB data
                     min         max         mean         sd        +/- sd
time for request:       63us      4.20ms       195us       219us    96.89%
time for connect:        5us        66us        42us        19us    75.00%
time to 1st byte:      323us       371us       348us        16us    62.50%
req/s           :   79888.05    82401.97    81565.51      860.74    87.50%
"""  # noqa: E501


def parsed_h2load(out: str) -> launch.Measured:
    return h2load.parse_h2load(
        out, failure="said why", plan=PLAN, client_cpu_ns=1_000_000_000, accounts=ACCOUNTS
    )


def test_h2loads_text_is_read() -> None:
    measured = parsed_h2load(H2LOAD)
    assert (measured.requests, measured.seconds, measured.errors) == (652_656, 2.0, {})
    assert measured.latency_us == pytest.approx({"mean": 195.0, "max": 4200.0})
    assert measured.latency_reason == "h2load prints no percentiles"
    assert measured.established is None
    assert measured.littles_law_ratio == pytest.approx(326_328 * 195e-6 / 32)


def test_h2loads_failures_are_counted() -> None:
    out = H2LOAD.replace("0 failed, 0 errored, 0 timeout", "3 failed, 5 errored, 2 timeout")
    out = out.replace("0 3xx, 0 4xx, 0 5xx", "0 3xx, 4 4xx, 1 5xx")
    assert parsed_h2load(out).errors == {"failed": 3, "timeout": 2, "status": 5}


def test_h2load_without_an_answer_is_no_measurement() -> None:
    with pytest.raises(Unusable, match="no answer at all"):
        parsed_h2load(H2LOAD.replace("652656 done", "0 done"))
    with pytest.raises(Unusable, match="said why"):
        parsed_h2load("")


@pytest.mark.process
@pytest.mark.needs("h2load")
def test_h2load_runs() -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        plan = msgspec.structs.replace(PLAN, connections=2, depth=1)
        engine = by_name.engine("h2load")
        assert engine.version().startswith("h2load nghttp2/")
        measured = engine.measure(
            plan, launch.Target("127.0.0.1", peer.port, (os.getpid(),)), duration_s=1, cpus=None
        )
    assert measured.requests > 10
    assert measured.errors == {}


def test_tls_of_another_version_than_h2load_was_asked_for_is_no_measurement() -> None:
    told = "TLS Protocol: TLSv1.3\nCipher: TLS_AES_128_GCM_SHA256\nALPN\n" + H2LOAD
    plan = msgspec.structs.replace(PLAN, tls_version="1.3")
    found = h2load.parse_h2load(told, failure="", plan=plan, client_cpu_ns=1)
    assert found.tls == "TLSv1.3 TLS_AES_128_GCM_SHA256"
    with pytest.raises(Unusable, match=r"used TLSv1\.3 .*, and the profile pins TLS 1\.2"):
        h2load.parse_h2load(
            told, failure="", plan=msgspec.structs.replace(plan, tls_version="1.2"), client_cpu_ns=1
        )
    with pytest.raises(Unusable, match="used no TLS"):
        h2load.parse_h2load(H2LOAD, failure="", plan=plan, client_cpu_ns=1)


# --- TLS, and an end for all -------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "version", "cipher"),
    [
        pytest.param("wrk", "1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", marks=pytest.mark.needs("wrk")),
        pytest.param("wrk", "1.3", "TLS_AES_128_GCM_SHA256", marks=pytest.mark.needs("wrk")),
        pytest.param("h2load", "1.3", "TLS_AES_128_GCM_SHA256", marks=pytest.mark.needs("h2load")),
    ],
)
def test_foreign_engines_speak_the_tls_that_is_pinned(
    name: str, version: str, cipher: str, tmp_path: Path
) -> None:
    made = certificates.Authority(tmp_path).server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    spoken = set()

    def over_tls(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as stream:
            agreed = stream.cipher()
            assert agreed is not None
            spoken.add((stream.version(), agreed[0]))
            while stream.recv(65536):
                stream.sendall(peers.OK)

    plan = msgspec.structs.replace(
        PLAN, connections=2, depth=1, tls_version=version, tls_ciphers=cipher
    )
    engine = by_name.engine(name)
    assert engine.cannot(plan) is None
    with peers.peer(over_tls) as peer:
        target = launch.Target("127.0.0.1", peer.port, tls_port=peer.port)
        measured = engine.measure(plan, target, duration_s=1, cpus=None)
    assert measured.requests > 10
    assert spoken == {(f"TLSv{version}", cipher)}


@pytest.mark.process
def test_an_engine_that_hangs_is_stopped_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As h2load did with 512 clients over TLS: it waits for the last of them for ever.
    monkeypatch.setattr(h2load, "GRACE_S", 0.2)
    path = tmp_path / "h2load"
    path.write_text("#!/bin/sh\necho starting benchmark...\nexec sleep 1000\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    begun = time.monotonic()
    with pytest.raises(Unusable, match="h2load did not end within 0 s and was stopped"):
        h2load.H2load(str(path)).measure(
            PLAN, launch.Target("127.0.0.1", 1), duration_s=0.1, cpus=None
        )
    assert time.monotonic() - begun < 60
    sleeping = [
        words
        for pid in proc_files.tree([os.getpid()])
        if "sleep\x001000" in (words := Path(f"/proc/{pid}/cmdline").read_text())
    ]
    assert sleeping == [], "nothing is left behind"


# --- one plan, and what each engine can do of it -----------------------------------------------


@pytest.mark.parametrize(
    ("kind", "changes", "why"),
    [
        (native.Native, {"mode": LoadMode.IDLE}, "memory"),
        (wrk.Wrk, {"mode": LoadMode.OPEN}, "cannot offer a rate"),
        (wrk.Wrk, {"refill": "window"}, "batches only"),
        (wrk.Wrk, {"mode": LoadMode.CHURN}, "mode churn"),
        (wrk.Wrk, {"bind": "127.0.0.0/8"}, "source addresses"),
        (wrk.Wrk, {"requests": (LoadRequest(),)}, "one kind of request"),
        (wrk.Wrk, {"split_bytes": 7}, "split"),
        (load_engines_wrk2.Wrk2, {}, "constant rate"),
        (load_engines_wrk2.Wrk2, {"mode": LoadMode.OPEN, "arrivals": "poisson"}, "arrivals"),
        (h2load.H2load, {"mode": LoadMode.OPEN}, "connections"),
        (h2load.H2load, {"tls_version": "1.2"}, "cannot pin 1.2"),
        (load_engines_wrk2.Wrk2, {"mode": LoadMode.OPEN, "tls_version": "1.3"}, "cannot pin"),
    ],
)
def test_what_an_engine_cannot_do_is_said_before(
    kind: type[launch.Engine], changes: dict[str, object], why: str
) -> None:
    engine = object.__new__(kind)  # what it can do does not depend on being installed
    assert why in (engine.cannot(msgspec.structs.replace(PLAN, **changes)) or "")


def test_the_native_engine_does_every_plan_that_is_no_memory_plan() -> None:
    plan = msgspec.structs.replace(
        OPEN, bind="127.0.0.0/8", tls_version="1.2", split_bytes=3, requests=(LoadRequest(),)
    )
    assert native.Native().cannot(plan) is None


@pytest.mark.parametrize(
    ("bind", "address", "can"),
    [
        ("127.0.0.0/8", "127.0.0.1", True),
        ("127.0.0.0/8", "127.9.9.9", True),
        ("127.0.0.0/8", "192.0.2.7", False),
        ("127.0.0.0/8", "::1", False),
        ("192.0.2.0/24", "192.0.2.7", True),
        ("192.0.2.0/24", "198.51.100.1", True),
    ],
)
def test_source_addresses_are_bound_only_where_they_reach(
    bind: str, address: str, can: bool
) -> None:
    plan = msgspec.structs.replace(PLAN, bind=bind)
    words = native.native_command(plan, launch.Target(address, 80), duration_s=1)
    assert ("--bind" in words) is can


def test_requests_of_a_mixed_load_are_framed() -> None:
    assert launch.octets(LoadRequest(fields=("A: b",)), host="h:1") == (
        b"GET /hello HTTP/1.1\r\nHost: h:1\r\nA: b\r\n\r\n"
    )
    post = LoadRequest(method="POST", path="/body", content="hello")
    assert launch.octets(post, host="h").endswith(b"\r\nContent-Length: 5\r\n\r\nhello")
    chunked = msgspec.structs.replace(post, chunked=True)
    assert launch.octets(chunked, host="h").endswith(b"chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")


@pytest.mark.process
def test_an_open_loop_counts_what_was_due_and_reports_its_own_lag() -> None:
    plan = msgspec.structs.replace(OPEN, rate=400.0, arrivals="poisson", warmup_s=0.1)
    with peers.peer(peers.answering(dated())) as peer:
        measured = native.Native().measure(
            plan, launch.Target("127.0.0.1", peer.port), duration_s=0.5, cpus=None
        )
    assert measured.errors == {}
    assert 140 < measured.requests < 270  # 200 and, as arrivals are random, some 4 sigma
    assert measured.rate_offered == 400.0
    assert measured.lag_us is not None
    assert measured.service_us is not None
    assert measured.latency_us is not None
    assert measured.service_us["p50"] <= measured.latency_us["p99"]


@pytest.mark.process
def test_random_arrivals_are_others_in_each_window_and_the_same_in_each_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def seeds(seed: int) -> list[str]:
        engine, seen = native.Native(seed), []

        def run(command: list[str], **_: object) -> tuple[int, str, str, float]:
            seen.append(command[command.index("--seed") + 1])
            return 3, "", "not run", 0.0

        monkeypatch.setattr(native, "run_engine", run)
        for _ in range(3):
            with pytest.raises(Unusable, match="not run"):
                engine.measure(OPEN, launch.Target("127.0.0.1", 80), duration_s=1, cpus=None)
        return seen

    assert seeds(7) == ["7", "8", "9"] == seeds(7)
    assert seeds(2**31) != seeds(7)
    assert all(int(seed) < 1_000_000_000 for seed in seeds(2**31))


@pytest.mark.process
@pytest.mark.needs("setpriv")
def test_a_generator_does_not_outlive_who_started_it(tmp_path: Path) -> None:
    started = tmp_path / "started"
    text = (
        "import sys; from pathlib import Path; from httpmark.harness.load.engines import launch; "
        "launch.run_engine(['sleep', '60'], timeout_s=60, cpus=None, "
        "look=lambda pid: Path(sys.argv[1]).write_text(str(pid)))"
    )
    parent = subprocess.Popen([sys.executable, "-c", text, str(started)])
    try:
        assert until(lambda: started.exists() and started.read_text())
        pid = int(started.read_text())
        assert until(lambda: proc_files.text(pid, "cmdline").startswith("sleep"))
    finally:
        parent.kill()
        parent.wait()
    assert until(lambda: not proc_files.text_if_there(pid, "cmdline"))


@pytest.mark.process
@pytest.mark.needs("setpriv")  # of the package that chrt comes with
def test_what_runs_at_once_has_what_the_system_grants() -> None:
    tries = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    tells = "import os; print(os.sched_getscheduler(0))"
    granted = subprocess.run([sys.executable, "-c", tries], capture_output=True, check=False)
    told = subprocess.check_output([*launch.at_once(), sys.executable, "-c", tells])
    assert int(told) == (os.SCHED_OTHER if granted.returncode else os.SCHED_RR)


@pytest.mark.process
def test_a_rate_that_was_only_served_in_the_drain_was_not_served() -> None:
    plan = msgspec.structs.replace(OPEN, rate=350.0, warmup_s=0.0)
    one_at_a_time = threading.Lock()

    def serve(connection: socket.socket) -> None:
        while peers.head(connection):
            with one_at_a_time:
                time.sleep(0.005)
            connection.sendall(dated())

    with peers.peer(serve) as peer:
        measured = native.Native().measure(
            plan, launch.Target("127.0.0.1", peer.port), duration_s=1.0, cpus=None
        )
    assert measured.errors == {}
    assert measured.saturated is True
    assert measured.requests / measured.seconds < 250  # and not the 350 that were answered later


@pytest.mark.process
def test_churn_counts_connections() -> None:
    plan = msgspec.structs.replace(PLAN, mode=LoadMode.CHURN, connections=2, depth=1)
    with peers.peer(peers.answering(dated())) as peer:
        measured = native.Native().measure(
            plan, launch.Target("127.0.0.1", peer.port), duration_s=0.3, cpus=None
        )
        accepted = peer.connections
    assert measured.connections_per_second is not None
    assert 10 < measured.connections_per_second * measured.seconds <= accepted
    assert measured.connect_us is not None


@pytest.mark.process
def test_histograms_are_those_of_the_hdrhistogram_package() -> None:
    """The independent implementation reads ours: every count, and percentiles to a thousandth."""
    null = [binaries.need("null"), "--port", "0"]
    with subprocess.Popen(null, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().rpartition(":")[2].strip()
        try:
            ran = subprocess.run(
                [
                    binaries.need("load"), "--connections", "8", "--depth", "1", "--mode", "open",
                    "--rate", "4000", "--arrivals", "poisson", "--duration-s", "0.5", "--json",
                    f"http://127.0.0.1:{port}/",
                ],
                capture_output=True, text=True, timeout=30, check=True,
            )  # fmt: skip
        finally:
            server.terminate()
    report = json.loads(ran.stdout)
    for name, figures in (
        ("response", report["latency_us"]), ("service", report["service_us"]),
        ("lag", report["lag_us"]),
    ):  # fmt: skip
        histogram = HdrHistogram.decode(report["histograms"][name])
        if name != "lag":
            assert histogram.get_total_count() == report["requests"] > 500
        for key, percent in (("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99_9", 99.9)):
            # Ours is the value that so many percent do not exceed; theirs rounds the rank instead.
            total = histogram.get_total_count()
            rank = math.ceil(total * percent / 100)
            theirs = histogram.get_value_at_percentile(100 * rank / total) / 1000
            assert figures[key] == pytest.approx(theirs, rel=0.002), (name, key)
        assert figures["mean"] == pytest.approx(histogram.get_mean_value() / 1000, rel=0.002)


@pytest.mark.process
def test_an_engine_says_what_it_is(tmp_path: Path) -> None:
    script = tmp_path / "wrk2"
    script.write_text("#!/bin/sh\necho wrk 4.0.0 [epoll] Copyright\n")
    script.chmod(0o755)
    found = by_name.identity(load_engines_wrk2.Wrk2(str(script)))
    assert (found["name"], found["version"]) == ("wrk2", "wrk 4.0.0")
    assert found["sha256"] == hashlib.sha256(script.read_bytes()).hexdigest()
    script.write_text("#!/bin/sh\nexit 0\n")
    assert by_name.identity(load_engines_wrk2.Wrk2(str(script)))["version"] is None
