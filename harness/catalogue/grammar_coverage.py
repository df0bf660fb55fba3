"""What the cases of the catalogue cover of the grammar that a server has to parse.

Of each rule: which alternatives some case has accepted, which one-byte deviations some case has
refused, and at which offsets of a block of 64 bytes either stands.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from httpmark.harness.catalogue import byte_deviations, lookup, sent_lines
from httpmark.harness.catalogue.byte_deviations import Deviation, Search
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.catalogue.expectation import Expectation
from httpmark.harness.catalogue.grammar_rules import GrammarRule, Where
from httpmark.harness.catalogue.grammar_table import RULES
from httpmark.harness.catalogue.sent_lines import Line
from httpmark.harness.http import grammar, request_reader
from httpmark.harness.http.request_reader import Broken, Request
from httpmark.harness.model.cases import Family

BLOCK = 64  # bytes that the widest scanners look at in one step
_LONG = 2048  # a longer line is about a limit, and not about the grammar
# Of a family with more cases, which differ in two bytes, those are read whose bytes are of other
# classes than those before.
_MANY = 4096
_CLASSES = bytes(
    min(next(octets for octets in grammar.BYTE_CLASSES.values() if octet in octets))
    for octet in range(256)
)
# What a valid line can still be part of: content whose coding the server need not know.
_READABLE = {None, Broken.CODING, Broken.CODINGS}


class Covered(msgspec.Struct, frozen=True):
    """What is covered of one rule."""

    rule: GrammarRule
    alternatives: frozenset[str]
    deviations: tuple[Deviation, ...]  # all, in the order of the samples
    refused: frozenset[str]  # texts of deviations
    accepted_at: frozenset[int]  # offsets in a block
    refused_at: frozenset[int]

    @property
    def missing_alternatives(self) -> tuple[str, ...]:
        return tuple(name for name in self.rule.alternatives if name not in self.alternatives)

    @property
    def holes(self) -> tuple[Deviation, ...]:
        """The deviations that no case has refused."""
        return tuple(one for one in self.deviations if one.text not in self.refused)


class _Sought:
    """What is looked for at one kind of line, and what was found of one rule."""

    def __init__(self, rule: GrammarRule) -> None:
        self.rule = rule
        self.searches = _searches(RULES.index(rule))
        self.begins = re.compile(
            b"|".join(next(iter(parts)).around or b"" for parts in rule.samples.values())
        )
        self.alternatives: set[str] = set()
        self.refused: set[str] = set()
        self.accepted_at: set[int] = set()
        self.refused_at: set[int] = set()

    def covered(self) -> Covered:
        ordered = {one.text: one for search in self.searches for one in search.found.values()}
        return Covered(
            self.rule,
            frozenset(self.alternatives),
            tuple(sorted(ordered.values(), key=lambda one: (one.at, one.place))),
            frozenset(self.refused),
            frozenset(self.accepted_at),
            frozenset(self.refused_at),
        )


@functools.cache
def _searches(at: int) -> tuple[Search, ...]:
    """What finds the deviations of a rule, by its place in the table; that takes a while."""
    rule = RULES[at]
    return tuple(
        search
        for sample in rule.samples.values()
        for search in byte_deviations.searches(sample, rule.valid)
    )


def coverage(known: Catalogue, families: Iterable[str] | None = None) -> tuple[Covered, ...]:
    """What the cases of the default suites cover, rule by rule.

    :param families: only the cases of these.
    """
    by_where: dict[Where, list[_Sought]] = defaultdict(list)
    sought = [_Sought(rule) for rule in RULES]
    for one in sought:
        by_where[one.rule.where].append(one)
    seen: set[tuple[object, ...]] = set()
    for sent, expected in _cases(known, families):
        for line, request in sent_lines.lines(sent):
            want = sent_lines.wanted(expected, line.request)
            if not (want.accepted or want.refused):
                continue
            # What comes next tells a line end that is doubled from one that is not.
            end = sent.find(b"\r\n", sent.find(b"\r\n", line.at) + 2)
            text = sent[line.at : end + 2 if end >= 0 else len(sent)]
            key = (line.where, text, line.at % BLOCK, want, request.valid)
            if len(text) > _LONG or key in seen:
                continue
            seen.add(key)
            for one in by_where[line.where]:
                if not one.begins.match(sent, line.at):
                    continue
                if want.accepted:
                    _note_accepted(one, sent, line, request)
                if want.refused or one.rule.ignored:
                    _note_refused(one, sent, line)
    return tuple(one.covered() for one in sought)


def _cases(
    known: Catalogue, families: Iterable[str] | None
) -> Iterator[tuple[bytes, Expectation | str]]:
    """The bytes of each case that is judged, and what is expected."""
    chosen = set(known.families if families is None else families)
    for suite in known.default_suites(quick=False, full=False, only_one=False):
        for family in known.of_suite(suite):
            # What a user's own searches found says nothing of the catalogue.
            if suite != "found" and family.id in chosen and lookup.has_octets(known, family.id):
                yield from _of_family(known, family)


def _of_family(known: Catalogue, family: Family) -> Iterator[tuple[bytes, Expectation | str]]:
    seen: set[bytes] = set()
    for planned in known.planned(family.id, lookup.EXAMPLE):
        if not planned.level.is_judged:
            continue
        case = planned.case
        sent = case.sent if case.joined else case.sent.removesuffix(case.canary)
        if family.count > _MANY:
            if (classes := sent.translate(_CLASSES)) in seen:
                continue
            seen.add(classes)
        yield sent, planned.expectation or family.judged_by


def _note_accepted(one: _Sought, sent: bytes, line: Line, request: Request) -> None:
    if request.broken not in _READABLE:
        return
    for name, pattern in one.rule.alternatives.items():
        if pattern.match(sent, line.at):
            one.alternatives.add(name)
            one.accepted_at.add(line.at % BLOCK)


def _note_refused(one: _Sought, sent: bytes, line: Line) -> None:
    for name, pattern in one.rule.alternatives.items() if one.rule.refused else ():
        if pattern.match(sent, line.at):
            one.alternatives.add(name)
    for search in one.searches:
        match = search.pattern.match(sent, line.at)
        if match is None:
            continue
        deviation = search.found.get(match[1])
        if deviation is None or (
            deviation.text in one.refused and match.start(1) % BLOCK in one.refused_at
        ):
            continue
        if one.rule.ignored or any(
            _is_mended(sent[: match.start(1)] + octets + sent[match.end(1) :], line.request)
            for octets in search.mended
        ):
            one.refused.add(deviation.text)
            one.refused_at.add(match.start(1) % BLOCK)


def _is_mended(sent: bytes, number: int) -> bool:
    """Whether a request is valid now: nothing else was wrong with it."""
    requests = request_reader.read(sent).requests
    return number < len(requests) and requests[number].broken in _READABLE
