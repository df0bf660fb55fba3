"""Positive controls: good requests that have to be accepted before a score counts."""

from __future__ import annotations

from collections.abc import Iterable

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.judging import (
    published_rule,
)
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.family_tally import FAILURES_KEPT
from httpmark.harness.model.cases import Family, Level
from httpmark.harness.model.verdicts import (
    Controls,
    Verdict,
    Word,
)


def controls(judged: Iterable[Verdict]) -> Controls:
    """Fold the verdicts of positive controls. A void one proves nothing, so it does not pass."""
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


def control_verdicts(
    catalogue: Catalogue, families: Iterable[Family], evidence: Evidence, server: str
) -> dict[str, list[Verdict]]:
    facts = evidence.facts(server)
    return {
        family.id: [
            published_rule.verdict_by_word(family, exchange, facts)
            for exchange in evidence.exchanges(server, family=family.id)
        ]
        for family in families
    }


def failed_controls(
    catalogue: Catalogue, controls: list[Family], evidence: Evidence, server: str
) -> list[str]:
    """The controls that did not pass in full. A control that was not fired did not pass."""
    return [
        name
        for name, verdicts in control_verdicts(catalogue, controls, evidence, server).items()
        if len(verdicts) < catalogue.families[name].count
        or any(verdict.word is not Word.PASS for verdict in verdicts)
    ]


def failed_gates(
    catalogue: Catalogue, controls: list[Family], evidence: Evidence, server: str
) -> set[str]:
    return {
        gate
        for name in failed_controls(catalogue, controls, evidence, server)
        for gate in catalogue.families[name].gates
    }
