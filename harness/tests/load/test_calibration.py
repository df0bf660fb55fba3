"""The table of generators: every engine at every depth, and a reason where there is no figure."""

from __future__ import annotations

import msgspec
import pytest

from httpmark.harness.load import calibration
from httpmark.harness.load.engines import by_name, h2load, launch, native, wrk
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.report import calibration_table


def cell(**changes: object) -> calibration.Cell:
    made = calibration.Cell(
        engine="native", depth=256, tls=None, client_ns=40.0, interval_95=(39.0, 41.5),
        null_ns=33.0, requests_per_second=5e6, rounds=5, redone=1, errors={},
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """One depth, plain and over TLS: the test is of the table, not of the figures."""
    kept = [plan for plan in calibration.plans() if plan.depth == 16]
    short = [msgspec.structs.replace(plan, warmup_s=0.0, connections=4) for plan in kept]
    monkeypatch.setattr(calibration, "plans", lambda: short)


def test_every_depth_is_asked_for_plain_and_over_tls() -> None:
    plans = calibration.plans()
    assert [(plan.depth, plan.tls) for plan in plans] == [
        (1, False), (16, False), (256, False), (1, True), (16, True), (256, True),
    ]  # fmt: skip
    for plan in plans:
        assert native.Native().cannot(plan) is None
        assert object.__new__(wrk.Wrk).cannot(plan) is None
        assert object.__new__(h2load.H2load).cannot(plan) is None


@pytest.mark.process
def test_the_generator_is_measured_against_null_plain_and_over_tls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few(monkeypatch)
    said: list[str] = []
    plain, secret = calibration.measure(["native"], rounds=1, seconds=0.1, seed=1, say=said.append)
    assert said[-1] == "depth 16 TLS: 1 rounds of 1 engines"
    assert plain.tls is None
    assert secret.tls == "TLSv1.3 TLS_AES_128_GCM_SHA256"
    for one in (plain, secret):
        assert (one.errors, one.rounds) == ({}, 1)
        assert one.client_ns
        assert one.null_ns
        assert one.client_ns > 0
        assert one.null_ns > 0


def test_an_engine_that_is_not_here_has_a_reason_and_no_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few(monkeypatch)

    def absent(name: str) -> launch.Engine:
        raise Unusable(f"{name} is not to be found: apt-get install {name}")

    monkeypatch.setattr(by_name, "engine", absent)
    cells = [*calibration.measure(["wrk"], rounds=1, seconds=0.1, seed=1, say=lambda line: None)]
    assert [(one.client_ns, one.rounds) for one in cells] == [(None, 0)] * 2
    assert all("apt-get install wrk" in (one.reason or "") for one in cells)
    assert "-  -" in "\n".join(calibration_table.lines(cells))


@pytest.mark.process
def test_errors_leave_no_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)

    class Wrong:
        name = "native"

        def measure(
            self, plan: LoadPlan, target: launch.Target, *, duration_s: float, cpus: object
        ) -> launch.Measured:
            return launch.Measured(
                requests=10, seconds=1.0, errors={"body": 3}, established=plan.connections,
                server_ns_per_request=30.0, client_ns_per_request=40.0, server_on_cpu_ratio=1.0,
                client_on_cpu_ratio=0.1, run_delay_ratio=0.0, littles_law_ratio=1.0,
                latency_us=None, latency_reason="none", histogram=None,
            )  # fmt: skip

    monkeypatch.setattr(by_name, "engine", lambda name: Wrong())
    cells = [*calibration.measure(["native"], rounds=1, seconds=0.1, seed=1, say=lambda line: None)]
    assert [(one.client_ns, one.errors) for one in cells] == [(None, {"body": 3})] * 2
    assert cells[0].reason == "no sample without errors"
    assert "native: errors: 3 body" in "\n".join(calibration_table.lines(cells))


@pytest.mark.parametrize(
    ("changes", "met"),
    [
        ({}, True),
        ({"client_ns": 45.0}, True),
        ({"client_ns": 45.1}, False),
        ({"client_ns": None}, None),
        ({"depth": 16}, None),
        ({"tls": "TLSv1.3 X"}, None),
        ({"engine": "wrk"}, None),
    ],
)
def test_the_aim_is_of_pipelined_plain_responses_of_our_own(
    changes: dict[str, object], met: bool | None
) -> None:
    assert cell(**changes).meets_aim is met
    text = "\n".join(calibration_table.lines([cell(**changes)]))
    assert ("aim: at most 45 ns at depth 256, plain: " in text) is (met is not None)
    assert ("MISSED" in text) is (met is False)


def test_the_table_holds_every_figure() -> None:
    assert calibration_table.lines([cell()])[1:4] == [
        "THE GENERATOR ITSELF, plain: CPU ns per response, 64 connections to null (95 %)",
        "depth  engine         ns  interval             null ns       req/s rounds redone",
        "  256  native       40.0  39.0 - 41.5             33.0   5,000,000      5      1",
    ]


def test_a_figure_without_an_interval_says_why_once() -> None:
    few = cell(interval_95=None, reason="1 sound samples; an interval needs 3")
    shown = calibration_table.lines([few, few])
    assert shown.count("  no interval: 1 sound samples; an interval needs 3") == 1


def test_the_table_fits_the_terminal() -> None:
    wide = cell(
        tls="TLSv1.3 TLS_AES_128_GCM_SHA256", interval_95=(12_345.6, 12_999.9), engine="h2load",
        requests_per_second=123_456_789.0, reason="a long reason " * 9, errors={"body": 7},
    )  # fmt: skip
    assert all(len(line) <= 80 for line in calibration_table.lines([wide]))
