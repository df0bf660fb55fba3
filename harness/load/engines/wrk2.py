"""wrk2, a binary that the user brings: constant rate, latency from when a request was due."""

from __future__ import annotations

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
_RATE_SHORTFALL_MAX = 0.01


class Wrk2(Foreign):
    """``wrk2``, a binary that the user brings: constant rate, latency from the intended send.

    Its first ten seconds calibrate and are in no histogram; so it runs ten seconds longer.
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
        seconds = max(1, round(duration_s)) + _WRK2_CALIBRATION_S
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
    reason: str | None = "its timers are whole milliseconds, rounded up: 0.5 ms too long on average"
    if plan.depth > 1:
        corrected = uncorrected = None
        reason = "wrk2's schedule is one of batches at depth above 1"
    elif corrected is None or uncorrected is None:
        reason = "wrk2 printed no whole spectrum: too few seconds beyond its calibration?"
    elif corrected.total == 0:
        corrected = uncorrected = None
        reason = "wrk2 recorded nothing after its calibration"
    rate = counted.requests / counted.seconds
    return msgspec.structs.replace(
        counted,
        rate_offered=plan.rate,
        latency_us=corrected.latency_us() if corrected else None,
        service_us=uncorrected.latency_us() if uncorrected else None,
        latency_reason=reason,
        saturated=None if plan.rate is None else rate < plan.rate * (1 - _RATE_SHORTFALL_MAX),
    )
