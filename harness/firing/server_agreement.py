"""The same messages sent to several servers: on how many of them do two servers agree?"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from httpmark.harness.firing.fuzz import Answer, Searcher
from httpmark.harness.firing.strategies import examples
from httpmark.harness.http import request_reader

Pair = tuple[str, str]  # names of servers
Agreed = dict[Pair, tuple[int, int]]  # on how many messages a pair agrees, and of how many


def agreement(searchers: dict[str, Searcher], *, seconds: float, seed: int) -> tuple[Agreed, int]:
    """Send the same messages to several servers and compare how they read them.

    Two servers agree if both accept or both refuse a message and, if both show what they
    understood, they understood the same.

    :returns: for each pair on how many messages they agree, and how many messages were sent.
    """
    end = time.monotonic() + seconds
    first = next(iter(searchers.values()))
    agreed: Counter[Pair] = Counter()
    compared: Counter[Pair] = Counter()
    sent = 0
    for tried in examples(first.requests, seed=seed):
        if time.monotonic() > end:
            break
        read = request_reader.read(tried)
        if not read.requests or (read.requests[-1].valid and not read.requests[-1].whole):
            continue  # every server would wait a second for the rest
        sent += 1
        made = {name: one.answer(tried) for name, one in searchers.items()}
        names = list(made)
        for number, a in enumerate(names):
            for b in names[number + 1 :]:
                compared[a, b] += 1
                agreed[a, b] += _same(made[a], made[b])
    return {pair: (agreed[pair], compared[pair]) for pair in compared}, sent


_GRID_WIDTH = 80  # columns of a terminal
_LABEL_WIDTH = 30


def grid(names: Sequence[str], agreed: Agreed) -> list[str]:
    """A table of lines: on how many percent of the messages each two servers agree."""
    letters = [_letter(number) for number in range(len(names))]
    label = min(max(len(name) for name in names), _LABEL_WIDTH)
    columns = (_GRID_WIDTH - label - 4) // 8
    lines: list[str] = []
    for start in range(0, len(names), columns):
        chosen = range(start, min(start + columns, len(names)))
        head = "".join(f"{letters[number]:>8}" for number in chosen)
        lines.append(f"{'':{label + 4}}{head}")
        for row, name in enumerate(names):
            shown = name if len(name) <= label else "…" + name[1 - label :]
            cells = (_cell(name, names[number], agreed) for number in chosen)
            lines.append(f"{letters[row]:>3} {shown:{label}}{''.join(cells)}")
    return lines


def shares(names: Sequence[str], agreed: Agreed) -> list[list[float | None]]:
    """The same as shares of 1, in the order of ``names``. None if nothing was compared."""

    def share(a: str, b: str) -> float | None:
        alike, compared = agreed.get((a, b)) or agreed.get((b, a)) or (0, 0)
        return alike / compared if compared else None

    return [[share(a, b) for b in names] for a in names]


def _letter(number: int) -> str:
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def _cell(a: str, b: str, agreed: Agreed) -> str:
    if a == b:
        return f"{'-':>8}"
    [[_, share], _] = shares((a, b), agreed)
    return f"{'none':>8}" if share is None else f"{100 * share:>6.1f} %"


def _same(a: Answer, b: Answer) -> bool:
    rejected = {"refused", "closed"}
    if a.reading in rejected and b.reading in rejected:
        return True
    if a.reading != b.reading:
        return False
    return not (a.understood and b.understood) or a.understood == b.understood
