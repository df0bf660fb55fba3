"""What connections cost in memory: a ladder of held connections, and clients that never read.

The baseline is measured without any connection. Each rung then opens more connections beside those
that are held, at a controlled rate. Each connection makes one request, so that a server that
allocates late has allocated. The connections stay idle for the plan's seconds and until the server
is at rest; then the server's connections are counted and its memory is read. At the end as many
connections as were held send one request each, at a low rate: busy connections cost more than idle
ones (docs/method.md).
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import IO

import msgspec

from httpmark.harness.load import statistics
from httpmark.harness.load.engines.launch import Target, in_memory, started
from httpmark.harness.load.engines.native import native_command
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadMode, LoadPlan
from httpmark.harness.model.memory import BytesPerConnection, Memory, Rung, SlowReaders, Trickle
from httpmark.harness.servers import cpu_time, memory_use, open_connections

HELD_MIN = 0.999
MODES = frozenset((LoadMode.IDLE, LoadMode.SLOW))
_HOLD_S = 86_400.0
_POLL_S = 0.1
_GRACE_S = 30.0
_REST_S_MAX = 6.0
# A server is at rest when it uses less CPU than this and its memory is the same, so many times in
# a row.
_REST_CPU_RATIO = 0.02
_REST_LOOKS = 3
_ESTABLISHED = re.compile(rb"(\d+) connections established")


class Ground(msgspec.Struct, frozen=True):
    """The server to load, and how to find its processes: it may fork under load."""

    target: Target
    pids: Callable[[], list[int]]
    alive: Callable[[], bool]
    exit_reason: Callable[[], str]
    cgroup: str | None = None


class _Held:
    """A generator that holds connections, or sends on them without end."""

    def __init__(self, process: subprocess.Popen[bytes], out: IO[bytes], errors: IO[bytes]) -> None:
        self._process = process
        self._out = out
        self._errors = errors

    def established(self, deadline_s: float) -> int:
        """Wait until every connection was attempted; how many were established.

        :raises Unusable: the generator ended before that, or took too long.
        """
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            ended = self._process.poll() is not None
            self._errors.seek(0)
            told = self._errors.read()
            if found := _ESTABLISHED.search(told):
                return int(found[1])
            if ended:
                lines = told.decode("utf-8", "replace").strip().splitlines()
                raise Unusable(lines[-1] if lines else "httpmark-load ended and printed nothing")
            time.sleep(_POLL_S / 2)
        raise Unusable(f"httpmark-load did not open its connections in {deadline_s:.0f} s")

    def running(self) -> bool:
        return self._process.poll() is None

    def looks(self, deadline_s: float) -> Iterator[None]:
        """Yield at regular times until the generator has ended, for a look at the server.

        :raises Unusable: it did not end in time.
        """
        end = time.monotonic() + deadline_s
        while self.running():
            if time.monotonic() > end:
                raise Unusable(f"httpmark-load did not end within {deadline_s:.0f} s")
            yield
            time.sleep(_POLL_S)

    def report(self) -> dict[str, object]:
        """What it printed at its end."""
        self._out.seek(0)
        try:
            decoded: dict[str, object] = msgspec.json.decode(self._out.read())
        except msgspec.DecodeError:
            raise Unusable("httpmark-load printed no result") from None
        return decoded


@contextlib.contextmanager
def _holding(plan: LoadPlan, ground: Ground, cpus: frozenset[int] | None) -> Iterator[_Held]:
    """A running generator; it is killed at the end, and the kernel closes its connections."""
    command = [
        *native_command(plan, ground.target, duration_s=plan.duration_s),
        "--json",
        ground.target.url(plan),
    ]
    with in_memory() as out, in_memory() as errors:
        process = started(command, out, errors, cpus=cpus)
        try:
            yield _Held(process, out, errors)
        finally:
            process.kill()
            process.wait()


def sample(plan: LoadPlan, ground: Ground, *, cpus: frozenset[int] | None) -> Memory:
    """The memory of a server under a plan of one of :data:`MODES`.

    :raises Unusable: the server died, or the generator could not open a connection.
    """
    return (climb if plan.mode is LoadMode.IDLE else pour)(plan, ground, cpus=cpus)


def climb(plan: LoadPlan, ground: Ground, *, cpus: frozenset[int] | None) -> Memory:
    """Hold ever more connections and sample the server's memory at each height.

    :returns: memory with ``baseline``, ``ladder`` and ``bytes_per_connection``, a Theil-Sen slope
        over the rungs, and its intercept; None with the reason where the server did not hold what
        it was given. VmHWM is that of the ladder alone where it may be reset.
    :raises Unusable: the server died, or the generator could not open a connection.
    """
    slabs = memory_use.socket_slabs()
    _rest(ground)
    baseline = _rung(0, ground, slabs)
    is_reset = memory_use.reset_peak(ground.pids())
    with contextlib.ExitStack() as held:
        rungs, ended = _climbed(plan, ground, slabs, held, cpus=cpus)
        memory = _memory(ground)
    _rest(ground)
    per_connection, intercept, reason = slopes(rungs)
    trickle = trickle_reason = None
    most = max((rung.connections for rung in rungs if _is_held(rung)), default=0)
    try:
        trickle = _trickle(plan, most, ground, cpus) if most else None
    except Unusable as error:
        trickle_reason = str(error)
    _rest(ground)
    after = memory_use.memory(ground.pids(), cgroup=ground.cgroup)
    return msgspec.structs.replace(
        memory,
        connections_held=max(rung.held for rung in rungs),
        ladder=tuple(rungs),
        vmhwm_reason=None if is_reset else "since the start: clear_refs may not be written",
        baseline=baseline,
        bytes_per_connection=per_connection,
        intercept_bytes=intercept,
        reason=ended or reason,
        after_close_pss_kb=after.pss_kb if after else None,
        trickle=trickle,
        trickle_reason=trickle_reason,
    )


def _climbed(
    plan: LoadPlan,
    ground: Ground,
    slabs: memory_use.SocketSlabs | None,
    held: contextlib.ExitStack,
    *,
    cpus: frozenset[int] | None,
) -> tuple[list[Rung], str | None]:
    """The rungs of the ladder as far as they could be climbed, and why it ended early.

    :param held: keeps the connections of every rung until the caller lets them go.
    :raises Unusable: the server died, or the first rung could not be opened.
    """
    rungs: list[Rung] = []
    opened = 0
    for number, height in enumerate(plan.ladder):
        step = msgspec.structs.replace(
            plan,
            mode=LoadMode.IDLE,
            connections=height - opened,
            depth=1,
            warmup_s=0.0,
            duration_s=_HOLD_S,
            bind=sources(plan.bind, number),
        )
        generator = held.enter_context(_holding(step, ground, cpus))
        try:
            new = generator.established(_opening_s(step))
        except Unusable as error:
            if not rungs or not ground.alive():
                raise
            return rungs, f"the ladder ended below {height:,} connections: {error}"
        opened += new
        _rest(ground, hold_s=plan.duration_s)
        rungs.append(_rung(opened, ground, slabs))
        if new < step.connections:
            return rungs, (
                f"the ladder ended at {opened:,} of {height:,} connections: no more opened"
            )
        if rungs[-1].held < HELD_MIN * opened:
            break  # a higher rung would show the same
    return rungs, None


def _opening_s(plan: LoadPlan) -> float:
    """How long a generator may take to open the connections of a plan."""
    return _GRACE_S + plan.connections / plan.connect_rate * 4


def _trickle(
    plan: LoadPlan, connections: int, ground: Ground, cpus: frozenset[int] | None
) -> Trickle:
    """Let each of so many connections ask once within the plan's time, evenly spread.

    :raises Unusable: the server died, or the generator did not come to its end.
    """
    spread = msgspec.structs.replace(
        plan,
        mode=LoadMode.OPEN,
        connections=connections,
        depth=1,
        rate=connections / plan.duration_s,
        warmup_s=0.0,
    )
    peak: int | None = None
    is_reset = memory_use.reset_peak(ground.pids())
    with _holding(spread, ground, cpus) as generator:
        for _ in generator.looks(_opening_s(spread) + plan.duration_s + _GRACE_S):
            now = memory_use.memory(ground.pids())
            if now is not None and now.pss_kb is not None:
                peak = max(peak or 0, now.pss_kb)
        report = generator.report()
    if not ground.alive():
        raise Unusable(ground.exit_reason())
    after = memory_use.memory(ground.pids())
    requests, errors = report["requests"], report["errors"]
    assert isinstance(requests, int)
    assert isinstance(errors, dict)
    return Trickle(
        connections=connections,
        seconds=plan.duration_s,
        requests=requests,
        pss_peak_kb=peak,
        errors={name: count for name, count in errors.items() if count},
        vmhwm_kb=after.vmhwm_kb if after and is_reset else None,
    )


def pour(plan: LoadPlan, ground: Ground, *, cpus: frozenset[int] | None) -> Memory:
    """Send without end, never read, and measure the memory that the server's answers take.

    :raises Unusable: the server died, or the generator could not open a connection.
    """
    before = _memory(ground)
    peak = before.pss_kb
    buffers_before = memory_use.socket_buffers_kb() or 0
    buffers = None if memory_use.socket_buffers_kb() is None else 0
    is_reset = memory_use.reset_peak(ground.pids())
    whole = msgspec.structs.replace(plan, warmup_s=0.0)  # what is sent counts from the first byte
    with _holding(whole, ground, cpus) as generator:
        generator.established(_opening_s(whole))
        for _ in generator.looks(plan.duration_s + _GRACE_S):
            now, held = memory_use.memory(ground.pids()), memory_use.socket_buffers_kb()
            if peak is not None and now is not None and now.pss_kb is not None:
                peak = max(peak, now.pss_kb)
            if buffers is not None and held is not None:
                buffers = max(buffers, held - buffers_before)
        report = generator.report()
    memory = _memory(ground)
    seconds, sent = report["seconds"], report["bytes_sent"]
    assert isinstance(seconds, float | int)
    assert isinstance(sent, int)
    return msgspec.structs.replace(
        memory,
        connections_held=plan.connections,
        slow_readers=SlowReaders(
            connections=plan.connections,
            seconds=float(seconds),
            sent_kb=sent // 1024,
            pss_before_kb=before.pss_kb,
            pss_peak_kb=peak,
            socket_buffers_kb=buffers,
            vmhwm_kb=memory.vmhwm_kb if is_reset else None,
        ),
    )


def sources(bind: str | None, number: int) -> str | None:
    """A part of the source addresses for each rung: its generator counts ports by itself."""
    if bind is None:
        return None
    network = ipaddress.ip_network(bind, strict=False)
    if network.prefixlen > 24:
        return bind
    parts = network.subnets(prefixlen_diff=6)
    return str(next(part for i, part in enumerate(parts) if i == number % 64))


def _memory(ground: Ground) -> Memory:
    memory = memory_use.memory(ground.pids(), cgroup=ground.cgroup)
    if not ground.alive():
        raise Unusable(ground.exit_reason())
    if memory is None:
        raise Unusable("the memory of its processes cannot be read from here")
    return memory


def _rung(height: int, ground: Ground, slabs: memory_use.SocketSlabs | None) -> Rung:
    memory = _memory(ground)
    held = open_connections.accepted_connections(ground.target.port, ground.pids())
    per_end = memory_use.kernel_bytes_per_end(slabs, memory_use.socket_slabs(), held=held)
    return Rung(
        connections=height,
        held=held,
        vmpeak_kb=memory.vmpeak_kb,
        pss_kb=memory.pss_kb,
        kernel_kb=None if per_end is None else round(per_end * held / 1024),
        socket_buffers_kb=memory_use.socket_buffers_kb(),
    )


def _is_held(rung: Rung) -> bool:
    return rung.held >= HELD_MIN * rung.connections


def _rest(ground: Ground, *, hold_s: float = 0.0) -> None:
    """Wait until the server is at rest, at most :data:`_REST_S_MAX`, and ``hold_s`` before that."""
    calm = 0
    last: tuple[int | None, int | None] = (None, None)
    held = time.monotonic() + hold_s
    for _ in _looks(hold_s + _REST_S_MAX):
        pids = ground.pids()
        memory, used = memory_use.memory(pids), cpu_time.cpu_ns(pids)
        # A server that waits for a CPU is not at rest either.
        busy = None if used is None else used + cpu_time.run_delay_ns(pids)
        now = (busy, memory.pss_kb if memory else None)
        if now[0] is not None and last[0] is not None and now[1] == last[1]:
            calm = calm + 1 if now[0] - last[0] < _REST_CPU_RATIO * _POLL_S * 1e9 else 0
        else:
            calm = 0
        if calm >= _REST_LOOKS and time.monotonic() >= held:
            return
        last = now


def _looks(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(_POLL_S)


def slopes(
    rungs: list[Rung],
) -> tuple[BytesPerConnection | None, BytesPerConnection | None, str | None]:
    """Slopes and intercepts over the rungs that were held, and what their reader must know."""
    short = next((rung for rung in rungs if not _is_held(rung)), None)
    rungs = [rung for rung in rungs if _is_held(rung)]
    reason = None
    if short is not None:
        reason = f"the server held {short.held:,} of {short.connections:,} connections"
    if len(rungs) < 2:
        return None, None, reason or "a slope needs two rungs"
    if reason is not None:
        reason += f": the slope is that up to {rungs[-1].held:,}"

    def line(figures: list[int | None]) -> tuple[float | None, float | None]:
        points = [
            (float(rung.held), figure * 1024.0)
            for rung, figure in zip(rungs, figures, strict=True)
            if figure is not None
        ]
        return statistics.theil_sen(points) or (None, None)

    kernel = line([rung.kernel_kb for rung in rungs])
    if kernel[0] is None:
        why = (
            "kernel: /proc/slabinfo cannot be read: run as root"
            if memory_use.socket_slabs() is None
            else "kernel: other programs opened and closed sockets meanwhile"
        )
        reason = f"{reason}; {why}" if reason else why
    lines = (
        line([rung.vmpeak_kb for rung in rungs]),
        line([rung.pss_kb for rung in rungs]),
        kernel,
        line([_sum(rung.pss_kb, rung.kernel_kb) for rung in rungs]),
    )
    slope, intercept = zip(*lines, strict=True)
    return BytesPerConnection(*slope), BytesPerConnection(*intercept), reason


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
