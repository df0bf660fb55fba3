"""Deliveries fired: each message of the delivery corpus, cut in many ways."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from httpmark.harness.catalogue import delivery_modes
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.judging.delivery_comparison import (
    ATTEMPTS,
    BEHIND_OCTETS,
    Comparison,
    corpus_of,
    plain_request,
    room_control,
)
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Case, Facts, Family
from httpmark.harness.model.exchanges import Exchange

Play = Callable[..., Iterator[Exchange]]
Progress = Callable[[int], None]

# Few at a time: a server that is behind with its work reads two pieces at once, and sees no cut.
_IN_FLIGHT = 32
_AGAIN_IN_FLIGHT = 4
# Of one message and one mode, and of all: a server that hangs at each cut must not take hours.
_AGAIN_MAX = 8
_AGAIN_ALL_MAX = 512


def fire(
    catalogue: Catalogue,
    suite: str,
    facts: Facts,
    evidence: Evidence,
    server: str,
    *,
    modes: Iterable[str],
    play: Play,
    begin: Callable[[int], Progress] = lambda total: lambda by: None,
    chosen: Callable[[Family], bool] = lambda _: True,
) -> None:
    """Fire a suite's delivery corpus in every cut of the modes; what differs goes into evidence.

    :param play: plays cases into evidence: ``play(cases, in_flight=, attempt=)``, and where there
        is ``keep=``, those exchanges only for which it says so.
    :param begin: is told how many cuts there are, and gives what is told of each that is done.
    """
    modes = tuple(modes)
    base = list(corpus_of(catalogue, suite, facts, chosen)) if modes else []
    if not base:
        return
    cases = [planned.case for _, planned in base]
    for attempt in (1, 2):
        _exhaust(play(map(delivery_modes.one, cases), in_flight=_IN_FLIGHT, attempt=attempt))
    if "buf" in modes and not evidence.holds(server, room_control(delivery_modes.BUFFERS[0])):
        # Another suite may have asked it already.
        _exhaust(play(_rooms(catalogue, facts), in_flight=1, attempt=1))
    evidence.flush()
    found = Comparison(catalogue, facts, evidence, server)
    # Read here: the probe takes cases on a thread of its own, evidence stays on this one.
    known = [
        (planned.case, told, found.joins(family, planned.case))
        for family, planned in base
        if (told := found.known(planned.case)) is not None
    ]

    def cut() -> Iterator[Case]:
        for case, told, joins in known:
            for mode in modes:
                if mode != "join" or joins:
                    yield from delivery_modes.deliveries(case, mode, told)

    progress = begin(sum(1 for _ in cut()))
    under_way: dict[tuple[str, str], Case] = {}
    agreed: Counter[tuple[str, str]] = Counter()

    def noted() -> Iterator[Case]:
        for made in cut():
            under_way[made.id, made.delivery] = made
            yield made

    families = {planned.case.id: family for family, planned in base}

    def differs(exchange: Exchange) -> bool:
        made = under_way.pop((exchange.case, exchange.delivery))
        progress(1)
        if (
            exchange.machine_dropped
            or found.difference(families[made.id], made, exchange)
            or found.malformed(made, exchange)
        ):
            return True
        agreed[made.id, delivery_modes.mode_of(made.delivery)] += 1
        return False

    try:
        _exhaust(play(noted(), in_flight=_IN_FLIGHT, attempt=1, keep=differs))
    finally:
        evidence.agree(server, agreed)
    evidence.flush()
    doubtful = (
        (planned.case.id, name)
        for family, planned in base
        for name in _first_of_each_mode(found.differing(family, planned.case))
    )
    again = set(itertools.islice(doubtful, _AGAIN_ALL_MAX))
    for attempt in range(2, ATTEMPTS + 1):
        doubted = (made for made in cut() if (made.id, made.delivery) in again)
        _exhaust(play(doubted, in_flight=_AGAIN_IN_FLIGHT, attempt=attempt))
    evidence.flush()


def _first_of_each_mode(differing: Iterable[tuple[Case, str]]) -> Iterator[str]:
    """The names of cuts, of each mode the first few."""
    taken: Counter[str] = Counter()
    for made, _ in differing:
        mode = delivery_modes.mode_of(made.delivery)
        taken[mode] += 1
        if taken[mode] <= _AGAIN_MAX:
            yield made.delivery


def _exhaust(exchanges: Iterator[Exchange]) -> None:
    for _ in exchanges:
        pass


def _rooms(catalogue: Catalogue, facts: Facts) -> list[Case]:
    """A plain request padded to each number of buffers: is there room for it at all."""
    case = plain_request(catalogue, facts)
    if case is None:
        return []
    made = []
    octets = delivery_modes.message(case)
    for count in delivery_modes.BUFFERS:
        size = count * delivery_modes.BUFFER_OCTETS + BEHIND_OCTETS
        moved = delivery_modes.padded(octets, size, len(octets) - 1)
        if moved is not None:
            made.append(delivery_modes.one_of(case, moved, room_control(count)))
    return made
