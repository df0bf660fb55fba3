"""Families to cases: the generators. A family states a rule; its cases follow from it.

The order inside a family is that of the published benchmark: octets as signed char (0x80 to 0xFF,
then 0x00 to 0x7F), pairs first those with a bad first octet, then good first and bad second.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from httpmark.harness import grammar
from httpmark.harness.model import Case, Op, Step

ORDER = (*range(0x80, 0x100), *range(0x80))


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What a generated family varies, as its scenario file states it.

    ``send`` holds the placeholders ``{octet}`` or ``{pair}``, and ``{p}`` and ``{h}`` for the
    target's path and Host value. Neither ``octets`` nor pairs: one case, as it stands.
    """

    send: bytes
    octets: frozenset[int] | None = None
    pairs_outside: frozenset[int] | None = None  # pairs with at least one octet outside
    pairs_within: frozenset[int] | None = None  # pairs with both octets inside
    decoded: frozenset[int] | None = None  # keep pairs whose hex value lies in here
    head_only: bool = False
    deadline_ms: int = 2000


def variations(rule: Rule) -> Iterator[tuple[str, bytes]]:
    """Each variation of a rule: the tail of its case's slug, and the octets for the placeholder."""
    if rule.octets is not None:
        for a in ORDER:
            if a in rule.octets:
                yield f"-{a:02x}", bytes((a,))
    elif rule.pairs_outside is not None:
        good = rule.pairs_outside
        for a in ORDER:
            if a not in good:
                for b in ORDER:
                    yield f"-{a:02x}-{b:02x}", bytes((a, b))
        for a in ORDER:
            if a in good:
                for b in ORDER:
                    if b not in good:
                        yield f"-{a:02x}-{b:02x}", bytes((a, b))
    elif rule.pairs_within is not None:
        for a in ORDER:
            for b in ORDER:
                if a in rule.pairs_within and b in rule.pairs_within:
                    pair = bytes((a, b))
                    if rule.decoded is None or int(pair, 16) in rule.decoded:
                        yield f"-{a:02x}-{b:02x}", pair
    else:
        yield "", b""


def count(rule: Rule) -> int:
    """How many cases a rule makes."""
    return sum(1 for _ in variations(rule))


def cases(family: str, rule: Rule, *, path: str, host: str) -> Iterator[Case]:
    """The cases of a family, addressed to a target.

    :param path: the target's path for ``{p}``.
    :param host: the target's Host value for ``{h}``.
    """
    text = rule.send.replace(b"{p}", path.encode("latin-1")).replace(b"{h}", host.encode("latin-1"))
    placeholder = b"{octet}" if rule.octets is not None else b"{pair}"
    before, _, after = text.partition(placeholder)
    wait = Step(Op.AWAIT, wait_ms=rule.deadline_ms)
    for slug, octets in variations(rule):
        yield Case(
            family + slug,
            family,
            (Step(Op.SEND, before + octets + after), wait),
            rule.head_only,
            rule.deadline_ms,
        )


assert frozenset(ORDER) == grammar.ANY
