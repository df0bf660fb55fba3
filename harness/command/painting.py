"""Lines in a terminal: how wide it is, and whether they are coloured.

Colour is never the only sign: the words of a line say the same.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable

from httpmark.harness.command import printing
from httpmark.harness.report.verdict_text import Line, Style

_PIPE_COLUMNS = 80
_COLUMNS_MIN, _COLUMNS_MAX = 60, 120  # longer lines are hard to read

_LOOKS: dict[Style, dict[str, str | bool]] = {
    Style.PLAIN: {},
    Style.TITLE: {"bold": True},
    Style.BAD: {"fg": "red", "bold": True},
    Style.GOOD: {"fg": "green", "bold": True},
    Style.DOUBT: {"fg": "yellow", "bold": True},
    Style.SOFT: {"dim": True},
}


def columns() -> int:
    """How wide text is: as the terminal, within reason; 80 columns elsewhere."""
    if not sys.stdout.isatty():
        return _PIPE_COLUMNS
    size = shutil.get_terminal_size((_PIPE_COLUMNS, 24)).columns
    return min(max(size, _COLUMNS_MIN), _COLUMNS_MAX)


def is_coloured(choice: str) -> bool:
    """Whether text is coloured.

    :param choice: ``always``, ``never``, or ``auto``: on a terminal, unless ``NO_COLOR`` is set.
    """
    if choice != "auto":
        return choice == "always"
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not is_plain


def print_lines(lines: Iterable[Line], choice: str) -> None:
    """Print lines on standard output."""
    coloured = is_coloured(choice)
    for line in lines:
        look = _LOOKS[line.style]
        if not coloured or not look or not line.text:
            printing.echo(line.text)
            continue
        at = len(line.text) if line.styled is None else line.styled
        printing.echo_styled([(line.text[:at], look), (line.text[at:], {})])
