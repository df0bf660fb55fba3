"""What each worker of a cluster is, lacks, and how to mend it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec

from httpmark.harness.cluster import clock_offsets, worker_facts
from httpmark.harness.cluster.connecting import ROLES, Cluster, Worker
from httpmark.harness.cluster.worker_facts import Facts
from httpmark.harness.model.errors import Unusable

_TRIPS = 9
_DESCRIPTORS_WANTED = 4096
_OFFSET_MAX_S = 1.0


class Lack(msgspec.Struct, frozen=True):
    """Something that is missing, and what mends it."""

    what: str
    mend: str


class Inspected(msgspec.Struct, frozen=True, kw_only=True):
    """One worker, as it was found."""

    address: str
    name: str
    roles: tuple[str, ...]
    facts: Facts | None  # None: it could not say them
    clock: clock_offsets.Offset | None  # by way of the scheduler
    lacks: tuple[Lack, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The workers of a cluster, and what no worker of it may do."""

    version: str  # of httpmark, here
    workers: tuple[Inspected, ...]
    lacks: tuple[Lack, ...]

    @property
    def missing(self) -> int:
        """How many things are missing in all."""
        return len(self.lacks) + sum(len(one.lacks) for one in self.workers)


def inspect(cluster: Cluster) -> Report:
    """Ask all workers.

    :raises Unusable: the scheduler is gone.
    """
    known = cluster.workers()
    found = cluster.ask(worker_facts.facts, of=[one.address for one in known])
    own = worker_facts.facts()
    asked = [address for address, told in found.items() if isinstance(told, Facts)]
    offsets = {address: clocks(cluster, [address])[address] for address in asked}
    return report(known, found, offsets, own)


def clocks(cluster: Cluster, addresses: Sequence[str]) -> dict[str, clock_offsets.Offset]:
    """How far the clocks of workers are from ours; all are asked at once.

    :raises Unusable: the scheduler is gone, or one does not answer.
    """
    trips: dict[str, list[clock_offsets.RoundTrip]] = {address: [] for address in addresses}
    for _ in range(_TRIPS):
        sent = time.time()
        found = cluster.ask(worker_facts.clock, of=addresses)
        received = time.time()
        for address, told in found.items():
            if isinstance(told, float):
                trips[address].append(clock_offsets.RoundTrip(sent, told, received))
    silent = [address for address, told in trips.items() if not told]
    if silent:
        raise Unusable(f"the worker {silent[0]} does not tell its time")
    return {address: clock_offsets.offset(told) for address, told in trips.items()}


def report(
    known: Sequence[Worker],
    found: Mapping[str, object],
    clocks: Mapping[str, clock_offsets.Offset],
    own: Facts,
) -> Report:
    """What is missing, from what the workers told.

    :param found: by address, the facts or the exception that came instead.
    """
    workers = []
    for one in known:
        told = found.get(one.address)
        facts = told if isinstance(told, Facts) else None
        clock = clocks.get(one.address)
        lacks = _cannot_say(told, own) if facts is None else _lacks(one, facts, clock, own)
        workers.append(
            Inspected(
                address=one.address, name=one.name, roles=one.roles, facts=facts, clock=clock,
                lacks=tuple(lacks),
            )
        )  # fmt: skip
    lacks = [
        Lack(
            f"no worker may be a {role}",
            f"start one with `dask worker ADDRESS --nthreads 1 --resources '{role}=1'`",
        )
        for role in ROLES
        if not any(role in one.roles for one in known)
    ]
    return Report(version=own.version, workers=tuple(workers), lacks=tuple(lacks))


def is_off(clock: clock_offsets.Offset) -> bool:
    """Whether a clock is wrong for sure, by so much that somebody should set it."""
    return abs(clock.seconds) - clock.bound_s > _OFFSET_MAX_S


def _same_version(own: Facts) -> str:
    return f"install the same there: pip install 'httpmark[cluster]=={own.version}'"


def _cannot_say(told: object, own: Facts) -> list[Lack]:
    if isinstance(told, ImportError | AttributeError):
        return [Lack("it has no httpmark, or one of another version", _same_version(own))]
    return [Lack(f"it does not answer: {told or 'it is gone'}", "look at its log, and restart it")]


def _lacks(
    worker: Worker, facts: Facts, clock: clock_offsets.Offset | None, own: Facts
) -> list[Lack]:
    found = []
    if facts.version != own.version:
        found.append(
            Lack(f"httpmark is {facts.version} there and {own.version} here", _same_version(own))
        )
    if not worker.roles:
        found.append(
            Lack("it has no role", "start it with --resources 'suite=1', or with another role")
        )
    needed = {"suite": "probe", "generator": "load"}
    for role, name in needed.items():
        if role in worker.roles and name not in facts.binaries:
            found.append(
                Lack(f"httpmark-{name} is missing, which a {role} needs", _same_version(own))
            )
    if facts.descriptors is not None and facts.descriptors < _DESCRIPTORS_WANTED:
        found.append(
            Lack(
                f"{facts.descriptors} file descriptors are few",
                f"raise its hard limit: `ulimit -Hn {_DESCRIPTORS_WANTED}` as root, or limits.conf",
            )
        )
    if clock is not None and is_off(clock):
        found.append(
            Lack(
                f"its clock is {clock.seconds:+.1f} s off",
                "set it by NTP, as with `systemctl start systemd-timesyncd`",
            )
        )
    return found
