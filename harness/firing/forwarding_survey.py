"""All cases played at one front end, and those that break a rule played again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import msgspec

from httpmark.harness.firing.forwarding import AGAIN, Chosen, Player
from httpmark.harness.judging import forwarding, forwarding_counts
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.forwarding import Heard


def survey(
    start: Callable[[], AbstractContextManager[Player]],
    cases: Sequence[Chosen],
    *,
    facts: Facts,
    advance: Callable[[int], None],
) -> list[Heard]:
    """What is heard of each case, in order.

    :param start: starts the proxy, at the same port each time: what it does may differ from start
        to start, so what is played again is played of a fresh one.
    :raises Unusable: the proxy does not start, forwards nothing, or has ended.
    """
    heard: list[Heard] = []
    with start() as player:
        own_minor = player.own_minor(facts)
        for one in cases:
            passage = player.play(one)
            said = forwarding.remarks(passage, own_minor=own_minor)
            heard.append(Heard(passage=passage, remarks=tuple(said)))
            advance(1)
    again = set(forwarding_counts.again(heard))
    if not again:
        return heard
    with start() as player:
        for number, one in enumerate(cases):
            if one.case.id in again:
                heard[number] = _again(player, one, heard[number], own_minor)
    return heard


def _again(player: Player, one: Chosen, before: Heard, own_minor: int) -> Heard:
    passage = player.play(one, AGAIN)
    rules = {remark.rule for remark in forwarding.remarks(passage, own_minor=own_minor)}
    first = {remark.rule for remark in before.remarks}
    return msgspec.structs.replace(before, asked_again=True, repeated=frozenset(rules & first))
