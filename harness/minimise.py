"""The smallest part of some octets that still does what the whole does.

Delta debugging (Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002),
algorithm ddmin: the result is 1-minimal, no single octet of it can go.
"""

from __future__ import annotations

from collections.abc import Callable


def smallest(octets: bytes, holds: Callable[[bytes], bool], *, asks_max: int = 2000) -> bytes:
    """Octets left of ``octets`` for which ``holds`` is still true.

    :param holds: asked about ever smaller octets; it holds for ``octets`` themselves.
    :param asks_max: so many questions at most; then what is left is not minimal, and true still.
    """
    parts = 2
    asked = 0
    while len(octets) >= 2:
        size = -(-len(octets) // parts)
        for start in range(0, len(octets), size):
            without = octets[:start] + octets[start + size :]
            asked += 1
            if asked > asks_max:
                return octets
            if without and holds(without):
                octets, parts = without, max(parts - 1, 2)
                break
        else:
            if size == 1:
                return octets
            parts = min(2 * parts, len(octets))
    return octets
