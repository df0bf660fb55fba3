"""Who listens on this machine, and how many connections it holds and can hold. Linux only."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import re
import resource
import struct
from collections.abc import Iterable, Iterator

from httpmark.harness.servers import proc_files

# Programs that pass connections on to a container, by their names in /proc/PID/comm.
_FORWARDERS = frozenset(("docker-proxy", "rootlessport", "rootlesskit", "slirp4netns", "pasta"))
# States of a connection in /proc/net/tcp.
_TIME_WAIT, _LISTEN = "06", "0A"
KEPT_S = 65.0
"""After so long closed connections (TIME_WAIT) keep no server off its port any more."""
_DESCRIPTORS_KEPT = 256
_CONNTRACK_KEPT = 16_384
# A connection with both ends: the kernel's 8 KiB, and what greedy servers keep for one.
_CONNECTION_KB = 40


def accepted_connections(port: int, pids: Iterable[int]) -> int:
    """Connections that a server on this machine holds on a port: established and accepted.

    Counted on the server's side, among the sockets its processes have open. Where we may not look
    into them, all accepted ones of that port count, and somebody else's connection that happens to
    come from a port of that number counts, too.
    """
    own = _socket_inodes(pids)
    held: set[str] = set()
    ours = f":{port:04X} "
    # The table is no snapshot: while sockets come and go a row can be given twice, or left out.
    for name in ("tcp", "tcp6") * 2:
        with contextlib.suppress(OSError):
            for row in itertools.islice(proc_files.lines("net", name), 1, None):
                if ours not in row:  # the table may hold a hundred thousand of others
                    continue
                words = row.split()
                # One that nobody has accepted yet has no inode (proc(5)).
                if words[1].endswith(ours[:-1]) and words[3] == "01" and words[9] != "0":
                    held.add(words[9])
    return len(held if own is None else held & own)


def _socket_inodes(pids: Iterable[int]) -> set[str] | None:
    """The inodes of all sockets that processes have open; None where that may not be seen."""
    found = set()
    for pid in pids:
        try:
            for what in proc_files.open_files(pid):
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
            held += len(proc_files.names_in(pid, "fd"))
            seen = True
        except OSError:
            continue
    return held if seen else None


def is_only_waiting(port: int) -> bool:
    """Whether nobody listens on a port, and connections that were closed there wait to be forgotten
    (TIME_WAIT)."""
    states = {words[3] for words in _rows(port)}
    return _TIME_WAIT in states and _LISTEN not in states


def _rows(port: int) -> Iterator[list[str]]:
    """The rows of /proc/net/tcp and tcp6 whose own port it is, in words."""
    suffix = f":{port:04X}"
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for row in proc_files.text("net", name).splitlines()[1:]:
                # Of those that wait to be forgotten there are thousands: only a few are split.
                if suffix in row and (words := row.split())[1].endswith(suffix):
                    yield words


def listening_sockets(port: int) -> int:
    """How many sockets listen on a port of this machine: each sharer has its own (SO_REUSEPORT)."""
    return sum(words[3] == _LISTEN for words in _rows(port))


def listeners(port: int, address: str) -> list[int]:
    """The processes of this machine that a TCP connection to an address reaches, as far as we may
    see them: who listens on that very address, else who listens on all.

    Empty where one is a forwarder: the server behind it lives elsewhere, most often in a container.
    """
    inodes: dict[str, set[str]] = {}
    for words in _rows(port):
        if words[3] == _LISTEN:
            local = words[1].partition(":")[0]
            inodes.setdefault(local, set()).add(f"socket:[{words[9]}]")
    wanted = next((inodes[local] for local in _locals(address) if local in inodes), set())
    found = _holders(wanted)
    return [] if any(_name(pid) in _FORWARDERS for pid in found) else found


def _locals(address: str) -> list[str]:
    """As what a listener that an address reaches stands in /proc/net/tcp and tcp6, nearest first.

    Words of four bytes, each in this machine's order.
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
        return proc_files.text(pid, "comm").strip()
    return ""


_ACCEPTS = 0x10000  # __SO_ACCEPTCON in the flags of /proc/net/unix


def unix_listeners(path: str) -> list[int]:
    """The processes of this machine that listen on a Unix socket, as far as we may see them."""
    inodes = set()
    with contextlib.suppress(OSError):
        for row in proc_files.text("net", "unix").splitlines()[1:]:
            words = row.split(maxsplit=7)
            if words[7:] == [path] and int(words[3], 16) & _ACCEPTS:
                inodes.add(f"socket:[{words[6]}]")
    return _holders(inodes)


def _holders(inodes: set[str]) -> list[int]:
    """The processes that hold one of these sockets."""
    found = []
    for pid in proc_files.process_ids() if inodes else ():
        with contextlib.suppress(OSError):
            if any(what in inodes for what in proc_files.open_files(pid)):
                found.append(pid)
    return sorted(found)


def connection_room() -> dict[str, int]:
    """How many connections this machine can hold, by what limits it; loopback has both ends.

    ``descriptors`` is of one server process, ``ports`` of one source address to one target.
    """
    room = {}
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY:
        room["descriptors"] = max(0, hard - _DESCRIPTORS_KEPT)
    with contextlib.suppress(OSError, ValueError):
        low, high = proc_files.text("sys/net/ipv4/ip_local_port_range").split()
        room["ports"] = int(high) - int(low) + 1
    with contextlib.suppress(OSError, ValueError):
        table = int(proc_files.text("sys/net/netfilter/nf_conntrack_max"))
        used = int(proc_files.text("sys/net/netfilter/nf_conntrack_count"))
        room["connection tracking"] = max(0, table - used - _CONNTRACK_KEPT)
    with contextlib.suppress(OSError, TypeError):
        free = re.search(r"^MemAvailable:\s+(\d+) kB", proc_files.text("meminfo"), re.MULTILINE)
        if free:
            room["memory"] = int(free[1]) // _CONNECTION_KB
    return room
