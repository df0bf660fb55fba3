"""What a server's whole process tree uses: CPU time, VmPeak, VmHWM, PSS, cgroup peak. Linux only.

VmPeak is the high-water mark of address space and says little of memory; VmHWM is of resident
pages; PSS splits shared pages, so it may be summed over processes (load.md 4.7).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import ipaddress
import os
import re
import resource
import struct
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from httpmark.harness.model.memory import Memory

_PROC = Path("/proc")
_STATUS = re.compile(r"^(VmPeak|VmHWM):\s+(\d+) kB", re.MULTILINE)
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
_SWITCHES = re.compile(r"^(?:non)?voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)
_SOCKET_SLABS = frozenset(("TCP", "TCPv6", "sock_inode_cache", "eventpoll_epi", "eventpoll_pwq"))
_FILE_SLABS = frozenset(("filp", "dentry"))
# Of memory.stat; the last two are of v1.
_CGROUP_PARTS = frozenset(
    ("anon", "file", "kernel", "slab", "sock", "pagetables", "kernel_stack", "rss", "cache")
)
_STRANGERS_MAX = 0.10
# Programs that pass connections on to a container, by their names in /proc/PID/comm.
_FORWARDERS = frozenset(("docker-proxy", "rootlessport", "rootlesskit", "slirp4netns", "pasta"))
_DESCRIPTORS_KEPT = 256
_SEGMENTS_MIN = 10_000
_TICKS_MIN = 10
_CONNTRACK_KEPT = 16_384
# A connection with both ends: the kernel's 8 KiB, and what greedy servers keep for one.
_CONNECTION_KB = 40
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


def topmost(pids: Iterable[int]) -> list[int]:
    """Those processes whose parent is none of them: their trees hold the others."""
    known = set(pids)
    found = []
    for pid in sorted(known):
        with contextlib.suppress(OSError, IndexError, ValueError):
            stat = (_PROC / str(pid) / "stat").read_text()
            if int(stat.rpartition(")")[2].split()[1]) not in known:
                found.append(pid)
    return found


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


def waited_ns(pid: int) -> int:
    """The CPU time of children of a process that ended and that it waited for, in ns (times(2))."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[13]) + int(fields[14])) * _TICK_NS
    return 0


def spent_ns(roots: Iterable[int]) -> int | None:
    """CPU time of process trees in ns, with what their ended children used; None where none lives.

    Of a child that nobody waited for it is lost.
    """
    pids = tree(roots)
    used = cpu_ns(pids)
    return None if used is None else used + sum(waited_ns(pid) for pid in pids)


def run_delay_ns(pids: Iterable[int]) -> int:
    """Time that runnable threads of processes waited for a CPU, in ns."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            for task in (_PROC / str(pid) / "task").iterdir():
                total += int((task / "schedstat").read_text().split()[1])
    return total


def threads_ns(pid: int) -> list[tuple[int, int]]:
    """(on a CPU, runnable and waiting for one) of each thread of a process that lives, in ns."""
    found = []
    with contextlib.suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = (task / "schedstat").read_text().split()
                found.append((int(words[0]), int(words[1])))
    return found


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
    """The share of all CPUs' time that the hypervisor took between two :func:`cpu_clock`.

    None below ten ticks: of so few one alone would be a theft.
    """
    total = after[1] - before[1]
    return (after[0] - before[0]) / total if total >= _TICKS_MIN else None


def cpu_clock() -> tuple[int, int]:
    """(stolen, total) ticks of all CPUs since boot."""
    fields = [int(word) for word in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    return fields[7], sum(fields)


def own_children_ns() -> int:
    """The CPU time of this process's own children that ended and that it waited for, in ns."""
    times = os.times()
    return round((times.children_user + times.children_system) * 1e9)


def affinity(pids: Iterable[int]) -> frozenset[int] | None:
    """The processors that processes may run on; None where that of none is told."""
    found: set[int] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            found |= os.sched_getaffinity(pid)
    return frozenset(found) or None


