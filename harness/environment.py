"""What machine this was, as one object with a fingerprint; and ``doctor``: what it cannot do.

Neither environment variables nor host names are captured: reports get published (load.md 4.8).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import gzip
import hashlib
import importlib.metadata
import os
import platform
import re
import resource
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness import binaries, plain, runtime
from httpmark.harness.resources import connection_room, cpu_clock, dropped_packets, socket_slabs
from httpmark.harness.statistics import STEAL_MAX

_SYSCTLS = (
    "net.core.netdev_max_backlog",
    "net.core.somaxconn",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_congestion_control",
    "net.core.busy_poll",
    "net.netfilter.nf_conntrack_max",
    "kernel.perf_event_paranoid",
    "kernel.randomize_va_space",
)
# Words of the kernel's command line that change figures; the rest of it may name hosts and ports.
_BOOT_WORDS = frozenset(
    (
        "mitigations", "isolcpus", "nohz_full", "rcu_nocbs", "nosmt", "idle", "maxcpus",
        "processor.max_cstate", "intel_pstate", "amd_pstate", "transparent_hugepage", "psi",
        "clocksource", "tsc", "threadirqs", "preempt", "cpuidle_haltpoll.force",
    )
)  # fmt: skip
_CONFIG_WORDS = (
    "CONFIG_HZ", "CONFIG_TICK_CPU_ACCOUNTING", "CONFIG_VIRT_CPU_ACCOUNTING_GEN",
    "CONFIG_IRQ_TIME_ACCOUNTING", "CONFIG_PREEMPT", "CONFIG_PREEMPT_NONE",
    "CONFIG_PREEMPT_VOLUNTARY", "CONFIG_PREEMPT_DYNAMIC", "CONFIG_SCHEDSTATS",
)  # fmt: skip
_CGROUP_LIMITS = (
    "memory.max", "memory.high", "cpu.max", "cpuset.cpus.effective", "pids.max",
    "memory.limit_in_bytes", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpuset.cpus",
)  # fmt: skip
_COMPILER = re.compile(rb"GCC: \([^)\0]*\) [0-9.]+|clang version [0-9.]+[^\0]*")
# What GCC was told, where it was to record it (-frecord-gcc-switches): no folders, no definitions.
_FLAGS = re.compile(rb"GNU (?:C\+\+[0-9]+|GIMPLE) [0-9.]+ (-[ -~]+)")
_OPENSSL = re.compile(rb"OpenSSL [0-9]+\.[0-9]+\.[0-9]+[^\0\n]*")
_PRESSURE_MAX = 10.0  # percent of the last ten seconds in which somebody waited for a CPU
_NOFILE_WANTED = 4096
_CONNTRACK_WANTED = 65536
_PUBLISHED_CONNECTIONS = 500_000
_QUEUE_WANTED = 1024


class Check(msgspec.Struct, frozen=True):
    """One line of ``doctor``: what was looked at, whether it suffices, and how to mend it."""

    name: str
    ok: bool
    value: str
    mend: str | None = None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return None


def _sysctl(name: str) -> str | None:
    value = _read("/proc/sys/" + name.replace(".", "/"))
    return None if value is None else " ".join(value.split())


def version() -> str:
    """The version of this package, or of the checkout it runs from."""
    try:
        return importlib.metadata.version("httpmark")
    except importlib.metadata.PackageNotFoundError:
        return "0+checkout"


def _cpu() -> dict[str, Any]:
    text = _read("/proc/cpuinfo") or ""
    found = {
        key: match[1]
        for key in ("vendor_id", "model name", "cpu family", "model", "stepping", "microcode")
        if (match := re.search(rf"^{key}\s*: (.*)$", text, re.MULTILINE))
    }
    flags = (re.search(r"^flags\s*: (.*)$", text, re.MULTILINE) or ["", ""])[1].split()
    wanted = ("sse4_2", "avx2", "avx512bw", "avx512vbmi", "hypervisor", "constant_tsc")
    return {
        **{key.replace(" ", "_"): value for key, value in found.items()},
        "flags": [flag for flag in wanted if flag in flags],
        "logical": os.cpu_count(),
        "usable": len(os.sched_getaffinity(0)),
        **_topology(),
        **_frequency(),
    }


def _topology() -> dict[str, Any]:
    """Cores, hardware threads, last-level caches and memory nodes, by their lists of CPUs."""
    cpu = Path("/sys/devices/system/cpu")
    cores = {
        text
        for one in cpu.glob("cpu[0-9]*")
        if (text := _read(str(one / "topology/thread_siblings_list")))
    }
    caches = {
        text
        for one in cpu.glob("cpu[0-9]*")
        if (text := _read(str(one / "cache/index3/shared_cpu_list")))
    }
    nodes = sorted(Path("/sys/devices/system/node").glob("node[0-9]*"))
    return {
        "cores": sorted(cores),
        "l3": sorted(caches),
        "l3_size": _read(str(cpu / "cpu0/cache/index3/size")),
        "numa": [_read(str(node / "cpulist")) for node in nodes],
    }


def _frequency() -> dict[str, str]:
    """Who sets the clock, and between which bounds; a guest is mostly not told."""
    folder = "/sys/devices/system/cpu/cpu0/cpufreq/"
    told = {
        "governor": _read(folder + "scaling_governor"),
        "driver": _read(folder + "scaling_driver"),
        "khz_min": _read(folder + "cpuinfo_min_freq"),
        "khz_max": _read(folder + "cpuinfo_max_freq"),
        "turbo": _read("/sys/devices/system/cpu/cpufreq/boost")
        or _read("/sys/devices/system/cpu/intel_pstate/no_turbo"),
    }
    return {name: value or "not exposed" for name, value in told.items()}


def _kernel_config() -> dict[str, str] | None:
    """The options that decide how time is accounted; None where the kernel does not tell."""
    text: str | None = None
    try:
        text = gzip.decompress(Path("/proc/config.gz").read_bytes()).decode("utf-8", "replace")
    except (OSError, EOFError):
        text = _read(f"/boot/config-{platform.release()}")
    if text is None:
        return None
    found = dict(re.findall(r"^(CONFIG_[A-Z0-9_]+)=(.*)$", text, re.MULTILINE))
    return {word: found.get(word, "n") for word in _CONFIG_WORDS}


def _boot_words() -> list[str]:
    words = (_read("/proc/cmdline") or "").split(" -- ")[0].split()
    return sorted(word for word in words if word.split("=")[0] in _BOOT_WORDS)


def _vulnerabilities() -> dict[str, str | None]:
    folder = Path("/sys/devices/system/cpu/vulnerabilities")
    return {one.name: _read(str(one)) for one in sorted(folder.glob("*"))}


def _source() -> dict[str, Any]:
    """The commit of a checkout and whether it was changed; None for an installed package."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return {"commit": None, "changed": None}

    def git(*words: str) -> str | None:
        try:
            asked = subprocess.run(
                ["git", "-C", str(root), *words],
                capture_output=True, text=True, timeout=10, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return None
        return asked.stdout.strip() if asked.returncode == 0 else None

    status = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": git("rev-parse", "HEAD"), "changed": None if status is None else bool(status)}


def digest(path: str | None) -> str | None:
    """The SHA-256 of a file; None where there is none, or it may not be read."""
    with contextlib.suppress(OSError):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else None
    return None


@functools.cache
def _built(path: str | None) -> dict[str, Any] | None:
    """The compiler that a binary names, what that was told, and the libraries of TLS and io_uring.

    A binary that is linked statically holds the version of OpenSSL itself, if any, and never that
    of liburing.
    """
    if path is None:
        return None
    own = Path(path).read_bytes()
    compilers = sorted({found.decode() for found in _COMPILER.findall(own)})
    libraries = {}
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        linked = subprocess.run(
            ["ldd", path], capture_output=True, text=True, timeout=10, check=False
        ).stdout
        for name, file in re.findall(r"(lib(?:ssl|crypto|uring)\S*) => (/\S+)", linked):
            told = _OPENSSL.search(Path(file).read_bytes())
            libraries[name] = told[0].decode() if told else Path(file).resolve().name
    if told := _OPENSSL.search(own):
        libraries["libcrypto, static"] = told[0].decode()
    flags = sorted({found.decode() for found in _FLAGS.findall(own)})
    built: dict[str, Any] = {
        "compiler": compilers, "flags": flags or None, "libraries": libraries,
    }  # fmt: skip
    if not flags:
        built["flags_reason"] = "the binary does not tell: built without -frecord-gcc-switches"
    if not libraries:
        built["libraries_reason"] = "linked statically: they name no version in the binary"
    return built


def _limits() -> dict[str, list[int]]:
    """Soft and hard limits of a process that change what it can hold; -1 is none."""
    names = ("MEMLOCK", "NPROC", "STACK")
    return {
        name.lower(): list(resource.getrlimit(getattr(resource, f"RLIMIT_{name}")))
        for name in names
    }


def cgroup_limits(process: int | str = "self") -> dict[str, str]:
    """What the cgroup of a process, ours by default, allows of CPU and memory, where it says so."""
    found = {}
    for line in (_read(f"/proc/{process}/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        folders = [f"/sys/fs/cgroup/{one}" for one in controllers.split(",") if one] or [
            "/sys/fs/cgroup"
        ]
        for folder in folders:
            for name in _CGROUP_LIMITS:
                value = _read(f"{folder}{path}/{name}") or _read(f"{folder}/{name}")
                if value is not None:
                    found[name] = value
    return found


def _clock_now() -> list[int]:
    """What the processors clock at now, in kHz; empty where it is not exposed."""
    told = [
        _read(str(one / "cpufreq/scaling_cur_freq"))
        for one in sorted(Path("/sys/devices/system/cpu").glob("cpu[0-9]*"))
    ]
    found = [int(khz) for khz in told if khz]
    if found:
        return found
    text = _read("/proc/cpuinfo") or ""
    return [round(float(mhz) * 1000) for mhz in re.findall(r"^cpu MHz\s*: ([0-9.]+)$", text, re.M)]


def capture() -> dict[str, Any]:
    """The environment of a run; ``fingerprint`` is equal where figures may be compared.

    The fingerprint covers machine, kernel and limits, not the time or what else ran. Docker is
    apart (:func:`docker_differences`): it decides nothing where servers run as processes.
    """
    memory = re.search(r"^MemTotal:\s+(\d+) kB", _read("/proc/meminfo") or "", re.MULTILINE)
    stable: dict[str, Any] = {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "memory_kb": int(memory[1]) if memory else None,
        "kernel_config": _kernel_config(),
        "boot": _boot_words(),
        "hypervisor": _read("/sys/hypervisor/type") or _read("/sys/class/dmi/id/sys_vendor"),
        "vulnerabilities": _vulnerabilities(),
        "timer_slack_ns": _read("/proc/self/timerslack_ns"),
        "clocksource": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "transparent_hugepages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "cgroup": "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1",
        "nofile": list(resource.getrlimit(resource.RLIMIT_NOFILE)),
        "limits": _limits(),
        "cgroup_limits": cgroup_limits(),
        "loopback_mtu": _read("/sys/class/net/lo/mtu"),
        "sysctl": {name: _sysctl(name) for name in _SYSCTLS},
    }
    fingerprint = hashlib.sha256(msgspec.json.encode(stable, order="deterministic")).hexdigest()
    return {
        "fingerprint": fingerprint[:16],
        **stable,
        "docker": runtime.docker_facts(),
        "httpmark": version(),
        "python": platform.python_version(),
        "binaries_sha256": {name: digest(binaries.find(name)) for name in binaries.NAMES},
        "binaries_built": {name: _built(binaries.find(name)) for name in binaries.NAMES},
        "khz_now": _clock_now(),
        "source": _source(),
        "load_average": list(os.getloadavg()),
        "pressure_cpu": _pressure(),
        "dropped_packets": dropped_packets(),
    }


def _pressure() -> float | None:
    """Percent of the last ten seconds in which somebody waited for a CPU; None where not told."""
    found = re.search(r"^some avg10=([0-9.]+)", _read("/proc/pressure/cpu") or "", re.MULTILINE)
    return float(found[1]) if found else None


_VOLATILE = frozenset(
    (
        "fingerprint", "load_average", "pressure_cpu", "dropped_packets", "binaries_sha256",
        "httpmark", "python", "source", "docker", "binaries_built", "khz_now", "engine",
    )
)  # fmt: skip


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """What two environments differ in, as ``key: one, other``; nothing where figures compare.

    The harness itself may differ: that is what a comparison is sometimes about.
    """
    if a.get("fingerprint") == b.get("fingerprint"):
        return [] if a.get("fingerprint") else ["fingerprint: neither run tells its machine"]
    flat_a, flat_b = dict(_flat(a)), dict(_flat(b))
    found = [
        f"{key}: {flat_a.get(key)}, {flat_b.get(key)}"
        for key in sorted(flat_a.keys() | flat_b.keys())
        if key.split(".")[0] not in _VOLATILE and flat_a.get(key) != flat_b.get(key)
    ]
    return found or ["fingerprint: made by different versions of httpmark"]


def docker_differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """The same of the Docker daemons, for servers that ran in containers both times.

    Runs of versions of httpmark that did not ask differ in nothing.
    """
    if "docker" not in a or "docker" not in b:
        return []
    flat_a, flat_b = dict(_flat(a["docker"] or {})), dict(_flat(b["docker"] or {}))
    return [
        f"docker.{key}: {flat_a.get(key)}, {flat_b.get(key)}"
        for key in sorted(flat_a.keys() | flat_b.keys())
        if flat_a.get(key) != flat_b.get(key)
    ]


def _flat(value: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _flat(inner, f"{before}{key}.")
        else:
            yield f"{before}{key}", inner


def executables() -> dict[str, str | None]:
    """Where the four native binaries are."""
    return {name: binaries.find(name) for name in binaries.NAMES}


def doctor() -> list[Check]:
    """Look at everything a run may need; each shortcoming with its exact mend."""
    checks = []
    for name in binaries.NAMES:
        path = binaries.find(name)
        checks.append(
            Check(f"httpmark-{name}", path is not None, path or "missing", "run `make setup`")
        )
    usable = len(os.sched_getaffinity(0))
    checks.append(
        Check(
            "CPUs",
            usable >= 2,
            f"{usable} usable",
            "with one CPU server and generator share it: costs are measured, nothing is ranked",
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
        checks.append(Check(command, path is not None, path or f"missing: {what}", package))
    checks += [*_connections(), _quiet(), _steal(), _clock(), *_memory_figures()]
    checks += [_accounting(), *_pmu()]
    return [msgspec.structs.replace(check, mend=None) if check.ok else check for check in checks]


def lines(found: Sequence[Check], *, width: int = 80) -> list[str]:
    """What ``doctor`` found as text of a width; only words that are longer stand out of it."""
    out = []
    for check in found:
        out += plain.wrapped(
            f"{'ok  ' if check.ok else 'MEND'} {check.name}: {check.value}",
            width, indent="", whole=True,
        )  # fmt: skip
        if check.mend:
            out += plain.wrapped(check.mend, width, indent="     ", whole=True)
    return out


def _conntrack() -> Check:
    """A full connection-tracking table drops packets, which reads as a server that hangs."""
    table = _sysctl("net.netfilter.nf_conntrack_max")
    if table is None:
        return Check("connection tracking", True, "not loaded")
    used = int(_sysctl("net.netfilter.nf_conntrack_count") or 0)
    room = int(table) - used
    return Check(
        "connection tracking",
        room >= _CONNTRACK_WANTED,
        f"{used} of {table} entries used",
        "wait for entries to expire, raise net.netfilter.nf_conntrack_max, "
        "or start dockerd with --iptables=false",
    )


def _dropped() -> Check:
    counters = {name: value for name, value in dropped_packets().items() if value}
    said = ", ".join(f"{name} {value}" for name, value in counters.items()) or "none"
    return Check("packets dropped since boot", True, said)


def _docker() -> Check:
    reason = runtime.docker_trouble()
    return Check(
        "docker", reason is None, reason or "a daemon answers", "servers run as processes meanwhile"
    )


def _connections() -> list[Check]:
    """How many connections can be held here, and what would let in more."""
    room = connection_room()
    name, most = min(room.items(), key=lambda limit: limit[1])
    mends = {
        "descriptors": "raise the hard limit: limits.conf, or `ulimit -Hn` as root",
        "ports": "none needed: profiles bind source addresses of 127.0.0.0/8",
        "connection tracking": "raise net.netfilter.nf_conntrack_max",
        "memory": "free memory: a connection with both ends takes up to 40 KiB",
    }
    queue = min(
        int(_sysctl("net.core.somaxconn") or 0), int(_sysctl("net.ipv4.tcp_max_syn_backlog") or 0)
    )
    return [
        Check(
            "connections for the published 500,000",
            most >= _PUBLISHED_CONNECTIONS,
            f"{most:,}, limited by {name}; profiles above are scaled and say so",
            mends[name],
        ),
        Check(
            "listen queue",
            queue >= _QUEUE_WANTED,
            f"{queue} (somaxconn, tcp_max_syn_backlog)",
            f"sysctl -w net.core.somaxconn={_QUEUE_WANTED} "
            f"net.ipv4.tcp_max_syn_backlog={_QUEUE_WANTED}: else connects are tried again a second "
            "later",
        ),
    ]


def _quiet() -> Check:
    """Neighbours: what they take is in no figure of ours, but in their spread."""
    pressure = _pressure()
    if pressure is None:
        load = os.getloadavg()[0]
        return Check("a quiet machine", load < 1, f"load average {load:.2f}", "stop what else runs")
    return Check(
        "a quiet machine",
        pressure <= _PRESSURE_MAX,
        f"somebody waited for a CPU {pressure:.0f} % of the last ten seconds",
        "stop what else runs; samples that starve are redone and counted, not hidden",
    )


def _clock() -> Check:
    frequency = _frequency()
    governor = frequency["governor"]
    return Check(
        "CPU frequency",
        governor in ("performance", "not exposed"),
        governor
        if governor != "not exposed"
        else "not exposed: a guest cannot hold it; compare in pairs",
        "cpupower frequency-set -g performance",
    )


def _memory_figures() -> list[Check]:
    """Which of the memory figures this machine can give."""
    is_v2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    return [
        Check(
            "kernel memory of connections",
            socket_slabs() is not None,
            "by /proc/slabinfo" if socket_slabs() is not None else "not readable",
            "run as root: /proc/slabinfo is root's",
        ),
        Check(
            "PSS",
            _read("/proc/self/smaps_rollup") is not None,
            "by smaps_rollup",
            "needs a kernel of 4.14 or newer",
        ),
        Check("cgroup peak", True, f"{'v2' if is_v2 else 'v1'}, of servers in containers"),
    ]


def _accounting() -> Check:
    """CPU time comes from the scheduler; without schedstat it would come in ticks of 4 ms."""
    has = _read("/proc/self/schedstat") is not None
    config = _kernel_config() or {}
    irq = config.get("CONFIG_IRQ_TIME_ACCOUNTING")
    note = "softirq time is charged to whom it interrupts" if irq == "n" else "softirq time apart"
    return Check(
        "CPU time in ns and run-queue delay",
        has,
        f"by schedstat; {note if irq else 'kernel options not told'}" if has else "no schedstat",
        "needs a kernel with CONFIG_SCHED_INFO",
    )


# perf_event_open(2): its number by machine, and the oldest form of its attributes.
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_PERF_ATTRIBUTES = 64
_INSTRUCTIONS = 1  # PERF_COUNT_HW_INSTRUCTIONS of PERF_TYPE_HARDWARE
_EXCLUDES_HV = 1 << 6


def _counting() -> int | None:
    """The error of counting our own instructions, kernel included: 0 is none, None not known."""
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
    """Hardware counters; absent in most virtual machines, and then no figure needs them."""
    failed = _counting()
    paranoid = _sysctl("kernel.perf_event_paranoid") or "not told"
    is_forbidden = failed in (errno.EPERM, errno.EACCES)
    told = {
        None: "not known of this kind of machine",
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
    """What the hypervisor gave to others since boot; a window with more of it is taken again."""
    stolen, total = cpu_clock()
    share = stolen / total if total else 0.0
    return Check(
        "steal",
        share <= STEAL_MAX,
        f"{share:.1%} of all CPU time since boot",
        "a machine, or an hour, with fewer neighbours; samples that lose above "
        f"{STEAL_MAX:.0%} are redone and counted",
    )
