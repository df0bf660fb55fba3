"""What processes, their cgroup and their connections hold in memory. Linux only."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from httpmark.harness.model.memory import Memory
from httpmark.harness.servers import proc_files

_STATUS = re.compile(r"^(VmPeak|VmHWM):\s+(\d+) kB", re.MULTILINE)
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
_SOCKET_SLABS = frozenset(("TCP", "TCPv6", "sock_inode_cache", "eventpoll_epi", "eventpoll_pwq"))
_FILE_SLABS = frozenset(("filp", "dentry"))
# Of memory.stat; the last two are of v1.
_CGROUP_PARTS = frozenset(
    ("anon", "file", "kernel", "slab", "sock", "pagetables", "kernel_stack", "rss", "cache")
)
_STRANGERS_MAX = 0.10


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
            found = dict(_STATUS.findall(proc_files.text(pid, "status")))
            if "VmPeak" not in found:
                continue  # a zombie has no memory
            peak += int(found["VmPeak"])
            high += int(found["VmHWM"])
            processes += 1
            pss += int(_PSS.findall(proc_files.text(pid, "smaps_rollup"))[0])
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
        cgroup_parts_kb=cgroup_parts_kb(cgroup) if cgroup else None,
        processes=processes,
        reason="bytes per connection: not measured by this profile",
    )


def reset_peak(pids: Iterable[int]) -> bool:
    """Reset VmHWM of processes to what they hold now; whether that was allowed for all of them.

    By ``/proc/PID/clear_refs`` (proc(5)), which only a process's owner or root may write.
    """
    done = False
    for pid in pids:
        try:
            proc_files.write("5", pid, "clear_refs")
            done = True
        except FileNotFoundError:
            continue  # it ended meanwhile
        except OSError:
            return False
    return done


def cgroup_peak_kb(path: str) -> int | None:
    """The peak of a cgroup's memory in kB: ``memory.peak`` (v2) or ``max_usage_in_bytes`` (v1)."""
    for name in ("memory.peak", "memory.max_usage_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            return int((Path(path) / name).read_text()) // 1024
    return None


def cgroup_parts_kb(path: str) -> dict[str, int] | None:
    """What a cgroup's memory consists of now, in kB; None where it is unknown.

    ``memory.stat`` of v2; of v1 with ``memory.kmem`` and ``memory.kmem.tcp`` beside it.
    """
    parts: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError):
        for line in (Path(path) / "memory.stat").read_text().splitlines():
            name, _, figure = line.partition(" ")
            if name in _CGROUP_PARTS:
                parts[name] = int(figure) // 1024
    for name, file in (("kmem", "memory.kmem"), ("kmem_tcp", "memory.kmem.tcp")):
        with contextlib.suppress(OSError, ValueError):
            parts[name] = int((Path(path) / f"{file}.usage_in_bytes").read_text()) // 1024
    return parts or None


def socket_buffers_kb() -> int | None:
    """What all TCP sockets of this machine hold in buffers, in kB; None where it is unknown."""
    with contextlib.suppress(OSError):
        told = re.search(r"^TCP:.* mem (\d+)", proc_files.text("net", "sockstat"), re.MULTILINE)
        if told:
            return int(told[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    return None


class SocketSlabs(msgspec.Struct, frozen=True):
    """What the kernel holds for all sockets of this machine, by /proc/slabinfo (slabinfo(5))."""

    tcp_sockets: int  # objects in use
    socket_bytes: int  # sockets, their inodes, their epoll entries
    file_bytes: int  # of one file and its dentry, which every socket has, too


def socket_slabs() -> SocketSlabs | None:
    """Read the slabs; None where that is not allowed: only root may read the file."""
    try:
        rows = proc_files.text("slabinfo").splitlines()
    except OSError:
        return None
    tcp = sockets = files = 0
    for row in rows:
        name, *figures = row.split()
        if name in _SOCKET_SLABS:
            used, size = int(figures[0]), int(figures[2])
            sockets += used * size
            tcp += used if name.startswith("TCP") else 0
        elif name in _FILE_SLABS:
            files += int(figures[2])
    return SocketSlabs(tcp, sockets, files)


def kernel_bytes_per_end(
    before: SocketSlabs | None, after: SocketSlabs | None, *, held: int
) -> float | None:
    """What one end of ``held`` connections costs the kernel, in bytes; both ends are here.

    None where the slabs cannot be read, or did not grow by twice ``held`` sockets: then other
    programs opened or closed some.
    """
    if before is None or after is None or held < 1:
        return None
    if abs(after.tcp_sockets - before.tcp_sockets - 2 * held) > _STRANGERS_MAX * 2 * held:
        return None
    return (after.socket_bytes - before.socket_bytes) / (2 * held) + after.file_bytes


def own_vmhwm_kb() -> int:
    """The high-water mark of this process's resident memory, in kB."""
    return int(dict(_STATUS.findall(proc_files.text("self", "status")))["VmHWM"])