def idle_ns(cpus: Collection[int]) -> int | None:
    """The time that processors did nothing, or were stolen, since boot; None where it is not told.

    The kernel keeps idle time by the clock (proc(5), NO_HZ), where busy time is sampled by ticks.
    """
    total = 0
    for cpu in cpus:
        found = re.search(rf"^cpu{cpu} (.+)$", (_PROC / "stat").read_text(), re.MULTILINE)
        if found is None:
            return None
        ticks = [int(word) for word in found[1].split()]
        total += (ticks[3] + ticks[4] + ticks[7]) * _TICK_NS
    return total


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
        cgroup_parts_kb=cgroup_parts_kb(cgroup) if cgroup else None,
        processes=processes,
        reason="bytes per connection: not measured by this profile",
    )


def program(pids: Iterable[int]) -> tuple[tuple[str, ...], str | None] | None:
    """The command line of the first process that lives, and the SHA-256 of what it executes.

    None where none lives or may be seen. The folder of whoever runs this is written as ``~``.
    """
    home = os.path.expanduser("~")
    for pid in pids:
        with contextlib.suppress(OSError):
            words = (_PROC / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace")
            if not words:
                continue  # a zombie has none
            told = (word.replace(home, "~") if home != "/" else word for word in words.split("\0"))
            digest = None
            with contextlib.suppress(OSError), (_PROC / str(pid) / "exe").open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            return tuple(told)[:-1], digest
    return None


def reset_peak(pids: Iterable[int]) -> bool:
    """Let VmHWM of processes begin anew at what they hold now; whether all of them could be told.

    By ``/proc/PID/clear_refs`` (proc(5)), which only a process's owner or root may write.
    """
    done = False
    for pid in pids:
        try:
            (_PROC / str(pid) / "clear_refs").write_text("5")
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
    """What a cgroup's memory consists of now, in kB; None where it does not tell.

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
    """What all TCP sockets of this machine hold in buffers, in kB; None where it is not told."""
    with contextlib.suppress(OSError):
        told = re.search(r"^TCP:.* mem (\d+)", (_PROC / "net/sockstat").read_text(), re.MULTILINE)
        if told:
            return int(told[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    return None


def accepted_connections(port: int, pids: Iterable[int]) -> int:
    """Connections that a server on this machine holds on a port: established and accepted.

    Counted on the server's side, among the sockets its processes have open. Where we may not look
    into them, all accepted ones of that port count, and somebody else's connection that happens to
    come from a port of that number counts, too.
    """
    own = _socket_inodes(pids)
    held: set[str] = set()
    suffix = f":{port:04X}"
    # The table is no snapshot: while sockets come and go a row can be given twice, or left out.
    for name in ("tcp", "tcp6") * 2:
        with contextlib.suppress(OSError), (_PROC / "net" / name).open() as table:
            next(table, None)
            for row in table:
                words = row.split()
                # One that nobody has accepted yet has no inode (proc(5)).
                if words[1].endswith(suffix) and words[3] == "01" and words[9] != "0":
                    held.add(words[9])
    return len(held if own is None else held & own)


def _socket_inodes(pids: Iterable[int]) -> set[str] | None:
    """The inodes of all sockets that processes have open; None where that may not be seen."""
    found = set()
    for pid in pids:
        try:
            for link in (_PROC / str(pid) / "fd").iterdir():
                with contextlib.suppress(OSError):  # closed meanwhile
                    what = os.readlink(link)
                    if what.startswith("socket:["):
                        found.add(what[len("socket:[") : -1])
        except PermissionError:
            return None
        except OSError:
            continue
    return found


def descriptors(pids: Iterable[int]) -> int | None:
    """The descriptors that processes have open; None where none lives, or may not be seen."""
    held = 0
    seen = False
    for pid in pids:
        try:
            held += sum(1 for _ in (_PROC / str(pid) / "fd").iterdir())
            seen = True
        except OSError:
            continue
    return held if seen else None


def listeners(port: int, address: str) -> list[int]:
    """The processes of this machine that a TCP connection to an address reaches, as far as we may
    see them: who listens on that very address, else who listens on all.

    Empty where one is a forwarder: the server behind it lives elsewhere, most often in a container.
    """
    inodes: dict[str, set[str]] = {}
    number = f"{port:04X}"
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for row in (_PROC / "net" / name).read_text().splitlines()[1:]:
                if number not in row:  # of those that wait to be forgotten there are thousands
                    continue
                words = row.split()
                local, _, own = words[1].partition(":")
                if words[3] == "0A" and own == number:
                    inodes.setdefault(local, set()).add(f"socket:[{words[9]}]")
    wanted = next((inodes[local] for local in _locals(address) if local in inodes), set())
    found = _holders(wanted)
    return [] if any(_name(pid) in _FORWARDERS for pid in found) else found


def _locals(address: str) -> list[str]:
    """As what a listener that an address reaches stands in /proc/net/tcp and tcp6, nearest first.

    Words of four octets, each in this machine's order.
    """

    def written(packed: bytes) -> str:
        return "".join(f"{word:08X}" for (word,) in struct.iter_unpack("=I", packed))

    where = ipaddress.ip_address(address)
    if isinstance(where, ipaddress.IPv6Address):
        return [written(where.packed), written(bytes(16))]
    mapped = bytes(10) + b"\xff\xff" + where.packed
    return [written(where.packed), written(mapped), written(bytes(4)), written(bytes(16))]


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return (_PROC / str(pid) / "comm").read_text().strip()
    return ""


_ACCEPTS = 0x10000  # __SO_ACCEPTCON in the flags of /proc/net/unix


def unix_listeners(path: str) -> list[int]:
    """The processes of this machine that listen on a Unix socket, as far as we may see them."""
    inodes = set()
    with contextlib.suppress(OSError):
        for row in (_PROC / "net" / "unix").read_text().splitlines()[1:]:
            words = row.split(maxsplit=7)
            if words[7:] == [path] and int(words[3], 16) & _ACCEPTS:
                inodes.add(f"socket:[{words[6]}]")
    return _holders(inodes)


def _holders(inodes: set[str]) -> list[int]:
    """The processes that hold one of these sockets."""
    found = []
    for entry in _PROC.iterdir():
        if inodes and entry.name.isdigit():
            with contextlib.suppress(OSError):
                if any(os.readlink(link) in inodes for link in (entry / "fd").iterdir()):
                    found.append(int(entry.name))
    return sorted(found)


class SocketSlabs(msgspec.Struct, frozen=True):
    """What the kernel holds for all sockets of this machine, by /proc/slabinfo (slabinfo(5))."""

    tcp_sockets: int  # objects in use
    socket_bytes: int  # sockets, their inodes, their epoll entries
    file_bytes: int  # of one file and its dentry, which every socket has, too


def socket_slabs() -> SocketSlabs | None:
    """Read the slabs; None where we may not: the file is root's."""
    try:
        rows = (_PROC / "slabinfo").read_text().splitlines()
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

    None where the slabs cannot be read, or grew by another number of sockets than twice ``held``:
    then neighbours opened or closed some, and the growth is not ours.
    """
    if before is None or after is None or held < 1:
        return None
    if abs(after.tcp_sockets - before.tcp_sockets - 2 * held) > _STRANGERS_MAX * 2 * held:
        return None
    return (after.socket_bytes - before.socket_bytes) / (2 * held) + after.file_bytes


def connection_room() -> dict[str, int]:
    """How many connections this machine can hold, by what limits it; loopback has both ends.

    ``descriptors`` is of one server process, ``ports`` of one source address to one target.
    """
    room = {}
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY:
        room["descriptors"] = max(0, hard - _DESCRIPTORS_KEPT)
    with contextlib.suppress(OSError, ValueError):
        low, high = (_PROC / "sys/net/ipv4/ip_local_port_range").read_text().split()
        room["ports"] = int(high) - int(low) + 1
    with contextlib.suppress(OSError, ValueError):
        netfilter = _PROC / "sys/net/netfilter"
        table = int((netfilter / "nf_conntrack_max").read_text())
        used = int((netfilter / "nf_conntrack_count").read_text())
        room["connection tracking"] = max(0, table - used - _CONNTRACK_KEPT)
    with contextlib.suppress(OSError, TypeError):
        text = (_PROC / "meminfo").read_text()
        free = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
        if free:
            room["memory"] = int(free[1]) // _CONNECTION_KB
    return room


@functools.cache
def has_counters() -> bool:
    """Whether this machine has hardware counters; most virtual machines have none."""
    return (Path("/sys/bus/event_source/devices/cpu")).exists()


def own_vmhwm_kb() -> int:
    """The high-water mark of this process's resident memory, in kB."""
    return int(dict(_STATUS.findall((_PROC / "self" / "status").read_text()))["VmHWM"])


def dropped_packets() -> dict[str, int]:
    """Counters of connections and packets this machine lost; a growth makes silence prove nothing.

    Listen queues that overflowed, and entries that the connection-tracking table refused.
    """
    counters: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError):
        table = _tcp_counters("netstat", "TcpExt:")
        for name in ("ListenOverflows", "ListenDrops", "TCPBacklogDrop", "TCPReqQFullDrop"):
            if name in table:
                counters[name] = table[name]
    with contextlib.suppress(OSError, ValueError):
        lines = (_PROC / "net/stat/nf_conntrack").read_text().splitlines()
        names = lines[0].split()
        for name in ("drop", "early_drop", "insert_failed"):
            column = names.index(name)
            counters[f"conntrack_{name}"] = sum(int(row.split()[column], 16) for row in lines[1:])
    return counters


