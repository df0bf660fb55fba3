"""All cases played at one front end, and those that break a rule played again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from httpmark.harness.firing.forwarding import AGAIN, Chosen, Player
from httpmark.harness.judging import forwarding, forwarding_counts
from httpmark.harness.model.forwarding import Heard


def survey(
    player: Player, cases: Sequence[Chosen], *, own_minor: int, advance: Callable[[int], None]
) -> list[Heard]:
    """What is heard of each case, in order.

    :param own_minor: the minor version in which the proxy forwards a plain HTTP/1.1 request.
    :raises Unusable: the proxy has ended.
    """
    heard: list[Heard] = []
    for one in cases:
        passage = player.play(one)
        said = forwarding.remarks(passage, own_minor=own_minor)
        heard.append(Heard(passage=passage, remarks=tuple(said)))
        advance(1)
    again = set(forwarding_counts.again(heard))
    for number, one in enumerate(cases):
        if one.case.id in again:
            heard[number] = _again(player, one, heard[number], own_minor)
    return heard


def _again(player: Player, one: Chosen, before: Heard, own_minor: int) -> Heard:
    passage = player.play(one, AGAIN)
    rules = {remark.rule for remark in forwarding.remarks(passage, own_minor=own_minor)}
    first = {remark.rule for remark in before.remarks}
    return msgspec.structs.replace(before, asked_again=True, repeated=frozenset(rules & first))
