"""Windows to samples: what starvation excuses, and what it does not."""

from __future__ import annotations

import pytest

from httpmark.harness.load import sampling
from httpmark.harness.model.load import Bottleneck
from httpmark.harness.servers import cpu_time
from httpmark.harness.tests.shared.scripted_race import race, run

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
