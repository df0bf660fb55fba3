"""The doors to load generators: one plan in, one kind of measurement out.

What an engine cannot measure is None with the reason: wrk's latency at depth above 1 is an artefact
(it corrects per batch with an interval per request; load.md, finding 1) and is never shown.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import itertools
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from httpmark.harness import binaries, resources
from httpmark.harness.model import HarnessError, LoadMode, LoadPlan, LoadRequest, Unusable

_GRACE_S = 30.0
# A slow server has a second of requests under way when the window ends; they are waited for.
_DRAIN_S = 10.0
# What the generator needs besides one descriptor for each connection.
_DESCRIPTORS_KEPT = 64
# How often a generator's threads are looked at: seldom, as looking costs CPU time (load.md 4.2).
_LOOK_S = 0.25
# The kernel books what an ended process used in ticks, the scheduler what a living one does.
_BOOKS_SLACK_NS = 40_000_000
# Above it what living processes waited, and how often they were switched, says nothing of all.
_ENDED_SHARE_MAX = 0.1
_SEEDS = 1_000_000_000
_WRK2_CALIBRATION_S = 10
_RATE_SHORTFALL_MAX = 0.01


class Target(msgspec.Struct, frozen=True):
    """Whom to load, and the process trees to account for (none when they are not known).

    ``pids`` are their roots.
    """

    address: str
    port: int
    pids: tuple[int, ...] = ()
    tls_port: int | None = None
    path: str | None = None  # instead of the plan's

    def url(self, plan: LoadPlan) -> str:
        """Where a plan's requests go.

        :raises Unusable: the plan wants TLS, and the target's TLS port is not known.
        """
        if plan.tls and self.tls_port is None:
            raise Unusable(f"{plan.name} needs TLS, and the target has no TLS port")
        host = f"[{self.address}]" if ":" in self.address else self.address
        scheme, port = ("https", self.tls_port) if plan.tls else ("http", self.port)
        return f"{scheme}://{host}:{port}{self.path or plan.path}"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One window of one engine.

    ``requests`` are those answered within the window of ``seconds``. CPU (user + system) per
    request, in ns, is over the window and the drain after it: what was under way when the window
    ended was paid for, too.
    """

    requests: int
    seconds: float
    errors: dict[str, int]
    established: int | None
    server_ns_per_request: float | None
    client_ns_per_request: float | None
    server_on_cpu_ratio: float | None
    client_on_cpu_ratio: float | None
    run_delay_ratio: float | None  # the worse of both ends
    littles_law_ratio: float | None
    latency_us: dict[str, float] | None
    latency_reason: str | None
    histogram: str | None
    cost_reason: str | None = None  # why the server's CPU time is not known
    client_run_delay_ratio: float | None = None
    rate_offered: float | None = None
    service_us: dict[str, float] | None = None
    lag_us: dict[str, float] | None = None
    saturated: bool | None = None
    unanswered: int | None = None  # under way when the drain was over; slow, not wrong
    connections_per_second: float | None = None
    connect_us: dict[str, float] | None = None
    handshake_us: dict[str, float] | None = None
    tls: str | None = None
    server_switches_per_request: float | None = None
    client_switches_per_request: float | None = None
    server_instructions_per_request: float | None = None
    client_instructions_per_request: float | None = None


class Engine(Protocol):
    """A load generator behind one call."""

    name: str

    def version(self) -> str: ...

    def cannot(self, plan: LoadPlan) -> str | None:
        """What of a plan this engine cannot do, in words; None where it can do all."""
        ...

    def measure(
        self, plan: LoadPlan, target: Target, *, duration_s: float, cpus: frozenset[int] | None
    ) -> Measured:
        """Load ``target`` for one window.

        An open loop's plan has a ``rate`` here; a share of the capacity is resolved before.

        :param cpus: the processors the generator may use; None leaves it unpinned.
        :raises Unusable: the engine did not run or its output was not understood.
        """
        ...


