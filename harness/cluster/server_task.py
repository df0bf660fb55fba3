"""The server of a load: started, sampled and stopped. All here runs on the worker of its host."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from httpmark.harness.cluster import worker_task
from httpmark.harness.cluster.generator_task import STOP
from httpmark.harness.cluster.worker_task import WorkerTask
from httpmark.harness.load import placing, refusals
from httpmark.harness.load.engines.launch import Accounts, Target, open_books
from httpmark.harness.load.window_clocks import MachineUse, WindowClocks
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.model.memory import Memory
from httpmark.harness.model.servers import Tls
from httpmark.harness.servers import (
    brought,
    certificates,
    machine,
    memory_use,
    program_identity,
    scratch_folders,
    sockets,
    starting,
)
from httpmark.harness.servers.running import Running

CLOSE = "close"
_POLL_S = 0.02


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Which server to start, and what for."""

    key: str  # what the caller says is said to this key
    topic: str
    server: str
    runtime: str
    address: str  # where it listens
    plan: LoadPlan
    path: str | None
    run: str
    generators: int  # on the same host


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What a server that runs tells of itself."""

    version: str | None
    image_digest: str | None
    program: tuple[tuple[str, ...], str | None] | None
    container_limits: dict[str, str] | None


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What a server used in a window."""

    died: str | None  # why it runs no more
    identity: Identity
    accounts: Accounts
    machine: MachineUse
    memory: Memory | None
    is_pinned: bool


def prepare(name: str, word: str, topic: str) -> str:
    """Build a server.

    :returns: how it is started.
    :raises Unusable: it cannot be used here.
    """
    task = WorkerTask(topic)
    server = brought.Field().server(name)
    runtime = starting.for_server(server, word)
    starting.prepare(server, runtime, say=lambda line: task.say({"line": line}))
    return runtime


def serve(order: Order) -> Served:
    """Start the server, sample it from the instant that the caller names to the close, stop it.

    What is closed before it began gives figures that say nothing.

    :raises Unusable: it did not start, or it refuses what it is asked, or it was stopped.
    """
    task = WorkerTask(order.topic)
    cpus, _ = placing.shared_out(order.plan, has_server=True, generators=order.generators)
    with _up(order, cpus) as running:
        target = Target(
            order.address, running.port, tuple(running.trees()), running.tls_port, order.path
        )
        refusals.ask_first(order.plan, target)
        task.say({"key": order.key, "port": running.port, "tls_port": running.tls_port})
        begin = _said(order.key, task)
        if begin != CLOSE:
            _sleep_until(begin, task)
        clocks, books = WindowClocks(running, cpus), open_books(target.pids)
        if begin != CLOSE:
            _said(order.key, task)
        used, machine_use = books(), clocks()
        return Served(
            died=None if running.alive() else running.exit_reason(),
            identity=_identity(running),
            accounts=used,
            machine=machine_use,
            memory=memory_use.memory(running.pids(), cgroup=running.cgroup),
            is_pinned=cpus is not None,
        )


@contextlib.contextmanager
def _up(order: Order, cpus: frozenset[int] | None) -> Iterator[Running]:
    with scratch_folders.folder("tls") as private:
        os.chmod(private, 0o755)
        tls = None
        if order.plan.tls:
            pair = certificates.make(private, address=order.address)
            tls = Tls(sockets.free_port(order.address), *pair)
        running = starting.start(
            brought.Field().server(order.server),
            order.runtime,
            address=order.address,
            port=sockets.free_port(order.address),
            workers=order.plan.workers,
            cpus=None if cpus is None else ",".join(map(str, sorted(cpus))),
            run_id=order.run,
            tls=tls,
        )
        try:
            yield running
        finally:
            running.stop()


def _identity(running: Running) -> Identity:
    pids = running.pids()
    limits = machine.cgroup_limits(pids[0]) if running.runtime == "docker" and pids else None
    return Identity(
        version=running.version,
        image_digest=running.image_digest,
        program=program_identity.program(pids),
        container_limits=limits or None,
    )


def _said(key: str, task: WorkerTask) -> Any:
    """What the caller says next.

    :raises Unusable: to stop, or nobody waits any more.
    """
    while True:
        said = worker_task.heard(key)
        if said == STOP or not task.is_wanted:
            raise Unusable("it was stopped")
        if said is not None:
            return said
        time.sleep(_POLL_S)


def _sleep_until(at_ns: int, task: WorkerTask) -> None:
    while (left := at_ns - time.time_ns()) > 0 and task.is_wanted:
        time.sleep(min(left / 1e9, _POLL_S))
