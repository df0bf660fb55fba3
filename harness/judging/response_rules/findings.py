"""What the rules find in an exchange, and which of them had an answer to judge."""

from __future__ import annotations

import functools

import msgspec

from httpmark.harness.judging.response_rules.rule_table import RULES
from httpmark.harness.model.verdicts import Word

# A set of rules is made for every exchange. As bits of a number it is cheap.
_BIT = {name: 1 << number for number, name in enumerate(RULES)}


class Finding(msgspec.Struct, frozen=True):
    """A rule that one response breaks; ``word`` is FAIL, or WARN where that is tolerated."""

    rule: str
    span: tuple[int, int]  # bytes received
    text: str
    word: Word = Word.FAIL


class Findings(msgspec.Struct, frozen=True):
    """What the rules say of one exchange, and which of them applied at all."""

    found: tuple[Finding, ...] = ()
    bits: int = 0

    @property
    def judged(self) -> frozenset[str]:
        """The rules that applied to some response."""
        return named(self.bits)


@functools.lru_cache(maxsize=1024)
def named(bits: int) -> frozenset[str]:
    """The rules of a set as :class:`Findings` keeps it."""
    return frozenset(name for name, bit in _BIT.items() if bits & bit)


class Notes:
    """Findings and judged rules as they come."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.bits = 0

    def apply(self, *rules: str) -> None:
        """These rules applied, and are kept unless a finding says otherwise."""
        for rule in rules:
            self.bits |= _BIT[rule]

    def judge(self, rule: str, bad: bool, span: tuple[int, int], text: str) -> None:
        """The rule applied; a finding where ``bad``."""
        self.bits |= _BIT[rule]
        if bad:
            self.found.append(Finding(rule, span, text))

    def warn(self, rule: str, span: tuple[int, int], text: str) -> None:
        """The rule applied, and what breaks it is tolerated."""
        self.bits |= _BIT[rule]
        self.found.append(Finding(rule, span, text, Word.WARN))

    @property
    def findings(self) -> Findings:
        return Findings(tuple(self.found), self.bits)
