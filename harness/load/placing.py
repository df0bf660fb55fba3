"""Which processors the server and the generator of a sample run on."""

from __future__ import annotations

import os

import msgspec

from httpmark.harness.model.load import LoadPlan


class Placement(msgspec.Struct, frozen=True):
    """Which processors the server and the generator run on; None: not pinned."""

    server: frozenset[int] | None
    client: frozenset[int] | None


def placement(plan: LoadPlan) -> Placement:
    """Disjoint processors for both ends, the server's first; none where there are too few."""
    server, (client,) = shared_out(plan, has_server=True, generators=1)
    return Placement(server, client)


def shared_out(
    plan: LoadPlan, *, has_server: bool, generators: int
) -> tuple[frozenset[int] | None, list[frozenset[int] | None]]:
    """Disjoint processors of this machine: the server's, if it is here, and each generator's.

    None for all where there are too few.
    """
    usable = sorted(os.sched_getaffinity(0))
    workers = plan.workers * has_server
    if len(usable) < workers + plan.threads * generators:
        return None, [None] * generators
    first = len(usable) - plan.threads * generators
    return (
        frozenset(usable[:workers]) or None,
        [
            frozenset(usable[first + number * plan.threads :][: plan.threads])
            for number in range(generators)
        ],
    )
