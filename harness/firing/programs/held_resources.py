"""The memory and the descriptors that the server's processes hold."""

from __future__ import annotations

import time

from httpmark.harness.firing.programs.stage import Found
from httpmark.harness.model.verdicts import Word
from httpmark.harness.servers import memory_use, open_connections

_SETTLE_S = 5.0  # for a server to notice resets and to give back what they held
_POLL_S = 0.05
_GROWTH_KB = 64 << 10


def memory_kb(pids: list[int]) -> int | None:
    """The memory of processes, with shared memory counted once; None if it is not known."""
    found = memory_use.memory(pids)
    return found.pss_kb if found is not None else None


def settled_descriptors(pids: list[int], wanted: int | None) -> int | None:
    """The open descriptors of processes, once they stop falling or are as few as ``wanted``."""
    deadline = time.monotonic() + _SETTLE_S
    held = open_connections.descriptors(pids)
    while held is not None and time.monotonic() < deadline:
        if wanted is not None and held <= wanted:
            break
        time.sleep(_POLL_S)
        now = open_connections.descriptors(pids)
        if wanted is None and now == held:
            break
        held = now
    return held


def growth_within_bound(told: str, before: int | None, after: int | None) -> Found:
    """Whether a server's memory grew by 64 MiB at most."""
    if before is None or after is None:
        return Found(Word.NOT_APPLICABLE, f"{told}; the server's memory is not known")
    told += f", memory grew by {max(after - before, 0) / 1024:.1f} MiB"
    return Found(Word.FAIL if after - before > _GROWTH_KB else Word.PASS, told)
