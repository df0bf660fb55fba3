"""Figures as words: no rounding flatters, and no bound is printed as a figure."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import msgspec

from httpmark.harness.model.load import Bottleneck
from httpmark.harness.report import number_format
from httpmark.harness.tests.shared.made_run import open_result


@hypothesis.given(st.floats(1, 1e12))
def test_a_lower_bound_is_never_rounded_up(rate: float) -> None:
    drawn = number_format.throughput(rate, Bottleneck.CLIENT, ranked=False).text
    number, _, unit = drawn.removeprefix("≥ ").partition(" ")
    value = float(number) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]
    assert value <= rate * (1 + 1e-9)
    assert value >= rate * 0.98


def test_an_offered_rate_is_no_throughput_whoever_was_the_limit() -> None:
    why = "an offered rate is no throughput"
    offered = msgspec.structs.replace(open_result(1.0), ranked=False, ranked_reason=why)
    for bottleneck in (Bottleneck.STARVED, Bottleneck.NONE, Bottleneck.SERVER):
        told = number_format.result_throughput(
            msgspec.structs.replace(offered, bottleneck=bottleneck, bottleneck_why="17% waiting")
        )
        assert (told.ranked, told.why) == (False, why)
    broken = msgspec.structs.replace(
        offered, bottleneck=Bottleneck.BROKEN, bottleneck_why="3 errors"
    )
    assert number_format.result_throughput(broken).why == "3 errors"
