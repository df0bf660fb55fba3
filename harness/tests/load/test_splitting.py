"""The shares of a plan add up to it, and no two generators of a host bind one address."""

from __future__ import annotations

import ipaddress
import itertools
from decimal import Decimal

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest

from httpmark.harness.load import splitting
from httpmark.harness.load.engines.launch import Target
from httpmark.harness.load.engines.native import native_command
from httpmark.harness.model.load import LoadMode, LoadPlan

PLAN = LoadPlan(name="p", title="t", why="w", connections=512, depth=16, duration_s=1.0, threads=2)


@hypothesis.given(st.integers(1, 1_000_000), st.integers(1, 1000))
def test_connections_add_up_and_differ_by_one_at_most(connections: int, count: int) -> None:
    count = min(count, connections)
    plan = msgspec.structs.replace(PLAN, connections=connections)
    found = [one.connections for one in splitting.shares(plan, ["h"] * count)]
    assert sum(found) == connections
    assert min(found) >= 1
    assert max(found) - min(found) <= 1
    assert all(
        one.threads <= one.connections for one in splitting.shares(plan, ["h"] * count)
    )  # fmt: skip


@hypothesis.given(st.floats(1, 9_000_000), st.integers(1, 500))
def test_rates_add_up_to_what_one_generator_would_be_told(rate: float, count: int) -> None:
    """In the digits of the command line: nothing is lost on the way to the generators."""
    plan = msgspec.structs.replace(PLAN, mode=LoadMode.OPEN, rate=rate)
    told = []
    for share in splitting.shares(plan, ["h"] * count):
        assert share.rate is not None
        told.append(Decimal(f"{share.rate:.10g}"))
    assert sum(told) == Decimal(f"{rate:.10g}")
    assert min(told) > 0


def test_the_command_line_has_the_digits_of_the_share() -> None:
    plan = msgspec.structs.replace(PLAN, mode=LoadMode.OPEN, rate=100_000.001)
    words = native_command(
        splitting.shares(plan, ["h"] * 3)[2], Target("127.0.0.1", 1), duration_s=1.0
    )
    assert words[words.index("--rate") + 1] == "33333.335"


@hypothesis.given(
    st.sampled_from(["127.0.0.0/8", "10.1.0.0/16", "fd00::/64", "fd00::/40"]),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=40),
)
def test_no_two_generators_of_a_host_have_a_source_in_common(bind: str, hosts: list[str]) -> None:
    plan = msgspec.structs.replace(PLAN, bind=bind)
    found = [one.bind for one in splitting.shares(plan, hosts)]
    whole = ipaddress.ip_network(bind)
    ranges = [
        (host, ipaddress.ip_network(one or "")) for host, one in zip(hosts, found, strict=True)
    ]
    for (one, first), (other, second) in itertools.combinations(ranges, 2):
        assert one != other or not first.overlaps(second)
    assert all(one.subnet_of(whole) for _, one in ranges)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bind", "wanted"),
    [
        (None, [None, None]),
        ("127.0.0.0/8", ["127.0.0.0/9", "127.128.0.0/9"]),
        ("10.0.0.7", ["10.0.0.7", "10.0.0.7"]),
    ],
)
def test_a_range_is_halved_for_two_and_one_address_is_shared(
    bind: str | None, wanted: list[str | None]
) -> None:
    plan = msgspec.structs.replace(PLAN, bind=bind)
    assert [one.bind for one in splitting.shares(plan, ["h", "h"])] == wanted
    assert splitting.shares(plan, ["h", "other"])[1].bind == bind


def test_connections_are_opened_no_faster_than_by_one() -> None:
    found = splitting.shares(PLAN, ["h"] * 4)
    assert sum(one.connect_rate for one in found) == PLAN.connect_rate
