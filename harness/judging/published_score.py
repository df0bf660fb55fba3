"""The suite ``seed``: the published families counted and compared with what was published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.judging import (
    positive_controls,
    published_rule,
    published_score,
)
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.positive_controls import control_verdicts, controls, failed_controls
from httpmark.harness.model.cases import Facts, Family, Level
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.verdicts import (
    Difference,
    SeedFamily,
    SuiteResult,
    Verdict,
)


def seed_family(exchanges: Iterable[Exchange], facts: Facts | None) -> SeedFamily:
    """Count one published family, by the published reading and by ours."""
    detected = undetected = 0
    strict: Counter[str] = Counter()
    for exchange in exchanges:
        found, word = published_rule.reading_of(exchange, facts)
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


def detections(exchanges: Iterable[Exchange], facts: Facts | None) -> list[tuple[str, bool]]:
    """Which request of a family was detected, in the family's order."""
    return [
        (exchange.case, published_rule.reading_of(exchange, facts)[0]) for exchange in exchanges
    ]


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


def score_seed(catalogue: Catalogue, server: str, evidence: Evidence) -> SuiteResult:
    families = [family for family in catalogue.of_suite("seed") if evidence.planned(family.id)]
    controls = [family for family in families if family.level is Level.CTRL]
    stored = set(evidence.families(server))
    facts = evidence.facts(server)
    failed = failed_controls(catalogue, controls, evidence, server)
    verdicts = [
        verdict
        for judged in control_verdicts(catalogue, controls, evidence, server).values()
        for verdict in judged
    ]
    counts = {}
    differences = []
    compared = False
    for family in families:
        if family.level is Level.CTRL or family.id not in stored:
            continue
        exchanges = list(evidence.exchanges(server, family=family.id))
        counts[family.id] = published_score.seed_family(exchanges, facts)
        published = catalogue.published.get(server, {}).get(family.id)
        if published is not None and len(exchanges) == family.count:
            compared = True
            found = published_score.difference(
                family.id, published, published_score.detections(exchanges, facts)
            )
            if found is not None:
                differences.append(found)
    result = published_score.seed_suite(
        families, counts, verdicts, positive_controls.gated(families, failed)
    )
    return msgspec.structs.replace(
        result,
        published=("differs" if differences else "exact") if compared else None,
        differences=tuple(differences),
    )
