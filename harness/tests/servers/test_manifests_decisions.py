"""The reference server's list of decisions: complete, and every test it names is there."""

from __future__ import annotations

import re
from pathlib import Path

SERVER = Path(__file__).resolve().parents[3] / "reference_server"
DECISIONS = 40


def test_each_decision_names_tests_that_exist() -> None:
    text = (SERVER / "DECISIONS.md").read_text("utf-8")
    known = {
        f"{suite}.{name}"
        for path in (SERVER / "tests").rglob("*.cpp")
        for suite, name in re.findall(
            r"^TEST(?:_P)?\((\w+), (\w+)\)", path.read_text("utf-8"), re.M
        )
    }
    rows = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]
    numbers = []
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        named = re.findall(r"`(\w+\.\w+)`", cells[-1])
        if cells[0].isdigit():
            numbers.append(int(cells[0]))
            assert len(cells) == 5, row
        elif not named:
            continue  # a table of levels
        assert named, row
        assert set(named) <= known, set(named) - known
    assert numbers == list(range(1, DECISIONS + 1))


def test_every_option_it_names_is_one_of_the_command() -> None:
    source = (SERVER / "src" / "command" / "flags.cpp").read_text("utf-8")
    limits = (SERVER / "src" / "limits.hpp").read_text("utf-8")
    for option in re.findall(r"`--([a-z0-9-]+)", (SERVER / "DECISIONS.md").read_text("utf-8")):
        assert f"--{option} " in source or f'"{option}"' in limits or f'"{option}"' in source, (
            option
        )
