"""The catalogue: all families with their rules, what selects them, and the load plans."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from httpmark.harness.catalogue import (
    case_builder,
    expectation,
    notation,
    placeholder_values,
    undeclared,
    variations,
    vocabulary,
)
from httpmark.harness.catalogue.expectation import AnyValue, Expectation
from httpmark.harness.catalogue.family_rules import Rule, expectation_texts
from httpmark.harness.catalogue.vocabulary import DECLARED, HARDENED, SUITES
from httpmark.harness.model.cases import Case, Facts, Family, Level, Requirement
from httpmark.harness.model.errors import HarnessError, NothingSelected
from httpmark.harness.model.load import LoadPlan


class Planned(msgspec.Struct, frozen=True):
    """A case with what it is judged by, and how strongly that binds."""

    case: Case
    expectation: Expectation | None  # None: a word of PUBLISHED_WORDS judges it
    level: Level


class Catalogue(msgspec.Struct, frozen=True):
    """All families and plans. ``version`` changes with every edit that can change a verdict."""

    families: dict[str, Family]
    rules: dict[str, Rule]
    plans: dict[str, LoadPlan]
    default_plans: tuple[str, ...]
    version: str
    published: dict[str, dict[str, str]] = {}  # server, family: run lengths of detections
    requirements: tuple[Requirement, ...] = ()

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that have families, and ``found``, even while it is empty."""
        filled = {family.suite for family in self.families.values()} | {"found"}
        return tuple(sorted(filled, key=SUITES.index))

    def default_suites(self, *, quick: bool, full: bool, only_one: bool) -> tuple[str, ...]:
        """The suites that are fired where none is named.

        :param only_one: one server is checked, and not several compared: then what the RFCs ask
            for is fired, and the published families only where they are named.
        """
        if quick:
            chosen = {"seed", "rfc", "smuggling"}
        else:
            chosen = set(SUITES) if full else {"seed", "rfc", "smuggling", "found"}
        chosen -= {"seed"} if only_one else set()
        filled = {family.suite for family in self.families.values()}
        return tuple(suite for suite in self.suites if suite in chosen and suite in filled)

    def of_suite(self, suite: str) -> list[Family]:
        """The families of a suite, controls first: the others count only where those pass."""
        chosen = [family for family in self.families.values() if family.suite == suite]
        return sorted(chosen, key=lambda family: family.level is not Level.CTRL)

    def cases(
        self, family: str, facts: Facts, *, step: int = 1, only: Collection[str] | None = None
    ) -> Iterator[Case]:
        """The cases of one family, addressed to a target; with ``step`` only every nth.

        :param only: the ids of the cases that are wanted; None for all.
        :raises notation.Unknown: the family needs what the target does not declare.
        """
        return case_builder.cases(family, self.rules[family], facts, step=step, only=only)

    def slugs(self, family: str, *, step: int = 1) -> Iterator[str]:
        """The ids of the cases of one family, without making them."""
        return (family + one.slug for one in variations.variations(self.rules[family], step))

    def planned(
        self, family: str, facts: Facts, *, step: int = 1, only: Collection[str] | None = None
    ) -> Iterator[Planned]:
        """The cases of one family, each with its expectation and level.

        :param only: the ids of the cases that are wanted; None for all.
        :raises notation.Unknown: the family needs what the target does not declare.
        """
        entry, rule = self.families[family], self.rules[family]
        by_words = entry.judged_by in vocabulary.PUBLISHED_WORDS
        shared: dict[int, tuple[Expectation | None, Level]] = {}
        for case, variation in case_builder.varied(family, rule, facts, step=step, only=only):
            if case.variant not in shared:
                given = rule.classes[case.variant] if case.variant >= 0 else None
                level = given.level if given is not None and given.level else entry.level
                level = level.unless_contested(entry.contested)
                if level is Level.INFO and _is_declared(rule, facts):
                    # A server that declares a limit has to accept what is within it. How it refuses
                    # what is larger is a matter of SHOULD.
                    level = Level.SHOULD if _is_beyond(rule, facts) else Level.CTRL
                texts = expectation_texts(rule, case.variant)
                own = by_words or any("{" in text for text in texts)
                shared[case.variant] = None if own else _expected(rule, case, {}), level
            expected, level = shared[case.variant]
            if expected is None and not by_words:
                known = placeholder_values.case_values(rule, facts, case.id, variation.values)
                expected = _expected(rule, case, known)
            yield Planned(case, expected, level)

    def offers_choice(self, family: str) -> bool:
        """Whether some case of a family may be accepted, and may be refused as well."""
        rule = self.rules[family]
        passes = [rule.passes, *(one.passes for one in rule.classes)]
        return any(
            expectation.expectation(words, values=AnyValue()).offers_choice
            for words in passes
            if words
        )

    def inapplicable(self, family: str, facts: Facts) -> str | None:
        """Why a family does not apply to a target; None where it does."""
        entry = self.families[family]
        lacking = [need for need in entry.needs if not _has(need, facts)]
        if lacking:
            return undeclared.needs(lacking)
        if entry.transport is not None and (entry.transport == "tls") != (facts.scheme == "https"):
            return f"only over {entry.transport}"
        if (why := case_builder.inapplicable(self.rules[family], facts)) is not None:
            return why
        try:  # what it expects may need more than what it sends
            next(self.planned(family, facts), None)
        except notation.Unknown as error:
            return undeclared.value(error.name)
        return None

    def plan(self, name: str) -> LoadPlan:
        """A load profile by name.

        :raises HarnessError: there is none of that name.
        """
        return self.plans[_known(name, self.plans, "profile")]

    def suite(self, name: str) -> str:
        """A suite by name.

        :raises HarnessError: there is none of that name.
        """
        return _known(name, self.suites, "suite")

    def select(self, selectors: Iterable[str], exclude: Iterable[str] = ()) -> frozenset[str]:
        """The families that selectors name: by id, number, family, clause (``9112/6.3``), level,
        ruleset (``realistic``, ``hardened``) or advisory; a ``*`` stands for anything.

        :raises HarnessError: a selector names no family.
        """
        chosen = frozenset(self.families) if not (wanted := list(selectors)) else frozenset()
        for selector in wanted:
            chosen |= self._named(selector)
        for selector in exclude:
            chosen -= self._named(selector)
        if not chosen:
            raise NothingSelected("nothing selected: all cases are excluded")
        return chosen

    def with_controls(self, chosen: frozenset[str]) -> frozenset[str]:
        """The same families, and the controls that gate them."""
        entries = [self.families[name] for name in chosen]
        suites = {family.suite for family in entries}
        gated = {"*", *chosen, *(family.group for family in entries)}
        return chosen | {
            family.id
            for family in self.families.values()
            if family.suite in suites and gated.intersection(family.gates)
        }

    def _named(self, selector: str) -> frozenset[str]:
        found = {
            family.id
            for family in self.families.values()
            if any(fnmatch.fnmatchcase(word, selector) for word in self._handles(family))
            or (family.generated and selector.startswith(family.id + "-"))
        }
        if not found:
            words = sorted({word for f in self.families.values() for word in self._handles(f)})
            near = difflib.get_close_matches(selector, words, 1)
            hint = f"did you mean {near[0]}?" if near else "`httpmark list cases` shows all"
            raise HarnessError(f"no case {selector!r}: {hint}")
        return frozenset(found)

    def _handles(self, family: Family) -> tuple[str, ...]:
        """All words that select a family; a section selects all below it, too."""
        clauses = re.findall(r"RFC ([0-9]+) ([0-9][0-9.]*|[A-Z]\.[0-9.]+)", family.clause)
        sections = {
            f"{rfc}/{'.'.join(numbers[: depth + 1])}"
            for rfc, section in clauses
            for numbers in (section.rstrip(".").split("."),)
            for depth in range(len(numbers))
        }
        return (
            family.id,
            *family.refs,
            family.group,
            *sorted(sections),
            str(family.level),
            family.suite,
            *(("realistic",) if family.realistic else ()),
            *(("hardened",) if self.hardens(family) else ()),
            *family.advisories,
        )

    def hardens(self, family: Family) -> bool:
        """Whether the ruleset ``hardened`` judges a family in another way than ``rfc``."""
        return family.framing or family.group in HARDENED or bool(self.rules[family.id].hardened)


