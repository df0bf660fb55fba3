"""A run to the files that charting services read, to follow figures over time.

They chart single values; ``httpmark compare`` says whether one run is worse than another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from httpmark.harness.model.run import Run


class Figure(msgspec.Struct, frozen=True):
    """One figure of which less is better."""

    name: str
    slug: str
    unit: str
    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""


def figures(run: Run) -> Iterator[Figure]:
    """Cost of a request, peak memory, and failures, of every server that is no control."""
    for server in run.servers:
        if server.control:
            continue
        for load in server.load:
            cost = load.cpu_ns_per_request.server
            if cost is not None:
                low, high = load.interval_95 or (None, None)
                yield Figure(
                    f"{server.name} {load.profile} cost", "cpu-ns-per-request", "ns/request",
                    cost, low, high, f"{load.engine}, bottleneck {load.bottleneck.value}",
                )  # fmt: skip
        if server.memory is not None and server.memory.vmhwm_kb is not None:
            yield Figure(
                f"{server.name} peak resident memory", "vmhwm", "kB", server.memory.vmhwm_kb
            )
        for name, suite in server.compliance.suites.items():
            if suite.score_percent is None:
                continue  # part of the requests is no figure to compare
            if suite.must is not None:
                yield Figure(
                    f"{server.name} {name} failed MUST", "failed-must", "requirements",
                    suite.must.get("failed", 0),
                )  # fmt: skip
            if suite.families:
                through = sum(counts.undetected for counts in suite.families.values())
                yield Figure(f"{server.name} {name} let through", "undetected", "requests", through)


def github_action_benchmark(run: Run) -> str:
    """For github-action-benchmark, as its tool ``customSmallerIsBetter``."""
    listed: list[dict[str, Any]] = []
    for figure in figures(run):
        entry: dict[str, Any] = {"name": figure.name, "unit": figure.unit, "value": figure.value}
        if figure.low is not None and figure.high is not None:
            entry["range"] = f"{figure.low:.4g} - {figure.high:.4g}"
        if figure.note:
            entry["extra"] = figure.note
        listed.append(entry)
    return json.dumps(listed, indent=1) + "\n"


def bencher(run: Run) -> str:
    """Bencher Metric Format."""
    told: dict[str, dict[str, dict[str, float]]] = {}
    for figure in figures(run):
        value = {"value": float(figure.value)}
        if figure.low is not None and figure.high is not None:
            value |= {"lower_value": figure.low, "upper_value": figure.high}
        told[figure.name] = {figure.slug: value}
    return json.dumps(told, indent=1) + "\n"
