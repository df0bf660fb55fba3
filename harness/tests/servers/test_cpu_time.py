"""CPU time, against what is known to have been used."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from httpmark.harness.servers import (
    cpu_time,
    memory_use,
    proc_files,
)


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_cpu_time_is_what_was_burnt() -> None:
    before = cpu_time.cpu_ns([os.getpid()])
    burn(0.3)
    after = cpu_time.cpu_ns([os.getpid()])
    assert before is not None
    assert after is not None
    assert 0.25e9 <= after - before < 0.6e9


@pytest.mark.process
def test_the_dead_have_no_cpu_time_and_no_memory() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert cpu_time.cpu_ns([child.pid]) is None
    assert memory_use.memory([child.pid]) is None
    assert proc_files.tree([child.pid]) == []


def test_the_clock_of_all_cpus_moves_on() -> None:
    before = cpu_time.cpu_clock()
    end = time.monotonic() + 10
    while (ratio := cpu_time.steal_ratio(before, cpu_time.cpu_clock())) is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert 0 <= ratio <= 1
    assert cpu_time.steal_ratio(before, before) is None
    assert cpu_time.steal_ratio((0, 0), (1, 9)) is None, "too few ticks to tell"
    assert cpu_time.steal_ratio((0, 0), (1, 10)) == 0.1


def test_context_switches_grow_with_sleeping() -> None:
    before = cpu_time.context_switches([os.getpid()])
    for _ in range(20):
        time.sleep(0.001)
    after = cpu_time.context_switches([os.getpid()])
    assert before is not None
    assert after is not None
    assert after - before >= 20


def test_idle_time_grows_no_faster_than_the_clock() -> None:
    cpus = sorted(os.sched_getaffinity(0))[:1]
    began, before = time.monotonic_ns(), cpu_time.idle_ns(cpus)
    assert before is not None
    after: int | None = before
    while time.monotonic_ns() - began < 50_000_000:  # five ticks of /proc/stat
        after = cpu_time.idle_ns(cpus)
    assert after is not None
    assert 0 <= after - before <= time.monotonic_ns() - began + 20_000_000
    assert cpu_time.idle_ns([4096]) is None
