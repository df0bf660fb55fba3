"""The smallest part of a message that still does what the whole message does.

Delta debugging (Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002),
algorithm ddmin, asked in lots. The result is 1-minimal: no single byte of it can go.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

ASKED_MAX = 4000

Piece = TypeVar("Piece")


class Budget:
    """How many questions may be asked.

    :param is_over: whether time has run out, too.
    """

    def __init__(self, tries: int, is_over: Callable[[], bool] = lambda: False) -> None:
        self._tries = tries
        self._is_over = is_over

    def spend(self) -> bool:
        """Whether there is one more question."""
        self._tries -= 1
        return self._tries >= 0 and not self._is_over()


def fewest(
    pieces: list[Piece], holds: Callable[[list[Piece]], bool], budget: Budget
) -> list[Piece]:
    """The fewest pieces, in their order, for which ``holds`` is still true; asked one by one.

    For questions that are dear: as soon as some pieces are known to be needless, they are gone.
    Where the budget lasts, none of the result can go.

    :param holds: it holds for the pieces themselves.
    """
    size = max(1, len(pieces) // 2)
    while True:
        before, at = len(pieces), 0
        while at < len(pieces) and len(pieces) > 1:
            if not budget.spend():
                return pieces
            left = pieces[:at] + pieces[at + size :]
            if left and holds(left):
                pieces = left
            else:
                at += size
        if size == 1 and len(pieces) == before:
            return pieces
        size = max(1, size // 2)


class Search:
    """One search: ask about each message of ``lot`` and tell what held, until the lot is empty.

    ``octets`` is the smallest message so far that is known to hold.
    """

    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        self._lots = self._run()
        self.lot: list[bytes] = next(self._lots, [])

    def told(self, held: Sequence[bool]) -> None:
        """Take in which of the lot hold, and make the next lot."""
        try:
            self.lot = self._lots.send(held)
        except StopIteration:
            self.lot = []

    def _run(self) -> Generator[list[bytes], Sequence[bool], None]:
        for parted in (_lines, _single):  # whole lines first: that is quicker
            yield from self._fewer(parted(self.octets))

    def _fewer(self, pieces: list[bytes]) -> Generator[list[bytes], Sequence[bool], None]:
        """ddmin: leave out ever smaller parts of the pieces."""
        parts = 2
        while len(pieces) >= 2:
            size = -(-len(pieces) // parts)
            starts = range(0, len(pieces), size)
            held = yield [b"".join(_without(pieces, size, (start,))) for start in starts]
            gone = [start for start, holds in zip(starts, held, strict=True) if holds]
            if gone:
                number = yield from self._together(pieces, size, gone)
                pieces = _without(pieces, size, gone[:number])
                parts = max(parts - number, 2)
            elif size == 1:
                return
            else:
                parts = min(2 * parts, len(pieces))

    def _together(
        self, pieces: list[bytes], size: int, starts: list[int]
    ) -> Generator[list[bytes], Sequence[bool], int]:
        """Leave out as many parts at once as can go together; return their number."""
        numbers = [len(starts)]
        while numbers[-1] > 1:
            numbers.append(numbers[-1] // 2)
        tried = [b"".join(_without(pieces, size, starts[:number])) for number in numbers]
        # A single part is known to be able to go.
        held = [*((yield tried[:-1]) if len(tried) > 1 else ()), True]
        chosen = list(held).index(True)
        self.octets = tried[chosen]
        return numbers[chosen]


def _lines(octets: bytes) -> list[bytes]:
    return octets.splitlines(keepends=True)


def _single(octets: bytes) -> list[bytes]:
    return [octets[at : at + 1] for at in range(len(octets))]


def _without(pieces: list[bytes], size: int, starts: Sequence[int]) -> list[bytes]:
    left = list(pieces)
    for start in reversed(starts):
        del left[start : start + size]
    return left


def smallest(octets: bytes, holds: Callable[[bytes], bool], *, asked_max: int = ASKED_MAX) -> bytes:
    """A small part of ``octets`` for which ``holds`` is still true.

    :param holds: is asked about ever smaller messages; it holds for ``octets`` itself.
    :param asked_max: the most questions; if they run out, the result holds but is not minimal.
    """
    search, asked = Search(octets), 0
    while search.lot and asked + len(search.lot) <= asked_max:
        asked += len(search.lot)
        search.told([bool(tried) and holds(tried) for tried in search.lot])
    return search.octets