@contextlib.contextmanager
def pinned(cpus: frozenset[int] | None) -> Iterator[None]:
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
    command: Sequence[str],
    *,
    timeout_s: float,
    cpus: frozenset[int] | None,
    env: Mapping[str, str] | None = None,
    look: Callable[[int], None] | None = None,
) -> tuple[int, str, str, float]:
    """Run to the end: exit code, standard output, standard error, CPU seconds of the child.

    :param env: variables beside those we have.
    :param look: is called with the child's id again and again while it lives.
    :raises Unusable: it did not end in time; it has been stopped.
    """
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):
        with pinned(cpus):
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                env={**os.environ, **(env or {})},
            )
        try:
            code, used = _wait(process, timeout_s, look)
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


def _wait(
    process: subprocess.Popen[bytes], timeout_s: float, look: Callable[[int], None] | None
) -> tuple[int, float]:
    """Reap a child with its own resource usage, asleep in between: the harness costs no CPU."""
    end = time.monotonic() + timeout_s
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_utime + usage.ru_stime
        if time.monotonic() > end:
            name = Path(str(process.args[0])).name  # type: ignore[index]
            raise Unusable(f"{name} did not end within {timeout_s:.0f} s and was stopped")
        if look is not None:
            look(process.pid)
        time.sleep(0.02)


class _Watch:
    """How the threads of a generator fare that does not tell: the busiest, and who waits longest.

    Shares of the time since it was started, as of the last look; None before the first.
    """

    def __init__(self) -> None:
        self.on_cpu_ratio: float | None = None
        self.run_delay_ratio: float | None = None
        self._began = self._seen = time.monotonic()

    def __call__(self, pid: int) -> None:
        now = time.monotonic()
        if now - self._seen < _LOOK_S:
            return
        self._seen = now
        if threads := resources.threads_ns(pid):
            wall_ns = (now - self._began) * 1e9
            self.on_cpu_ratio = max(on_cpu for on_cpu, _ in threads) / wall_ns
            self.run_delay_ratio = max(waited for _, waited in threads) / wall_ns


class Accounts(msgspec.Struct, frozen=True):
    """What a target's processes used meanwhile; None where they are not known or have ended.

    And how the generator fared: its busiest thread, and the one that waited longest for a CPU.
    """

    cpu_ns: int | None = None
    run_delay_ratio: float | None = None
    switches: int | None = None
    client_on_cpu_ratio: float | None = None
    client_run_delay_ratio: float | None = None
    reason: str | None = None  # why there are none


_NO_ACCOUNTS = Accounts()


def _open_books(roots: Sequence[int]) -> Callable[[], Accounts]:
    """Begin to account for a target, for engines that do not look at it; the call ends it.

    What an ended process used is in the books of whoever waited for it. How long it waited for a
    CPU, and how often it was switched, the kernel has forgotten.
    """
    before = {pid: _Books.of(pid) for pid in resources.tree(roots)}
    started = time.monotonic()

    def close() -> Accounts:
        wall_ns = (time.monotonic() - started) * 1e9
        after = {pid: _Books.of(pid) for pid in resources.tree(roots)}
        if not before or not after:
            return Accounts()
        ended = [books for pid, books in before.items() if pid not in after]
        zero = _Books()
        used = sum(b.cpu_ns - before.get(pid, zero).cpu_ns for pid, b in after.items())
        waited_for = sum(b.waited_ns - before.get(pid, zero).waited_ns for pid, b in after.items())
        gone = sum(books.cpu_ns + books.waited_ns for books in ended)
        if gone > waited_for + _BOOKS_SLACK_NS:
            return Accounts(reason="a process of the server has ended, and nobody waited for it")
        cpu = used + max(0, waited_for - gone)
        if max(gone, waited_for) > _ENDED_SHARE_MAX * cpu:
            return Accounts(cpu)
        delay = sum(b.delay_ns - before.get(pid, zero).delay_ns for pid, b in after.items())
        switches = sum(b.switches - before.get(pid, zero).switches for pid, b in after.items())
        return Accounts(cpu, delay / wall_ns, switches)

    return close


