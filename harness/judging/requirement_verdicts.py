"""Tallies to verdicts on requirements, and these to a score: pure.

``docs/gate.md`` says what a score means.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from httpmark.harness.model.cases import Family, Level, Requirement
from httpmark.harness.model.verdicts import SuiteResult, Tally, Word

# A requirement is as good as its worst case. A case that does not apply proves nothing.
_WORST_FIRST = (Word.FAIL, Word.UNSTABLE, Word.VOID, Word.WARN, Word.PASS, Word.NOT_APPLICABLE)
_RANGE = re.compile(r"([A-Z]+)-([0-9]+)\.\.([0-9]+)")


def showing(requirement: Requirement) -> Callable[[Iterable[str], str], bool]:
    """Whether a case belongs to a requirement, by the case's numbers and family."""
    exact: set[str] = set()
    patterns = []
    for selector in requirement.cases:
        if match := _RANGE.fullmatch(selector):
            numbers = range(int(match[2]), int(match[3]) + 1)
            exact |= {f"{match[1]}-{number:0{len(match[2])}}" for number in numbers}
        elif "*" in selector:
            patterns.append(selector)
        else:
            exact.add(selector)

    def shows(refs: Iterable[str], group: str) -> bool:
        return (
            group in exact
            or not exact.isdisjoint(refs)
            or any(
                fnmatch.fnmatchcase(word, pattern)
                for pattern in patterns
                for word in (*refs, group)
            )
        )

    return shows


def own_row(group: str, level: Level) -> str:
    """The id of the row that cases make which belong to no requirement of the ledger."""
    return f"{group}/{level}".lower()


def rows(
    ledger: Iterable[Requirement], families: Sequence[Family], ids: Iterable[str]
) -> list[Requirement]:
    """The rows of the ledger, then those that cases make which belong to none (:func:`own_row`).

    :param ids: of requirements with a verdict.
    """
    found = list(ledger)
    known = {row.id for row in found}
    for id in ids:
        group, _, level = id.partition("/")
        if id in known or level.upper() not in list(Level):
            continue  # the second: a row of another catalogue
        known.add(id)
        own = [family for family in families if family.group.lower() == group]
        found.append(
            Requirement(
                id=id,
                clause=own[0].clause if len(own) == 1 else "",
                level=Level(level.upper()),
                title=_as_title(own[0].title)
                if len(own) == 1
                else f"Other cases of {group.upper()}",
                cases=(group.upper(),),
            )
        )
    return found


def _as_title(text: str) -> str:
    return text[:1].upper() + text[1:]


def has_level(row: Requirement, family: Family) -> bool:
    """Whether a family may have cases of the level of a row. A row of the ledger takes all."""
    return "/" not in row.id or family.generated or family.level is row.level


def merged(suites: Iterable[SuiteResult]) -> dict[str, Word]:
    """The requirements of several suites of one server: each is as good as in its worst suite."""
    found: dict[str, Word] = {}
    for suite in suites:
        for id, word in suite.requirements.items():
            found[id] = worst((word, found[id])) if id in found else word
    return found


def worst(words: Iterable[Word]) -> Word:
    """The word that stands for several: a requirement is as good as its worst case."""
    found = set(words)
    return next((word for word in _WORST_FIRST if word in found), Word.NOT_APPLICABLE)


def requirements(
    ledger: Iterable[Requirement],
    families: Iterable[Family],
    tallies: Mapping[str, Tally],
    answers: Mapping[str, Tally],
) -> dict[str, tuple[Level, Word, bool]]:
    """Each requirement's level, verdict, and whether its failures are only closes unanswered.

    A MUST is judged by its MUST cases and controls, any other by all its cases. Cases that no row
    of the ledger names make a row of their own, by family and level; so do cases that bind, if no
    row that binds names them: whatever fails the gate counts.

    :param tallies: by entry; entries that were not fired are left out.
    :param answers: the checks on every answer, by number.
    """
    rows: dict[str, tuple[Level, list[Tally]]] = {row.id: (row.level, []) for row in ledger}
    known = [(row, showing(row)) for row in ledger]
    for family in families:
        if family.id not in tallies:
            continue
        refs = family.refs or (family.ref,)
        named = [row for row, shows in known if shows(refs, family.group)]
        found = tallies[family.id]
        for row in named:
            rows[row.id][1].append(found)
        binds = any(row.level.is_binding for row in named)
        for level in found.words:
            if not named or (level.is_binding and not binds):
                rows.setdefault(own_row(family.group, level), (level, []))[1].append(found)
    for number, found in answers.items():
        for row, shows in known:
            if shows((number,), number):
                rows[row.id][1].append(found)
    result = {}
    for id, (level, members) in rows.items():
        if not members:
            continue
        shown_by = [one for one in Level if one.is_binding or not level.is_binding]
        own = [level] if "/" in id else shown_by
        counted = [t.words[lv] for t in members for lv in own if lv in t.words]
        word = worst(word for words in counted for word in words)
        failed = sum(words.get(Word.FAIL, 0) for words in counted)
        # If an entry fails at other levels, too, it is not known which of the failures are closes.
        closed = sum(
            t.closed_unanswered
            for t in members
            if all(lv in own for lv, words in t.words.items() if Word.FAIL in words)
        )
        result[id] = (level, word, word is Word.FAIL and 0 < failed <= closed)
    return result


_KEYS = {
    Word.PASS: "passed",
    Word.FAIL: "failed",
    Word.WARN: "warned",
    Word.VOID: "void",
    Word.NOT_APPLICABLE: "not_applicable",
    Word.UNSTABLE: "unstable",
}


def must(rows: Mapping[str, tuple[Level, Word, bool]]) -> dict[str, int]:
    """How many requirements of level MUST and CTRL have which verdict (docs/contract.md)."""
    counts = dict.fromkeys((*_KEYS.values(), "closed_unanswered"), 0)
    for level, word, only_closed in rows.values():
        if level.is_binding:
            counts[_KEYS[word]] += 1
            counts["closed_unanswered"] += only_closed
    return counts


def percent(counts: Mapping[str, int]) -> float | None:
    """MUST and control requirements passed (warned ones too) over those applicable."""
    good = counts["passed"] + counts["warned"]
    applicable = good + counts["failed"] + counts["unstable"]
    return 100.0 * good / applicable if applicable else None
