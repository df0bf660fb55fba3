"""What a server's whole process tree uses: CPU time, VmPeak, VmHWM, PSS, cgroup peak. Linux only.

VmPeak is the high-water mark of address space and says little of memory; VmHWM is of resident
pages; PSS splits shared pages, so it may be summed over processes (load.md 4.7).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from httpmark.harness.model import Memory

_PROC = Path("/proc")
_STATUS = re.compile(r"^(VmPeak|VmHWM):\s+(\d+) kB", re.MULTILINE)
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
_SWITCHES = re.compile(r"^(?:non)?voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def tree(roots: Iterable[int]) -> list[int]:
    """The processes ``roots`` and all their descendants that live now."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    queue = [pid for pid in dict.fromkeys(roots) if (_PROC / str(pid)).exists()]
    while queue:
        pid = queue.pop()
        if pid not in found:
            found.append(pid)
            queue += children.get(pid, [])
    return sorted(found)


def cpu_ns(pids: Iterable[int]) -> int | None:
    """CPU time (user + system) of processes, their ended threads included, in ns.

    The scheduler's own sum where it is to be had: the clock ticks of ``stat`` are too coarse
    for windows of a second.
    """
    total = 0
    counted = False
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            live = sum(
                int((task / "schedstat").read_text().split()[0])
                for task in (_PROC / str(pid) / "task").iterdir()
            )
            fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
            ticks = (int(fields[11]) + int(fields[12])) * _TICK_NS
            # stat counts threads that have ended, schedstat does not: the larger one is right.
            total += live if live > ticks - 2 * _TICK_NS else ticks
            counted = True
    return total if counted else None


def run_delay_ns(pids: Iterable[int]) -> int:
    """Time that runnable threads of processes waited for a CPU, in ns."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            for task in (_PROC / str(pid) / "task").iterdir():
                total += int((task / "schedstat").read_text().split()[1])
    return total


def context_switches(pids: Iterable[int]) -> int | None:
    """Voluntary and involuntary switches of all threads; None where no process lives."""
    total = 0
    counted = False
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in (_PROC / str(pid) / "task").iterdir():
                found = _SWITCHES.findall((task / "status").read_text())
                total += sum(int(count) for count in found)
                counted = True
    return total if counted else None


def steal_ratio(before: tuple[int, int], after: tuple[int, int]) -> float | None:
    """The share of all CPUs' time that the hypervisor took between two :func:`cpu_clock`."""
    total = after[1] - before[1]
    return (after[0] - before[0]) / total if total > 0 else None


def cpu_clock() -> tuple[int, int]:
    """(stolen, total) ticks of all CPUs since boot."""
    fields = [int(word) for word in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    return fields[7], sum(fields)


def memory(pids: Iterable[int], *, cgroup: str | None = None) -> Memory | None:
    """The memory of a process tree in kB, or None when none of its processes lives.

    VmPeak and VmHWM are sums over processes, so pages that processes share count more than once
    in them; PSS has no such error.
    """
    peak = high = pss = 0
    pss_known = True
    processes = 0
    for pid in pids:
        try:
            found = dict(_STATUS.findall((_PROC / str(pid) / "status").read_text()))
            if "VmPeak" not in found:
                continue  # a zombie has no memory
            peak += int(found["VmPeak"])
            high += int(found["VmHWM"])
            processes += 1
            pss += int(_PSS.findall((_PROC / str(pid) / "smaps_rollup").read_text())[0])
        except (OSError, IndexError):
            pss_known = False
    if not processes:
        return None
    cgroup_peak = cgroup_peak_kb(cgroup) if cgroup else None
    return Memory(
        vmpeak_kb=peak,
        vmhwm_kb=high,
        pss_kb=pss if pss_known else None,
        cgroup_peak_kb=cgroup_peak,
        cgroup_reason=None
        if cgroup_peak is not None
        else "no cgroup of its own: run as a process"
        if cgroup is None
        else "this kernel's cgroup offers no peak",
        processes=processes,
        reason="bytes per connection: not measured by this profile",
    )


def cgroup_peak_kb(path: str) -> int | None:
    """The peak of a cgroup's memory in kB: ``memory.peak`` (v2) or ``max_usage_in_bytes`` (v1)."""
    for name in ("memory.peak", "memory.max_usage_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            return int((Path(path) / name).read_text()) // 1024
    return None


def own_vmhwm_kb() -> int:
    """The high-water mark of this process's resident memory, in kB."""
    return int(dict(_STATUS.findall((_PROC / "self" / "status").read_text()))["VmHWM"])


def dropped_packets() -> dict[str, int]:
    """Counters of connections and packets this machine lost; a growth makes silence prove nothing.

    Listen queues that overflowed, and entries that the connection-tracking table refused.
    """
    counters: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError):
        names, values = [
            line.split()[1:]
            for line in (_PROC / "net/netstat").read_text().splitlines()
            if line.startswith("TcpExt:")
        ][:2]
        table = dict(zip(names, values, strict=True))
        for name in ("ListenOverflows", "ListenDrops", "TCPBacklogDrop", "TCPReqQFullDrop"):
            if name in table:
                counters[name] = int(table[name])
    with contextlib.suppress(OSError, ValueError):
        lines = (_PROC / "net/stat/nf_conntrack").read_text().splitlines()
        names = lines[0].split()
        for name in ("drop", "early_drop", "insert_failed"):
            column = names.index(name)
            counters[f"conntrack_{name}"] = sum(int(row.split()[column], 16) for row in lines[1:])
    return counters


def grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Which counters grew, and by how much."""
    return {
        name: value - before.get(name, 0)
        for name, value in after.items()
        if value > before.get(name, 0)
    }
