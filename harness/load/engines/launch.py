"""Running a load generator, and the CPU time of both ends meanwhile."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

import msgspec

from httpmark.harness.http.address import url
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan, LoadRequest
from httpmark.harness.servers import cpu_time, proc_files

GRACE_S = 30.0
# How long to wait for the requests that are under way when the window ends.
DRAIN_S = 10.0
# In a closed loop, how long where answers still come. The rate is that of the window; what the
# server still has to do says nothing more, and can be 131,072 answers.
DRAIN_SLOW_S = 1.0
# How often a generator's threads are read: seldom, as reading costs CPU time.
_LOOK_S = 0.25
# An ended process is accounted in clock ticks and a living one in ns, so sums differ by so much.
_BOOKS_SLACK_NS = 40_000_000
# Above this share of CPU time in ended processes the waits and switches of the living ones are not
# those of all.
_ENDED_SHARE_MAX = 0.1


class Target(msgspec.Struct, frozen=True):
    """The server to load, and the roots of its process trees (none where they are not known)."""

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
        port = self.tls_port if plan.tls and self.tls_port is not None else self.port
        return url(self.address, port, self.path or plan.path, tls=plan.tls)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One window of one engine.

    ``requests`` are those answered within the window of ``seconds``. CPU (user + system) per
    request, in ns, is over the window and the drain after it: what was under way when the window
    ended was paid for, too.
    """

    requests: int
    seconds: float
    errors: dict[str, int]
    statuses: dict[str, int] = {}  # of errors: answers that were not the expected 2xx, by status
    refused_ratio: float = 0.0  # their share of all answers
    late_dates: int = 0  # of errors: good Dates that the server should have renewed by then
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
    broken: str | None = None  # why none of the figures counts, where a generator failed
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
        """Why this engine cannot run a plan; None where it can."""
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
    """Children started inside run on these processors; our own are restored after."""
    if cpus is None:
        yield
        return
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def in_memory() -> IO[bytes]:
    """A file for what a child prints, without a place that could be full."""
    return open(os.memfd_create("printed"), "w+b")


@functools.cache
def _dies_with_us() -> tuple[str, ...]:
    """What to put before a command, so that the kernel ends it with the thread that started it.

    Python cannot call prctl(PR_SET_PDEATHSIG). setpriv of util-linux does, and then becomes the
    command itself.
    """
    found = shutil.which("setpriv")
    return (found, "--pdeathsig", "KILL", "--") if found else ()


@functools.cache
def at_once() -> tuple[str, ...]:
    """What to put before a command that is to run as soon as it wakes, whoever else wants the
    processor: real-time priority. Nothing where the system does not grant it.

    For what rests most of the time; who computes would keep all others from the processor.
    """
    found = shutil.which("chrt")
    words = (found, "--rr", "1") if found else ()
    if not words or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        return ()
    return words


def started(
    command: Sequence[str],
    out: IO[bytes],
    errors: IO[bytes],
    *,
    cpus: frozenset[int] | None,
    env: Mapping[str, str] | None = None,
    fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a generator. Where there is a setpriv, the kernel ends it with the thread that calls
    this, also after SIGKILL.

    :param env: variables beside those we have.
    :param fds: descriptors that the child gets under the same numbers.
    """
    with pinned(cpus):
        return subprocess.Popen(
            [*_dies_with_us(), *command],
            stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
            env={**os.environ, **(env or {})}, pass_fds=fds,
        )  # fmt: skip


def run_engine(
    command: Sequence[str],
    *,
    timeout_s: float,
    cpus: frozenset[int] | None,
    env: Mapping[str, str] | None = None,
    look: Callable[[int], None] | None = None,
    fds: Sequence[int] = (),
) -> tuple[int, str, str, float]:
    """Run to the end: exit code, standard output, standard error, CPU seconds of the child.

    :param env: variables beside those we have.
    :param look: called with the child's id again and again while it lives; what it raises ends the
        child.
    :param fds: descriptors that the child gets under the same numbers.
    :raises Unusable: it did not end in time and was stopped.
    """
    with in_memory() as out, in_memory() as errors:
        process = started(command, out, errors, cpus=cpus, env=env, fds=fds)
        try:
            code, used = _wait(process, Path(command[0]).name, timeout_s, look)
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
    process: subprocess.Popen[bytes],
    name: str,
    timeout_s: float,
    look: Callable[[int], None] | None,
) -> tuple[int, float]:
    """Reap a child with its own resource usage, asleep in between: the harness costs no CPU."""
    end = time.monotonic() + timeout_s
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_utime + usage.ru_stime
        if time.monotonic() > end:
            raise Unusable(f"{name} did not end within {timeout_s:.0f} s and was stopped")
        if look is not None:
            look(process.pid)
        time.sleep(0.02)


class Watch:
    """The busiest thread of a generator, and the longest wait for a CPU, by looking at it.

    Shares of the time since it was started, at the last look; None before the first.
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
        if threads := cpu_time.threads_ns(pid):
            wall_ns = (now - self._began) * 1e9
            self.on_cpu_ratio = max(on_cpu for on_cpu, _ in threads) / wall_ns
            self.run_delay_ratio = max(waited for _, waited in threads) / wall_ns


class Accounts(msgspec.Struct, frozen=True):
    """What a target's processes used; None where they are not known or have ended.

    With the generator's busiest thread, and its longest wait for a CPU.
    """

    cpu_ns: int | None = None
    run_delay_ratio: float | None = None
    switches: int | None = None
    client_on_cpu_ratio: float | None = None
    client_run_delay_ratio: float | None = None
    reason: str | None = None  # why there are none


NO_ACCOUNTS = Accounts()


def open_books(roots: Sequence[int]) -> Callable[[], Accounts]:
    """Begin to account for a target, for engines that do not; calling the result ends it.

    The CPU time of an ended process is counted with the process that waited for it. Its waits for
    a CPU and its context switches are lost.
    """
    before = {pid: _Books.of(pid) for pid in proc_files.tree(roots)}
    started = time.monotonic()

    def close() -> Accounts:
        wall_ns = (time.monotonic() - started) * 1e9
        after = {pid: _Books.of(pid) for pid in proc_files.tree(roots)}
        if not before or not after:
            return Accounts()
        ended = [books for pid, books in before.items() if pid not in after]
        zero = _Books()
        used = sum(b.cpu_ns - before.get(pid, zero).cpu_ns for pid, b in after.items())
        waited_for = sum(b.waited_ns - before.get(pid, zero).waited_ns for pid, b in after.items())
        gone = sum(books.cpu_ns + books.waited_ns for books in ended)
        if gone > waited_for + _BOOKS_SLACK_NS:
            return Accounts(reason="a process of the server ended, and no process waited for it")
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
            cpu_time.cpu_ns([pid]) or 0,
            cpu_time.waited_ns(pid),
            cpu_time.run_delay_ns([pid]),
            cpu_time.context_switches([pid]) or 0,
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


def first_words(executable: str, option: str, *, count: int) -> str:
    """The first words that a program prints about itself; empty where it prints none in time."""
    try:
        asked = subprocess.run(
            [executable, option], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return " ".join((asked.stdout + asked.stderr).split()[:count])


def per_request(total: int | None, requests: int) -> float | None:
    return total / requests if total is not None and requests else None