class _Books(msgspec.Struct, frozen=True):
    """What a process has used so far."""

    cpu_ns: int = 0
    waited_ns: int = 0  # of its ended children
    delay_ns: int = 0
    switches: int = 0

    @classmethod
    def of(cls, pid: int) -> _Books:
        return cls(
            resources.cpu_ns([pid]) or 0,
            resources.waited_ns(pid),
            resources.run_delay_ns([pid]),
            resources.context_switches([pid]) or 0,
        )


def octets(request: LoadRequest, *, host: str) -> bytes:
    """A request of a mixed load as it goes out, framed (RFC 9112 sections 3, 6.2 and 7.1)."""
    lines = [f"{request.method} {request.path} HTTP/1.1", f"Host: {host}", *request.fields]
    content = request.content.encode()
    if request.chunked:
        lines.append("Transfer-Encoding: chunked")
        content = b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content) if content else b"0\r\n\r\n"
    elif content:
        lines.append(f"Content-Length: {len(content)}")
    return "\r\n".join((*lines, "", "")).encode("latin-1") + content


def processes_for(connections: int) -> int:
    """How many processes the generator needs, as each may hold only so many descriptors."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        return 1
    return max(1, -(-connections // max(1, hard - _DESCRIPTORS_KEPT)))


class Native:
    """``httpmark-load``: verifies every response and times each one (native/load)."""

    name = "native"

    def __init__(self, seed: int = 1) -> None:
        """:param seed: of random arrivals; each window gets the next one, or all were one draw."""
        self.seed = seed
        self._windows = itertools.count()

    def version(self) -> str:
        return "httpmark-load, of this package"

    def cannot(self, plan: LoadPlan) -> str | None:
        if plan.mode in (LoadMode.IDLE, LoadMode.SLOW):
            return f"{plan.mode} loads are for memory, and measured by a ladder"
        return None

    def measure(
        self, plan: LoadPlan, target: Target, *, duration_s: float, cpus: frozenset[int] | None
    ) -> Measured:
        with request_files(plan, target) as files:
            command = [
                *native_command(plan, target, duration_s=duration_s),
                *("--seed", str((self.seed + next(self._windows)) % _SEEDS)),
                *(word for pid in target.pids for word in ("--server-pid", str(pid))),
                *(word for file in files for word in ("--request-file", file)),
                "--json",
                target.url(plan),
            ]
            opening_s = plan.connections / plan.connect_rate * (4 if plan.tls else 1)
            code, out, errors, _ = _run(
                command,
                timeout_s=duration_s + plan.warmup_s + _DRAIN_S + opening_s + _GRACE_S,
                cpus=cpus,
            )
        # 1 says that responses were wrong: that is a result. 2 and above: there is none.
        if code not in (0, 1):
            raise Unusable(f"httpmark-load: {errors or f'exit code {code}'}")
        try:
            report: dict[str, Any] = msgspec.json.decode(out)
        except msgspec.DecodeError:
            raise Unusable(f"httpmark-load printed no result: {errors or out[:200]}") from None
        return read_native(report, plan, has_server=bool(target.pids))


def native_command(plan: LoadPlan, target: Target, *, duration_s: float) -> list[str]:
    """The words that make ``httpmark-load`` lay a plan on, all but the requests and the URL."""
    words = [
        binaries.need("load"),
        *("--connections", str(plan.connections), "--depth", str(plan.depth)),
        *("--mode", plan.mode, "--refill", plan.refill),
        *("--duration-s", f"{duration_s:g}", "--warmup-s", f"{plan.warmup_s:g}"),
        *("--threads", str(plan.threads), "--drain-s", f"{_DRAIN_S:g}"),
        *("--connect-rate", f"{plan.connect_rate:g}"),
    ]
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
    """Whether from source addresses of ``bind`` an address can be reached.

    Those of loopback, which our profiles bind to have ports enough, reach only this machine.
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
    with tempfile.TemporaryDirectory(prefix="httpmark-requests-") as folder:
        files = []
        for number, request in enumerate(plan.requests):
            path = Path(folder) / f"{number:03d}"
            path.write_bytes(octets(request, host=host))
            files += [str(path)] * request.weight
        yield files


