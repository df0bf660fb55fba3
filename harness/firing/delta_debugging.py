"""The smallest part of some octets that still does what the whole does.

Delta debugging (Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002),
algorithm ddmin, asked in lots: the result is 1-minimal, no single octet of it can go.

Fewer octets may draw the same answer and be another matter: ``Content-Length: +5`` without that
line is a request that every server accepts. :func:`alike` says what still shows the same fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence

from httpmark.harness.catalogue import expectation
from httpmark.harness.catalogue.expectation import Expectation
from httpmark.harness.http import request_reader, tolerances
from httpmark.harness.http.request_reader import Broken

ASKED_MAX = 4000


class Search:
    """One search: ask about each octets of ``lot``, say what held, until the lot is empty.

    ``octets`` are the fewest so far that are known to hold.
    """

    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        self._lots = self._run()
        self.lot: list[bytes] = next(self._lots, [])

    def told(self, held: Sequence[bool]) -> None:
        """Which of the lot hold; makes the next lot."""
        try:
            self.lot = self._lots.send(held)
        except StopIteration:
            self.lot = []

    def _run(self) -> Generator[list[bytes], Sequence[bool], None]:
        for parted in (_lines, _single):  # what goes in lines goes sooner so
            yield from self._fewer(parted(self.octets))

    def _fewer(self, pieces: list[bytes]) -> Generator[list[bytes], Sequence[bool], None]:
        """ddmin: leave out parts of the pieces, finer and finer ones."""
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
        """Leave out as many of the parts at once as can go together; how many those are."""
        numbers = [len(starts)]
        while numbers[-1] > 1:
            numbers.append(numbers[-1] // 2)
        tried = [b"".join(_without(pieces, size, starts[:number])) for number in numbers]
        # That one alone can go is known.
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
    """Octets left of ``octets`` for which ``holds`` is still true.

    :param holds: asked about ever smaller octets; it holds for ``octets`` themselves.
    :param asked_max: so many questions at most; then what is left is not minimal, and true still.
    """
    search, asked = Search(octets), 0
    while search.lot and asked + len(search.lot) <= asked_max:
        asked += len(search.lot)
        search.told([bool(tried) and holds(tried) for tried in search.lot])
    return search.octets


# --- the same fault -------------------------------------------------------------------------------

Sort = tuple[Broken | None, bool]  # what is broken; whether the texts tolerate it


def sort(octets: bytes) -> Sort | None:
    """What a message is by the grammar; None where it is no message alone, or has not ended."""
    requests = request_reader.read(octets).requests
    if len(requests) != 1:
        return None
    broken = tolerances.broken(octets)
    if broken is None:
        return (None, True) if requests[0].valid and requests[0].whole else None
    return broken, tolerances.tolerance(octets) is not None


def asks(octets: bytes) -> Expectation:
    """What the grammar alone asks of whoever gets a message: to take a valid one for what it is,
    to refuse another, or to read it as the texts tolerate."""
    rule = tolerances.rule(octets)
    if rule is None:
        return expectation.expectation(("PARSED",), values={})
    allowed = tolerances.tolerance(octets)
    passes = (rule.word, "ACC") if allowed is not None and not allowed.allows else (rule.word,)
    return expectation.expectation(passes, allowed.allows if allowed else (), values={})


def alike(octets: bytes) -> Callable[[bytes], bool]:
    """Whether fewer octets show the same fault: whole lines may go, what is no name may get
    shorter, and what the grammar says of it stays the same.

    The method stays, a request line that is not at fault does, and lines that frame the message
    stay as they are or go.
    """
    (first, *lines), kept, wanted = octets.split(b"\n"), _kept(octets), sort(octets)
    broken = wanted[0] if wanted else None
    is_at_fault = broken is None or tolerances.part(broken) == "request line"
    outlines = [_RUN.sub(_short, first), *map(_outline, lines)]

    def is_alike(fewer: bytes) -> bool:
        own, *others = fewer.split(b"\n")
        if not (own == first or is_at_fault) or _kept(fewer) != kept:
            return False
        rest = iter(outlines)
        shown = (_RUN.sub(_short, own), *map(_outline, others))
        return all(any(line == other for other in rest) for line in shown) and sort(fewer) == wanted

    return is_alike


# What stands behind a percent sign is a pair, or fails to be one.
_RUN = re.compile(rb"%[A-Za-z0-9]{0,2}|[A-Za-z]+|[0-9]+")
_NAMED = re.compile(rb"[^:]*:")
_FRAMES = re.compile(
    rb"(?i)(?:host|content-length|transfer-encoding|connection|te|trailer|expect|upgrade)"
    rb"(?![A-Za-z0-9-])"
)
_HOST = re.compile(rb"(?i)\nhost[ \t]*:")


def _outline(line: bytes) -> bytes:
    """A line, each run of letters or digits that is no name as one of its kind."""
    if _FRAMES.match(line) or b" HTTP/" in line:  # a request inside content is there to be seen
        return line
    name = _NAMED.match(line)
    at = name.end() if name else 0
    return line[:at] + _RUN.sub(_short, line[at:])


def _short(run: re.Match[bytes]) -> bytes:
    text = run[0]
    return text if text[:1] == b"%" else b"0" if text.isdigit() else b"a"


def _kept(octets: bytes) -> tuple[bytes, int]:
    """The method, and whether there is no Host, one, or more."""
    return octets.split(b" ", 1)[0], min(len(_HOST.findall(octets)), 2)
