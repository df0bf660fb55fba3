"""What the machine must have for the foreign parsers: the marker `needs` of the whole project."""

from __future__ import annotations

import os
import shutil

import pytest


def required() -> set[str]:
    """What HTTPMARK_REQUIRE lists: a missing one fails instead of being skipped."""
    return {word for word in os.environ.get("HTTPMARK_REQUIRE", "").split(",") if word}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            if shutil.which(name) is not None:
                continue
            if name in required():
                pytest.fail(f"HTTPMARK_REQUIRE lists {name}, and this machine lacks it")
            pytest.skip(f"{name} is not on this machine")