def read_native(report: dict[str, Any], plan: LoadPlan, *, has_server: bool) -> Measured:
    """What ``httpmark-load --json`` printed, as a measurement."""
    cost, switches, tls = report["cpu_ns_per_request"], report["context_switches"], report["tls"]
    is_open = plan.mode is LoadMode.OPEN
    # Of an open loop's window are the requests that were due in it, whenever they were answered;
    # but a rate that was only reached by working off the rest behind it has not been served.
    is_served = is_open and not report["saturated"]
    requests = report["requests" if is_served else "requests_in_window"]
    threads = report["client_threads"]
    # Where a cost is lost, the last word is why.
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
        server_switches_per_request=_per(switches["server"], report["requests"]),
        client_switches_per_request=_per(switches["client"], report["requests"]),
        server_instructions_per_request=report["instructions_per_request"]["server"],
        client_instructions_per_request=report["instructions_per_request"]["client"],
    )


def _each(total: float | None, workers: int) -> float | None:
    return None if total is None else total / workers


class _Foreign:
    """What the engines of others have in common: a command, and the books kept beside it."""

    name: str
    package: str

    def __init__(self, executable: str | None = None) -> None:
        wanted = executable or self.name
        found = shutil.which(wanted)
        if found is None:
            raise Unusable(f"{wanted} is not to be found: {self.package}")
        self.executable = found

    def cannot(self, plan: LoadPlan) -> str | None:
        """What none of them can, as their documentation has it (load.md 2)."""
        if plan.mode not in (LoadMode.CLOSED, LoadMode.OPEN):
            return f"it knows no load of mode {plan.mode}"
        if plan.requests:
            return "it sends one kind of request"
        if plan.split_bytes:
            return "it cannot split requests"
        if plan.bind:
            return "it cannot bind source addresses"
        if plan.tls:
            return self._cannot_pin(plan)
        return None

    def _cannot_pin(self, plan: LoadPlan) -> str | None:
        return "it cannot pin the version of TLS"

    def _run(
        self,
        words: Sequence[str],
        target: Target,
        *,
        timeout_s: float,
        cpus: frozenset[int] | None,
        env: Mapping[str, str] | None = None,
    ) -> tuple[str, str, int, Accounts]:
        """Standard output, what it said where it failed, its own CPU ns, the target's accounts."""
        close, watch = _open_books(target.pids), _Watch()
        command = [self.executable, *words]
        code, out, errors, used = _run(command, timeout_s=timeout_s, cpus=cpus, env=env, look=watch)
        said = errors or out.strip() or f"exit code {code}"
        accounts = msgspec.structs.replace(
            close(),
            client_on_cpu_ratio=watch.on_cpu_ratio,
            client_run_delay_ratio=watch.run_delay_ratio,
        )
        return out, said, round(used * 1e9), accounts


class Wrk(_Foreign):
    """Debian's ``wrk``: counts responses and checks nothing but their status."""

    name = "wrk"
    package = "apt-get install wrk"

    def version(self) -> str:
        return _first_words(self.executable, "-v", count=2)

    def cannot(self, plan: LoadPlan) -> str | None:
        if plan.mode is LoadMode.OPEN:
            return "it knows no rate"
        if plan.refill == "window":
            return "it pipelines in batches only"
        return super().cannot(plan)

    def _cannot_pin(self, plan: LoadPlan) -> str | None:
        return None  # it has no option for it, but it heeds OpenSSL's configuration

    def measure(
        self, plan: LoadPlan, target: Target, *, duration_s: float, cpus: frozenset[int] | None
    ) -> Measured:
        with _pipeline_script(plan.depth) as script, _openssl_pinned(plan) as env:
            words = [
                *("-c", str(plan.connections), "-t", str(plan.threads)),
                *("-d", f"{max(1, round(duration_s))}s", "-s", script),
                target.url(plan),
            ]
            out, said, used, accounts = self._run(
                words, target, timeout_s=duration_s + _GRACE_S, cpus=cpus, env=env
            )
        return parse_wrk(out, failure=said, plan=plan, client_cpu_ns=used, accounts=accounts)


