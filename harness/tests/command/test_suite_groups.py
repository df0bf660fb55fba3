"""Suites that are fired in one go."""

from __future__ import annotations

import pytest

from httpmark.harness.command.suite_groups import Group, groups


@pytest.mark.parametrize(
    ("suites", "expected"),
    [
        (("seed", "rfc", "smuggling"), [("seed",), ("rfc", "smuggling")]),
        (("rfc", "seed", "smuggling"), [("rfc", "smuggling"), ("seed",)]),
        (("rfc", "smuggling", "resilience", "found"),
         [("rfc", "smuggling", "found"), ("resilience",)]),
        (("resilience", "seed"), [("resilience",), ("seed",)]),
        (("smuggling",), [("smuggling",)]),
        ((), []),
    ],
)  # fmt: skip
def test_suites_go_together_but_for_those_that_go_by_themselves(
    suites: Group, expected: list[Group]
) -> None:
    assert groups(suites) == expected
