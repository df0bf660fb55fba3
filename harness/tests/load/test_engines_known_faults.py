"""Faults planted in servers and in the generator: each must be caught, and told by its name."""

from __future__ import annotations

import contextlib
import email.utils
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable

import pytest

from httpmark.harness.load import bottlenecks
from httpmark.harness.load.engines import launch, native, wrk
from httpmark.harness.model.load import Bottleneck, LoadMode, LoadPlan, LoadRequest
from httpmark.harness.servers import binaries, proc_files
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.spinning import spinning

STALL_S = 0.3
Answer = Callable[[int, bytes], bytes]


def plan(**changes: object) -> LoadPlan:
    words = {
        "name": "p", "title": "t", "why": "w", "connections": 2, "depth": 4, "duration_s": 0.4,
        "warmup_s": 0.0,
    }  # fmt: skip
    return LoadPlan(**{**words, **changes})  # type: ignore[arg-type]


def ok(content: bytes = b"hello", *, date: str | None = None, length: int | None = None) -> bytes:
    when = date or email.utils.formatdate(usegmt=True)
    return b"HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        when.encode(), len(content) if length is None else length, content,
    )  # fmt: skip


def numbered(answer: Answer) -> peers.Handler:
    """A server whose answer depends on the number of the request on its connection."""

    def handler(connection: socket.socket) -> None:
        held = b""
        number = 0
        while piece := connection.recv(65536):
            held += piece
            *heads, held = held.split(b"\r\n\r\n")
            for head in heads:
                number += 1
                connection.sendall(answer(number, head))

    return handler


def measured(handler: peers.Handler, one: LoadPlan) -> launch.Measured:
    with peers.peer(handler) as peer:
        return native.Native().measure(
            one, launch.Target("127.0.0.1", peer.port), duration_s=one.duration_s, cpus=None
        )


def verdict(found: launch.Measured) -> Bottleneck:
    """What a race would say of the sample, whatever else it is like."""
    return bottlenecks.bottleneck(
        bottlenecks.Signs(
            errors=sum(found.errors.values()), connections_wanted=2, connections_established=2,
            requests_per_second=1.0, null_requests_per_second=10.0, server_on_cpu_ratio=1.0,
            client_on_cpu_ratio=0.1, run_delay_ratio=0.0, steal_ratio=0.0, littles_law_ratio=1.0,
        )
    )[0]  # fmt: skip


@pytest.mark.process
def test_a_good_server_is_not_accused() -> None:
    found = measured(numbered(lambda *_: ok()), plan())
    assert found.errors == {}
    assert verdict(found) is Bottleneck.SERVER


@pytest.mark.process
def test_a_server_that_stalls_one_in_a_hundred_shows_in_the_latency() -> None:
    def stalling(connection: socket.socket) -> None:
        number = 0
        while peers.head(connection):
            number += 1
            if number % 100 == 0:
                time.sleep(STALL_S)
            connection.sendall(ok())

    # One connection, 200 a second: a stall of 0.3 s keeps 60 requests waiting that were due.
    one = plan(mode=LoadMode.OPEN, rate=200.0, connections=1, depth=1, duration_s=2.0)
    found = measured(stalling, one)
    assert found.errors == {}
    assert found.latency_us is not None
    assert found.service_us is not None
    assert found.latency_us["max"] >= STALL_S * 1e6
    assert found.latency_us["p90"] >= STALL_S * 1e6 / 4, "those who waited behind it count"
    # What omits them, as most tools do, does not see it below the 99th percentile.
    assert found.service_us["p90"] < STALL_S * 1e6 / 4


@pytest.mark.process
def test_a_server_that_drops_the_seventh_response_is_caught() -> None:
    found = measured(numbered(lambda number, _: b"" if number == 7 else ok()), plan())
    assert found.errors["timeout"] >= 2, "every connection waits for it until the end"
    assert verdict(found) is Bottleneck.BROKEN


@pytest.mark.process
@pytest.mark.parametrize("announced", [True, False])
def test_requests_that_a_server_leaves_behind_when_it_closes(announced: bool) -> None:
    def leaving(connection: socket.socket) -> None:
        held = b""
        number = 0
        while piece := connection.recv(65536):
            held += piece
            *heads, held = held.split(b"\r\n\r\n")
            for _ in heads:
                number += 1
                is_last = announced and number == 7
                connection.sendall(
                    ok().replace(b"\r\n", b"\r\nConnection: close\r\n", 1) if is_last else ok()
                )
                if number == 7:
                    # Bytes that a closed socket has not read would make the close a reset.
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
                    return

    found = measured(leaving, plan())
    if announced:
        # RFC 9112 section 9.6: it has not looked at them, and they are sent again.
        assert found.errors == {}
        assert verdict(found) is Bottleneck.SERVER
    else:
        assert found.errors["lost"] > 0
        assert verdict(found) is Bottleneck.BROKEN


