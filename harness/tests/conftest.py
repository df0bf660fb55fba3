"""What every test shares: the marker that says what a machine must have."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess

import pytest


@functools.cache
def machine_has(name: str) -> bool:
    """Whether this machine offers a requirement; "docker" means a daemon that answers."""
    if name == "docker":
        if shutil.which("docker") is None:
            return False
        asked = subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False)
        return asked.returncode == 0
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin") is not None


def required() -> set[str]:
    """What HTTPMARK_REQUIRE lists: a missing one fails instead of being skipped."""
    return {word for word in os.environ.get("HTTPMARK_REQUIRE", "").split(",") if word}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            if machine_has(name):
                continue
            if name in required():
                pytest.fail(f"HTTPMARK_REQUIRE lists {name}, and this machine lacks it")
            pytest.skip(f"{name} is not on this machine")
