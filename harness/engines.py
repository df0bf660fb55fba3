"""The doors to load generators: one plan in, one kind of measurement out.

What an engine cannot measure is None with the reason: wrk's latency at depth above 1 is an artefact
(it corrects per batch with an interval per request; load.md, finding 1) and is never shown.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from httpmark.harness import binaries, resources
from httpmark.harness.model import LoadPlan, Unusable

_GRACE_S = 30.0
# A slow server has a second of requests under way when the window ends; they are waited for.
_DRAIN_S = 10.0


class Target(msgspec.Struct, frozen=True):
    """Whom to load, and which processes to account for (none when they are not known)."""

    address: str
    port: int
    pids: tuple[int, ...] = ()

    def url(self, path: str) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.port}{path}"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One window of one engine.

    ``requests`` are those answered within the window of ``seconds``. CPU (user + system) per
    request, in ns, is over the window and the drain after it: what was under way when the window
    ended was paid for, too.
    """

    requests: int
    seconds: float
    errors: dict[str, int]
    established: int
    server_ns_per_request: float | None
    client_ns_per_request: float | None
    server_on_cpu_ratio: float | None
    client_on_cpu_ratio: float | None
    run_delay_ratio: float | None
    littles_law_ratio: float | None
    latency_us: dict[str, float] | None
    latency_reason: str | None
    histogram: str | None


class Engine(Protocol):
    """A load generator behind one call."""

    name: str

    def version(self) -> str: ...

    def measure(
        self, plan: LoadPlan, target: Target, *, duration_s: float, cpus: frozenset[int] | None
    ) -> Measured:
        """Load ``target`` for one window.

        :param cpus: the processors the generator may use; None leaves it unpinned.
        :raises Unusable: the engine did not run or its output was not understood.
        """
        ...


@contextlib.contextmanager
def _pinned(cpus: frozenset[int] | None) -> Iterator[None]:
    """Children started inside inherit the processors; ours are given back after."""
    if cpus is None:
        yield
        return
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def _run(
    command: Sequence[str], *, timeout_s: float, cpus: frozenset[int] | None
) -> tuple[int, str, str, float]:
    """Run to the end: exit code, standard output, standard error, CPU seconds of the child."""
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):
        with _pinned(cpus):
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)
        try:
            code, used = _wait(process, timeout_s)
        except BaseException:
            process.kill()
            process.wait()
            raise
        out.seek(0)
        errors.seek(0)
        return (
            code,
            out.read().decode("utf-8", "replace"),
            errors.read().decode("utf-8", "replace").strip(),
            used,
        )


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[int, float]:
    """Reap a child with its own resource usage, asleep in between: the harness costs no CPU."""
    end = time.monotonic() + timeout_s
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_utime + usage.ru_stime
        if time.monotonic() > end:
            raise Unusable(f"{Path(str(process.args[0])).name} did not end in time")  # type: ignore[index]
        time.sleep(0.02)


class Native:
    """``httpmark-load``: verifies every response and times each one (native/load)."""

    name = "native"

    def version(self) -> str:
        return "httpmark-load, of this package"

    def measure(
        self, plan: LoadPlan, target: Target, *, duration_s: float, cpus: frozenset[int] | None
    ) -> Measured:
        command = [
            binaries.need("load"),
            *("--connections", str(plan.connections), "--depth", str(plan.depth)),
            *("--duration-s", f"{duration_s:g}", "--warmup-s", f"{plan.warmup_s:g}"),
            *("--threads", str(plan.threads), "--drain-s", f"{_DRAIN_S:g}"),
            *(word for pid in target.pids for word in ("--server-pid", str(pid))),
            "--json",
            target.url(plan.path),
        ]
        code, out, errors, _ = _run(
            command, timeout_s=duration_s + plan.warmup_s + _GRACE_S, cpus=cpus
        )
        # 1 says that responses were wrong: that is a result. 2 and above: there is none.
        if code not in (0, 1):
            raise Unusable(f"httpmark-load: {errors or f'exit code {code}'}")
        try:
            report: dict[str, Any] = msgspec.json.decode(out)
        except msgspec.DecodeError:
            raise Unusable(f"httpmark-load printed no result: {errors or out[:200]}") from None
        cost = report["cpu_ns_per_request"]
        threads = report["client_threads"]
        delays = [
            ratio
            for ratio in (
                report.get("server_run_delay_ratio"),
                *(thread["run_delay_ratio"] for thread in threads),
            )
            if ratio is not None
        ]
        return Measured(
            requests=report["requests_in_window"],
            seconds=report["seconds"],
            errors={name: count for name, count in report["errors"].items() if count},
            established=report["established"],
            server_ns_per_request=cost["server"] if target.pids else None,
            client_ns_per_request=cost["client"],
            server_on_cpu_ratio=report["server_on_cpu_ratio"] if target.pids else None,
            client_on_cpu_ratio=max(thread["on_cpu_ratio"] for thread in threads),
            run_delay_ratio=max(delays, default=None),
            littles_law_ratio=report["littles_law_ratio"],
            latency_us=report["latency_us"],
            latency_reason=None,
            histogram=report["histograms"]["response"],
        )