def segments_sent() -> tuple[int, int] | None:
    """(sent again for want of them, sent) TCP segments of this machine since boot; None where it is
    not told.

    What the other end said it had already (D-SACK, RFC 2883) was not lost: a delayed ACK makes the
    kernel probe for a tail loss that there was none of, at every TLS handshake of a busy server.
    Nor do SYNs count that a full listen queue had to be sent again: they say nothing of the
    network (hyper's queue takes 128, so where it gets no CPU for some milliseconds 64 of the 512
    connections open a second later, before the warm-up), and are told by :func:`dropped_packets`
    where connections are what is measured.
    """
    with contextlib.suppress(OSError, ValueError, KeyError):
        table = _tcp_counters("snmp", "Tcp:")
        told = _tcp_counters("netstat", "TcpExt:")
        needless = told.get("TCPDSACKRecvSegs", told.get("TCPDSACKRecv", 0))
        return table["RetransSegs"] - needless - told.get("TCPSynRetrans", 0), table["OutSegs"]
    return None


def _tcp_counters(file: str, heading: str) -> dict[str, int]:
    """One block of a file of /proc/net: a line of names, a line of figures.

    :raises OSError: the file cannot be read.
    :raises ValueError: it has no such block.
    """
    names, values = [
        line.split()[1:]
        for line in (_PROC / "net" / file).read_text().splitlines()
        if line.startswith(heading)
    ][:2]
    return dict(zip(names, map(int, values), strict=True))


def retransmit_ratio(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    """The share of the segments between two :func:`segments_sent` that were sent again.

    None below 10,000 of them: one that was lost would be a thousandth of nothing much.
    """
    if before is None or after is None or after[1] - before[1] < _SEGMENTS_MIN:
        return None
    return max(0, after[0] - before[0]) / (after[1] - before[1])


def grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Which counters grew, and by how much."""
    return {
        name: value - before.get(name, 0)
        for name, value in after.items()
        if value > before.get(name, 0)
    }
