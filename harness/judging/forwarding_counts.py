"""What was heard of the passages through one front end, counted by rule and by message.

Only what repeats counts: a case that breaks a rule is asked again, alone and with more patience.
Of a rule that many cases break, some are asked again; if all of them repeat it, the rest count too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from httpmark.harness.judging.forwarding import is_binding
from httpmark.harness.judging.forwarding_rules import BY_ID
from httpmark.harness.model.forwarding import FrontEnd, Heard, MessageCount, RuleCount

AGAIN_MAX = 40  # cases of one rule that are asked again


def again(heard: Iterable[Heard]) -> list[str]:
    """The cases that are asked again, by id."""
    of_rule: dict[str, int] = {}
    chosen = []
    for one in heard:
        rules = [remark.rule for remark in one.remarks if is_binding(remark)]
        if any(of_rule.get(rule, 0) < AGAIN_MAX for rule in rules):
            chosen.append(one.passage.case)
            for rule in rules:
                of_rule[rule] = of_rule.get(rule, 0) + 1
    return chosen


def counted(known: FrontEnd, heard: Sequence[Heard]) -> FrontEnd:
    """A front end with what was heard of it."""
    holding = {name: _holding(name, heard) for name in BY_ID}
    lost = {
        one.passage.case
        for name, cases in holding.items()
        for one in heard
        if one.asked_again
        and any(remark.rule == name and is_binding(remark) for remark in one.remarks)
        and one not in cases
    }
    return msgspec.structs.replace(
        known,
        asked=len(heard),
        forwarded=sum(bool(one.passage.upstreams) for one in heard),
        not_repeated=len(lost),
        rules=tuple(_of_rule(name, cases) for name, cases in holding.items() if cases),
        messages=tuple(_messages(heard, holding)),
    )


def _holding(rule: str, heard: Sequence[Heard]) -> list[Heard]:
    """The cases that break a rule, as far as it repeats."""
    found = [one for one in heard if any(remark.rule == rule for remark in one.remarks)]
    if not found or not any(is_binding(r) for r in found[0].remarks if r.rule == rule):
        return found
    asked = [one for one in found if one.asked_again]
    repeated = [one for one in asked if rule in one.repeated]
    return found if asked and len(repeated) == len(asked) else repeated


def _of_rule(rule: str, cases: Sequence[Heard]) -> RuleCount:
    # A message made for proxies shows it best, and else the shortest one that was asked again.
    best = min(
        cases,
        key=lambda one: (
            not one.asked_again, one.passage.suite != "forwarding", len(one.passage.sent)
        ),
    )  # fmt: skip
    remark = next(remark for remark in best.remarks if remark.rule == rule)
    return RuleCount(
        rule=rule, cases=tuple(one.passage.case for one in cases), example=best.passage.case,
        what=remark.what, shown=remark.shown,
        asked_again=sum(rule in one.repeated for one in cases),
    )  # fmt: skip


def _messages(heard: Sequence[Heard], holding: dict[str, list[Heard]]) -> Iterable[MessageCount]:
    groups: dict[str, list[Heard]] = {}
    for one in heard:
        groups.setdefault(one.passage.family, []).append(one)
    breaks: dict[str, dict[str, int]] = {}
    for rule, cases in holding.items():
        for one in cases:
            of_family = breaks.setdefault(one.passage.family, {})
            of_family[rule] = of_family.get(rule, 0) + 1
    for family, members in groups.items():
        yield MessageCount(
            family=family, suite=members[0].passage.suite, asked=len(members),
            forwarded=sum(bool(one.passage.upstreams) for one in members),
            rules=breaks.get(family, {}),
        )  # fmt: skip
