"""Verdicts to scores: pure. What a score means is said in docs and in the report."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from httpmark.harness.judging import failure_modes, judge
from httpmark.harness.model.cases import Family, Level, Requirement
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.verdicts import (
    Controls,
    Difference,
    SeedFamily,
    SuiteResult,
    Tally,
    Verdict,
    Word,
)

FAILURES_KEPT = 10

# A requirement is as good as its worst case; what is not applicable proves nothing either way.
_WORST_FIRST = (Word.FAIL, Word.UNSTABLE, Word.VOID, Word.WARN, Word.PASS, Word.NOT_APPLICABLE)
_RANGE = re.compile(r"([A-Z]+)-([0-9]+)\.\.([0-9]+)")


def tally(verdicts: Iterable[Verdict]) -> Tally:
    """Fold the verdicts of one family."""
    words: defaultdict[Level, Counter[Word]] = defaultdict(Counter)
    found: Counter[str] = Counter()
    closed = 0
    failures: list[Verdict] = []
    for verdict in verdicts:
        words[verdict.level][verdict.word] += 1
        closed += verdict.closed_unanswered
        if verdict.word is Word.FAIL:
            found[failure_modes.failure_mode(verdict.actual)] += 1
        if verdict.word in (Word.FAIL, Word.UNSTABLE) and len(failures) < FAILURES_KEPT:
            failures.append(verdict)
    return Tally(
        words={level: dict(count) for level, count in words.items()},
        closed_unanswered=closed,
        failures=tuple(failures),
        failure_modes=failure_modes.most_frequent(found),
    )


def showing(requirement: Requirement) -> Callable[[Iterable[str], str], bool]:
    """Tells of a case's numbers and family whether it is among those of a requirement."""
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
    of the ledger names make a row of their own, by family and level.

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
        if not named:
            for level in found.words:
                rows.setdefault(f"{family.group}/{level}".lower(), (level, []))[1].append(found)
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
        # Of an entry that fails at other levels, too, it is not known which failures are closes.
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
    """How many requirements of level MUST and CTRL have which verdict (contract.md)."""
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


def controls(judged: Iterable[Verdict]) -> Controls:
    """Fold the verdicts of positive controls; a void one proves nothing, so it does not pass."""
    passed, failures = 0, []
    for verdict in judged:
        if verdict.word in (Word.PASS, Word.WARN):
            passed += 1
        else:
            failures.append(verdict)
    return Controls(passed, len(failures), tuple(failures[:FAILURES_KEPT]))


def gated(families: Iterable[Family], failed: Iterable[str]) -> tuple[str, ...]:
    """The families that may not be scored because one of their controls failed."""
    by_id = {family.id: family for family in families}
    names: list[str] = []
    for control in failed:
        for gate in by_id[control].gates:
            names += (
                [name for name, family in by_id.items() if family.level is not Level.CTRL]
                if gate == "*"
                else [gate]
            )
    return tuple(dict.fromkeys(names))


def seed_family(exchanges: Iterable[Exchange]) -> SeedFamily:
    """Count one published family, by the published reading and by ours."""
    detected = undetected = 0
    strict: Counter[str] = Counter()
    for exchange in exchanges:
        found, word = judge.seed_reading(exchange)
        strict[word] += 1
        if word != "void":
            detected += found
            undetected += not found
    return SeedFamily(
        detected=detected,
        undetected=undetected,
        rejected=strict["rejected"],
        closed=strict["closed"],
        accepted=strict["accepted"],
        mute=strict["mute"],
        malformed=strict["malformed"],
        void=strict["void"],
    )


def seed_suite(
    families: list[Family],
    counts: dict[str, SeedFamily],
    control_verdicts: list[Verdict],
    blocked: tuple[str, ...],
) -> SuiteResult:
    """The suite's score, or the reason why there is none.

    A score stands only when every control passed, every family that was asked for was fired whole
    and no request is void: a percentage of part of the requests is not comparable.

    :param families: those that were asked for.
    """
    summary = controls(control_verdicts)
    wanted = {family.id: family.count for family in families if family.level is not Level.CTRL}
    reason = None
    if summary.failures:
        first = summary.failures[0]
        reason = (
            f"not scored: {summary.failed} of {summary.failed + summary.passed} positive controls "
            f"failed ({first.case}: {first.actual})"
        )
    elif blocked:
        wanted_controls = sum(f.count for f in families if f.level is Level.CTRL)
        reason = (
            f"not scored: {summary.passed} of {wanted_controls} positive controls have an outcome"
        )
    elif any(name not in counts or counts[name].requests < wanted[name] for name in wanted):
        missing = sum(
            wanted[name] - (counts[name].requests if name in counts else 0) for name in wanted
        )
        reason = f"not scored: {missing} of {sum(wanted.values())} requests have no valid outcome"
    detected = sum(family.detected for family in counts.values())
    requests = sum(family.requests for family in counts.values())
    return SuiteResult(
        score_percent=None if reason or not requests else 100.0 * detected / requests,
        reason=reason,
        families=counts,
        controls=summary,
        requests=requests,
    )


def detections(exchanges: Iterable[Exchange]) -> list[tuple[str, bool]]:
    """Which request of a family was detected, in the family's order."""
    return [(exchange.case, judge.seed_reading(exchange)[0]) for exchange in exchanges]


def run_lengths(detected: Iterable[bool]) -> str:
    """Run lengths of a family's detections: ``"35d 140u"`` is 35 detected, then 140 not."""
    runs: list[tuple[bool, int]] = []
    for found in detected:
        if runs and runs[-1][0] is found:
            runs[-1] = (found, runs[-1][1] + 1)
        else:
            runs.append((found, 1))
    return " ".join(f"{length}{'d' if found else 'u'}" for found, length in runs)


def expand(run_lengths_text: str) -> list[bool]:
    """The inverse of :func:`run_lengths`."""
    return [word[-1] == "d" for word in run_lengths_text.split() for _ in range(int(word[:-1]))]


def difference(
    family: str, published: str, found: list[tuple[str, bool]], *, keep: int = 20
) -> Difference | None:
    """The requests on which a server differs from its published behaviour, or None.

    :param published: run lengths recorded from the version that gives the published counts.
    """
    expected = expand(published)
    cases = [case for (case, now), then in zip(found, expected, strict=True) if now is not then]
    if not cases:
        return None
    return Difference(
        family=family,
        published_detected=sum(expected),
        detected=sum(now for _, now in found),
        cases=tuple(cases[:keep]),
        more=max(0, len(cases) - keep),
    )