class Wrk2(_Foreign):
    """``wrk2``, a binary that the user brings: constant rate, latency from the intended send.

    Its first ten seconds calibrate and are in no histogram; so it runs ten seconds longer.
    """

    name = "wrk2"
    package = "it is in no package registry; build it and name the binary with --wrk2 PATH"

    def version(self) -> str:
        return _first_words(self.executable, "-v", count=2)

    def cannot(self, plan: LoadPlan) -> str | None:
        if plan.mode is not LoadMode.OPEN:
            return "it only knows a constant rate"
        if plan.arrivals != "constant":
            return "its arrivals are constant"
        return super().cannot(plan)

    def measure(
        self, plan: LoadPlan, target: Target, *, duration_s: float, cpus: frozenset[int] | None
    ) -> Measured:
        assert plan.rate is not None
        seconds = max(1, round(duration_s)) + _WRK2_CALIBRATION_S
        with _pipeline_script(plan.depth) as script:
            words = [
                *("-c", str(plan.connections), "-t", str(plan.threads), "-d", f"{seconds}s"),
                *("-R", str(max(1, round(plan.rate))), "--latency", "--u_latency", "-s", script),
                target.url(plan),
            ]
            out, said, used, accounts = self._run(
                words, target, timeout_s=seconds + _GRACE_S, cpus=cpus
            )
        return parse_wrk2(out, failure=said, plan=plan, client_cpu_ns=used, accounts=accounts)


class H2load(_Foreign):
    """nghttp2's ``h2load`` as an HTTP/1.1 client: a window of pipelined requests, status only."""

    name = "h2load"
    package = "apt-get install nghttp2-client"

    def version(self) -> str:
        return _first_words(self.executable, "--version", count=2)

    def cannot(self, plan: LoadPlan) -> str | None:
        if plan.mode is LoadMode.OPEN:
            return "its rate is one of connections"
        return super().cannot(plan)

    def _cannot_pin(self, plan: LoadPlan) -> str | None:
        if plan.tls_version == "1.3":
            return None
        return "it takes the highest version of TLS that the server has, and cannot pin 1.2"

    def measure(
        self, plan: LoadPlan, target: Target, *, duration_s: float, cpus: frozenset[int] | None
    ) -> Measured:
        words = [
            *("--h1", "-c", str(plan.connections), "-m", str(plan.depth)),
            *("-t", str(plan.threads), "-D", f"{max(1, round(duration_s))}"),
            *(("--tls13-ciphers", plan.tls_ciphers) if plan.tls_ciphers else ()),
            target.url(plan),
        ]
        out, said, used, accounts = self._run(
            words, target, timeout_s=duration_s + _GRACE_S, cpus=cpus
        )
        return parse_h2load(out, failure=said, plan=plan, client_cpu_ns=used, accounts=accounts)


def identity(engine: Engine) -> dict[str, str | None]:
    """Which generator laid the load on: its name, its own word of its version, its SHA-256."""
    path = binaries.find("load") if isinstance(engine, Native) else None
    if isinstance(engine, _Foreign):
        path = engine.executable
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else None
    return {"name": engine.name, "version": engine.version() or None, "sha256": digest}


