"""What machine this was, as one object with a fingerprint; and ``doctor``: what it cannot do.

Neither environment variables nor host names are captured: reports get published (load.md 4.8).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness import binaries, runtime
from httpmark.harness.resources import dropped_packets

_SYSCTLS = (
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
_NOFILE_WANTED = 4096
_CONNTRACK_WANTED = 65536


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
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "not exposed",
    }


def _digest(path: str | None) -> str | None:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else None


def capture() -> dict[str, Any]:
    """The environment of a run; ``fingerprint`` is equal where figures may be compared.

    The fingerprint covers machine, kernel and limits, not the time or what else ran.
    """
    memory = re.search(r"^MemTotal:\s+(\d+) kB", _read("/proc/meminfo") or "", re.MULTILINE)
    stable: dict[str, Any] = {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "memory_kb": int(memory[1]) if memory else None,
        "clocksource": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "transparent_hugepages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "cgroup": "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1",
        "nofile": list(resource.getrlimit(resource.RLIMIT_NOFILE)),
        "loopback_mtu": _read("/sys/class/net/lo/mtu"),
        "sysctl": {name: _sysctl(name) for name in _SYSCTLS},
    }
    fingerprint = hashlib.sha256(msgspec.json.encode(stable, order="deterministic")).hexdigest()
    return {
        "fingerprint": fingerprint[:16],
        **stable,
        "httpmark": version(),
        "python": platform.python_version(),
        "binaries_sha256": {name: _digest(binaries.find(name)) for name in binaries.NAMES},
        "load_average": list(os.getloadavg()),
    }


_VOLATILE = frozenset(("fingerprint", "load_average", "binaries_sha256", "httpmark"))


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """What two environments differ in, as ``key: one, other``; nothing where figures compare.

    The harness itself may differ: that is what a comparison is sometimes about.
    """
    if a.get("fingerprint") == b.get("fingerprint"):
        return []
    flat_a, flat_b = dict(_flat(a)), dict(_flat(b))
    found = [
        f"{key}: {flat_a.get(key)}, {flat_b.get(key)}"
        for key in sorted(flat_a.keys() | flat_b.keys())
        if key.split(".")[0] not in _VOLATILE and flat_a.get(key) != flat_b.get(key)
    ]
    return found or ["fingerprint: made by different versions of httpmark"]


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
        ("mmdebstrap", "apt-get install mmdebstrap", "base images without an image registry"),
    ):
        path = shutil.which(command, path=os.environ.get("PATH", "") + ":/usr/sbin")
        checks.append(Check(command, path is not None, path or f"missing: {what}", package))
    checks.append(_pmu())
    return [msgspec.structs.replace(check, mend=None) if check.ok else check for check in checks]


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


def _pmu() -> Check:
    """Hardware counters; absent in most virtual machines, and then no figure needs them."""
    if shutil.which("perf") is None:
        return Check("hardware counters", True, "perf not installed: instructions not counted")
    asked = subprocess.run(
        ["perf", "stat", "-e", "instructions", "true"],
        capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    counted = asked.returncode == 0 and "not supported" not in asked.stderr
    return Check(
        "hardware counters", True, "counted" if counted else "this machine has no PMU: not counted"
    )
