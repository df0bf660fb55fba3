"""What failed in an earlier run, for ``check --rerun``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from httpmark.harness.catalogue import catalogue
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import NothingSelected
from httpmark.harness.model.verdicts import SuiteResult, Tally, Word

_FAILED = (Word.FAIL, Word.UNSTABLE)


def failures(path: Path, known: catalogue.Catalogue) -> tuple[str, ...]:
    """The entries of the catalogue that failed in a run: cases and families, those whose answers
    failed a check on every answer, and those whose deliveries disagreed.

    :raises HarnessError: the folder holds no run.
    :raises NothingSelected: nothing failed there.
    """
    found = (
        case
        for server in run_folder.read(path).servers
        for suite in server.compliance.suites.values()
        for case in _of_suite(suite)
    )
    entries = (_entry(case, known) for case in found)
    chosen = tuple(dict.fromkeys(entry for entry in entries if entry is not None))
    if not chosen:
        raise NothingSelected(f"{path}: nothing failed in this run, so there is nothing to repeat")
    return chosen


def masked_fields(path: Path) -> tuple[str, ...]:
    """The names of the field lines that a run was made with and whose values it does not hold.

    :raises HarnessError: the folder holds no run.
    """
    words = [word for server in run_folder.read(path).servers for word in server.again]
    lines = (value for option, value in itertools.pairwise(words) if option == "--header")
    return tuple(dict.fromkeys(line.partition(":")[0] for line in lines))


def _of_suite(suite: SuiteResult) -> Iterator[str]:
    """The cases and families of a suite that failed, in the order of the result."""
    yield from (id for id, verdict in suite.cases.items() if verdict.word in _FAILED)
    yield from (id for id, tally in suite.generated.items() if _has_failed(tally))
    yield from (id for id, one in suite.families.items() if one.undetected or one.mute)
    for tally in suite.answers.values():
        yield from (one.case for one in tally.failures if one.word in _FAILED)
    if suite.controls is not None:
        yield from (one.case for one in suite.controls.failures)
    if suite.deliveries is not None:
        yield from (one.case for one in suite.deliveries.disagreements)


def _entry(case: str, known: catalogue.Catalogue) -> str | None:
    """The entry of the catalogue that a case is of: its own, or the family that it begins with."""
    if case in known.families:
        return case
    families = (id for id, family in known.families.items() if family.generated)
    return max((id for id in families if case.startswith(f"{id}-")), key=len, default=None)


def _has_failed(tally: Tally) -> bool:
    return any(words.get(word) for words in tally.words.values() for word in _FAILED)
