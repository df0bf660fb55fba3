"""Plays on their way to the probe and back.

An exchange is held back for a moment: where the server dies, it proves nothing of the case, and the
case is asked again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import msgspec

from httpmark.harness.firing.probe_frames import Play
from httpmark.harness.model.cases import Case
from httpmark.harness.model.exchanges import End, Exchange, ExchangeFlag, Outcome

# A process closes its connections a moment before its end is known.
_HELD_S = 0.25

_Key = tuple[str, str, int]


class Flown(msgspec.Struct):
    """A play that was handed to the probe; without an exchange as long as it is not back."""

    number: int
    play: Play
    exchange: Exchange | None = None
    back_s: float = 0.0

    @property
    def has_reached_the_server(self) -> bool:
        """Whether the server may have seen it."""
        return self.exchange is None or self.exchange.outcome is not Outcome.REFUSED


class PlayQueue:
    """Plays in order, those in the hands of the probe, and what came back and is held.

    :param is_deadly: whether the server is known to die of a case; such a play is left out.
    """

    def __init__(self, plays: Iterable[Play], is_deadly: Callable[[Case], bool]) -> None:
        self._plays = iter(plays)
        self._first: list[Play] = []
        self._is_deadly = is_deadly
        self._numbers = itertools.count()
        self._out: dict[_Key, Flown] = {}
        self._held: list[Flown] = []
        self._is_stopped = False
        self.is_done = False

    def __iter__(self) -> Iterator[Play]:
        """What to play next. The probe takes it on a thread of its own, far ahead of time."""
        self._is_stopped = False
        while not self._is_stopped:
            play = self._first.pop(0) if self._first else next(self._plays, None)
            if play is None:
                self.is_done = True
                return
            if self._is_deadly(play[0]):
                continue
            self._out[_key(play[0], play[1])] = Flown(next(self._numbers), play)
            yield play

    def stop(self) -> None:
        """Hand out no more; what is handed out may come back."""
        self._is_stopped = True

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped

    def came_back(self, batch: Iterable[Exchange], now_s: float) -> None:
        """Take exchanges in, and hold them."""
        for exchange in batch:
            one = self._out.pop((exchange.case, exchange.delivery, exchange.attempt))
            one.exchange, one.back_s = exchange, now_s
            self._held.append(one)

    def believed(self, sign_s: float) -> list[Flown]:
        """Take out what came back well before a time at which the server still answered."""
        at = next(
            (at for at, one in enumerate(self._held) if one.back_s + _HELD_S > sign_s),
            len(self._held),
        )
        taken, self._held = self._held[:at], self._held[at:]
        return taken

    @property
    def holds_doubtful(self) -> bool:
        """Whether anything held may be due to the end of the server."""
        return any(not is_whole(one.exchange) for one in self._held if one.exchange)

    def landed(self) -> list[Flown]:
        """Take out all that is held: the server lives."""
        taken, self._held = self._held, []
        return taken

    def parted(self) -> tuple[list[Flown], list[Flown]]:
        """Take everything out: what was answered as a whole, and the rest, each in order.

        The rest is what the end of the server may have spoiled, and what it never saw.
        """
        whole = [one for one in self._held if one.exchange and is_whole(one.exchange)]
        kept = {one.number for one in whole}
        rest = [one for one in (*self._held, *self._out.values()) if one.number not in kept]
        self._held, self._out = [], {}
        return whole, sorted(rest, key=lambda one: one.number)

    def again(self, plays: Iterable[Play]) -> None:
        """Play these first."""
        self._first = [*plays, *self._first]
        self.is_done = self.is_done and not self._first


def is_whole(exchange: Exchange) -> bool:
    """Whether an exchange came to an end that is not the end of the server."""
    announced = exchange.end is End.OPEN or exchange.flags & ExchangeFlag.ANNOUNCED_CLOSE
    return exchange.outcome is Outcome.ANSWERED and bool(announced) and not exchange.ran_out


def _key(case: Case, attempt: int) -> _Key:
    return case.id, case.delivery, attempt
