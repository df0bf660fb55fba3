"""`httpmark doctor`: what this machine can and cannot do, and the command that mends it."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

import msgspec

from httpmark.harness.load.bottlenecks import STEAL_MAX
from httpmark.harness.report import text_layout
from httpmark.harness.servers import (
    binaries,
    cpu_time,
    docker_daemon,
    machine,
    memory_use,
    network_counters,
    open_connections,
    proc_files,
)

_PRESSURE_MAX = 10.0  # percent of the last ten seconds in which a program waited for a CPU
_NOFILE_WANTED = 4096
_CONNTRACK_WANTED = 65536
_PUBLISHED_CONNECTIONS = 500_000
_QUEUE_WANTED = 1024


class Check(msgspec.Struct, frozen=True):
    """One line of ``doctor``: what was checked, whether it suffices, and what mends it."""

    name: str
    ok: bool
    value: str
    mend: str | None = None


def executables() -> dict[str, str | None]:
    """Where the four native binaries are."""
    return {name: binaries.find(name) for name in binaries.NAMES}


def doctor() -> list[Check]:
    """Check everything that a run may need; what is missing comes with what mends it."""
    checks = []
    for name in binaries.NAMES:
        path = binaries.find(name)
        checks.append(
            Check(f"httpmark-{name}", path is not None, path or "missing", "run `make setup`")
        )
    checks.append(_engines())
    usable = len(os.sched_getaffinity(0))
    checks.append(
        Check(
            "CPUs",
            usable >= 2,
            f"{usable} usable",
            "use a machine with two CPUs: server and generator share the only one, so costs are "
            "measured and nothing is ranked",
        )
    )
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    checks.append(
        Check(
            "file descriptors",
            hard == resource.RLIM_INFINITY or hard >= _NOFILE_WANTED,
            f"hard limit {hard}",
            f"raise it: `ulimit -Hn {_NOFILE_WANTED}` as root, or limits.conf",
        )
    )
    checks += [_conntrack(), _dropped(), _docker()]
    for command, package, what in (
        ("nginx", "apt-get install nginx-light", "the server nginx as a process"),
        ("go", "apt-get install golang-go", "the server go_net_http as a process"),
        ("cargo", "apt-get install cargo", "the server rust_hyper as a process"),
        ("wrk", "apt-get install wrk", "the load engine wrk"),
        ("h2load", "apt-get install nghttp2-client", "the load engine h2load"),
        ("openssl", "apt-get install openssl", "certificates for loads over TLS"),
        ("mmdebstrap", "apt-get install mmdebstrap", "base images without an image registry"),
    ):
        path = shutil.which(command, path=os.environ.get("PATH", "") + ":/usr/sbin")
        checks.append(
            Check(command, path is not None, path or f"missing; needed for {what}", package)
        )
    checks += [*_connections(), _quiet(), _steal(), _clock(), *_memory_figures()]
    checks += [_accounting(), *_pmu()]
    return [msgspec.structs.replace(check, mend=None) if check.ok else check for check in checks]


def lines(found: Sequence[Check], *, width: int = 80) -> list[str]:
    """What ``doctor`` found as lines of at most ``width`` characters; longer words are not cut."""
    out = []
    for check in found:
        out += text_layout.wrapped(
            f"{'ok  ' if check.ok else 'MEND'} {check.name}: {check.value}",
            width, indent="", whole=True,
        )  # fmt: skip
        if check.mend:
            out += text_layout.wrapped(check.mend, width, indent="     ", whole=True)
    return out


def _engines() -> Check:
    """Which engines httpmark-server was built with: without liburing, it has one."""
    told = machine.server_engines()
    return Check(
        "engines of httpmark-server",
        told is not None and ", uring" in told,
        told or "not known",
        "install liburing-dev and build it again: make setup",
    )


def _conntrack() -> Check:
    """A full connection-tracking table drops packets, and then a server seems to hang."""
    table = machine.sysctl("net.netfilter.nf_conntrack_max")
    if table is None:
        return Check("connection tracking", True, "not loaded")
    used = int(machine.sysctl("net.netfilter.nf_conntrack_count") or 0)
    room = int(table) - used
    return Check(
        "connection tracking",
        room >= _CONNTRACK_WANTED,
        f"{used} of {table} entries used",
        "wait for entries to expire, raise net.netfilter.nf_conntrack_max, "
        "or start dockerd with --iptables=false",
    )


def _dropped() -> Check:
    counters = {name: value for name, value in network_counters.dropped_packets().items() if value}
    said = ", ".join(f"{name} {value}" for name, value in counters.items()) or "none"
    return Check("packets dropped since boot", True, said)


def _docker() -> Check:
    reason = docker_daemon.docker_trouble()
    return Check(
        "docker",
        reason is None,
        reason or "a daemon answers",
        "until then servers run as processes",
    )


def _connections() -> list[Check]:
    """How many connections can be held here, and what would allow more."""
    room = open_connections.connection_room()
    name, most = min(room.items(), key=lambda limit: limit[1])
    mends = {
        "descriptors": "raise the hard limit: limits.conf, or `ulimit -Hn` as root",
        "ports": "none needed: profiles bind source addresses of 127.0.0.0/8",
        "connection tracking": "raise net.netfilter.nf_conntrack_max",
        "memory": "free memory: a connection with both ends takes up to 40 KiB",
    }
    queue = min(
        int(machine.sysctl("net.core.somaxconn") or 0),
        int(machine.sysctl("net.ipv4.tcp_max_syn_backlog") or 0),
    )
    return [
        Check(
            "connections for the published 500,000",
            most >= _PUBLISHED_CONNECTIONS,
            f"{most:,}, limited by {name}; larger profiles are scaled down and say so",
            mends[name],
        ),
        Check(
            "listen queue",
            queue >= _QUEUE_WANTED,
            f"{queue} (somaxconn, tcp_max_syn_backlog)",
            f"sysctl -w net.core.somaxconn={_QUEUE_WANTED} "
            f"net.ipv4.tcp_max_syn_backlog={_QUEUE_WANTED}: otherwise connects are repeated a "
            "second later",
        ),
    ]


def _quiet() -> Check:
    """Other programs take no part in our figures, but they make them vary."""
    pressure = machine.cpu_pressure()
    if pressure is None:
        load = os.getloadavg()[0]
        return Check("a quiet machine", load < 1, f"load average {load:.2f}", "stop other programs")
    return Check(
        "a quiet machine",
        pressure <= _PRESSURE_MAX,
        f"a program waited for a CPU in {pressure:.0f} % of the last ten seconds",
        "stop other programs; samples that got too little CPU are taken again and counted",
    )


def _clock() -> Check:
    frequency = machine.cpu_frequency()
    governor = frequency["governor"]
    return Check(
        "CPU frequency",
        governor in ("performance", "not exposed"),
        governor
        if governor != "not exposed"
        else "not exposed: a guest cannot fix it; compare servers in pairs",
        "cpupower frequency-set -g performance",
    )


def _memory_figures() -> list[Check]:
    """Which of the memory figures this machine can give."""
    is_v2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    return [
        Check(
            "kernel memory of connections",
            memory_use.socket_slabs() is not None,
            "from /proc/slabinfo" if memory_use.socket_slabs() is not None else "not readable",
            "run as root: only root may read /proc/slabinfo",
        ),
        Check(
            "PSS",
            proc_files.text_if_there("self", "smaps_rollup") is not None,
            "from smaps_rollup",
            "needs a kernel of 4.14 or newer",
        ),
        Check("cgroup peak", True, f"{'v2' if is_v2 else 'v1'}, for servers in containers"),
    ]


def _accounting() -> Check:
    """CPU time comes from the scheduler; without schedstat it comes in ticks of 4 ms."""
    has = proc_files.text_if_there("self", "schedstat") is not None
    config = machine.kernel_config() or {}
    irq = config.get("CONFIG_IRQ_TIME_ACCOUNTING")
    charged = "charged to the process that was interrupted" if irq == "n" else "counted apart"
    note = f"time in soft interrupts is {charged}" if irq else "kernel options unknown"
    return Check(
        "CPU time in ns and run-queue delay",
        has,
        f"from schedstat; {note}" if has else "no schedstat",
        "needs a kernel with CONFIG_SCHED_INFO",
    )


# perf_event_open(2): its number by machine, and the oldest form of its attributes.
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_PERF_ATTRIBUTES = 64
_INSTRUCTIONS = 1  # PERF_COUNT_HW_INSTRUCTIONS of PERF_TYPE_HARDWARE
_EXCLUDES_HV = 1 << 6


def _counting() -> int | None:
    """The error number of counting our own instructions; 0 is success, None is unknown."""
    number = _PERF_EVENT_OPEN.get(platform.machine())
    if number is None:
        return None
    attributes = ctypes.create_string_buffer(
        struct.pack("=IIQQQQQ", 0, _PERF_ATTRIBUTES, _INSTRUCTIONS, 0, 0, 0, _EXCLUDES_HV),
        _PERF_ATTRIBUTES,
    )
    libc = ctypes.CDLL(None, use_errno=True)
    opened = libc.syscall(number, attributes, 0, -1, -1, 0)
    if opened < 0:
        return ctypes.get_errno()
    os.close(opened)
    return 0


def _pmu() -> list[Check]:
    """Hardware counters; most virtual machines have none, and no figure depends on them."""
    failed = _counting()
    paranoid = machine.sysctl("kernel.perf_event_paranoid") or "unknown"
    is_forbidden = failed in (errno.EPERM, errno.EACCES)
    told = {
        None: "unknown on this kind of machine",
        0: "instructions are counted, user and kernel",
        errno.EPERM: "forbidden: instructions not counted",
        errno.EACCES: "forbidden: instructions not counted",
    }
    return [
        Check(
            "hardware counters", True,
            told.get(failed, "this machine has no PMU: instructions not counted"),
        ),
        Check(
            "perf_event_paranoid", not is_forbidden, paranoid,
            "sysctl -w kernel.perf_event_paranoid=1, or run as root",
        ),
    ]  # fmt: skip


def _steal() -> Check:
    """CPU time that the hypervisor gave to others since boot; a window with more is taken again."""
    stolen, total = cpu_time.cpu_clock()
    share = stolen / total if total else 0.0
    return Check(
        "steal",
        share <= STEAL_MAX,
        f"{share:.1%} of all CPU time since boot",
        f"use a machine or an hour with less load; samples that lose more than {STEAL_MAX:.0%} are "
        "taken again and counted",
    )
