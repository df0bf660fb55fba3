"""The lines beside the scoreboard: every figure in its place, and nothing where there is none."""

from __future__ import annotations

import msgspec
import pytest

from httpmark.harness.model.load import Cost, LoadMode, LoadResult, PairedRatio
from httpmark.harness.model.memory import BytesPerConnection, Memory, Rung, SlowReaders, Trickle
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.report import load_text, memory_text, scoreboard
from httpmark.harness.tests.shared.scripted_race import fold_of

TIMES = {"mean": 1.0, "p50": 110.0, "p90": 220.0, "p99": 330.0, "p99_9": 440.0, "max": 5550.0}


def made(**changes: object) -> Run:
    server = ServerResult(
        name="a", title="A", language="C", version=None, runtime="process",
        **changes,  # type: ignore[arg-type]
    )  # fmt: skip
    return Run(
        schema_version="1.0", catalogue_version="c", harness_version="0", id="x", started="now",
        finished="then", interrupted=False, quick=False, seed=1, suites=(), profiles=("p",),
        environment={}, servers=(server,),
    )  # fmt: skip


def shown(run: Run, width: int = 80) -> list[str]:
    lines = [*load_text.detail_lines(run, width), *memory_text.connection_lines(run, width)]
    return [*lines, *load_text.paired_lines(run.paired, width)]


def row_of(lines: list[str]) -> list[str]:
    return next(line for line in lines if line.startswith("a ")).split()


def closed() -> LoadResult:
    return fold_of({"a": [80.0] * 3, "null": [35.0] * 3})["a"]


def opened(**changes: object) -> LoadResult:
    wanted = {
        "mode": LoadMode.OPEN, "latency_us": TIMES, "service_us": {"p99": 77.0},
        "lag_us": {"p99": 12.0}, "rate_offered": 10_000.0, "latency_reason": "to be known",
        **changes,
    }  # fmt: skip
    return msgspec.structs.replace(closed(), **wanted)


def test_a_run_without_such_figures_has_no_lines() -> None:
    assert shown(made()) == []
    assert shown(made(load=(closed(),))) == []


def test_latency_of_an_open_loop_is_shown_with_its_rate_and_what_is_to_be_known() -> None:
    result = opened()
    samples = tuple(msgspec.structs.replace(s, saturated=s.round == 2) for s in result.samples)
    lines = shown(made(load=(msgspec.structs.replace(result, samples=samples),)))
    times = ["110 us", "220 us", "330 us", "440 us", "5.55 ms", "77 us", "12 us"]
    assert row_of(lines) == ["a", "10.0", "k", *" ".join(times).split()]
    assert "  a: to be known" in lines
    assert "  a: in 1 of 3 rounds the server did not keep up with the rate" in lines


def test_churn_shows_connections_and_handshakes() -> None:
    churn = msgspec.structs.replace(
        closed(), mode=LoadMode.CHURN, connections_per_second=1234.0, handshake_us=TIMES,
        tls="TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256",
    )  # fmt: skip
    assert row_of(shown(made(load=(churn,)))) == [
        "a", "1.23", "k", "110", "us", "330", "us", "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256",
    ]  # fmt: skip


def test_context_switches_and_instructions_are_told_where_they_were_counted() -> None:
    counted = msgspec.structs.replace(
        closed(), context_switches_per_request=Cost(0.00391, 1.25),
        instructions_per_request=Cost(1234.5, None), instructions_reason=None,
    )  # fmt: skip
    lines = shown(made(load=(counted,)))
    assert lines == [
        "",
        "PER REQUEST, context switches of the server (and of the generator)",
        "  p: a 0.00391 (1.25)",
        "  p, instructions: a 1,234",
    ]
    rare = msgspec.structs.replace(counted, context_switches_per_request=Cost(2e-6, 0.0))
    assert "  p: a < 0.001 (0)" in shown(made(load=(rare,)))
    uncounted = msgspec.structs.replace(
        counted, instructions_per_request=Cost(None, None), instructions_reason="no counters"
    )
    assert shown(made(load=(uncounted,)))[-1] == "  instructions: no counters"


