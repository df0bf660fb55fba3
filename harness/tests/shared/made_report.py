"""A report of the load generator over latencies that are given."""

from __future__ import annotations

from typing import Any

from hdrh.histogram import HdrHistogram

HIGHEST = 3_600_000_000_000


def report_of(
    values: list[int], *, connections: int = 4, depth: int = 1, rate: float | None = None
) -> dict[str, Any]:
    """What ``httpmark-load`` prints where its responses took so many nanoseconds."""
    recorder = HdrHistogram(1, HIGHEST, 3)
    for value in values:
        recorder.record_value(value)
    stored = recorder.encode().decode("ascii")
    ranks, ranked = {"p50": 500, "p90": 900, "p99": 990, "p99_9": 999}, sorted(values)
    latency = {
        "mean": sum(values) / len(values) / 1000,
        **{
            name: min(
                recorder.get_highest_equivalent_value(ranked[-(-share * len(ranked) // 1000) - 1]),
                ranked[-1],
            )
            / 1000
            for name, share in ranks.items()
        },
        "max": ranked[-1] / 1000,
    }
    told = {name: float(f"{value:.6g}") for name, value in latency.items()}
    is_open = rate is not None
    counts = dict.fromkeys(
        (
            "late_dates", "variants", "interim", "reconnects", "resent", "unanswered",
            "not_waited_for", "connects", "closes_seen",
        ), 0,
    )  # fmt: skip
    schedule = {
        "service_us": told, "lag_us": told, "saturated": False, "unsent": 0, "dropped": 0,
        "due": len(values), "outstanding_middle": 0, "outstanding_end": 0,
    }  # fmt: skip
    return {
        **counts,
        **(schedule if is_open else {}),
        "mode": "open" if is_open else "closed",
        "refill": None if is_open else "window",
        "arrivals": "constant" if is_open else None,
        "rate": rate,
        "connections": connections,
        "established": connections,
        "depth": depth,
        "requests": len(values),
        "requests_in_window": len(values),
        "requests_sent": len(values),
        "bytes_sent": 46 * len(values),
        "bytes_received": 114 * len(values),
        "seconds": 1.0,
        "drain_seconds": 0.0,
        "errors": {"status": 0},
        "statuses": {},
        "complaints": [],
        "client_threads": [{"on_cpu_ratio": 0.1, "run_delay_ratio": 0.0}],
        "cpu_ns": {"client": 30 * len(values), "server": None},
        "cpu_ns_per_request": {"client": 30.0, "server": None},
        "context_switches": {"client": 10, "server": None},
        "instructions_per_request": {"client": None, "server": None},
        "server_on_cpu_ratio": None,
        "latency_us": told,
        "connect_us": told,
        "tls": None,
        "littles_law_ratio": None if is_open else 1.0,
        "histograms": {
            "response": stored,
            "batch": None,
            "service": stored if is_open else None,
            "lag": stored if is_open else None,
            "connect": stored,
            "handshake": None,
        },
    }
