"""wrk2: its spectra read in full, its rate judged over the time when all connections stand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.load.engines import by_name, launch
from httpmark.harness.load.engines import wrk2 as wrk2_engine
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.load import LoadMode, LoadPlan
from httpmark.harness.tests.shared import peers, wrk2_stand_in

OPEN = LoadPlan(
    name="p",
    title="t",
    why="w",
    connections=8,
    depth=1,
    duration_s=1,
    mode=LoadMode.OPEN,
    rate=100.0,
)

# Written from the format that wrk2 documents: 400 requests after 10.04 s to open and to calibrate,
# 4 of which waited behind a stall.
WRK2 = """Running 14s test @ http://127.0.0.1:18080/hello
  1 threads and 8 connections
  Thread calibration: mean lat.: 1.021ms, rate sampling interval: 10ms
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.00ms   19.90ms 200.19ms   99.00%
    Req/Sec   105.00     50.00   222.00     75.00%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.02ms
 75.000%    1.40ms
 90.000%    1.80ms
 99.000%    2.01ms
 99.900%  200.19ms
 99.990%  200.19ms
 99.999%  200.19ms
100.000%  200.19ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.101     0.000000            1         1.00
       1.020     0.500000          200         2.00
       1.800     0.900000          360        10.00
       2.009     0.990000          396       100.00
     150.143     0.995000          398       200.00
     200.191     0.999000          400      1000.00
     200.191     1.000000          400          inf
#[Mean    =        3.000, StdDeviation   =       19.900]
#[Max     =      200.064, Total count    =          400]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------

  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))
 50.000%  410.00us
100.000%  200.19ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.051     0.000000            1         1.00
       0.410     0.500000          200         2.00
       0.700     0.900000          360        10.00
       0.900     0.990000          396       100.00
       0.950     0.997500          399       400.00
     200.191     1.000000          400          inf
#[Mean    =        0.950, StdDeviation   =        9.990]
#[Max     =      200.064, Total count    =          400]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------
  1402 requests in 14.04s, 156.07KB read