MEMORY = Memory(
    vmpeak_kb=1, vmhwm_kb=1, pss_kb=1, connections_held=2000, after_close_pss_kb=999,
    bytes_per_connection=BytesPerConnection(virtual=0.0, resident=44.0, kernel=None),
    baseline=Rung(connections=0, held=0, vmpeak_kb=1, pss_kb=888, kernel_kb=None),
    reason="kernel: no slabinfo", vmhwm_reason="since the start: it may not be reset",
    ladder=(Rung(connections=1, held=1, vmpeak_kb=1, pss_kb=1, kernel_kb=None),),
    slow_readers=SlowReaders(
        connections=16, seconds=1.0, sent_kb=70_000, pss_before_kb=2_000, pss_peak_kb=83_000,
        socket_buffers_kb=5_000,
    ),
    trickle=Trickle(
        connections=1, seconds=5.0, requests=1, pss_peak_kb=1_234, errors={"timeout": 2}
    ),
)  # fmt: skip


def test_memory_per_connection_and_slow_readers() -> None:
    lines = shown(made(memory=MEMORY))
    assert row_of(lines) == ["a", "44", "-", "-", "0", "2,000", "888", "KiB", "999", "KiB"]
    assert "  a: kernel: no slabinfo" in lines
    assert "  a: VmHWM since the start: it may not be reset" in lines
    told = " ".join(" ".join(lines).split())
    assert "read 70,000 kB of requests from 16 clients" in told
    assert "grew by 81,000 kB; the kernel's buffers, of both ends, grew by 5,000 kB" in told
    assert (
        "a: 1 connections with a request every 5 s: PSS 1,234 kB, idle 1 kB, errors: timeout 2"
        in told
    )
    silent = msgspec.structs.replace(MEMORY, trickle=None, trickle_reason="it died")
    assert "  a: memory with slow requests was not measured: it died" in shown(made(memory=silent))


def pair(**changes: object) -> PairedRatio:
    one = PairedRatio(
        profile="p", engine="native", metric="cpu_ns_per_request", base="a", head="b",
        ratio=1.5, interval_95=(1.4, 1.6), pairs=5, detectable=1.03,
    )  # fmt: skip
    return msgspec.structs.replace(one, **changes)


def test_paired_ratios_have_a_line_for_each_server_and_metric() -> None:
    lines = load_text.paired_lines(
        [pair(), pair(head="c"), pair(metric="requests_per_second", ratio=12.34, detectable=None)]
    )
    assert lines[1] == "PAIRED, p with native: divided by a, block by block"
    assert [line.split() for line in lines[3:6]] == [
        ["b", "cost", "1.500", "1.400", "-", "1.600", "5", "3.0%"],
        ["b", "req/s", "12.3", "1.400", "-", "1.600", "5", "-"],
        ["c", "cost", "1.500", "1.400", "-", "1.600", "5", "3.0%"],
    ]
    none = load_text.paired_lines([pair(ratio=None, interval_95=None, reason="no pair")])
    assert "  b: cost not compared: no pair" in none
    few = load_text.paired_lines([pair(interval_95=None, reason="2 pairs; an interval needs 3")])
    assert "  b: no interval: 2 pairs; an interval needs 3" in few


@pytest.mark.parametrize("width", [80, 100])
def test_no_line_is_too_long_however_large_the_figures(width: int) -> None:
    huge = 123_456_789_012.0
    late = dict.fromkeys(TIMES, huge)
    name = "http://127.0.0.1:65535/" + "a-path-of-some-length/" * 4
    of_open = opened(
        latency_us=late, service_us=late, lag_us=late, rate_offered=huge, latency_reason="why " * 40
    )
    churn = msgspec.structs.replace(
        closed(), mode=LoadMode.CHURN, connections_per_second=huge, handshake_us=late,
        tls="TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256 " * 2,
        context_switches_per_request=Cost(huge, huge), instructions_per_request=Cost(huge, huge),
        instructions_reason="because " * 20,
    )  # fmt: skip
    memory = msgspec.structs.replace(
        MEMORY, connections_held=500_000_000, after_close_pss_kb=10**12, reason="because " * 20,
        bytes_per_connection=BytesPerConnection(huge, huge, huge, huge),
        trickle_reason="because " * 20,
    )  # fmt: skip
    run = made(load=(of_open, churn), memory=memory)
    server = msgspec.structs.replace(run.servers[0], name=name)
    pairs = [
        pair(head=name, base=name, ratio=huge, interval_95=(huge, huge), detectable=huge),
        pair(head=name, base=name, ratio=None, interval_95=None, reason="because " * 20),
    ]
    run = msgspec.structs.replace(run, servers=(server,) * 9, paired=tuple(pairs))
    assert len(shown(run, width)) > 30
    too_long = [line for line in shown(run, width) if len(line) > width]
    assert too_long == []
    board = scoreboard.scoreboard(run, width=width).splitlines()
    assert [line for line in board if len(line) > width] == []
    assert set(shown(run, width)) <= set(board), "report --format scoreboard says all of it"
