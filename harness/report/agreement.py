"""Which servers agree: how alike they treated the same requests, and which divide them most.

What servers did is compared, never verdicts: two servers that are wrong in the same way agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.model.cases import Family
from httpmark.harness.report.byte_maps import READINGS, Seen

CONTESTED_MAX = 12
_OF_ONE_GROUP_MAX = 2  # of one question asked in many ways
_UNKNOWN = "void"  # proves nothing, on either side


class Agreement(msgspec.Struct, frozen=True):
    """For each two servers, the share in percent that both treated alike; None: nothing shared."""

    names: tuple[str, ...]
    rows: tuple[tuple[float | None, ...], ...]
    asked: int  # how many requests at least one of them was asked


class Contested(msgspec.Struct, frozen=True):
    """A case that servers take differently: what each did with it, None where it was not asked."""

    family: Family
    readings: tuple[str | None, ...]  # by server


def _pairwise(
    names: Sequence[str], alike: Callable[[str, str], float | None]
) -> tuple[tuple[float | None, ...], ...]:
    half = {(a, b): alike(a, b) for at, a in enumerate(names) for b in names[at:]}
    return tuple(tuple(half[(a, b) if (a, b) in half else (b, a)] for b in names) for a in names)


def of_bytes(seen: Mapping[str, Seen], keys: Sequence[str]) -> Agreement | None:
    """The share of bytes that both let through or both did not, over maps of single bytes.

    Maps of pairs are left out: they test one property 61,692 times. Requests that are void
    on either side do not count.
    """
    names = tuple(name for name, found in seen.items() if found.maps.keys() & set(keys))
    if len(names) < 2:
        return None
    joined = {
        name: b"".join(seen[name].cells.get(key, bytes(256)) for key in keys) for name in names
    }
    accepted, unknown = READINGS.index("accepted") + 1, (0, READINGS.index(_UNKNOWN) + 1)

    def alike(a: str, b: str) -> float | None:
        both = [
            (x, y)
            for x, y in zip(joined[a], joined[b], strict=True)
            if x not in unknown and y not in unknown
        ]
        if not both:
            return None
        return sum((x == accepted) == (y == accepted) for x, y in both) / len(both) * 100

    asked = max(len(cells) - cells.count(0) for cells in joined.values())
    return Agreement(names, _pairwise(names, alike), asked)


def of_cases(seen: Mapping[str, Seen]) -> Agreement | None:
    """The share of designed cases of which two servers' first answers read alike."""
    names = tuple(name for name, found in seen.items() if found.readings)
    if len(names) < 2:
        return None

    def alike(a: str, b: str) -> float | None:
        mine, theirs = seen[a].readings, seen[b].readings
        both = [case for case in mine.keys() & theirs.keys() if _known(mine[case], theirs[case])]
        if not both:
            return None
        return sum(mine[case] == theirs[case] for case in both) / len(both) * 100

    asked = len(set[str]().union(*(seen[name].readings for name in names)))
    return Agreement(names, _pairwise(names, alike), asked)


def _known(*readings: str) -> bool:
    return _UNKNOWN not in readings


def contested(
    seen: Mapping[str, Seen], known: Catalogue, *, controls: frozenset[str]
) -> tuple[Contested, ...]:
    """The designed cases that divide servers most, most first: the more of them stand apart from
    the largest party, the higher.

    :param controls: servers that validate nothing; shown, but no party to it.
    """
    names = tuple(name for name, found in seen.items() if found.readings)
    rated = []
    for at, family in enumerate(known.families.values()):
        readings = tuple(seen[name].readings.get(family.id) for name in names)
        parties = Counter(
            reading
            for name, reading in zip(names, readings, strict=True)
            if name not in controls and reading is not None and _known(reading)
        )
        apart = parties.total() - max(parties.values(), default=0)
        if apart:
            rated.append((-apart, -len(parties), at, Contested(family, readings)))
    told: Counter[str] = Counter()
    first: list[Contested] = []
    for *_, found in sorted(rated, key=lambda one: one[:3]):
        told[found.family.group] += 1
        if told[found.family.group] <= _OF_ONE_GROUP_MAX:
            first.append(found)
    return tuple(first[:CONTESTED_MAX])
