"""Which part of a family a quick look asks, and how many cases there are to judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.model.cases import Family

_QUICK_STEP = 31
_QUICK_ABOVE = 50_000
# The step of the next smaller families. Where two things vary, most values of each are still met.
_MIDDLE_STEP = 7
_MIDDLE_ABOVE = 500


def size(
    catalogue: Catalogue,
    suites: Iterable[str],
    selected: Callable[[Family], bool],
    *,
    quick: bool,
) -> int:
    """How many cases there are at most to judge."""
    return sum(
        cases_of(family, quick=quick)
        for suite in suites
        for family in catalogue.of_suite(suite)
        if selected(family)
    )


def cases_of(family: Family, *, quick: bool) -> int:
    return -(-family.count // step_of(family, quick=quick))


def step_of(family: Family, *, quick: bool) -> int:
    """Every which case of a family: a quick look thins large generated families, but not ``seed``.

    It asks the same cases on every machine, and of every server.
    """
    if not quick or family.suite == "seed" or family.count <= _MIDDLE_ABOVE:
        return 1
    return _QUICK_STEP if is_very_large(family) else _MIDDLE_STEP


def is_very_large(family: Family) -> bool:
    """Whether a family has so many cases that a slow server takes most of a minute for them."""
    return family.suite != "seed" and family.count > _QUICK_ABOVE


def stored_step(count: int, planned: int) -> int:
    """Every which case of a family of ``count`` cases a stored run planned, if it was so many."""
    return -(-count // planned) if 0 < planned < count else 1


def plays(family: Family, *, quick: bool) -> bool:
    """Whether a program is played: a quick look plays only those that bind."""
    return not quick or family.level.is_binding


def thinned(counts: Mapping[str, int]) -> str:
    """What is said of families that were thinned because a sample of each failed already.

    :param counts: by family, how many of its cases are left out.
    """
    names, number = " and ".join(sorted(counts)), sum(counts.values())
    return (
        f"{number:,} requests of {names} are left out, because many of a sample failed already; "
        "--full asks them, too"
    )


def left_out(
    catalogue: Catalogue, suites: Iterable[str], selected: Callable[[Family], bool]
) -> tuple[int, int]:
    """How many generated requests and how many programs a quick look does not ask."""
    chosen = [one for name in suites for one in catalogue.of_suite(name) if selected(one)]
    return (
        sum(one.count - cases_of(one, quick=True) for one in chosen),
        sum(one.runner is not None and not plays(one, quick=True) for one in chosen),
    )