Requests/sec:     99.86
Transfer/sec:     11.13KB
"""  # noqa: E501


def parsed_wrk2(out: str, plan: LoadPlan = OPEN) -> launch.Measured:
    return wrk2_engine.parse_wrk2(out, failure="said why", plan=plan, client_cpu_ns=4_000_000)


def test_both_spectra_of_wrk2_are_read_in_full() -> None:
    corrected = wrk2_engine.spectrum(WRK2, "Recorded Latency")
    uncorrected = wrk2_engine.spectrum(WRK2, "Uncorrected Latency")
    assert corrected is not None
    assert uncorrected is not None
    assert len(corrected.rows) == 7
    assert corrected.rows[4] == (150.143, 0.995, 398)
    assert (corrected.total, corrected.mean_ms, corrected.max_ms) == (400, 3.0, 200.064)
    assert len(uncorrected.rows) == 6
    measured = parsed_wrk2(WRK2)
    assert measured.latency_us == {
        "mean": 3000.0, "max": 200_064.0, "p50": 1020.0, "p90": 1800.0, "p99": 2009.0,
        "p99_9": 200_191.0,
    }  # fmt: skip
    # What coordinated omission hides is the difference between the two.
    assert measured.service_us is not None
    assert measured.service_us["p99"] == 900.0
    assert (measured.rate_offered, measured.saturated) == (100.0, False)
    assert "0.5 ms too long" in (measured.latency_reason or "")


def test_a_rate_that_was_not_reached_is_saturation() -> None:
    plan = msgspec.structs.replace(OPEN, rate=200.0)
    assert parsed_wrk2(WRK2, plan).saturated is True


@pytest.mark.parametrize(
    ("cut", "why"),
    [
        ("#[Max     =      200.064, Total count    =          400]\n", "no whole spectrum"),
        ("     200.191     1.000000          400          inf\n", "no whole spectrum"),
    ],
)
def test_half_a_spectrum_is_none(cut: str, why: str) -> None:
    measured = parsed_wrk2(WRK2.replace(cut, ""))
    assert measured.latency_us is None
    assert why in (measured.latency_reason or "")


def test_wrk2s_latency_of_batches_is_not_shown() -> None:
    measured = parsed_wrk2(WRK2, msgspec.structs.replace(OPEN, depth=16))
    assert (measured.latency_us, measured.service_us) == (None, None)
    assert "batches" in (measured.latency_reason or "")


def test_wrk2_that_recorded_nothing_has_no_latency() -> None:
    empty = re.sub(r"(?m)^ +[0-9.]+ +[01][.]\d+ +\d+ +(?:[\d.]+|inf)$", "", WRK2)
    empty = empty.replace("Total count    =          400", "Total count    =            0")
    row = "       0.000     1.000000            0          inf\n#[Mean"
    measured = parsed_wrk2(empty.replace("#[Mean", row))
    assert measured.latency_us is None
    assert "nothing after its calibration" in (measured.latency_reason or "")


@pytest.fixture
def wrk2(tmp_path: Path) -> str:
    """A program that takes the words of wrk2 and prints its format."""
    return wrk2_stand_in.program(tmp_path)


def measured(
    wrk2: str, plan: LoadPlan, *, duration_s: float = 5.0, answer: bytes = peers.OK
) -> launch.Measured:
    """One window of the stand-in against a peer."""
    engine = by_name.engine("wrk2", wrk2=wrk2)
    with peers.peer(peers.answering(answer)) as peer:
        target = launch.Target("127.0.0.1", peer.port, (os.getpid(),))
        return engine.measure(plan, target, duration_s=duration_s, cpus=None)


@pytest.mark.process
def test_a_wrk2_that_the_user_brings_is_run_and_read(wrk2: str) -> None:
    assert by_name.engine("wrk2", wrk2=wrk2).version() == "wrk 4.0.0"
    found = measured(wrk2, OPEN, duration_s=1)
    assert found.latency_us is not None
    assert found.latency_us["p50"] <= found.latency_us["p99_9"] <= 1e6
    assert found.server_ns_per_request is not None
    # 1 s and what comes before it, in whole seconds: 12 s, of which 10.04 s are before the window.
    assert found.seconds == pytest.approx(1.96, abs=0.01)


@pytest.mark.process
@pytest.mark.parametrize(("connections", "threads"), [(64, 1), (64, 2), (512, 1), (8, 1)])
def test_connections_that_open_one_after_the_other_do_not_miss_the_rate(
    wrk2: str, connections: int, threads: int
) -> None:
    """64 connections of one thread miss 1 % of a run of 15 s, whatever the server does."""
    plan = msgspec.structs.replace(OPEN, connections=connections, threads=threads, rate=10_000.0)
    found = measured(wrk2, plan)
    assert found.saturated is False
    assert found.requests / found.seconds == pytest.approx(10_000, rel=0.005)
    assert found.seconds >= 5.0, "the window is as long as was asked for"


@pytest.mark.process
@pytest.mark.parametrize(
    ("before", "later", "saturated"),
    [("1", "0.98", True), ("0.5", "1", False), ("1", "0.999", False), ("1", "0", True)],
)
def test_the_rate_is_judged_over_the_time_when_all_connections_stand(
    wrk2: str, monkeypatch: pytest.MonkeyPatch, before: str, later: str, saturated: bool
) -> None:
    monkeypatch.setenv("WRK2_SERVED_BEFORE", before)
    monkeypatch.setenv("WRK2_SERVED", later)
    plan = msgspec.structs.replace(OPEN, connections=64, rate=10_000.0)
    assert measured(wrk2, plan).saturated is saturated


def test_minutes_with_two_digits_do_not_round_the_rate() -> None:
    """After 60 s wrk2 prints 1.17m: half a second too much or too little of a window of 60 s."""
    plan = msgspec.structs.replace(OPEN, rate=1000.0)
    # 70.04 s: 60,000 requests in 60 s, all of them answered.
    out = re.sub(r"(?m)^ +[0-9.]+ +[01][.]\d+ +\d+ +(?:[\d.]+|inf)$", "", WRK2)
    out = out.replace("Total count    =          400", "Total count    =        60000")
    out = out.replace("#[Mean", "       0.001     1.000000        60000          inf\n#[Mean")
    out = out.replace("1402 requests in 14.04s", "70022 requests in 1.17m")
    found = parsed_wrk2(out.replace("99.86", "999.74"), plan)
    assert found.seconds == pytest.approx(60, abs=0.01)
    assert found.saturated is False


def test_a_wrk2_that_never_calibrated_has_no_latency_and_did_not_serve_the_rate() -> None:
    out = re.sub(r"(?m)^  Thread calibration.*\n", "", WRK2)
    out = out.replace("1402 requests", "400 requests").replace("99.86", "28.49")
    found = parsed_wrk2(out)
    assert found.latency_us is None
    assert "did not calibrate" in (found.latency_reason or "")
    assert found.saturated is True
    assert (found.requests, round(found.seconds, 1)) == (400, 14.0)


def test_no_wrk2_is_said_with_the_mend() -> None:
    with pytest.raises(Unusable, match="--wrk2 PATH"):
        by_name.engine("wrk2", wrk2="wrk2-that-is-not-here")
    with pytest.raises(HarnessError, match="goes with --engine wrk2 only"):
        by_name.engine("native", wrk2="/somewhere")
