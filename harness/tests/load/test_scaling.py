"""A plan that is too large for the machine is cut, and says so."""

from __future__ import annotations

import msgspec

from httpmark.harness.load import scaling
from httpmark.harness.tests.shared.scripted_race import PLAN

ROOM = {"descriptors": 19_744, "ports": 28_232, "memory": 600_000}


def test_a_plan_that_fits_is_left_alone() -> None:
    plan = msgspec.structs.replace(PLAN, connections=19_744)
    assert scaling.scaled(plan, ROOM, cpus=2) == (plan, None)


def test_a_plan_that_is_too_large_is_cut_and_says_why() -> None:
    plan = msgspec.structs.replace(
        PLAN, connections=500_000, bind="127.0.0.0/8", threads=6, workers=6
    )
    fits, why = scaling.scaled(plan, ROOM, cpus=2)
    assert (fits.connections, fits.workers, fits.threads) == (19_744, 1, 1)
    assert why is not None
    assert "19,744 instead of 500,000 connections: the hard limit of descriptors" in why
    assert "1 + 1 threads instead of 6 + 6" in why
    rich = {"descriptors": 10**6, "ports": 28_232, "memory": 10**6}
    assert scaling.scaled(plan, rich, cpus=64)[1] is None, "source addresses make room for ports"
    one_source = msgspec.structs.replace(plan, bind=None)
    assert scaling.scaled(one_source, rich, cpus=64)[0].connections == 28_232


def test_threads_are_shared_out_as_they_were_asked_for() -> None:
    plan = msgspec.structs.replace(PLAN, threads=2, workers=6)
    fits, _ = scaling.scaled(plan, ROOM, cpus=4)
    assert (fits.workers, fits.threads) == (3, 1)


def test_a_ladder_loses_its_upper_rungs_or_shrinks() -> None:
    ladder = (1_000, 10_000, 100_000)
    plan = msgspec.structs.replace(PLAN, ladder=ladder)
    assert scaling.scaled(plan, ROOM, cpus=2)[0].ladder == (1_000, 10_000)
    high = msgspec.structs.replace(PLAN, ladder=(50_000, 250_000, 500_000))
    assert scaling.scaled(high, ROOM, cpus=2)[0].ladder == (1974, 9872, 19_744)
