"""All rules of the grammar that a server has to parse."""

from __future__ import annotations

from httpmark.harness.catalogue import (
    chunked_samples,
    framing_field_samples,
    optional_field_samples,
    request_line_samples,
)
from httpmark.harness.catalogue.byte_deviations import DELETED, DOUBLED, deviations
from httpmark.harness.catalogue.grammar_rules import GrammarRule, Where
from httpmark.harness.http import grammar

RULES: tuple[GrammarRule, ...] = (
    *request_line_samples.RULES,
    *framing_field_samples.RULES,
    *chunked_samples.RULES,
    *optional_field_samples.RULES,
)
KINDS = frozenset({DELETED, DOUBLED, *grammar.BYTE_CLASSES})
"""The kinds of deviations."""


def deviating_values(name: str, but: frozenset[str]) -> tuple[bytes, ...]:
    """The one-byte deviations of the samples of a rule, without the name of the field or what the
    request line begins with, and without the line end.

    :param but: kinds of deviations that are left out.
    :raises KeyError: there is no such rule.
    """
    rule = next((one for one in RULES if one.name == name), None)
    if rule is None:
        raise KeyError(name)
    found = []
    for parts in rule.samples.values():
        fixed = next(number for number, part in enumerate(parts) if part.around is None)
        leading = parts[: fixed if rule.where is Where.REQUEST_LINE else 1]
        start = sum(len(part.octets) for part in leading)
        end = len(parts[-1].octets)
        found += [
            one.octets[start : len(one.octets) - end]
            for one in deviations(parts, rule.valid)
            if one.kind not in but
        ]
    return tuple(dict.fromkeys(found))
