"""Asking alone what ran out of time: no other case, and no hold-up of the server, can be why then.

What is not asked alone, because nearly all that was ran out again or because time was up, is
believed in the first case only.
"""

from __future__ import annotations

import time

import msgspec

from httpmark.harness.catalogue.case_builder import patience_ms
from httpmark.harness.firing import room_for_others
from httpmark.harness.firing.case_stream import (
    AGAIN_IN_FLIGHT,
    CaseStream,
    Which,
    patient,
    unhurried,
)
from httpmark.harness.firing.targets import accepts
from httpmark.harness.model.exchanges import Attempt, Exchange

_FEW = 6  # each may take its whole deadline
_TOGETHER = AGAIN_IN_FLIGHT - 1  # and a plain request beside them
# Where so many ran out of time again, and so large a share of all that were asked alone, load was
# not why the others did. Nor are cases asked alone for longer than this.
_PROOF = 32
SHARE = 0.9
_QUICK_S = 30.0
_WHOLE_S = 300.0
_PLAIN_MS = 1000  # for a plain request before and after a case that is asked with nothing else


class Alone(msgspec.Struct, frozen=True):
    """What was asked alone, and whether the others that ran out of time are believed."""

    asked: set[Which]
    is_plain: bool


def ask(stream: CaseStream, silent: list[Which]) -> Alone:
    """Ask what binds and ran out of time so that no other case can be why.

    A few from all over the list are asked, and the others if one of the few is in time now, until
    nearly all run out again or time is up. Those who wait do so together, as long as the server has
    room for others meanwhile. Else cases that never end may hold all its workers, and each is asked
    with nothing else in flight.

    :param silent: what ran out of time, whatever its level.
    """
    silent = stream.binding(silent)
    if not silent:
        return Alone(set(), is_plain=True)
    few = _few(silent, _TOGETHER)
    late = _late_together(stream, few)
    if late is None:
        return _ask_one_by_one(stream, silent)
    if late == len(few):
        return Alone(set(few), is_plain=True)
    rest = [which for which in silent if which not in few]
    believed = _Believed(stream, late, len(few))
    asked = set(few)
    for lot in lots(rest, _TOGETHER):
        if believed.is_over:
            return Alone(asked, believed.is_plain)
        if (late := _late_together(stream, lot)) is None:
            left = [one for one in rest if one not in asked]
            found = _ask_one_by_one(stream, left)
            return Alone(asked | found.asked, found.is_plain)
        believed.add(late, len(lot))
        asked.update(lot)
    return Alone(asked, believed.is_plain)


class _Believed:
    """When those that are left are not asked alone any more, and whether they are believed."""

    def __init__(self, stream: CaseStream, late: int, asked: int) -> None:
        self._late, self._asked = late, asked
        self._end_s = time.monotonic() + (_QUICK_S if stream.quick else _WHOLE_S)

    def add(self, late: int, asked: int) -> None:
        """Count those that ran out of time again, and all that were asked."""
        self._late += late
        self._asked += asked

    @property
    def is_plain(self) -> bool:
        """Nearly all that was asked ran out of time again."""
        return self._late >= SHARE * self._asked

    @property
    def is_over(self) -> bool:
        """Enough was asked to say so, or time is up."""
        is_proven = self._asked >= _PROOF and self.is_plain
        return is_proven or time.monotonic() >= self._end_s


def lots(cases: list[Which], size: int) -> list[list[Which]]:
    """Lots of about a size; each has cases from all over the list."""
    count = -(-len(cases) // size)
    return [cases[number::count] for number in range(count)]


def _few(cases: list[Which], most: int) -> list[Which]:
    """A few from all over a list; all of a short one."""
    return cases if len(cases) <= most else cases[:: len(cases) // _FEW]


def _late_together(stream: CaseStream, cases: list[Which]) -> int | None:
    """Ask cases together; returns how many run out of time again.

    None where one may have waited because of another: then nothing is kept.
    """
    target = stream.target
    room_for = min(target.jobs or AGAIN_IN_FLIGHT, target.at_once or AGAIN_IN_FLIGHT)
    if len(cases) >= room_for:  # one place is for the plain requests
        return None
    with room_for_others.RoomForOthers(target) as room:
        kept = _played(stream, cases, in_flight=len(cases))
    late = sum(exchange.ran_out for exchange in kept)
    if late and not room.is_shown:
        return None
    stream.evidence.add(target.name, kept)
    return late


def _ask_one_by_one(stream: CaseStream, silent: list[Which]) -> Alone:
    """The same with nothing else in flight.

    A case that runs out of time counts where the server answered a plain request just before and
    just after it: else the server was held up by something else.
    """
    few = _few(silent, 2 * _FEW - 1)
    asked: set[Which] = set()
    late = sum(_is_late_by_itself(stream, which, asked) for which in few)
    if late == len(few):
        return Alone(asked, is_plain=True)
    believed = _Believed(stream, late, len(few))
    for which in _spread([which for which in silent if which not in few]):
        if believed.is_over:
            return Alone(asked, believed.is_plain)
        believed.add(int(_is_late_by_itself(stream, which, asked)), 1)
    return Alone(asked, believed.is_plain)


def _spread(cases: list[Which]) -> list[Which]:
    """The same cases, the first of them from all over the list."""
    return [which for lot in lots(cases, _FEW) for which in lot]


def _is_late_by_itself(stream: CaseStream, which: Which, asked: set[Which]) -> bool:
    """Ask one case with nothing else; whether it runs out of time because of itself.

    :param asked: gets the case where what came counts.
    """
    answer_s = patience_ms(_PLAIN_MS, stream.target.facts()) / 1000
    is_free = accepts(stream.target, deadline_s=answer_s)
    kept = _played(stream, [which], in_flight=1)
    is_late = any(exchange.ran_out for exchange in kept)
    if is_late and not (is_free and accepts(stream.target, deadline_s=answer_s)):
        return False
    stream.evidence.add(stream.target.name, kept)
    asked.add(which)
    return is_late


def _played(stream: CaseStream, cases: list[Which], *, in_flight: int) -> list[Exchange]:
    """What comes of cases, which is not in evidence yet."""
    kept: list[Exchange] = []

    def held(exchange: Exchange) -> bool:
        kept.append(exchange)
        return False

    stream.ask_again(len(cases))
    again = map(unhurried, stream.only(cases))
    if not stream.quick:
        again = map(patient, again)
    for _ in stream.play(
        again, in_flight=in_flight, connections_max=in_flight, attempt=Attempt.ALONE, keep=held
    ):
        pass
    return kept
