"""What the kernel counts of segments and connections that were lost."""

from __future__ import annotations

import contextlib

from httpmark.harness.servers import proc_files

_SEGMENTS_MIN = 10_000


def dropped_packets() -> dict[str, int]:
    """Counters of connections and packets that this machine dropped.

    Listen queues that overflowed, and entries that the connection-tracking table refused. Where
    they grow, a missing answer may be the machine's fault.
    """
    counters: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError):
        table = _tcp_counters("netstat", "TcpExt:")
        for name in ("ListenOverflows", "ListenDrops", "TCPBacklogDrop", "TCPReqQFullDrop"):
            if name in table:
                counters[name] = table[name]
    with contextlib.suppress(OSError, ValueError):
        lines = proc_files.text("net", "stat", "nf_conntrack").splitlines()
        names = lines[0].split()
        for name in ("drop", "early_drop", "insert_failed"):
            column = names.index(name)
            counters[f"conntrack_{name}"] = sum(int(row.split()[column], 16) for row in lines[1:])
    return counters


def segments_sent() -> tuple[int, int] | None:
    """(lost and sent again, sent) TCP segments of this machine since boot; None where unknown.

    Two kinds of repeated segments are not counted as lost. The receiver reports segments that it
    had already (D-SACK, RFC 2883): a delayed ACK makes the kernel send the last segment again, at
    every TLS handshake of a busy server. And SYNs are repeated where a listen queue was full, which
    says nothing of the network; :func:`dropped_packets` counts those.
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
        for line in proc_files.text("net", file).splitlines()
        if line.startswith(heading)
    ][:2]
    return dict(zip(names, map(int, values), strict=True))


def retransmit_ratio(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    """The share of the segments between two :func:`segments_sent` that were sent again.

    None below 10,000 segments, where a single lost one would count too much.
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
