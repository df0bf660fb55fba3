"""Which part of a family a quick look asks, and how many cases there are to judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.model.cases import Family

_QUICK_STEP = 31
_QUICK_ABOVE = 50_000


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
    """Every which case of a family: a quick look thins the largest, but not ``seed``."""
    is_thinned = quick and family.suite != "seed" and family.count > _QUICK_ABOVE
    return _QUICK_STEP if is_thinned else 1
