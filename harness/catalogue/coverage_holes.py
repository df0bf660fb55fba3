"""The holes in the coverage of the grammar that are known, each with its reason.

``scenarios/coverage_holes.toml`` lists them. A hole that is not listed is a mistake, and so is a
listed hole that is covered by now. So the list can only be made shorter, or longer in plain sight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from httpmark.harness.catalogue import loading, toml_files
from httpmark.harness.catalogue.byte_deviations import Deviation
from httpmark.harness.catalogue.grammar_coverage import BLOCK, Covered
from httpmark.harness.http.printable import escaped
from httpmark.harness.model.errors import HarnessError


class Hole(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Holes of one rule that have one reason.

    ``deviations`` name places and what is not refused there: ``name.first, name.last: NUL DEL``,
    ``colon: any``, ``colon: any but LF``. ``count`` is how many deviations that makes.
    """

    rule: str
    reason: str
    deviations: tuple[str, ...] = ()
    count: int = 0
    alternatives: tuple[str, ...] = ()

    def lists(self, deviation: Deviation) -> bool:
        """Whether it names a deviation."""
        return any(_names(text, deviation) for text in self.deviations)


def _names(text: str, deviation: Deviation) -> bool:
    places, _, kinds = text.partition(": ")
    if deviation.place not in places.split(", "):
        return False
    words = kinds.split()
    if words[:1] == ["any"]:
        return deviation.kind not in words[1:]
    return deviation.kind in words


class Offsets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At how many offsets of a block nothing of a rule is accepted, and nothing refused."""

    reason: str
    missing: dict[str, tuple[int, int]]


class Listed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file as written. Of the entries that name a hole, the first counts."""

    hole: tuple[Hole, ...] = ()
    offsets: tuple[Offsets, ...] = ()

    def entry(self, rule: str, deviation: Deviation) -> Hole | None:
        """The entry that lists a deviation."""
        return next(
            (one for one in self.hole if one.rule == rule and one.lists(deviation)),
            None,
        )

    def alternative(self, rule: str, name: str) -> Hole | None:
        """The entry that lists an alternative."""
        found = (one for one in self.hole if one.rule == rule and name in one.alternatives)
        return next(found, None)


def read(path: Path = loading.COVERAGE_HOLES) -> Listed:
    """The list.

    :raises HarnessError: the file has a mistake.
    """
    name = path.relative_to(path.parents[1]).as_posix()
    return toml_files.decoded_as(toml_files.parsed_toml(path, name), name, Listed)


def mistakes(covered: Iterable[Covered], listed: Listed) -> list[str]:
    """What the list says wrongly, a line each; empty where it is right."""
    rules = {one.rule.name: one for one in covered}
    unknown = {one.rule for one in listed.hole} | {n for o in listed.offsets for n in o.missing}
    found = [
        f"{name}: there is no such rule; remove it from the list"
        for name in sorted(unknown - rules.keys())
    ]
    for one in rules.values():
        found += _unlisted(one, listed)
    for entry in listed.hole:
        if entry.rule in rules:
            found += _outdated(rules[entry.rule], entry, listed)
    return found + list(_offset_mistakes(rules, listed))


def _unlisted(one: Covered, listed: Listed) -> Iterator[str]:
    """The holes of a rule that no entry lists."""
    name = one.rule.name
    for hole in one.holes:
        if listed.entry(name, hole) is None:
            yield (
                f"{name}: {hole.text}: no case has {escaped(hole.octets)} refused; "
                "add a case, or list it"
            )
    for missing in one.missing_alternatives:
        if listed.alternative(name, missing) is None:
            yield f"{name}: no case has the alternative {missing!r}; add a case, or list it"


def _outdated(one: Covered, entry: Hole, listed: Listed) -> Iterator[str]:
    """What an entry lists although it is covered, or does not exist."""
    name = one.rule.name
    own = [each for each in one.deviations if listed.entry(name, each) is entry]
    for each in own:
        if each.text in one.refused:
            yield f"{name}: {each.text}: is covered; remove it from the list"
    if entry.count != len(own):
        yield f"{name}: {entry.deviations}: makes {len(own)} deviations, not {entry.count}"
    for text in entry.deviations:
        if not any(_names(text, each) for each in own):
            yield f"{name}: {text}: names no deviation; remove it from the list"
    for alternative in entry.alternatives:
        if alternative not in one.missing_alternatives:
            yield f"{name}: alternative {alternative!r}: is no hole; remove it from the list"


def _offset_mistakes(rules: dict[str, Covered], listed: Listed) -> Iterator[str]:
    known = {name: pair for entry in listed.offsets for name, pair in entry.missing.items()}
    for name, one in rules.items():
        missing = BLOCK - len(one.accepted_at), BLOCK - len(one.refused_at)
        stated = known.get(name, (0, 0))
        if missing != stated:
            yield (
                f"{name}: offsets: the list says {list(stated)} are missing (accepted, refused), "
                f"{list(missing)} are; state that, or cover what is new"
            )


def rule_named(covered: Iterable[Covered], name: str) -> Covered:
    """One rule's coverage.

    :raises HarnessError: there is no such rule.
    """
    rules = {one.rule.name.lower(): one for one in covered}
    if name.lower() not in rules:
        raise HarnessError(f"no rule {name!r}: known are {', '.join(rules)}")
    return rules[name.lower()]
