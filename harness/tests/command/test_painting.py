"""Colour: where it is wanted, and never the only sign."""

from __future__ import annotations

import re
import sys

import click
import pytest
from click.testing import CliRunner

from httpmark.harness.command import painting
from httpmark.harness.report.verdict_text import Line, Style

LINES = (
    Line("Breaks 1 of 2 requirements.", Style.BAD),
    Line("    came     200", Style.SOFT, 13),
    Line(""),
)


def printed(choice: str) -> str:
    @click.command()
    def command() -> None:
        painting.print_lines(LINES, choice)

    return CliRunner().invoke(command, color=choice == "always").output


def test_the_words_are_the_same_with_and_without_colour() -> None:
    plain, painted = printed("never"), printed("always")
    assert plain == "".join(f"{line.text}\n" for line in LINES)
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == plain
    assert "\x1b[0m 200" in painted or painted.count("200\n") == 1


@pytest.mark.parametrize(
    ("choice", "terminal", "env", "coloured"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", True, {"TERM": "dumb"}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {}, False),
    ],
)
def test_a_terminal_is_coloured_unless_told_otherwise(
    choice: str,
    terminal: bool,
    env: dict[str, str],
    coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert painting.is_coloured(choice) is coloured


@pytest.mark.parametrize(
    ("terminal", "columns", "width"),
    [(False, "200", 80), (True, "200", 120), (True, "100", 100), (True, "20", 60)],
)
def test_text_is_as_wide_as_the_terminal_within_reason(
    terminal: bool, columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("COLUMNS", columns)
    assert painting.columns() == width
