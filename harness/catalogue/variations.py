"""What varies inside a family, and in which order.

The order is that of the published benchmark: bytes as signed char (0x80 to 0xFF, then 0x00 to
0x7F); of pairs first those with a bad first byte, then those with a good first and a bad second.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

from httpmark.harness.catalogue import notation
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.http import grammar

ORDER = (*range(0x80, 0x100), *range(0x80))
assert frozenset(ORDER) == grammar.ANY


class Variation(msgspec.Struct, frozen=True):
    """One case of a family: the tail of its slug, and what its placeholders stand for."""

    slug: str
    values: dict[str, notation.Value]


def variations(rule: Rule, step: int = 1) -> Iterator[Variation]:
    """Each variation of a rule, in the family's order; with ``step`` only every nth."""
    if rule.octets is not None:
        for a in itertools.islice((a for a in ORDER if a in rule.octets), 0, None, step):
            yield Variation(f"-{a:02x}", {"octet": bytes((a,))})
    elif rule.pairs_outside is not None or rule.pairs_within is not None:
        for a, b in itertools.islice(_pairs(rule), 0, None, step):
            yield Variation(f"-{a:02x}-{b:02x}", {"pair": bytes((a, b))})
    elif rule.vary:
        names = [name for name, _ in rule.vary]
        combinations = itertools.product(*(values for _, values in rule.vary))
        for combination in itertools.islice(combinations, 0, None, step):
            tail = "".join(
                f"-{value}" if isinstance(value, int) else f"-{value.hex()}"
                for value in combination
            )
            yield Variation(tail, dict(zip(names, combination, strict=True)))
    else:
        yield Variation("", {})


def _pairs(rule: Rule) -> Iterator[tuple[int, int]]:
    within = grammar.ANY if rule.pairs_within is None else rule.pairs_within
    order = [octet for octet in ORDER if octet in within]
    if rule.pairs_outside is not None:
        good = rule.pairs_outside
        yield from ((a, b) for a in order if a not in good for b in order)
        yield from ((a, b) for a in order if a in good for b in order if b not in good)
    else:
        for a in order:
            for b in order:
                if rule.decoded is None or int(bytes((a, b)), 16) in rule.decoded:
                    yield a, b


def count(rule: Rule) -> int:
    """How many cases a rule makes."""
    if rule.octets is not None:
        return len(rule.octets)
    if rule.pairs_outside is not None or rule.pairs_within is not None:
        return sum(1 for _ in _pairs(rule))
    total = 1
    for _, values in rule.vary:
        total *= len(values)
    return total


def variant(rule: Rule, values: dict[str, notation.Value]) -> int:
    """The class that a variation is in: its index in ``rule.classes``, or -1."""
    for number, exception in enumerate(rule.classes):
        if exception.octets is not None:
            octet = values.get("octet", values.get("item", b""))
            if isinstance(octet, bytes) and len(octet) == 1 and octet[0] in exception.octets:
                return number
        elif exception.decoded is not None:
            pair = values.get("pair", b"")
            if isinstance(pair, bytes) and int(pair, 16) in exception.decoded:
                return number
        elif all(values.get(name) == value for name, value in exception.when.items()):
            return number
    return -1
