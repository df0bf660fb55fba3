"""Windows to samples: what starvation excuses, and what it does not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from httpmark.harness.load import sampling
from httpmark.harness.load.engines.launch import Measured
from httpmark.harness.load.sampling import GeneratorWindow, Taken, Window
from httpmark.harness.load.window_clocks import MachineUse
from httpmark.harness.model.load import Bottleneck, LoadSample
from httpmark.harness.servers import cpu_time
from httpmark.harness.tests.shared.scripted_race import PLAN, race, run

STARVED = {"run_delay_ratio": 0.12}


@pytest.fixture(autouse=True)
def _who_else_ran_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine did during the windows of these tests must not change their samples."""
    monkeypatch.setattr(cpu_time, "idle_ns", lambda cpus: None)
    monkeypatch.setattr(cpu_time, "cpu_clock", lambda: (0, 0))


def test_a_date_that_is_late_in_a_sample_that_starved_is_no_wrong_answer() -> None:
    late = {"errors": {"date": 7}, "late_dates": 7, **STARVED}
    made, engine = race({"a": [80.0] * 9, "null": [35.0] * 9}, a=late)
    result = run(made)["a"]
    assert engine.order.count("a") == 9, "it starved, so it was taken again"
    assert result.errors == {}
    assert result.bottleneck is Bottleneck.STARVED
    assert "of 7 answers the Date was late for that reason" in result.bottleneck_why
    assert result.samples[0].late_dates == 7
    assert result.samples[0].is_sound


def test_a_late_date_in_a_sample_that_had_its_cpu_is_a_wrong_answer() -> None:
    made, engine = race(
        {"a": [80.0] * 3, "null": [35.0] * 3}, a={"errors": {"date": 7}, "late_dates": 7}
    )
    result = run(made)["a"]
    assert engine.order.count("a") == 3
    assert result.errors == {"date": 21}
    assert result.bottleneck is Bottleneck.BROKEN


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        # A malformed one, one ahead of the clock, one from before the load.
        ({"errors": {"date": 7}, "late_dates": 5}, {"date": 2}),
        ({"errors": {"date": 7, "body": 1}, "late_dates": 7}, {"body": 1}),
        # Nothing was answered but that: there is no figure to keep.
        ({"errors": {"date": 1}, "late_dates": 1, "requests": 0}, {"date": 1}),
    ],
)
def test_starvation_excuses_no_other_error(
    changes: dict[str, object], left: dict[str, int]
) -> None:
    made, _ = race({"a": [80.0] * 3, "null": [35.0] * 3}, rounds=1, a={**changes, **STARVED})
    result = run(made)["a"]
    assert result.errors == left
    assert result.bottleneck is Bottleneck.BROKEN
    assert result.bottleneck_why == sampling.errors_told(left)


HOST = MachineUse(steal_ratio=0.0, retransmit_ratio=0.0, dropped={})
BUSY_SERVER = Measured(
    requests=1000, seconds=1.0, errors={}, established=4, server_ns_per_request=80.0,
    client_ns_per_request=30.0, server_on_cpu_ratio=1.0, client_on_cpu_ratio=0.1,
    run_delay_ratio=0.0, client_run_delay_ratio=0.0, littles_law_ratio=1.0, latency_us=None,
    latency_reason=None, histogram=None,
)  # fmt: skip


def of_generators(*changes: dict[str, Any], broken: str | None = None) -> LoadSample:
    """A sample of a busy server, with a generator for each of the changes."""
    generators = []
    for number, changed in enumerate(changes):
        machine = changed.pop("machine", HOST)
        half = msgspec.structs.replace(
            BUSY_SERVER, **{"requests": 500, "established": 2, **changed}
        )
        generators.append(
            GeneratorWindow(
                name=f"g{number}", host="h", connections=2, measured=half, machine=machine,
                start_late_us=5.0,
            )
        )  # fmt: skip
    whole = msgspec.structs.replace(BUSY_SERVER, broken=broken)
    taken = Taken(measured=whole, machine=HOST, is_pinned=False, generators=tuple(generators))
    null = msgspec.structs.replace(taken, measured=msgspec.structs.replace(whole, requests=9000))
    windows = [
        Window(
            taken=one, block=1, order=0, started="", redo=False, is_null=one is null,
            runs_already=False,
        )
        for one in (taken, null)
    ]  # fmt: skip
    return sampling.judged_block(PLAN, windows)[0]


def test_a_sample_of_several_generators_is_the_servers_where_each_one_says_so() -> None:
    sample = of_generators({}, {})
    assert sample.bottleneck is Bottleneck.SERVER
    assert [one.bottleneck for one in sample.generators] == [Bottleneck.SERVER] * 2


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({"client_on_cpu_ratio": 0.99}, Bottleneck.CLIENT),
        ({"littles_law_ratio": 0.5}, Bottleneck.UNKNOWN),
        ({"established": 1}, Bottleneck.BROKEN),
        ({"machine": msgspec.structs.replace(HOST, retransmit_ratio=0.01)}, Bottleneck.NETWORK),
    ],
)
def test_one_generator_that_was_a_limit_spoils_the_claim_with_its_name(
    changed: dict[str, Any], verdict: Bottleneck
) -> None:
    sample = of_generators({}, dict(changed))
    assert sample.bottleneck is verdict
    assert sample.bottleneck_why.startswith("generator g1: ")


def test_a_sample_that_a_generator_broke_counts_for_nothing() -> None:
    sample = of_generators({}, {}, broken="generator g1 died")
    assert (sample.bottleneck, sample.bottleneck_why) == (Bottleneck.BROKEN, "generator g1 died")
    assert not sample.is_sound


def test_a_capacity_that_a_generator_broke_is_doubted() -> None:
    broken = msgspec.structs.replace(BUSY_SERVER, broken="generator g1 lagged")
    assert sampling.capacity_doubt(BUSY_SERVER, HOST) is None
    assert "generator g1 lagged while its capacity" in (
        sampling.capacity_doubt(broken, HOST) or ""
    )  # fmt: skip
