"""Cutting a plan down to what this machine can carry."""

from __future__ import annotations

import ipaddress

import msgspec

from httpmark.harness.model.load import (
    LoadPlan,
)


def scaled(plan: LoadPlan, room: dict[str, int], *, cpus: int) -> tuple[LoadPlan, str | None]:
    """A plan that fits this machine, and what was cut and why; None where nothing was cut.

    :param room: connections by what limits them (:func:`open_connections.connection_room`).
    :param cpus: processors that both ends share.
    """
    cuts = []
    wanted = max((plan.connections, *plan.ladder))
    sources = 1
    if plan.bind:
        sources = max(1, ipaddress.ip_network(plan.bind, strict=False).num_addresses - 2)
    limits = {**room, "ports": room.get("ports", wanted) * sources}
    name, most = min(limits.items(), key=lambda limit: limit[1])
    if wanted > most:
        cuts.append(f"{most:,} instead of {wanted:,} connections: {_LIMITS[name]}")
        plan = msgspec.structs.replace(
            plan,
            connections=min(plan.connections, most),
            ladder=_lowered(plan.ladder, most),
            quick_ladder=_lowered(plan.quick_ladder, most),
        )
    asked = plan.workers + plan.threads
    if asked > max(cpus, 2):
        workers = max(1, round(cpus * plan.workers / asked))
        threads = max(1, cpus - workers)
        cuts.append(
            f"{workers} + {threads} threads instead of {plan.workers} + {plan.threads}: "
            f"{cpus} processors for both ends"
        )
        plan = msgspec.structs.replace(plan, workers=workers, threads=threads)
    return plan, "; ".join(cuts) or None


_LIMITS = {
    "descriptors": "the hard limit of descriptors of a process (ulimit -Hn)",
    "ports": "net.ipv4.ip_local_port_range from one source address",
    "connection tracking": "room in net.netfilter.nf_conntrack_max",
    "memory": "the available memory",
}


def _lowered(ladder: tuple[int, ...], most: int) -> tuple[int, ...]:
    """The rungs that fit; where fewer than two fit, all of them scaled down in proportion."""
    fits = tuple(rung for rung in ladder if rung <= most)
    if len(fits) >= 2 or not ladder:
        return fits
    return tuple(max(1, rung * most // ladder[-1]) for rung in ladder)