def _first_words(executable: str, option: str, *, count: int) -> str:
    """The first words a program says of itself; none where it says nothing in good time."""
    try:
        asked = subprocess.run(
            [executable, option], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return " ".join((asked.stdout + asked.stderr).split()[:count])


@contextlib.contextmanager
def _pipeline_script(depth: int) -> Iterator[str]:
    """A script of wrk and wrk2 that sends ``depth`` requests in one piece."""
    with tempfile.TemporaryDirectory(prefix="httpmark-wrk-") as folder:
        script = Path(folder) / "pipeline.lua"
        script.write_text(
            "local batch\n"
            "init = function() local one = {}\n"
            f"  for i = 1, {depth} do one[i] = wrk.format() end\n"
            "  batch = table.concat(one) end\n"
            "request = function() return batch end\n"
        )
        yield str(script)


@contextlib.contextmanager
def _openssl_pinned(plan: LoadPlan) -> Iterator[dict[str, str]]:
    """The environment in which a program's OpenSSL speaks a plan's version and cipher only.

    By a configuration of defaults, config(5) and SSL_CONF_cmd(3) of OpenSSL: it binds programs that
    set neither themselves.
    """
    if plan.tls_version is None:
        yield {}
        return
    version = f"TLSv{plan.tls_version}"
    lines = [f"MinProtocol = {version}", f"MaxProtocol = {version}"]
    if plan.tls_ciphers:
        kind = "Ciphersuites" if plan.tls_version == "1.3" else "CipherString"
        lines.append(f"{kind} = {plan.tls_ciphers}")
    with tempfile.TemporaryDirectory(prefix="httpmark-openssl-") as folder:
        path = Path(folder) / "openssl.cnf"
        path.write_text(
            "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = client\n"
            "[client]\n" + "\n".join(lines) + "\n"
        )
        yield {"OPENSSL_CONF": str(path)}


_WRK_TOTAL = re.compile(r"(\d+) requests in ([0-9.]+)(us|ms|s|m|h),")
_WRK_SOCKET = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
_WRK_STATUS = re.compile(r"Non-2xx or 3xx responses: (\d+)")
_UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def _counted(
    plan: LoadPlan,
    accounts: Accounts,
    *,
    requests: int,
    seconds: float,
    errors: dict[str, int],
    established: int | None,
    client_cpu_ns: int,
    latency_reason: str,
) -> Measured:
    """What every foreign engine yields: counts, and the books of both ends."""
    server_cpu_ns = accounts.cpu_ns
    delays = (accounts.run_delay_ratio, accounts.client_run_delay_ratio)
    # Of several threads the mean hides one that can do no more.
    client_on_cpu_ratio = max(
        client_cpu_ns / (seconds * 1e9 * plan.threads), accounts.client_on_cpu_ratio or 0.0
    )
    return Measured(
        requests=requests,
        seconds=seconds,
        errors={name: count for name, count in errors.items() if count},
        established=established,
        server_ns_per_request=_per(server_cpu_ns, requests),
        cost_reason=accounts.reason,
        client_ns_per_request=_per(client_cpu_ns, requests),
        server_on_cpu_ratio=None
        if server_cpu_ns is None
        else server_cpu_ns / (seconds * 1e9 * plan.workers),
        client_on_cpu_ratio=client_on_cpu_ratio,
        run_delay_ratio=max((delay for delay in delays if delay is not None), default=None),
        client_run_delay_ratio=accounts.client_run_delay_ratio,
        littles_law_ratio=None,
        latency_us=None,
        latency_reason=latency_reason,
        histogram=None,
        server_switches_per_request=_per(accounts.switches, requests),
    )


def parse_wrk(
    out: str,
    *,
    failure: str,
    plan: LoadPlan,
    client_cpu_ns: int,
    accounts: Accounts = _NO_ACCOUNTS,
    engine: str = "wrk",
) -> Measured:
    """wrk's text as a measurement.

    :raises Unusable: the text has no total, and ``failure`` says what wrk said instead; or it
        counted neither an answer nor an error.
    """
    total = _WRK_TOTAL.search(out)
    if total is None:
        raise Unusable(f"{engine}: {failure.splitlines()[-1]}")
    socket = _WRK_SOCKET.search(out)
    errors = (
        dict(zip(("connect", "read", "write", "timeout"), map(int, socket.groups()), strict=True))
        if socket
        else {}
    )
    status = _WRK_STATUS.search(out)
    if status:
        errors["status"] = int(status[1])
    if float(total[2]) == 0 or (int(total[1]) == 0 and not any(errors.values())):
        raise Unusable(
            f"{engine}: no answer in {total[2]} {total[3]}: it opens its connections within the "
            "window, and needs a longer one"
        )
    return _counted(
        plan,
        accounts,
        requests=int(total[1]),
        seconds=float(total[2]) * _UNIT_S[total[3]],
        errors=errors,
        # It divides connections evenly over its threads and drops the rest (wrk.c, main).
        established=plan.connections // plan.threads * plan.threads - errors.get("connect", 0),
        client_cpu_ns=client_cpu_ns,
        latency_reason="wrk's latency is wrong at depth above 1 and starts late at depth 1",
    )


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
    out: str, *, failure: str, plan: LoadPlan, client_cpu_ns: int, accounts: Accounts = _NO_ACCOUNTS
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


_H2LOAD_END = re.compile(r"finished in ([0-9.]+)(us|ms|s|m|h), ")
_H2LOAD_REQUESTS = re.compile(
    r"requests: (\d+) total, (\d+) started, (\d+) done, (\d+) succeeded, "
    r"(\d+) failed, (\d+) errored, (\d+) timeout"
)
_H2LOAD_STATUS = re.compile(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx")
_H2LOAD_TLS = re.compile(r"^TLS Protocol: TLSv(\S+)\nCipher: (\S+)", re.MULTILINE)
_H2LOAD_TIMES = re.compile(r"time for request:\s+" + r"\s+".join([r"([0-9.]+)(us|ms|s|m|h)"] * 4))


def parse_h2load(
    out: str, *, failure: str, plan: LoadPlan, client_cpu_ns: int, accounts: Accounts = _NO_ACCOUNTS
) -> Measured:
    """h2load's text as a measurement.

    :raises Unusable: there was no answer at all (h2load ends with 0 even then), or TLS was not that
        of the plan.
    """
    end, counts, status, times = (
        pattern.search(out)
        for pattern in (_H2LOAD_END, _H2LOAD_REQUESTS, _H2LOAD_STATUS, _H2LOAD_TIMES)
    )
    if end is None or counts is None or status is None or times is None:
        raise Unusable(f"h2load: {failure.splitlines()[-1]}")
    seconds, requests = float(end[1]) * _UNIT_S[end[2]], int(counts[3])
    if requests == 0 or seconds == 0:
        raise Unusable("h2load: no answer at all; it does not say why")
    spoken = _H2LOAD_TLS.search(out)
    tls = f"TLSv{spoken[1]} {spoken[2]}" if spoken else None
    if plan.tls and (spoken is None or spoken[1] != plan.tls_version):
        raise Unusable(f"h2load: spoke {tls or 'no TLS'}, and {plan.tls_version} is pinned")
    errors = {
        "failed": int(counts[5]),
        "timeout": int(counts[7]),
        "status": int(status[2]) + int(status[3]) + int(status[4]),
    }
    # It calls requests that were under way at the end errored; a failure has both counts.
    counted = _counted(
        plan,
        accounts,
        requests=requests,
        seconds=seconds,
        errors=errors,
        established=None,  # it goes on with fewer and does not say so
        client_cpu_ns=client_cpu_ns,
        latency_reason="h2load prints no percentiles",
    )
    mean_s = float(times[5]) * _UNIT_S[times[6]]
    return msgspec.structs.replace(
        counted,
        latency_us={"mean": mean_s * 1e6, "max": float(times[3]) * _UNIT_S[times[4]] * 1e6},
        tls=tls,
        littles_law_ratio=requests / seconds * mean_s / (plan.connections * plan.depth),
    )


def _per(total: int | None, requests: int) -> float | None:
    return total / requests if total is not None and requests else None


NAMES = ("native", "wrk", "wrk2", "h2load")


def engine(name: str, *, wrk2: str | None = None) -> Engine:
    """An engine by name.

    :param wrk2: the path of the binary that the user brings.
    :raises HarnessError: a path for another engine, or none for wrk2.
    :raises Unusable: it is not installed.
    """
    if wrk2 is not None and name != "wrk2":
        raise HarnessError("--wrk2 names a binary for --engine wrk2, and another engine is chosen")
    if name == "wrk2":
        return Wrk2(wrk2)
    kinds: dict[str, type[Wrk] | type[H2load]] = {"wrk": Wrk, "h2load": H2load}
    return kinds[name]() if name in kinds else Native()