def _has(need: str, facts: Facts) -> bool:
    kind, _, name = need.partition(".")
    if kind in ("timeout", "declared"):
        is_open = kind == "timeout" or name not in facts.timeouts_found
        return is_open and bool(facts.timeouts.get(name))  # 0 means no timeout
    if need == "tls":
        return facts.scheme == "https"
    return any(
        word in facts.capabilities or word.partition(".")[0] in facts.capabilities
        for word in need.split("|")
    )


def _is_declared(rule: Rule, facts: Facts) -> bool:
    """Whether the expectations of a rule name a limit that is known of a target."""
    words = " ".join((*rule.passes, *rule.allows, *rule.noteds))
    return any(
        match[1] == "limit" and facts.limits.get(match[2]) is not None
        for match in DECLARED.finditer(words)
    )


_BEYOND = re.compile(r"(?<!no )beyond \{limit\.([a-z_]+)\} ([0-9]+)")


def _is_beyond(rule: Rule, facts: Facts) -> bool:
    """Whether a case of a rule exceeds a limit of the target that its expectations name."""
    return any(
        (limit := facts.limits.get(name)) is not None and int(number) > limit
        for name, number in _BEYOND.findall(" ".join((*rule.passes, *rule.allows)))
    )


def _expected(rule: Rule, case: Case, known: expectation.Values) -> Expectation:
    given = rule.classes[case.variant] if case.variant >= 0 else None
    if given is not None and (given.passes or given.allows or given.noteds):
        return expectation.expectation(
            given.passes or rule.passes, given.allows, given.noteds, values=known
        )
    return expectation.expectation(
        rule.passes, rule.allows, rule.noteds, rule.hardened, values=known
    )


def _known(name: str, known: Any, kind: str) -> str:
    if name in known:
        return name
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
    raise HarnessError(f"unknown {kind} {name!r}: {hint}")
