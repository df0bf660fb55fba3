"""What machine this was, as one object with a fingerprint that is equal where figures compare."""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import importlib.metadata
import os
import platform
import re
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.servers import binaries, docker_daemon, needs, proc_files
from httpmark.harness.servers.network_counters import dropped_packets
from httpmark.harness.servers.program_identity import digest

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


def file_text(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return None


def sysctl(name: str) -> str | None:
    value = proc_files.text_if_there("sys", *name.split("."))
    return None if value is None else " ".join(value.split())


def version() -> str:
    """The version of this package, or of the checkout it runs from."""
    try:
        return importlib.metadata.version("httpmark")
    except importlib.metadata.PackageNotFoundError:
        return "0+checkout"


def server_engines() -> str | None:
    """The engines that the reference server was built with, in its own words; None: not told."""
    path = binaries.find("server")
    said = (needs.command_output([path, "--version"]) if path else None) or ""
    told = re.search(r"^engines: (.+)$", said, re.MULTILINE)
    return told[1] if told else None


def _cpu() -> dict[str, Any]:
    text = proc_files.text_if_there("cpuinfo") or ""
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
        **cpu_frequency(),
    }


def _topology() -> dict[str, Any]:
    """Cores, hardware threads, last-level caches and memory nodes, by their lists of CPUs."""
    cpu = Path("/sys/devices/system/cpu")
    cores = {
        text
        for one in cpu.glob("cpu[0-9]*")
        if (text := file_text(str(one / "topology/thread_siblings_list")))
    }
    caches = {
        text
        for one in cpu.glob("cpu[0-9]*")
        if (text := file_text(str(one / "cache/index3/shared_cpu_list")))
    }
    nodes = sorted(Path("/sys/devices/system/node").glob("node[0-9]*"))
    return {
        "cores": sorted(cores),
        "l3": sorted(caches),
        "l3_size": file_text(str(cpu / "cpu0/cache/index3/size")),
        "numa": [file_text(str(node / "cpulist")) for node in nodes],
    }


def cpu_frequency() -> dict[str, str]:
    """Who sets the clock, and between which bounds; a guest is mostly not told."""
    folder = "/sys/devices/system/cpu/cpu0/cpufreq/"
    told = {
        "governor": file_text(folder + "scaling_governor"),
        "driver": file_text(folder + "scaling_driver"),
        "khz_min": file_text(folder + "cpuinfo_min_freq"),
        "khz_max": file_text(folder + "cpuinfo_max_freq"),
        "turbo": file_text("/sys/devices/system/cpu/cpufreq/boost")
        or file_text("/sys/devices/system/cpu/intel_pstate/no_turbo"),
    }
    return {name: value or "not exposed" for name, value in told.items()}


def kernel_config() -> dict[str, str] | None:
    """The options that decide how time is accounted; None where the kernel does not tell."""
    text: str | None = None
    try:
        with proc_files.opened("config.gz") as file:
            text = gzip.decompress(file.read()).decode("utf-8", "replace")
    except (OSError, EOFError):
        text = file_text(f"/boot/config-{platform.release()}")
    if text is None:
        return None
    found = dict(re.findall(r"^(CONFIG_[A-Z0-9_]+)=(.*)$", text, re.MULTILINE))
    return {word: found.get(word, "n") for word in _CONFIG_WORDS}


def _boot_words() -> list[str]:
    words = (proc_files.text_if_there("cmdline") or "").split(" -- ")[0].split()
    return sorted(word for word in words if word.split("=")[0] in _BOOT_WORDS)


def _vulnerabilities() -> dict[str, str | None]:
    folder = Path("/sys/devices/system/cpu/vulnerabilities")
    return {one.name: file_text(str(one)) for one in sorted(folder.glob("*"))}


def _source() -> dict[str, Any]:
    """The commit of a checkout and whether it was changed; None for an installed package."""
    root = Path(__file__).resolve().parents[2]
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
    for line in (proc_files.text_if_there(process, "cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        folders = [f"/sys/fs/cgroup/{one}" for one in controllers.split(",") if one] or [
            "/sys/fs/cgroup"
        ]
        for folder in folders:
            for name in _CGROUP_LIMITS:
                value = file_text(f"{folder}{path}/{name}") or file_text(f"{folder}/{name}")
                if value is not None:
                    found[name] = value
    return found


def _clock_now() -> list[int]:
    """What the processors clock at now, in kHz; empty where it is not exposed."""
    told = [
        file_text(str(one / "cpufreq/scaling_cur_freq"))
        for one in sorted(Path("/sys/devices/system/cpu").glob("cpu[0-9]*"))
    ]
    found = [int(khz) for khz in told if khz]
    if found:
        return found
    text = proc_files.text_if_there("cpuinfo") or ""
    return [round(float(mhz) * 1000) for mhz in re.findall(r"^cpu MHz\s*: ([0-9.]+)$", text, re.M)]


def capture() -> dict[str, Any]:
    """The environment of a run; ``fingerprint`` is equal where figures may be compared.

    The fingerprint covers machine, kernel and limits, not the time or what else ran. Docker is
    apart (:func:`docker_differences`): it decides nothing where servers run as processes.
    """
    told = proc_files.text_if_there("meminfo") or ""
    memory = re.search(r"^MemTotal:\s+(\d+) kB", told, re.MULTILINE)
    stable: dict[str, Any] = {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "memory_kb": int(memory[1]) if memory else None,
        "kernel_config": kernel_config(),
        "boot": _boot_words(),
        "hypervisor": file_text("/sys/hypervisor/type")
        or file_text("/sys/class/dmi/id/sys_vendor"),
        "vulnerabilities": _vulnerabilities(),
        "timer_slack_ns": proc_files.text_if_there("self", "timerslack_ns"),
        "clocksource": file_text(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        "transparent_hugepages": file_text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "cgroup": "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1",
        "nofile": list(resource.getrlimit(resource.RLIMIT_NOFILE)),
        "limits": _limits(),
        "cgroup_limits": cgroup_limits(),
        "loopback_mtu": file_text("/sys/class/net/lo/mtu"),
        "sysctl": {name: sysctl(name) for name in _SYSCTLS},
    }
    fingerprint = hashlib.sha256(msgspec.json.encode(stable, order="deterministic")).hexdigest()
    return {
        "fingerprint": fingerprint[:16],
        **stable,
        "docker": docker_daemon.docker_facts(),
        "httpmark": version(),
        "python": platform.python_version(),
        "binaries_sha256": {name: digest(binaries.find(name)) for name in binaries.NAMES},
        "binaries_built": {name: _built(binaries.find(name)) for name in binaries.NAMES},
        "khz_now": _clock_now(),
        "source": _source(),
        "load_average": list(os.getloadavg()),
        "pressure_cpu": cpu_pressure(),
        "dropped_packets": dropped_packets(),
    }


def cpu_pressure() -> float | None:
    """Percent of the last ten seconds in which somebody waited for a CPU; None where not told."""
    found = re.search(
        r"^some avg10=([0-9.]+)", proc_files.text_if_there("pressure", "cpu") or "", re.MULTILINE
    )
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
