"""`httpmark list coverage`: what the cases cover of the grammar, for people and as JSON."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

from httpmark.harness.catalogue import coverage_holes, grammar_coverage, loading
from httpmark.harness.catalogue.coverage_holes import Listed
from httpmark.harness.catalogue.grammar_coverage import BLOCK, Covered
from httpmark.harness.http.printable import escaped
from httpmark.harness.report.text_layout import Table, wrapped

_UNLISTED = "not listed in scenarios/coverage_holes.toml"


def listing(rule: str | None) -> tuple[list[str], dict[str, Any]]:
    """The rows that are printed, and the value for ``--json``.

    :param rule: show this rule with its holes.
    :raises HarnessError: there is no such rule.
    """
    covered = grammar_coverage.coverage(loading.load())
    listed = coverage_holes.read()
    if rule is not None:
        covered = (coverage_holes.rule_named(covered, rule),)
    value = {"coverage": [_value(one, listed) for one in covered]}
    width = shutil.get_terminal_size().columns
    rows = list(_table(covered, width))
    if rule is not None:
        rows += _details(covered[0], listed, width)
    return rows, value


def _value(one: Covered, listed: Listed) -> dict[str, Any]:
    return {
        "rule": one.rule.name,
        "clause": one.rule.clause,
        "alternatives": {name: name in one.alternatives for name in one.rule.alternatives},
        "deviations": len(one.deviations),
        "refused": len(one.deviations) - len(one.holes),
        "accepted_at": sorted(one.accepted_at),
        "refused_at": sorted(one.refused_at),
        "holes": [
            {
                "deviation": hole.text,
                "bytes": escaped(hole.octets),
                "reason": entry.reason if (entry := listed.entry(one.rule.name, hole)) else None,
            }
            for hole in one.holes
        ],
    }


def _table(covered: tuple[Covered, ...], width: int) -> Iterator[str]:
    table = Table(
        width,
        ("alternatives", 12),
        ("deviations", 10),
        ("accepted at", 11),
        ("refused at", 10),
        ("holes", 5),
    )
    yield table.head("rule")
    for one in covered:
        deviations, holes = len(one.deviations), len(one.holes)
        missing = len(one.missing_alternatives)
        yield table.line(
            one.rule.name,
            (
                f"{len(one.alternatives)} of {len(one.rule.alternatives)}",
                f"{deviations - holes} of {deviations}",
                f"{len(one.accepted_at)} of {BLOCK}",
                f"{len(one.refused_at)} of {BLOCK}",
                str(holes + missing),
            ),
        )


def _details(one: Covered, listed: Listed, width: int) -> Iterator[str]:
    """The holes of a rule, those with one reason together."""
    yield ""
    yield f"{one.rule.name}: {one.rule.clause}"
    for name in one.missing_alternatives:
        known = listed.alternative(one.rule.name, name)
        yield from wrapped(f"no case has: {name} ({known.reason if known else _UNLISTED})", width)
    by_reason: dict[str, list[str]] = {}
    for hole in one.holes:
        entry = listed.entry(one.rule.name, hole)
        shown = f"    {hole.text:40} {escaped(hole.octets)}"
        by_reason.setdefault(entry.reason if entry else _UNLISTED, []).append(shown)
    for reason, shown_holes in by_reason.items():
        yield ""
        yield from wrapped(
            f"{len(shown_holes)} deviations that no case has refused: {reason}", width
        )
        yield from shown_holes
