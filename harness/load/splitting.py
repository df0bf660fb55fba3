"""One plan for several generators: shares whose sums are the plan's, and disjoint sources."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal

import msgspec

from httpmark.harness.model.load import LoadPlan

_RATE_STEP = Decimal("0.001")  # the least that the generator takes


def shares(plan: LoadPlan, hosts: Sequence[str]) -> list[LoadPlan]:
    """A plan for each generator.

    :param hosts: where each of them is; at most as many as the plan has connections.
    """
    count = len(hosts)
    rates = _rates(plan.rate, count)
    binds = _binds(plan.bind, hosts)
    each, more = divmod(plan.connections, count)
    found = []
    for number in range(count):
        connections = each + (number < more)
        found.append(
            msgspec.structs.replace(
                plan,
                connections=connections,
                threads=min(plan.threads, connections),
                rate=rates[number],
                connect_rate=max(1.0, plan.connect_rate / count),
                bind=binds[number],
            )
        )
    return found


def _rates(rate: float | None, count: int) -> list[float] | list[None]:
    """Shares of a rate that add up to what one generator would be told, in decimal digits."""
    if rate is None:
        return [None] * count
    whole = Decimal(f"{rate:.10g}")
    each = (whole / count).quantize(_RATE_STEP, ROUND_DOWN)
    return [float(each)] * (count - 1) + [float(whole - each * (count - 1))]


def _binds(bind: str | None, hosts: Sequence[str]) -> list[str | None]:
    """A range of its own for each generator of a host; all of it where it is too small to split."""
    if bind is None:
        return [None] * len(hosts)
    network = ipaddress.ip_network(bind, strict=False)
    on_host, met = Counter(hosts), Counter[str]()
    found: list[str | None] = []
    for host in hosts:
        bits = (on_host[host] - 1).bit_length()
        length = network.prefixlen + bits
        if bits and length <= network.max_prefixlen:
            size = 1 << (network.max_prefixlen - length)
            first = network.network_address + met[host] * size
            found.append(f"{first}/{length}")
        else:
            found.append(bind)
        met[host] += 1
    return found
