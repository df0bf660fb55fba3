"""A badge says counts, and is never greener than the run."""

from __future__ import annotations

import json

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest

from httpmark.harness.gate.badge import badge
from httpmark.harness.judging import requirement_verdicts
from httpmark.harness.model.cases import Level
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import (
    Compliance,
    Deliveries,
    Disagreement,
    SeedFamily,
    SuiteResult,
)
from httpmark.harness.tests.shared.made_findings import CONTROLS_FAIL, MUST_FAILS, run_of, suite_of


@pytest.mark.parametrize(
    ("run", "message", "colour"),
    [
        (run_of("reference"), "seed 558/558 detected", "brightgreen"),
        (run_of("go_net_http"), "seed 277/558 detected", "yellow"),
        (run_of("reference", MUST_FAILS), "seed 98/100 MUST", "red"),
        (run_of("reference", CONTROLS_FAIL), "seed not scored", "lightgrey"),
        (run_of("reference", compliance=Compliance()), "not measured", "lightgrey"),
    ],
)
def test_a_badge_carries_counts_and_never_a_bare_percentage(
    run: Run, message: str, colour: str
) -> None:
    found = json.loads(badge(run, run.servers[0].name))
    assert found == {
        "schemaVersion": 1,
        "label": "HTTP/1.1",
        "message": message,
        "color": colour,
    }


def test_a_badge_of_silence_is_not_green() -> None:
    suite = SuiteResult(score_percent=100.0, families={"x": SeedFamily(9, 0, 0, 0, 0, 9)})
    assert json.loads(badge(run_of("reference", suite), "reference"))["color"] == "yellow"


def rfc(percent: float | None = 50.0, **must: int) -> SuiteResult:
    return SuiteResult(score_percent=percent, must=must)


@pytest.mark.parametrize(
    ("suites", "message", "colour"),
    [
        # A suite that is green does not hide one that is red, wherever it stands.
        ({"seed": suite_of("reference"), "rfc": rfc(passed=25, warned=2, failed=23, void=4)},
         "rfc 27/50 MUST, seed 558/558 detected", "red"),
        ({"rfc": rfc(passed=9, failed=0), "smuggling": rfc(passed=3, failed=1)},
         "rfc 9/9 MUST, smuggling 3/4 MUST", "red"),
        ({"rfc": rfc(passed=9, failed=0, unstable=1)}, "rfc 9/10 MUST", "yellow"),
        ({"rfc": rfc(passed=9), "seed": CONTROLS_FAIL},
         "rfc 9/9 MUST, seed not scored", "lightgrey"),
        ({"smuggling": rfc(None, passed=0)}, "smuggling without a MUST", "lightgrey"),
        ({"rfc": msgspec.structs.replace(rfc(passed=9), deliveries=Deliveries(
            messages=1, fired={"byte": 2}, disagreements=(Disagreement(
                case="x", level=Level.MUST, count=1, deliveries=("byte",), what="y"),)))},
         "rfc 9/9 MUST", "red"),
    ],
)  # fmt: skip
def test_every_suite_is_told_and_the_worst_gives_the_colour(
    suites: dict[str, SuiteResult], message: str, colour: str
) -> None:
    run = run_of("reference", compliance=Compliance(suites))
    found = json.loads(badge(run, "reference"))
    assert (found["message"], found["color"]) == (message, colour)


@hypothesis.given(
    st.fixed_dictionaries(
        {word: st.integers(0, 9) for word in ("passed", "warned", "failed", "unstable", "void")}
    )
)
def test_the_counts_are_those_of_the_score(must: dict[str, int]) -> None:
    percent = requirement_verdicts.percent(must)
    hypothesis.assume(percent is not None)
    run = run_of("reference", compliance=Compliance({"rfc": rfc(percent, **must)}))
    good, total = json.loads(badge(run, "reference"))["message"].split()[1].split("/")
    assert 100 * int(good) / int(total) == percent


def test_a_badge_of_nobody_names_who_there_is() -> None:
    with pytest.raises(HarnessError, match="it has reference"):
        badge(run_of("reference"), "nginx")
