"""A strict server behind an exact router: whatever is held against it is a false accusation."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from httpmark.harness.tests.shared import checked_requirements, exact_router
from httpmark.harness.tests.shared.tiny_server import with_package

_POST = ("--post-path", "/notes")
_MANNERS = pytest.mark.parametrize("manner", exact_router.MANNERS)


def held_against(manner: str, folder: Path, *options: str, seconds: float = 280) -> set[str]:
    """The requirements that a check says the router breaks."""
    package = with_package()["PYTHONPATH"]
    words = ["env", f"PYTHONPATH={package}", sys.executable, "-m", exact_router.__name__,
             "--manner", manner, "--port", "{port}"]  # fmt: skip
    if _POST[0] in options:
        words += _POST
    return checked_requirements.failing(
        folder, shlex.join(words), "--path", "/", *options, seconds=seconds
    )


@pytest.mark.first
@pytest.mark.process
@_MANNERS
def test_a_strict_server_with_get_alone_breaks_nothing(manner: str, tmp_path: Path) -> None:
    """Every suite that a check fires by default, the largest families as a sample."""
    assert held_against(manner, tmp_path, "--quick") == set()


@pytest.mark.nightly
@pytest.mark.process
@_MANNERS
def test_a_strict_server_that_takes_post_breaks_nothing(manner: str, tmp_path: Path) -> None:
    assert held_against(manner, tmp_path, "--quick", *_POST) == set()


@pytest.mark.nightly
@pytest.mark.process
@pytest.mark.timeout(1800)
def test_a_strict_server_passes_every_default_suite_whole(tmp_path: Path) -> None:
    """Nothing is sampled."""
    assert held_against("plain", tmp_path, seconds=1700) == set()
