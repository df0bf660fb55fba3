"""What a server needs to run as a process, and what is said where it is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.servers import Need
from httpmark.harness.model.servers import ProcessRecipe as Recipe
from httpmark.harness.servers import (
    starting,
)
from httpmark.harness.tests.shared.tiny_server import tiny

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.mark.process
@pytest.mark.parametrize(
    ("need", "reason"),
    [
        (Need(install="get it", command="no-such-program"), "no-such-program not found: get it"),
        (Need(install="get it", file="/no/such"), "/no/such not found: get it"),
        (Need(install="get it", python="no_such"), "the Python module no_such not found: get it"),
        (
            Need(install="get it", command=sys.executable, at_least="99.0"),
            rf"{sys.executable} 3[.0-9]+ is older than 99.0: get it",
        ),
        (
            Need(install="get it", command="uname", ask=("--machine",), at_least="1.0"),
            "uname --machine tells no version: get it",
        ),
        (
            Need(install="get it", command="echo", ask=("library", "1.2"), at_least="1.3"),
            "echo library 1.2 1.2 is older than 1.3: get it",
        ),
    ],
)
def test_what_is_missing_is_told_with_its_mend(tmp_path: Path, need: Need, reason: str) -> None:
    server = tiny(tmp_path, process=Recipe(start=("x",), needs=(need,)))
    with pytest.raises(Unusable, match=f"^process: {reason}$"):
        starting.for_server(server, "process")
    assert starting.listed(server)["available"]["process"] == starting.availability(
        server, "process"
    )


@pytest.mark.process
def test_what_is_there_is_available(tmp_path: Path) -> None:
    needs = (
        Need(install="", command=sys.executable, at_least="3.11"),
        Need(install="", file="/proc"),
        Need(install="", python="msgspec"),
    )
    server = tiny(tmp_path, process=Recipe(start=("{python}",), needs=needs))
    assert starting.availability(server, "process") is True
    assert starting.for_server(server, "process") == "process"


@pytest.mark.process
def test_a_missing_pkg_config_module_is_told(tmp_path: Path) -> None:
    need = Need(install="get it", pkg_config="no-such-module >= 6.8")
    server = tiny(tmp_path, process=Recipe(start=("x",), needs=(need,)))
    reason = starting.availability(server, "process")
    assert isinstance(reason, str)
    assert "no-such-module" in reason
    assert reason.endswith(": get it")


def program(folder: Path, mode: int) -> str:
    path = folder / f"program-{mode:o}"
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return str(path)


def test_only_a_program_that_can_be_executed_is_available(tmp_path: Path) -> None:
    good, plain = program(tmp_path, 0o755), program(tmp_path, 0o644)
    for word, reason in (
        (good, None),
        ("sh", None),
        ("{python}", None),
        ("{source}/" + Path(good).name, None),
        ("{build}/made", None),  # it is built first
        (plain, f"{plain} is not executable: chmod +x {plain}"),
        ("{source}/none", f"{tmp_path}/none is no program: name one that is there"),
        (str(tmp_path), f"{tmp_path} is no program"),
        ("no-such-program", "no-such-program not found: put a program of that name on PATH"),
        ("./none", "./none depends on the folder: write the whole path, or {source}/./none"),
    ):
        for recipe in (Recipe(start=(word,)), Recipe(start=("env", "x"), binary=word)):
            found = starting.availability(tiny(tmp_path, process=recipe), "process")
            assert found is True if reason is None else str(found).startswith(reason), word