@pytest.mark.process
@pytest.mark.parametrize("length", [3, 9])
def test_a_server_that_lies_about_content_length_is_caught(length: int) -> None:
    found = measured(numbered(lambda number, _: ok(length=length if number == 7 else None)), plan())
    # Too short leaves bytes that are no response; too long eats into the next one.
    assert found.errors.get("framing", 0) + found.errors.get("body", 0) >= 1
    assert verdict(found) is Bottleneck.BROKEN


@pytest.mark.process
def test_a_server_that_answers_out_of_order_is_caught() -> None:
    def swapping(connection: socket.socket) -> None:
        held = b""
        while piece := connection.recv(65536):
            held += piece
            *heads, held = held.split(b"\r\n\r\n")
            answers = [ok(head.split(b" ")[1]) for head in heads]
            # The first request of each kind comes alone, and is learned from.
            if len(answers) > 1:
                answers[0], answers[1] = answers[1], answers[0]
            connection.sendall(b"".join(answers))

    requests = (LoadRequest(path="/one"), LoadRequest(path="/two"))
    found = measured(swapping, plan(requests=requests))
    assert found.errors["order"] > 0
    assert verdict(found) is Bottleneck.BROKEN


@pytest.mark.process
def test_a_server_that_answers_from_a_cache_is_caught() -> None:
    old = email.utils.formatdate(time.time() - 60, usegmt=True)
    found = measured(numbered(lambda number, _: ok(date=old if number > 3 else None)), plan())
    assert found.errors["date"] > 0
    assert found.late_dates == 0, "it was made long before the load began"
    assert verdict(found) is Bottleneck.BROKEN


@pytest.mark.process
def test_a_date_that_is_not_renewed_in_time_is_told_from_an_old_one() -> None:
    first = ok()
    found = measured(numbered(lambda *_: first), plan(duration_s=4.1))
    assert found.errors["date"] == found.late_dates > 0
    assert found.errors.keys() == {"date"}
    assert found.requests > found.late_dates, "such answers are right otherwise, and are counted"
    assert verdict(found) is Bottleneck.BROKEN


