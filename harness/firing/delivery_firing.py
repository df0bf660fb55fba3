"""Deliveries: each message of the delivery corpus is sent in every cut; what differs is kept."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from httpmark.harness.catalogue import delivery_modes
from httpmark.harness.catalogue.catalogue import Catalogue, Planned
from httpmark.harness.judging.delivery_comparison import (
    AFTER_BUFFER_BYTES,
    ATTEMPTS,
    Comparison,
    corpus_of,
    plain_request,
    room_control,
)
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Case, Facts, Family
from httpmark.harness.model.exchanges import Attempt, Exchange

Play = Callable[..., Iterator[Exchange]]
Progress = Callable[[int], None]

# Few at a time: a busy server reads two pieces at once and sees no cut.
_IN_FLIGHT = 32
_AGAIN_IN_FLIGHT = 4
# A server that hangs at each cut must not take hours: so many cuts of one message and mode, and of
# all messages, are asked again.
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

    :param modes: words of ``delivery_modes.MODES``.
    :param play: plays cases into evidence: ``play(cases, in_flight=, attempt=)``; with ``keep=``
        only the exchanges that it returns true for.
    :param begin: gets the number of cuts and returns what counts each of them.
    :raises AssertionError: a mode is unknown.
    """
    modes = tuple(modes)
    if unknown := [mode for mode in modes if mode not in delivery_modes.MODES]:
        known = ", ".join(delivery_modes.MODES)
        raise AssertionError(f"unknown delivery {unknown[0]!r}; known are {known}")
    base = list(corpus_of(catalogue, suite, facts, chosen)) if modes else []
    if not base:
        return
    for attempt in (Attempt.FIRST, Attempt.REPEAT):
        whole = (delivery_modes.one(planned.case) for _, planned in base)
        _exhaust(play(whole, in_flight=_IN_FLIGHT, attempt=attempt))
    if "buf" in modes and not evidence.holds(server, room_control(delivery_modes.BUFFERS[0])):
        # Another suite may have asked it already.
        _exhaust(play(_rooms(catalogue, facts), in_flight=1, attempt=Attempt.FIRST))
    evidence.flush()
    _Cuts(base, modes, Comparison(catalogue, facts, evidence, server)).fire(
        evidence, server, play, begin
    )


class _Cuts:
    """The messages of a corpus in all cuts of some modes."""

    def __init__(
        self, base: list[tuple[Family, Planned]], modes: tuple[str, ...], compared: Comparison
    ) -> None:
        self._base = base
        self._modes = modes
        self._compared = compared
        self._families = {planned.case.id: family for family, planned in base}
        self._under_way: dict[tuple[str, str], Case] = {}
        self._agreed: Counter[tuple[str, str]] = Counter()
        # Read here: the probe takes cases on a thread of its own, evidence stays on this one.
        self._known = [
            (planned.case, told, compared.joins(family, planned.case))
            for family, planned in base
            if (told := compared.known(planned.case)) is not None
        ]

    def __iter__(self) -> Iterator[Case]:
        for case, told, joins in self._known:
            for mode in self._modes:
                if mode != "join" or joins:
                    yield from delivery_modes.deliveries(case, mode, told)

    def fire(
        self,
        evidence: Evidence,
        server: str,
        play: Play,
        begin: Callable[[int], Progress],
    ) -> None:
        """Play every cut once, and those again that differ."""
        progress = begin(sum(1 for _ in self))

        def differs(exchange: Exchange) -> bool:
            progress(1)
            return self._differs(exchange)

        try:
            _exhaust(play(self._noted(), in_flight=_IN_FLIGHT, attempt=Attempt.FIRST, keep=differs))
        finally:
            evidence.agree(server, self._agreed)
        evidence.flush()
        again = set(itertools.islice(self._doubtful(), _AGAIN_ALL_MAX))
        for attempt in range(2, ATTEMPTS + 1):
            doubted = (made for made in self if (made.id, made.delivery) in again)
            _exhaust(play(doubted, in_flight=_AGAIN_IN_FLIGHT, attempt=attempt))
        evidence.flush()

    def _noted(self) -> Iterator[Case]:
        for made in self:
            self._under_way[made.id, made.delivery] = made
            yield made

    def _differs(self, exchange: Exchange) -> bool:
        """Whether an exchange differs from that of the whole message, or proves nothing."""
        made = self._under_way.pop((exchange.case, exchange.delivery))
        if (
            exchange.machine_dropped
            or self._compared.difference(self._families[made.id], made, exchange)
            or self._compared.malformed(made, exchange)
        ):
            return True
        self._agreed[made.id, delivery_modes.mode_of(made.delivery)] += 1
        return False

    def _doubtful(self) -> Iterator[tuple[str, str]]:
        """Case and delivery of the first few cuts of each message and mode that differ."""
        return (
            (planned.case.id, name)
            for family, planned in self._base
            for name in _first_of_each_mode(self._compared.differing(family, planned.case))
        )


def _first_of_each_mode(differing: Iterable[tuple[Case, str]]) -> Iterator[str]:
    """The names of the first few cuts of each mode."""
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
    """A plain request padded to each number of buffers: does the server take it at all?"""
    case = plain_request(catalogue, facts)
    if case is None:
        return []
    made = []
    octets = delivery_modes.message(case)
    for count in delivery_modes.BUFFERS:
        size = count * delivery_modes.BUFFER_BYTES + AFTER_BUFFER_BYTES
        moved = delivery_modes.padded(octets, size, len(octets) - 1)
        if moved is not None:
            made.append(delivery_modes.one_of(case, moved, room_control(count)))
    return made
