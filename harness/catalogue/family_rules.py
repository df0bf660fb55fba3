"""Rules: how the bytes of an entry are made and sent, and what is expected."""

from __future__ import annotations

import msgspec

from httpmark.harness.model.cases import Level

CLOSE_MS = 1500  # a close within this time counts
ANSWER_MS = 2000
WAIT_MS = 1200


class FamilyClass(msgspec.Struct, frozen=True, kw_only=True):
    """An exception inside a family: which variations it is for, and what holds for them instead."""

    octets: frozenset[int] | None = None
    decoded: frozenset[int] | None = None
    when: dict[str, bytes | int] = {}
    level: Level | None = None
    passes: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()
    noteds: tuple[str, ...] = ()
    canary: str | None = None
    answers: int = 1  # as in Rule


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario file says of one entry: how its bytes are made and sent, what is expected.

    The texts are in the notation of ``notation``, ``step_notation`` and ``expectation``.
    """

    sends: tuple[str, ...] = ()  # one write each
    steps: tuple[str, ...] = ()  # all steps, instead of sends
    let: tuple[tuple[str, str], ...] = ()
    octets: frozenset[int] | None = None
    pairs_outside: frozenset[int] | None = None  # pairs with at least one byte outside
    pairs_within: frozenset[int] | None = None  # pairs with both bytes inside
    decoded: frozenset[int] | None = None  # keep pairs whose hex value lies in here
    vary: tuple[tuple[str, tuple[bytes | int, ...]], ...] = ()
    classes: tuple[FamilyClass, ...] = ()
    place: str = "auto"
    canary: str = "none"  # "after", "joined" or "none"
    turns: int = 1  # how often the writes go out, each time after the answer
    complete: str | None = None
    methods: tuple[str, ...] = ()
    answers: int = 1  # how many final answers are waited for
    answer_ms: int = ANSWER_MS
    close_ms: int = CLOSE_MS
    head_only: bool = False
    deadline_ms: int = 0  # 0: what the steps add up to
    timeline: bool = False
    passes: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()
    noteds: tuple[str, ...] = ()
    hardened: tuple[str, ...] | None = None

    @property
    def varies(self) -> tuple[str, ...]:
        """The names of the placeholders that vary."""
        if self.octets is not None:
            return ("octet",)
        if self.pairs_outside is not None or self.pairs_within is not None:
            return ("pair",)
        return tuple(name for name, _ in self.vary)


def expectation_texts(rule: Rule, variant: int) -> tuple[str, ...]:
    """All expectations of one class of a family; -1 is no class."""
    given = rule.classes[variant] if variant >= 0 else None
    if given is not None and (given.passes or given.allows or given.noteds):
        return (*given.passes, *given.allows, *given.noteds)
    return (*rule.passes, *rule.allows, *rule.noteds, *(rule.hardened or ()))
