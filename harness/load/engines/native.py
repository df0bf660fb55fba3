"""`httpmark-load`, our own load generator: it verifies every response and times each one."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import resource
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from httpmark.harness.load.engines.launch import (
    DRAIN_S,
    DRAIN_SLOW_S,
    GRACE_S,
    Measured,
    Target,
    octets,
    per_request,
    run_engine,
)
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadMode, LoadPlan
from httpmark.harness.servers import binaries, scratch_folders

# What the generator needs besides one descriptor for each connection.
_DESCRIPTORS_KEPT = 64
_SEEDS = 1_000_000_000


def processes_for(connections: int) -> int:
    """How many processes the generator needs, as each may hold only so many descriptors."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        return 1
    return max(1, -(-connections // max(1, hard - _DESCRIPTORS_KEPT)))


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A start that somebody else chooses (``httpmark-load --start-fd``)."""

    fd: int
    look: Callable[[int], None]  # called again and again meanwhile; what it raises ends the load
    phase: float  # of an open loop's schedule among those of several generators, 0 to 1
    wait_s: float  # it may take so long until the start is chosen

    def words(self) -> tuple[str, ...]:
        return ("--start-fd", str(self.fd), "--phase", f"{self.phase:.6g}")


class Native:
    """``httpmark-load``: verifies every response and times each one (native/load)."""

    name = "native"

    def __init__(self, seed: int = 1) -> None:
        """:param seed: of random arrivals; each window gets the next seed, so that all differ."""
        self.seed = seed
        self._windows = itertools.count()

    def version(self) -> str:
        return "httpmark-load, of this package"

    def cannot(self, plan: LoadPlan) -> str | None:
        if plan.mode in (LoadMode.IDLE, LoadMode.SLOW):
            return f"loads of mode {plan.mode} measure memory, not requests"
        return None

    def measure(
        self, plan: LoadPlan, target: Target, *, duration_s: float, cpus: frozenset[int] | None
    ) -> Measured:
        report = self.report(plan, target, duration_s=duration_s, cpus=cpus)
        return read_native(report, plan, has_server=bool(target.pids))

    def report(
        self,
        plan: LoadPlan,
        target: Target,
        *,
        duration_s: float,
        cpus: frozenset[int] | None,
        start: Start | None = None,
    ) -> dict[str, Any]:
        """What the program tells of one window.

        :param start: who says when to begin; None: nobody.
        :raises Unusable: it did not run, or printed no result.
        """
        with request_files(plan, target) as files:
            command = [
                *native_command(plan, target, duration_s=duration_s),
                *("--seed", str((self.seed + next(self._windows)) % _SEEDS)),
                *(word for pid in target.pids for word in ("--server-pid", str(pid))),
                *(word for file in files for word in ("--request-file", file)),
                *(start.words() if start else ()),
                "--json",
                target.url(plan),
            ]
            opening_s = plan.connections / plan.connect_rate * (4 if plan.tls else 1)
            code, out, errors, _ = run_engine(
                command,
                timeout_s=duration_s
                + plan.warmup_s
                + DRAIN_S
                + opening_s
                + GRACE_S
                + (start.wait_s if start else 0),
                cpus=cpus,
                look=start.look if start else None,
                fds=(start.fd,) if start else (),
            )
        # 1: responses were wrong, which is a result. 2 and above: there is no result.
        if code not in (0, 1):
            raise Unusable(f"httpmark-load: {errors or f'exit code {code}'}")
        try:
            told: dict[str, Any] = msgspec.json.decode(out)
        except msgspec.DecodeError:
            raise Unusable(f"httpmark-load printed no result: {errors or out[:200]}") from None
        return told


def native_command(plan: LoadPlan, target: Target, *, duration_s: float) -> list[str]:
    """The command that makes ``httpmark-load`` run a plan, without the requests and the URL."""
    words = [
        binaries.need("load"),
        *("--connections", str(plan.connections), "--depth", str(plan.depth)),
        *("--mode", plan.mode, "--refill", plan.refill),
        *("--duration-s", f"{duration_s:g}", "--warmup-s", f"{plan.warmup_s:g}"),
        *("--threads", str(plan.threads), "--drain-s", f"{DRAIN_S:g}"),
        *("--connect-rate", f"{plan.connect_rate:g}"),
    ]
    if plan.mode is LoadMode.CLOSED:
        words += ["--drain-slow-s", f"{DRAIN_SLOW_S:g}"]
    procs = processes_for(plan.connections)
    if procs > 1:
        words += ["--procs", str(procs)]
    if plan.mode is LoadMode.OPEN:
        words += ["--rate", f"{plan.rate:.10g}", "--arrivals", plan.arrivals]
    if plan.bind and reaches(plan.bind, target.address):
        words += ["--bind", plan.bind]
    if plan.split_bytes:
        words += ["--split", str(plan.split_bytes)]
    if plan.tls_version:
        words += ["--tls-version", plan.tls_version]
    if plan.tls_ciphers:
        words += ["--tls-ciphers", plan.tls_ciphers]
    return words


def reaches(bind: str, address: str) -> bool:
    """Whether an address can be reached from source addresses of ``bind``.

    The profiles bind loopback addresses to have enough ports; those reach only this machine.
    """
    network, target = ipaddress.ip_network(bind, strict=False), ipaddress.ip_address(address)
    if network.version != target.version:
        return False
    return target.is_loopback or not network.is_loopback


@contextlib.contextmanager
def request_files(plan: LoadPlan, target: Target) -> Iterator[list[str]]:
    """The requests of a mixed load as files, each as often as it weighs; none for a plain GET."""
    if not plan.requests:
        yield []
        return
    host = target.url(plan).split("/")[2]
    with scratch_folders.folder("requests") as folder:
        files = []
        for number, request in enumerate(plan.requests):
            path = folder / f"{number:03d}"
            path.write_bytes(octets(request, host=host))
            files += [str(path)] * request.weight
        yield files


def read_native(report: dict[str, Any], plan: LoadPlan, *, has_server: bool) -> Measured:
    """What ``httpmark-load --json`` printed, as a measurement."""
    cost, switches, tls = report["cpu_ns_per_request"], report["context_switches"], report["tls"]
    is_open = plan.mode is LoadMode.OPEN
    # An open loop counts the requests that were due in the window, whenever they were answered. A
    # rate that was only reached by answering the rest later was not served.
    is_served = is_open and not report["saturated"]
    requests = report["requests" if is_served else "requests_in_window"]
    threads = report["client_threads"]
    refused = report["errors"].get("status", 0)
    # Where the cost is missing, the last complaint says why.
    lost = has_server and cost["server"] is None and report["requests"]
    delays = [
        ratio
        for ratio in (
            report.get("server_run_delay_ratio"),
            *(thread["run_delay_ratio"] for thread in threads),
        )
        if ratio is not None
    ]
    return Measured(
        requests=requests,
        seconds=report["seconds"],
        errors={name: count for name, count in report["errors"].items() if count},
        statuses=report.get("statuses", {}),
        refused_ratio=refused / max(1, refused + report["requests"]),
        late_dates=report.get("late_dates", 0),
        established=report["established"],
        server_ns_per_request=cost["server"] if has_server else None,
        cost_reason=next(reversed(report["complaints"]), None) if lost else None,
        client_ns_per_request=cost["client"],
        server_on_cpu_ratio=_each(report["server_on_cpu_ratio"], plan.workers)
        if has_server
        else None,
        client_on_cpu_ratio=max(thread["on_cpu_ratio"] for thread in threads),
        run_delay_ratio=max(delays, default=None),
        client_run_delay_ratio=max(thread["run_delay_ratio"] for thread in threads),
        littles_law_ratio=report["littles_law_ratio"],
        latency_us=report["latency_us"],
        latency_reason=None,
        histogram=report["histograms"]["response"],
        rate_offered=report["rate"],
        service_us=report.get("service_us"),
        lag_us=report.get("lag_us"),
        saturated=report.get("saturated"),
        unanswered=report["unanswered"],
        connections_per_second=report["connects"] / report["seconds"]
        if plan.mode is LoadMode.CHURN and report["seconds"]
        else None,
        connect_us=report["connect_us"],
        handshake_us=tls["handshake_us"] if tls else None,
        tls=f"{tls['version']} {tls['cipher']}" if tls else None,
        server_switches_per_request=per_request(switches["server"], report["requests"]),
        client_switches_per_request=per_request(switches["client"], report["requests"]),
        server_instructions_per_request=report["instructions_per_request"]["server"],
        client_instructions_per_request=report["instructions_per_request"]["client"],
    )


def _each(total: float | None, workers: int) -> float | None:
    return None if total is None else total / workers
