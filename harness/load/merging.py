"""The reports of several generators as the report of one: counts summed, histograms added.

A *report* is what ``httpmark-load --json`` prints. Nothing is lost but what one report does not
say of each request: percentiles are read from the merged histograms, never from percentiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from httpmark.harness.load import histogram
from httpmark.harness.load.engines.launch import Accounts, per_request
from httpmark.harness.load.histogram import Histogram

Report = Mapping[str, Any]

_SUMS = (
    "requests", "requests_in_window", "connections", "established", "late_dates", "variants",
    "interim", "reconnects", "resent", "unanswered", "not_waited_for", "requests_sent",
    "bytes_sent", "bytes_received", "connects", "closes_seen",
)  # fmt: skip
_SUMS_OF_OPEN_LOOP = ("unsent", "dropped", "due", "outstanding_middle", "outstanding_end")
_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}
_COMPLAINTS_MAX = 5


class Differing(ValueError):
    """The reports are of loads that cannot be one."""


class _Latencies:
    """Histograms of one kind added up, with what a histogram rounds: mean and highest value."""

    def __init__(self) -> None:
        self.counted: Histogram | None = None
        self._sum_us = 0.0
        self._max_us = 0.0

    def add(self, stored: str | None, told: Mapping[str, float] | None) -> None:
        if stored is None:
            return
        one = histogram.read(stored)
        if told is not None:
            self._sum_us += told["mean"] * one.total
            self._max_us = max(self._max_us, told["max"])
        if self.counted is None:
            self.counted = one
        else:
            self.counted.add(one)

    def stored(self) -> str | None:
        return self.counted.stored() if self.counted else None

    def told(self) -> dict[str, float] | None:
        """The figures as a report has them."""
        if self.counted is None:
            return None
        values = self.counted.percentiles(_SHARES.values())
        return {
            "mean": _printed(self._sum_us / self.counted.total),
            **{
                name: min(_printed(value / 1000), self._max_us)
                for name, value in zip(_SHARES, values, strict=True)
            },
            "max": self._max_us,
        }


def _printed(value: float) -> float:
    """A figure as exactly as a report has it."""
    return float(f"{value:.6g}")


class Merge:
    """Reports added one after the other; only sums are kept."""

    def __init__(self) -> None:
        self._first: Report | None = None
        self._sums: dict[str, int] = {}
        self._errors: dict[str, int] = {}
        self._statuses: dict[str, int] = {}
        self._threads: list[Any] = []
        self._complaints: list[str] = []
        self._latencies = {
            name: _Latencies()
            for name in ("response", "batch", "service", "lag", "connect", "handshake")
        }
        self._slots = 0
        self._held = 0.0  # slots at work, by Little's law
        self._cpu_ns = 0
        self._switches = 0
        self._instructions: float | None = 0.0
        self._rate = 0.0
        self._seconds = 0.0
        self._drain_s = 0.0
        self._is_saturated = False

    def add(self, report: Report) -> None:
        """Add one.

        :raises Differing: it is of another load than those before.
        """
        self._compare(report)
        is_open = report["mode"] == "open"
        _add(self._sums, {name: report[name] for name in _SUMS})
        if is_open:
            _add(self._sums, {name: report[name] for name in _SUMS_OF_OPEN_LOOP})
            self._rate += report["rate"]
            self._is_saturated |= report["saturated"]  # a share not served is a rate not served
        _add(self._errors, report["errors"])
        _add(self._statuses, report["statuses"])
        self._threads += report["client_threads"]
        room = _COMPLAINTS_MAX - len(self._complaints)
        self._complaints += report["complaints"][:room]
        self._add_latencies(report)
        self._cpu_ns += report["cpu_ns"]["client"]
        self._switches += report["context_switches"]["client"]
        each = report["instructions_per_request"]["client"]
        if self._instructions is not None:
            self._instructions = (
                None if each is None else self._instructions + each * report["requests"]
            )
        self._seconds = max(self._seconds, report["seconds"])
        self._drain_s = max(self._drain_s, report["drain_seconds"])
        if report["littles_law_ratio"] is not None:
            slots = report["connections"] * report["depth"]
            self._slots += slots
            self._held += report["littles_law_ratio"] * slots

    def _compare(self, report: Report) -> None:
        first = self._first = self._first or report
        for name in ("mode", "refill", "depth", "arrivals"):
            if report[name] != first[name]:
                raise Differing(f"{name} is {report[name]} here and {first[name]} there")

    def _add_latencies(self, report: Report) -> None:
        told = {
            "response": report["latency_us"],
            "service": report.get("service_us"),
            "lag": report.get("lag_us"),
            "connect": report["connect_us"],
            "handshake": (report["tls"] or {}).get("handshake_us"),
        }
        for name, latencies in self._latencies.items():
            latencies.add(report["histograms"][name], told.get(name))

    def report(self) -> dict[str, Any]:
        """All that was added, as the report of one generator. The server is in none of it."""
        assert self._first is not None
        first, requests = self._first, self._sums["requests"]
        told = {name: one.told() for name, one in self._latencies.items()}
        open_loop = {
            "service_us": told["service"],
            "lag_us": told["lag"],
            "saturated": self._is_saturated,
        }
        each = self._instructions
        return {
            **{name: first[name] for name in ("mode", "refill", "depth", "arrivals")},
            **self._sums,
            "seconds": self._seconds,
            "drain_seconds": self._drain_s,
            "rate": self._rate if first["mode"] == "open" else None,
            "errors": self._errors,
            "statuses": self._statuses,
            "complaints": self._complaints,
            "client_threads": self._threads,
            "cpu_ns": {"client": self._cpu_ns, "server": None},
            "cpu_ns_per_request": {
                "client": _printed(self._cpu_ns / requests) if requests else None,
                "server": None,
            },
            "context_switches": {"client": self._switches, "server": None},
            "instructions_per_request": {
                "client": each / requests if each is not None and requests else None,
                "server": None,
            },
            "server_on_cpu_ratio": None,
            "server_run_delay_ratio": None,
            "latency_us": told["response"],
            **(open_loop if first["mode"] == "open" else {}),
            "connect_us": told["connect"],
            "tls": {**first["tls"], "handshake_us": told["handshake"]} if first["tls"] else None,
            "littles_law_ratio": _printed(self._held / self._slots) if self._slots else None,
            "histograms": {name: one.stored() for name, one in self._latencies.items()},
        }


def with_server(report: dict[str, Any], used: Accounts) -> dict[str, Any]:
    """A report with what the server used from the start of the window to the end of the drain."""
    requests, wall_ns = report["requests"], (report["seconds"] + report["drain_seconds"]) * 1e9

    def server(name: str, value: float | None) -> dict[str, dict[str, float | None]]:
        return {name: {**report[name], "server": value}}

    return {
        **report,
        **server("cpu_ns", used.cpu_ns),
        **server("cpu_ns_per_request", per_request(used.cpu_ns, requests)),
        **server("context_switches", used.switches),
        "server_on_cpu_ratio": used.cpu_ns / wall_ns if used.cpu_ns and wall_ns else None,
        "server_run_delay_ratio": used.run_delay_ratio,
        "complaints": report["complaints"] + ([used.reason] if used.reason else []),
    }


def _add(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        sums[name] = sums.get(name, 0) + count


def merged(reports: Iterable[Report]) -> dict[str, Any]:
    """The reports as one.

    :raises Differing: they are not of one load.
    :raises Unreadable: a histogram is none.
    """
    merge = Merge()
    for report in reports:
        merge.add(report)
    return merge.report()
