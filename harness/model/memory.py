"""Memory of a server: at rest, with connections held, and under slow readers."""

from __future__ import annotations

import msgspec


class BytesPerConnection(msgspec.Struct, frozen=True):
    """Slope over held connections, in bytes."""

    virtual: float | None
    resident: float | None
    kernel: float | None
    total: float | None = None  # resident and kernel, of one end


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """One height of the memory ladder: what the server holds, and what it uses then."""

    connections: int  # asked for
    held: int  # established and accepted, counted on the server's side
    vmpeak_kb: int | None
    pss_kb: int | None
    kernel_kb: int | None  # of one end: half of the growth of both, as they are on one machine
    socket_buffers_kb: int | None = None  # of all TCP sockets of the machine (/proc/net/sockstat)


class Trickle(msgspec.Struct, frozen=True, kw_only=True):
    """Memory while every connection sends one request in ``seconds``."""

    connections: int
    seconds: float
    requests: int
    pss_peak_kb: int | None
    errors: dict[str, int] = {}
    vmhwm_kb: int | None = None  # the peak of this phase alone; None where it cannot be told apart


class SlowReaders(msgspec.Struct, frozen=True, kw_only=True):
    """Memory that a server uses for clients that send without end and never read."""

    connections: int
    seconds: float
    sent_kb: int  # what the server accepted
    pss_before_kb: int | None
    pss_peak_kb: int | None
    socket_buffers_kb: int | None = None  # the kernel's buffers at their peak, at both ends
    vmhwm_kb: int | None = None  # the peak of this phase alone; None where it cannot be told apart


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of a server's whole process tree, in kB; VmPeak is address space, not memory."""

    vmpeak_kb: int | None
    vmhwm_kb: int | None
    pss_kb: int | None
    busy_vmhwm_kb: int | None = None  # the highest while suites or load were fired
    cgroup_peak_kb: int | None = None
    cgroup_reason: str | None = None
    # Of the cgroup now: anon, file, kernel, slab, sock, pagetables (v2); v1 has rss and cache, kmem
    # and kmem_tcp.
    cgroup_parts_kb: dict[str, int] | None = None
    vmhwm_reason: str | None = None  # of a ladder: why its peak is that since the start
    baseline: Rung | None = None  # at rest, before there was any connection
    bytes_per_connection: BytesPerConnection | None = None
    # Where the lines of those slopes meet no connection, in bytes; beside the baseline it shows
    # what the first connections cost once for all.
    intercept_bytes: BytesPerConnection | None = None
    connections_held: int = 0
    processes: int = 1
    reason: str | None = None
    ladder: tuple[Rung, ...] = ()
    ladder_scaled: str | None = None  # the ladder is too high for this machine: what was cut, why
    after_close_pss_kb: int | None = None  # when all connections of the ladder have gone
    trickle: Trickle | None = None
    trickle_reason: str | None = None
    slow_readers: SlowReaders | None = None
