"""The lines beside the scoreboard: every figure in its place, and nothing where there is none."""

from __future__ import annotations

import msgspec
import pytest

from httpmark.harness import figures
from httpmark.harness.model import (
    BytesPerConnection,
    LoadMode,
    Memory,
    PairedRatio,
    Run,
    Rung,
    ServerResult,
    SlowReaders,
    Trickle,
)

from .test_load import fold_of

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


def test_a_run_without_such_figures_has_no_lines() -> None:
    assert figures.lines(made()) == []
    closed = fold_of({"a": [80.0] * 3, "null": [35.0] * 3})["a"]
    assert figures.lines(made(load=(closed,))) == []


def test_latency_of_an_open_loop_is_shown_with_its_rate_and_what_is_to_be_known() -> None:
    result = fold_of({"a": [80.0] * 3, "null": [35.0] * 3})["a"]
    open_loop = msgspec.structs.replace(
        result, mode=LoadMode.OPEN, latency_us=TIMES, service_us={"p99": 77.0},
        lag_us={"p99": 12.0}, rate_offered=10_000.0, latency_reason="to be known",
        samples=tuple(msgspec.structs.replace(s, saturated=s.round == 2) for s in result.samples),
    )  # fmt: skip
    shown = figures.lines(made(load=(open_loop,)))
    row = next(line for line in shown if line.startswith("a "))
    assert row.split() == ["a", "10,000", "110", "220", "330", "440", "5,550", "77", "12"]
    assert "  a: to be known" in shown
    assert "  a: in 1 of 3 rounds the rate was not served" in shown


def test_figures_wider_than_their_column_stay_apart() -> None:
    result = fold_of({"a": [80.0] * 3, "null": [35.0] * 3})["a"]
    late = dict.fromkeys(TIMES, 123456789.0)
    open_loop = msgspec.structs.replace(
        result, mode=LoadMode.OPEN, latency_us=late, service_us=late, lag_us=late,
        rate_offered=10_000.0,
    )  # fmt: skip
    row = next(line for line in figures.lines(made(load=(open_loop,))) if line.startswith("a "))
    assert row.split() == ["a", "10,000", *["123,456,789"] * 7]


def test_churn_shows_connections_and_handshakes() -> None:
    result = fold_of({"a": [80.0] * 3, "null": [35.0] * 3})["a"]
    churn = msgspec.structs.replace(
        result, mode=LoadMode.CHURN, connections_per_second=1234.0, handshake_us=TIMES,
        tls="TLSv1.3 X",
    )  # fmt: skip
    row = next(line for line in figures.lines(made(load=(churn,))) if line.startswith("a "))
    assert row.split() == ["a", "1,234", "110", "330", "TLSv1.3", "X"]


def test_memory_per_connection_and_slow_readers() -> None:
    memory = Memory(
        vmpeak_kb=1, vmhwm_kb=1, pss_kb=1, connections_held=2000, after_close_pss_kb=999,
        bytes_per_connection=BytesPerConnection(virtual=0.0, resident=44.0, kernel=None),
        reason="kernel: no slabinfo",
        ladder=(Rung(connections=1, held=1, vmpeak_kb=1, pss_kb=1, kernel_kb=None),),
        slow_readers=SlowReaders(
            connections=16, seconds=1.0, sent_kb=70_000, pss_before_kb=2_000, pss_peak_kb=83_000,
            socket_buffers_kb=5_000,
        ),
        trickle=Trickle(
            connections=1, seconds=5.0, requests=1, pss_peak_kb=1_234, errors={"timeout": 2}
        ),
    )  # fmt: skip
    shown = figures.lines(made(memory=memory))
    row = next(line for line in shown if line.startswith("a "))
    assert row.split() == ["a", "44", "-", "0", "2,000", "999", "kB"]
    assert "  a: kernel: no slabinfo" in shown
    assert any("took 70,000 kB" in line and "grew by 81,000 kB" in line for line in shown)
    assert any("the kernel's buffers by 5,000 kB" in line for line in shown)
    assert (
        "  a: 1 that each ask once in 5 s: PSS 1,234 kB, idle 1 kB, errors {'timeout': 2}" in shown
    )
    silent = msgspec.structs.replace(memory, trickle=None, trickle_reason="it died")
    assert "  a: not measured with each asking now and then: it died" in figures.lines(
        made(memory=silent)
    )


@pytest.mark.parametrize("ratio", [None, 1.5])
def test_paired_ratios_have_one_line_for_a_server(ratio: float | None) -> None:
    pair = PairedRatio(
        profile="p", engine="native", metric="cpu_ns_per_request", base="a", head="b",
        ratio=ratio, interval_95=(1.4, 1.6) if ratio else None, pairs=5, detectable=1.03,
        reason=None if ratio else "no pair",
    )  # fmt: skip
    shown = figures.paired_lines([pair, msgspec.structs.replace(pair, metric="x")])
    assert shown[1] == "PAIRED, p by native: times a, block by block (95 %)"
    assert len(shown) == 3
    words = "cost 1.500 (1.400 - 1.600; 5 pairs, shows 3.0%)" if ratio else "cost - (no pair)"
    assert words in shown[2]
