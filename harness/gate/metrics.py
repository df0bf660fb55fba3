"""A run to OpenMetrics text. A figure that is absent is left out, never written as 0."""

from __future__ import annotations

from collections.abc import Sequence

from httpmark.harness.gate.findings import Finding, tally
from httpmark.harness.http.printable import valid_unicode
from httpmark.harness.model.run import Run, ServerResult


class _Page:
    """Metric families in the order they were first named, each with its samples together."""

    def __init__(self) -> None:
        self._families: dict[str, list[str]] = {}

    def add(self, name: str, what: str, value: float | None, /, **labels: str) -> None:
        head = f"# TYPE httpmark_{name} gauge\n# HELP httpmark_{name} {_escaped(what)}"
        samples = self._families.setdefault(head, [])
        if value is not None:
            words = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            samples.append(f"httpmark_{name}{{{words}}} {value:.10g}")

    def __str__(self) -> str:
        lines = [line for head, samples in self._families.items() if samples
                 for line in (head, *samples)]  # fmt: skip
        return "\n".join((*lines, "# EOF")) + "\n"


def _escaped(text: str) -> str:
    return valid_unicode(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def metrics(run: Run, found: Sequence[Finding]) -> str:
    """OpenMetrics 1.0: scores, counts, findings, cost with its interval, memory."""
    page = _Page()
    for server in run.servers:
        _compliance(page, server)
        own = [finding for finding in found if finding.server == server.name]
        for status, number in tally(own).items():
            page.add("findings", "Findings by status.", number,
                     server=server.name, said=status.value)  # fmt: skip
    for server in run.servers:
        _load(page, server)
        _memory(page, server)
    return str(page)


def _compliance(page: _Page, server: ServerResult) -> None:
    for name, suite in server.compliance.suites.items():
        where = {"server": server.name, "suite": name}
        page.add("score_percent", "Score of a suite.", suite.score_percent, **where)
        for word, number in (suite.must or {}).items():
            page.add("must", "MUST requirements by verdict.", number, **where, verdict=word)
        for id, counts in suite.families.items():
            for word in ("rejected", "closed", "accepted", "mute", "malformed", "void"):
                page.add(
                    "requests", "Requests of a family by what the server did.",
                    getattr(counts, word), **where, family=id, outcome=word,
                )  # fmt: skip


def _load(page: _Page, server: ServerResult) -> None:
    for load in server.load:
        where = {"server": server.name, "profile": load.profile, "engine": load.engine}
        cost = "Server CPU time per request, in nanoseconds: the median and its 95 % interval."
        low, high = load.interval_95 or (None, None)
        for estimate, value in (
            ("median", load.cpu_ns_per_request.server), ("low", low), ("high", high)
        ):  # fmt: skip
            page.add("cost_nanoseconds", cost, value, **where, estimate=estimate)
        page.add(
            "requests_per_second",
            "Requests per second; a lower bound unless the server was the bottleneck.",
            load.requests_per_second,
            **where,
            ranked=str(load.ranked).lower(),
            bottleneck=load.bottleneck.value,
        )


def _memory(page: _Page, server: ServerResult) -> None:
    memory = server.memory
    if memory is None:
        return
    for kind, value in (
        ("vmpeak", memory.vmpeak_kb),
        ("vmhwm", memory.vmhwm_kb),
        ("pss", memory.pss_kb),
        ("vmhwm_busy", memory.busy_vmhwm_kb),
        ("cgroup_peak", memory.cgroup_peak_kb),
    ):
        page.add(
            "memory_bytes", "Peak memory of the process tree; vmpeak is address space.",
            None if value is None else value * 1024, server=server.name, kind=kind,
        )  # fmt: skip
    held = memory.bytes_per_connection
    for kind in ("virtual", "resident", "kernel") if held is not None else ():
        page.add(
            "connection_bytes", "Memory per open connection.",
            getattr(held, kind), server=server.name, kind=kind,
        )  # fmt: skip
