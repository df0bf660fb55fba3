"""One generator's share of a load. All here runs on the worker.

The load generator opens its connections and tells so. It begins when its caller says, and ends at
once where its caller or the worker ends.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

import msgspec

from httpmark.harness.cluster import worker_task
from httpmark.harness.cluster.path_clock import PathClock
from httpmark.harness.cluster.worker_task import WorkerTask
from httpmark.harness.load import placing
from httpmark.harness.load.engines.launch import Target
from httpmark.harness.load.engines.native import Native, Start
from httpmark.harness.load.sampling import Path
from httpmark.harness.load.window_clocks import MachineUse, WindowClocks
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.servers import sockets

STOP = "stop"
START_WAIT_S = 120.0  # that all others may take to open their connections


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What one generator has to do."""

    key: str  # what the caller says is said to this key
    topic: str
    plan: LoadPlan  # its share
    target: Target
    duration_s: float
    seed: int
    phase: float
    # Who else is on its host, so that each has processors of its own.
    number: int  # of the generators there, from 0
    generators: int
    has_server: bool


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What a generator found."""

    host: str
    report: dict[str, Any]
    machine: MachineUse
    path: Path | None


def generate(order: Order) -> Done:
    """Lay the load on.

    :raises Unusable: the generator did not run to its end, or was stopped.
    """
    task = WorkerTask(order.topic)
    _, places = placing.shared_out(
        order.plan, has_server=order.has_server, generators=order.generators
    )
    ours, theirs = sockets.pair()
    target = order.target
    path = None if sockets.is_here(target.address) else PathClock(target.address, target.port)
    begin_ns = None

    def look(pid: int) -> None:
        nonlocal begin_ns
        with contextlib.suppress(BlockingIOError):
            if ours.recv(64):
                task.say({"key": order.key, "pid": pid})
        said = worker_task.heard(order.key)
        if said == STOP or not task.is_wanted:
            raise Unusable("it was stopped")
        if said is not None:
            ours.sendall(b"%d\n" % said)
            begin_ns = said + round(order.plan.warmup_s * 1e9)
        if path and begin_ns is not None and 0 < time.time_ns() - begin_ns < order.duration_s * 1e9:
            path.look(time.monotonic())

    start = Start(fd=theirs.fileno(), look=look, phase=order.phase, wait_s=START_WAIT_S)
    clocks = WindowClocks(None, None)
    with ours, theirs:
        report = Native(order.seed).report(
            order.plan, order.target, duration_s=order.duration_s,
            cpus=places[order.number], start=start,
        )  # fmt: skip
    way = path.told() if path else None
    return Done(host=os.uname().nodename, report=report, machine=clocks(), path=way)
