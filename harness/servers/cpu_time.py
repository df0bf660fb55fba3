"""CPU time, and the wait for it, of processes and of the whole machine. Linux only."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from httpmark.harness.servers import proc_files
from httpmark.harness.servers.proc_files import Stat

_SWITCHES = re.compile(r"^(?:non)?voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)
_TICKS_MIN = 10
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def cpu_ns(pids: Iterable[int]) -> int | None:
    """CPU time (user + system) of processes, their ended threads included, in ns.

    The scheduler's sum where there is one: the clock ticks of ``stat`` are too coarse for windows
    of a second.
    """
    total = 0
    counted = False
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            live = sum(
                int(proc_files.text(pid, "task", thread, "schedstat").split()[0])
                for thread in proc_files.names_in(pid, "task")
            )
            fields = proc_files.stat_fields(pid)
            ticks = (int(fields[Stat.USER_TICKS]) + int(fields[Stat.SYSTEM_TICKS])) * _TICK_NS
            # stat counts threads that have ended, schedstat does not: the larger one is right.
            total += live if live > ticks - 2 * _TICK_NS else ticks
            counted = True
    return total if counted else None


def waited_ns(pid: int) -> int:
    """The CPU time of children of a process that ended and that it waited for, in ns (times(2))."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = proc_files.stat_fields(pid)
        waited = int(fields[Stat.WAITED_USER_TICKS]) + int(fields[Stat.WAITED_SYSTEM_TICKS])
        return waited * _TICK_NS
    return 0


def spent_ns(roots: Iterable[int]) -> int | None:
    """CPU time of process trees in ns, with what their ended children used; None where none lives.

    The CPU time of an ended child that no process waited for is lost.
    """
    pids = proc_files.tree(roots)
    used = cpu_ns(pids)
    return None if used is None else used + sum(waited_ns(pid) for pid in pids)


def run_delay_ns(pids: Iterable[int]) -> int:
    """Time that runnable threads of processes waited for a CPU, in ns."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            for thread in proc_files.names_in(pid, "task"):
                total += int(proc_files.text(pid, "task", thread, "schedstat").split()[1])
    return total


def threads_ns(pid: int) -> list[tuple[int, int]]:
    """(on a CPU, runnable and waiting for one) of each thread of a process that lives, in ns."""
    found = []
    with contextlib.suppress(OSError):
        for thread in proc_files.names_in(pid, "task"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = proc_files.text(pid, "task", thread, "schedstat").split()
                found.append((int(words[0]), int(words[1])))
    return found


def context_switches(pids: Iterable[int]) -> int | None:
    """Voluntary and involuntary switches of all threads; None where no process lives."""
    total = 0
    counted = False
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in proc_files.names_in(pid, "task"):
                found = _SWITCHES.findall(proc_files.text(pid, "task", thread, "status"))
                total += sum(int(count) for count in found)
                counted = True
    return total if counted else None


def steal_ratio(before: tuple[int, int], after: tuple[int, int]) -> float | None:
    """The share of all CPUs' time that the hypervisor took between two :func:`cpu_clock`.

    None below ten ticks, where a single stolen one would count too much.
    """
    total = after[1] - before[1]
    return (after[0] - before[0]) / total if total >= _TICKS_MIN else None


def cpu_clock() -> tuple[int, int]:
    """(stolen, total) ticks of all CPUs since boot."""
    fields = [int(word) for word in proc_files.text("stat").split("\n", 1)[0].split()[1:9]]
    return fields[7], sum(fields)


def own_children_ns() -> int:
    """The CPU time of this process's own children that ended and that it waited for, in ns."""
    times = os.times()
    return round((times.children_user + times.children_system) * 1e9)


def affinity(pids: Iterable[int]) -> frozenset[int] | None:
    """The processors that processes may run on; None where it is not known."""
    found: set[int] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            found |= os.sched_getaffinity(pid)
    return frozenset(found) or None


def idle_ns(cpus: Collection[int]) -> int | None:
    """The time that processors did nothing, or were stolen, since boot; None where it is unknown.

    The kernel keeps idle time by the clock (proc(5), NO_HZ), where busy time is sampled by ticks.
    """
    total = 0
    for cpu in cpus:
        found = re.search(rf"^cpu{cpu} (.+)$", proc_files.text("stat"), re.MULTILINE)
        if found is None:
            return None
        ticks = [int(word) for word in found[1].split()]
        total += (ticks[3] + ticks[4] + ticks[7]) * _TICK_NS
    return total


@functools.cache
def has_counters() -> bool:
    """Whether this machine has hardware counters; most virtual machines have none."""
    return (Path("/sys/bus/event_source/devices/cpu")).exists()
