"""Plain text of a width, for any terminal: tables, and notes that wrap."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from httpmark.harness.http.printable import terminal_line


def fit(text: str, width: int) -> str:
    """Text in a width; what is cut off shows as a tilde."""
    return text if len(text) <= width else text[: width - 1] + "~"


class Table:
    """Columns of text: the first fills what the others leave.

    :param columns: heads with their widths; negative ones stand at the left of theirs.
    """

    def __init__(self, width: int, *columns: tuple[str, int]) -> None:
        self.widths = [size for _, size in columns]
        used = sum(abs(size) for size in self.widths) + len(columns)
        self.name_width = max(width - used, 6)
        self.heads = [head for head, _ in columns]

    def line(self, name: str, cells: Sequence[str]) -> str:
        parts = [fit(terminal_line(name), self.name_width).ljust(self.name_width)]
        for text, size in zip(cells, self.widths, strict=True):
            fitted = fit(terminal_line(text), abs(size))
            parts.append(fitted.ljust(-size) if size < 0 else fitted.rjust(size))
        return " ".join(parts).rstrip()

    def head(self, name: str) -> str:
        return self.line(name, self.heads)


def wrapped(
    text: str, width: int, *, indent: str = "  ", whole: bool = False, hyphens: bool = True
) -> list[str]:
    """Text as lines of a width, those after the first further in.

    :param whole: words are not cut, be they too long: commands and paths are there to be copied.
    :param hyphens: lines may end after a hyphen; not where names of cases stand.
    """
    return textwrap.wrap(
        terminal_line(text),
        width,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=not whole,
        break_on_hyphens=hyphens and not whole,
    ) or [""]


def grouped(notes: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Reasons, each once, with the servers it is said of."""
    said: dict[str, list[str]] = {}
    for name, why in notes:
        said.setdefault(why, []).append(name)
    return [
        line for why, names in said.items() for line in wrapped(f"{', '.join(names)}: {why}", width)
    ]
