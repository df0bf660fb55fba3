"""Who limited a sample: the verdict for each kind of evidence."""

from __future__ import annotations

import msgspec
import pytest

from httpmark.harness.load import bottlenecks
from httpmark.harness.model.load import Bottleneck

SOUND = bottlenecks.Signs(
    errors=0,
    connections_wanted=512,
    connections_established=512,
    requests_per_second=1e6,
    null_requests_per_second=1e7,
    server_on_cpu_ratio=0.99,
    client_on_cpu_ratio=0.50,
    run_delay_ratio=0.01,
    steal_ratio=0.0,
    littles_law_ratio=1.0,
)


def verdict(**changes: object) -> Bottleneck:
    return bottlenecks.bottleneck(msgspec.structs.replace(SOUND, **changes))[0]


def test_only_a_busy_server_with_an_idle_client_far_below_null_is_server_bound() -> None:
    assert verdict() is Bottleneck.SERVER
    assert verdict(client_on_cpu_ratio=0.96) is Bottleneck.CLIENT
    assert verdict(client_on_cpu_ratio=0.85) is Bottleneck.UNKNOWN
    assert verdict(requests_per_second=9e6) is Bottleneck.CLIENT
    assert verdict(requests_per_second=7.5e6) is Bottleneck.UNKNOWN
    assert verdict(null_requests_per_second=None) is Bottleneck.UNKNOWN
    assert verdict(server_on_cpu_ratio=None) is Bottleneck.UNKNOWN
    assert verdict(server_on_cpu_ratio=0.5) is Bottleneck.NONE


def test_errors_and_starvation_come_before_all_else() -> None:
    assert verdict(errors=1) is Bottleneck.BROKEN
    assert verdict(connections_established=511) is Bottleneck.BROKEN
    assert verdict(steal_ratio=0.03) is Bottleneck.STARVED
    assert verdict(run_delay_ratio=0.06) is Bottleneck.STARVED
    assert verdict(errors=1, run_delay_ratio=0.5) is Bottleneck.BROKEN


def test_a_machine_that_loses_packets_ranks_nothing() -> None:
    assert verdict(retransmit_ratio=0.001) is Bottleneck.SERVER
    assert verdict(retransmit_ratio=0.002) is Bottleneck.NETWORK
    assert verdict(retransmit_ratio=0.002, run_delay_ratio=0.5) is Bottleneck.STARVED
    assert verdict(lost_connects={"ListenOverflows": 1}) is Bottleneck.BROKEN
    # An offered rate that is served is no excuse for a network that is not.
    assert verdict(retransmit_ratio=0.002, saturated=False) is Bottleneck.NETWORK


def test_what_was_never_answered_is_no_throughput_of_the_server() -> None:
    assert verdict(unanswered_ratio=0.0) is Bottleneck.SERVER
    assert verdict(unanswered_ratio=0.009) is Bottleneck.SERVER
    assert verdict(unanswered_ratio=0.02) is Bottleneck.UNKNOWN


def test_requests_that_were_not_in_flight_are_the_clients_fault() -> None:
    assert verdict(server_on_cpu_ratio=0.5, littles_law_ratio=0.42) is Bottleneck.CLIENT


@pytest.mark.parametrize("ratio", [0.42, 0.89, 1.11, 2.0])
def test_numbers_that_do_not_add_up_are_not_ranked(ratio: float) -> None:
    assert verdict(littles_law_ratio=ratio) is Bottleneck.UNKNOWN
    assert verdict(littles_law_ratio=1.0) is Bottleneck.SERVER


@pytest.mark.parametrize("demand", [0.8, 1.2])
def test_a_rate_that_the_cost_contradicts_is_not_ranked(demand: float) -> None:
    """It is of a window, the cost of all requests: the sample is sound, its rate is not."""
    assert verdict(server_cpu_demand=1.0) is Bottleneck.SERVER
    assert verdict(server_cpu_demand=demand) is Bottleneck.UNKNOWN


def test_null_is_not_measured_against_itself() -> None:
    assert verdict(is_null=True, requests_per_second=1e7) is Bottleneck.SERVER
    assert verdict(is_null=True, null_requests_per_second=None) is Bottleneck.SERVER


def test_an_offered_rate_that_is_served_has_no_bottleneck() -> None:
    assert verdict(saturated=False, server_on_cpu_ratio=0.5) is Bottleneck.NONE
    assert verdict(saturated=False, client_on_cpu_ratio=0.99) is Bottleneck.CLIENT
    assert verdict(saturated=True) is Bottleneck.SERVER
    assert verdict(saturated=True, server_on_cpu_ratio=0.5) is Bottleneck.UNKNOWN
    assert verdict(saturated=False, errors=1) is Bottleneck.BROKEN
    assert verdict(saturated=True, run_delay_ratio=0.3) is Bottleneck.STARVED


def test_connections_that_an_engine_cannot_count_are_not_held_against_it() -> None:
    assert verdict(connections_established=None) is Bottleneck.SERVER


def test_a_path_whose_queue_is_most_of_the_latency_is_the_limit() -> None:
    idle = {"server_on_cpu_ratio": 0.1, "client_on_cpu_ratio": 0.1}
    full = bottlenecks.PathSigns(100.0, 20_100.0, 30_000.0)
    assert verdict(**idle, path=full) is Bottleneck.NETWORK
    _, why = bottlenecks.bottleneck(msgspec.structs.replace(SOUND, **idle, path=full))
    assert "grew from 0.1 to 20.1 ms under load, of 30.0 ms" in why
    # A long way that is no longer under load is not full, and 0.9 ms may be a busy processor's.
    assert verdict(**idle, path=bottlenecks.PathSigns(20_000.0, 20_100.0, 30_000.0)) is (
        Bottleneck.NONE
    )
    assert verdict(**idle, path=bottlenecks.PathSigns(100.0, 1_000.0, 1_000.0)) is Bottleneck.NONE
    assert verdict(path=full) is Bottleneck.SERVER, "a busy server is the limit all the same"
    open_loop = {**idle, "saturated": True}
    assert verdict(**open_loop) is Bottleneck.UNKNOWN
    assert verdict(**open_loop, path=full) is Bottleneck.NETWORK
    assert verdict(**{**open_loop, "saturated": False}, path=full) is Bottleneck.NONE
