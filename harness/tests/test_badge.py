"""A badge says counts, and is never greener than the run."""

from __future__ import annotations

import json

import pytest

from httpmark.harness.badge import badge
from httpmark.harness.model import Compliance, HarnessError, Run, SeedFamily, SuiteResult

from .made_findings import CONTROLS_FAIL, MUST_FAILS, run_of


@pytest.mark.parametrize(
    ("run", "message", "colour"),
    [
        (run_of("reference"), "seed: 558/558 detected", "brightgreen"),
        (run_of("go_net_http"), "seed: 277/558 detected", "yellow"),
        (run_of("reference", MUST_FAILS), "98/100 MUST", "red"),
        (run_of("reference", CONTROLS_FAIL), "seed: not scored", "lightgrey"),
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


def test_a_badge_of_nobody_names_who_there_is() -> None:
    with pytest.raises(HarnessError, match="it has reference"):
        badge(run_of("reference"), "nginx")