class Wrk:
    """Debian's ``wrk``: counts responses and checks nothing but their status."""

    name = "wrk"

    def __init__(self, executable: str = "wrk") -> None:
        found = shutil.which(executable)
        if found is None:
            raise Unusable(f"{executable} is not on PATH: apt-get install wrk")
        self._executable = found

    def version(self) -> str:
        asked = subprocess.run(
            [self._executable, "-v"], capture_output=True, text=True, timeout=10, check=False
        )
        words = (asked.stdout + asked.stderr).split()
        return " ".join(words[:2])

    def measure(
        self, plan: LoadPlan, target: Target, *, duration_s: float, cpus: frozenset[int] | None
    ) -> Measured:
        with tempfile.TemporaryDirectory(prefix="httpmark-wrk-") as folder:
            script = Path(folder) / "pipeline.lua"
            script.write_text(
                "local batch\n"
                "init = function() local one = {}\n"
                f"  for i = 1, {plan.depth} do one[i] = wrk.format() end\n"
                "  batch = table.concat(one) end\n"
                "request = function() return batch end\n"
            )
            command = [
                self._executable,
                *("-c", str(plan.connections), "-t", str(plan.threads)),
                *("-d", f"{max(1, round(duration_s))}s", "-s", str(script)),
                target.url(plan.path),
            ]
            before = resources.cpu_ns(target.pids)
            delay_before = resources.run_delay_ns(target.pids)
            started = time.monotonic()
            code, out, errors, used = _run(command, timeout_s=duration_s + _GRACE_S, cpus=cpus)
            wall = time.monotonic() - started
            after = resources.cpu_ns(target.pids)
            delay = resources.run_delay_ns(target.pids) - delay_before
        return parse_wrk(
            out,
            failure=errors or out.strip() or f"exit code {code}",
            plan=plan,
            client_cpu_ns=round(used * 1e9),
            server_cpu_ns=None if before is None or after is None else after - before,
            server_run_delay_ratio=delay / (wall * 1e9) if target.pids else None,
        )


_WRK_TOTAL = re.compile(r"(\d+) requests in ([0-9.]+)(us|ms|s|m|h),")
_WRK_SOCKET = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
_WRK_STATUS = re.compile(r"Non-2xx or 3xx responses: (\d+)")
_UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_wrk(
    out: str,
    *,
    failure: str,
    plan: LoadPlan,
    client_cpu_ns: int,
    server_cpu_ns: int | None,
    server_run_delay_ratio: float | None,
) -> Measured:
    """wrk's text as a measurement.

    :raises Unusable: the text has no total; ``failure`` says what wrk said instead.
    """
    total = _WRK_TOTAL.search(out)
    if total is None:
        raise Unusable(f"wrk: {failure.splitlines()[-1]}")
    requests, seconds = int(total[1]), float(total[2]) * _UNIT_S[total[3]]
    socket = _WRK_SOCKET.search(out)
    errors = (
        dict(zip(("connect", "read", "write", "timeout"), map(int, socket.groups()), strict=True))
        if socket
        else {}
    )
    status = _WRK_STATUS.search(out)
    if status:
        errors["status"] = int(status[1])
    # wrk divides its connections evenly over its threads and drops the rest (wrk.c, main).
    established = plan.connections // plan.threads * plan.threads - errors.get("connect", 0)
    return Measured(
        requests=requests,
        seconds=seconds,
        errors={name: count for name, count in errors.items() if count},
        established=established,
        server_ns_per_request=_per(server_cpu_ns, requests),
        client_ns_per_request=_per(client_cpu_ns, requests),
        server_on_cpu_ratio=None
        if server_cpu_ns is None
        else server_cpu_ns / (seconds * 1e9 * plan.workers),
        client_on_cpu_ratio=client_cpu_ns / (seconds * 1e9 * plan.threads),
        run_delay_ratio=server_run_delay_ratio,
        littles_law_ratio=None,
        latency_us=None,
        latency_reason="wrk's latency is wrong at depth above 1 and starts late at depth 1",
        histogram=None,
    )


def _per(total_ns: int | None, requests: int) -> float | None:
    return total_ns / requests if total_ns is not None and requests else None


NAMES = ("native", "wrk")


def engine(name: str) -> Engine:
    """An engine by name.

    :raises Unusable: it is not installed.
    """
    return Wrk() if name == "wrk" else Native()