@pytest.mark.process
def test_the_statuses_that_came_are_told() -> None:
    answers = {3: b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", 5: peers.NOT_FOUND}
    found = measured(numbered(lambda number, _: answers.get(number, ok())), plan())
    assert found.errors == {"status": 4}
    assert found.statuses == {"404": 2, "503": 2}
    refused = measured(numbered(lambda *_: peers.NOT_FOUND), plan())
    assert (refused.requests, refused.statuses) == (0, {"404": 1})


@pytest.mark.process
def test_a_server_that_replays_its_first_answer_is_caught_while_its_date_is_near() -> None:
    soon = ok(date=email.utils.formatdate(time.time() + 1.5, usegmt=True))
    found = measured(numbered(lambda *_: soon), plan(duration_s=2.2))
    assert found.errors["date"] > 0
    assert verdict(found) is Bottleneck.BROKEN


@pytest.mark.process
def test_a_cache_that_mixes_up_its_keys_is_caught() -> None:
    cache: dict[bool, bytes] = {}

    def cached(number: int, head: bytes) -> bytes:
        # One entry for all paths, once it is warm: the classical mistake.
        fresh = ok(head.split(b" ")[1])
        return cache.setdefault(True, fresh) if number > 3 else fresh

    requests = (LoadRequest(path="/one"), LoadRequest(path="/two"))
    found = measured(numbered(cached), plan(requests=requests))
    assert found.errors["order"] + found.errors.get("body", 0) > 0
    assert verdict(found) is Bottleneck.BROKEN


# --- the generator -----------------------------------------------------------------------------


def threads_of(name: str) -> list[int]:
    """The threads of our own child of that name, but for its first."""
    for child in proc_files.tree([os.getpid()]):
        with contextlib.suppress(OSError):
            with open(f"/proc/{child}/comm") as comm:
                if comm.read().strip() != name[:15]:
                    continue
            return sorted(int(task) for task in os.listdir(f"/proc/{child}/task"))[1:]
    return []


@pytest.mark.process
def test_one_starved_thread_of_several_is_enough() -> None:
    usable = sorted(os.sched_getaffinity(0))
    one = plan(connections=4, threads=2, duration_s=1.0, warmup_s=0.3)

    def starve() -> None:
        end = time.monotonic() + 5
        while time.monotonic() < end:
            if len(threads := threads_of("httpmark-load")) == 2:
                os.sched_setaffinity(threads[0], {usable[0]})
                return
            time.sleep(0.01)

    null = [binaries.need("null"), "--port", "0"]
    with subprocess.Popen(null, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().rpartition(":")[2])
        try:
            with spinning(usable[0]):
                thread = threading.Thread(target=starve)
                thread.start()
                # Without the server's processes: what they wait for is not the generator's.
                found = native.Native().measure(
                    one, launch.Target("127.0.0.1", port), duration_s=1.0, cpus=None
                )
                thread.join()
        finally:
            server.terminate()
    assert found.run_delay_ratio is not None
    assert found.run_delay_ratio > bottlenecks.RUN_DELAY_MAX
    signs = bottlenecks.Signs(
        errors=0, connections_wanted=4, connections_established=4, requests_per_second=1.0,
        null_requests_per_second=None, server_on_cpu_ratio=1.0, client_on_cpu_ratio=0.5,
        run_delay_ratio=found.run_delay_ratio, steal_ratio=0.0, littles_law_ratio=1.0,
    )  # fmt: skip
    assert bottlenecks.bottleneck(signs)[0] is Bottleneck.STARVED


def test_of_several_threads_the_worst_one_counts() -> None:
    report = {
        "requests": 10, "requests_in_window": 10, "seconds": 1.0, "errors": {"body": 0},
        "established": 4, "cpu_ns_per_request": {"server": 1.0, "client": 1.0},
        "context_switches": {"server": 1, "client": 1}, "tls": None,
        "instructions_per_request": {"server": 5.0, "client": None},
        "server_on_cpu_ratio": 0.5, "server_run_delay_ratio": 0.01, "littles_law_ratio": 1.0,
        "client_threads": [
            {"on_cpu_ratio": 0.2, "run_delay_ratio": 0.0},
            {"on_cpu_ratio": 0.9, "run_delay_ratio": 0.4},
        ],
        "latency_us": None, "histograms": {"response": None}, "rate": None, "connects": 4,
        "connect_us": None, "unanswered": 3,
    }  # fmt: skip
    found = native.read_native(report, plan(), has_server=True)
    assert (found.client_on_cpu_ratio, found.run_delay_ratio) == (0.9, 0.4)
    assert found.unanswered == 3
    assert found.server_instructions_per_request == 5.0
    assert found.client_instructions_per_request is None
    lost = {**report, "cpu_ns_per_request": {"server": None, "client": 1.0},
            "complaints": ["connection 1: late", "a process of the server has ended"]}  # fmt: skip
    told = native.read_native(lost, plan(), has_server=True)
    assert told.cost_reason == "a process of the server has ended"


@pytest.mark.process
@pytest.mark.needs("wrk")
def test_a_starved_generator_of_others_is_seen_from_outside() -> None:
    """It does not tell: its threads are looked at while it runs."""
    usable = sorted(os.sched_getaffinity(0))
    null = [binaries.need("null"), "--port", "0"]
    with subprocess.Popen(null, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        target = launch.Target("127.0.0.1", int(server.stdout.readline().rpartition(":")[2]))
        try:
            with spinning(usable[-1]):
                found = wrk.Wrk().measure(
                    plan(), target, duration_s=1.0, cpus=frozenset(usable[-1:])
                )
        finally:
            server.terminate()
    assert found.client_run_delay_ratio is not None
    assert found.client_run_delay_ratio > 0.3
    assert found.run_delay_ratio == found.client_run_delay_ratio


def test_the_busiest_of_several_threads_is_not_hidden_by_the_mean() -> None:
    accounts = launch.Accounts(10**9, 0.0, 1, client_on_cpu_ratio=0.97)
    out = "  1000 requests in 1.00s, 1.00MB read\nRequests/sec: 1000\n"
    found = wrk.parse_wrk(
        out, failure="", plan=plan(threads=2), client_cpu_ns=10**9, accounts=accounts
    )
    assert found.client_on_cpu_ratio == 0.97
