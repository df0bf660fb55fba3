"""wrk2, a binary that the user brings: constant rate, latency from when a request was due.

Each of its threads opens connection i at i x 5 ms, and begins the connection's schedule then. It
calibrates 10 s after all are open, and empties its histograms. So before that moment fewer requests
were due than the rate says, and what the histograms count is what was answered while all
connections stood: the rate is judged over that time.
"""

from __future__ import annotations

import math
import re

import msgspec

from httpmark.harness.load.engines.foreign import Foreign, pipeline_script
from httpmark.harness.load.engines.launch import (
    GRACE_S,
    NO_ACCOUNTS,
    Accounts,
    Measured,
    Target,
    first_words,
)
from httpmark.harness.load.engines.wrk import parse_wrk
from httpmark.harness.model.load import LoadMode, LoadPlan

_WRK2_CALIBRATION_S = 10
_WRK2_CONNECT_S = 0.005  # from the opening of one connection of a thread to that of the next
_RATE_SHORTFALL_MAX = 0.01


class Wrk2(Foreign):
    """``wrk2``, a binary that the user brings: constant rate, latency from the intended send.

    What it needs until it has calibrated is added to the window.
    """

    name = "wrk2"
    package = "it is in no package registry; build it and name the binary with --wrk2 PATH"

    def version(self) -> str:
        return first_words(self.executable, "-v", count=2)

    def cannot(self, plan: LoadPlan) -> str | None:
        if plan.mode is not LoadMode.OPEN:
            return "it only offers a constant rate"
        if plan.arrivals != "constant":
            return "its arrivals can only be constant"
        return super().cannot(plan)

    def measure(
        self, plan: LoadPlan, target: Target, *, duration_s: float, cpus: frozenset[int] | None
    ) -> Measured:
        assert plan.rate is not None
        seconds = math.ceil(max(1, duration_s) + _until_calibrated_s(plan))
        with pipeline_script(plan.depth) as script:
            words = [
                *("-c", str(plan.connections), "-t", str(plan.threads), "-d", f"{seconds}s"),
                *("-R", str(max(1, round(plan.rate))), "--latency", "--u_latency", "-s", script),
                target.url(plan),
            ]
            out, said, used, accounts = self._run(
                words, target, timeout_s=seconds + GRACE_S, cpus=cpus
            )
        return parse_wrk2(out, failure=said, plan=plan, client_cpu_ns=used, accounts=accounts)


_WRK2_CORRECTED = "Recorded Latency"
_WRK2_UNCORRECTED = "Uncorrected Latency"
_SPECTRUM_ROW = re.compile(r"^\s*([0-9.]+)\s+([01]\.[0-9]+)\s+(\d+)\s+([0-9.]+|inf)\s*$")
_SPECTRUM_END = re.compile(
    r"#\[Mean\s*=\s*([0-9.]+),.*?#\[Max\s*=\s*([0-9.]+),\s*Total count\s*=\s*(\d+)\]",
    re.DOTALL,
)
_LATENCY_PERCENTS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}


class Spectrum(msgspec.Struct, frozen=True):
    """One percentile spectrum of wrk2: rows of (milliseconds, quantile, count so far)."""

    rows: tuple[tuple[float, float, int], ...]
    mean_ms: float
    max_ms: float
    total: int

    def latency_us(self) -> dict[str, float]:
        """The percentiles that every engine gives, in us; at or just above each quantile."""
        found = {"mean": self.mean_ms * 1000, "max": self.max_ms * 1000}
        for name, wanted in _LATENCY_PERCENTS.items():
            found[name] = next(ms for ms, quantile, _ in self.rows if quantile >= wanted) * 1000
        return found


def spectrum(text: str, heading: str) -> Spectrum | None:
    """The spectrum under one heading of wrk2's text; None where it is not there in full."""
    _, found, rest = text.partition(f"(HdrHistogram - {heading}")
    end = _SPECTRUM_END.search(rest)
    if not found or end is None:
        return None
    rows = [
        (float(row[1]), float(row[2]), int(row[3]))
        for line in rest[: end.start()].splitlines()
        if (row := _SPECTRUM_ROW.match(line))
    ]
    if not rows or rows[-1][1] != 1.0 or rows[-1][2] != int(end[3]):
        return None
    return Spectrum(tuple(rows), float(end[1]), float(end[2]), int(end[3]))


