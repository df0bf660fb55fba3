"""Which processors the server and the generator of a sample run on."""

from __future__ import annotations

import os

import msgspec

from httpmark.harness.model.load import (
    LoadPlan,
)


class Placement(msgspec.Struct, frozen=True):
    """Which processors the server and the generator run on; None: not pinned."""

    server: frozenset[int] | None
    client: frozenset[int] | None


def placement(plan: LoadPlan) -> Placement:
    """Disjoint processors for both ends, the server's first; none where there are too few."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < plan.workers + plan.threads:
        return Placement(None, None)
    return Placement(frozenset(usable[: plan.workers]), frozenset(usable[-plan.threads :]))