_CALIBRATED = re.compile(r"^\s*Thread calibration: ", re.MULTILINE)
_RATE = re.compile(r"^Requests/sec:\s+([0-9.]+)\s*$", re.MULTILINE)


class _Served(msgspec.Struct, frozen=True):
    """How many requests were answered in so many seconds, and how many seconds' worth was due."""

    requests: int
    seconds: float
    due_s: float

    def falls_short(self, plan: LoadPlan) -> bool:
        """Whether a rate was not served; each connection may have its requests under way."""
        assert plan.rate is not None
        due = plan.rate * self.due_s
        missing = due - self.requests
        return missing > due * _RATE_SHORTFALL_MAX and missing > plan.connections * plan.depth


def _opening_s(plan: LoadPlan) -> float:
    """How long it opens connections, all threads at once."""
    return plan.connections // plan.threads * _WRK2_CONNECT_S


def _until_calibrated_s(plan: LoadPlan) -> float:
    """When its histograms begin."""
    return _WRK2_CALIBRATION_S + _opening_s(plan)


def _has_calibrated(out: str, plan: LoadPlan) -> bool:
    """Whether every thread emptied its histograms; one that had no answer by then did not."""
    return len(_CALIBRATED.findall(out)) == plan.threads


def _served(out: str, plan: LoadPlan, counted: Measured, corrected: Spectrum | None) -> _Served:
    """What was answered while all connections stood.

    Where that cannot be told, as nothing was answered that it could have calibrated with, what was
    answered in the whole run; each connection's requests are due from when it was opened.
    """
    # It prints long times as minutes with two digits, and the rate of the whole run in full.
    rate = _RATE.search(out)
    seconds = counted.requests / float(rate[1]) if rate and float(rate[1]) else counted.seconds
    window_s = seconds - _until_calibrated_s(plan)
    if corrected and _has_calibrated(out, plan) and window_s > 0:
        return _Served(corrected.total, window_s, window_s)
    return _Served(counted.requests, seconds, seconds - _opening_s(plan) / 2)


def parse_wrk2(
    out: str, *, failure: str, plan: LoadPlan, client_cpu_ns: int, accounts: Accounts = NO_ACCOUNTS
) -> Measured:
    """wrk2's text as a measurement: latency from the intended send, service time from the send.

    :raises Unusable: the text has no total; ``failure`` says what wrk2 said instead.
    """
    counted = parse_wrk(
        out, failure=failure, plan=plan, client_cpu_ns=client_cpu_ns, accounts=accounts,
        engine="wrk2",
    )  # fmt: skip
    corrected, uncorrected = spectrum(out, _WRK2_CORRECTED), spectrum(out, _WRK2_UNCORRECTED)
    served = _served(out, plan, counted, corrected)
    reason: str | None = "its timers are whole milliseconds, rounded up: 0.5 ms too long on average"
    if plan.depth > 1:
        corrected = uncorrected = None
        reason = "wrk2's schedule is one of batches at depth above 1"
    elif corrected is None or uncorrected is None:
        reason = "wrk2 printed no whole spectrum: too few seconds beyond its calibration?"
    elif not _has_calibrated(out, plan):
        corrected = uncorrected = None
        reason = "wrk2 did not calibrate: nothing was answered in its first ten seconds"
    elif corrected.total == 0:
        corrected = uncorrected = None
        reason = "wrk2 recorded nothing after its calibration"
    return msgspec.structs.replace(
        counted,
        requests=served.requests,
        seconds=served.seconds,
        rate_offered=plan.rate,
        latency_us=corrected.latency_us() if corrected else None,
        service_us=uncorrected.latency_us() if uncorrected else None,
        latency_reason=reason,
        saturated=None if plan.rate is None else served.falls_short(plan),
    )
