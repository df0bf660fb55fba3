"""How far the clock of another machine is from ours, from round trips that were measured."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class RoundTrip(msgspec.Struct, frozen=True):
    """A question for the time, and the answer; all in seconds of who read the clock."""

    sent: float  # our clock
    there: float  # the other's clock when it answered
    received: float  # our clock


class Offset(msgspec.Struct, frozen=True):
    """What has to be added to our clock to get the other's."""

    seconds: float
    bound_s: float  # it is at most so far from the truth
    round_trip_s: float  # the shortest one


def offset(trips: Sequence[RoundTrip]) -> Offset:
    """The offset by the shortest round trip: the answer was given somewhere within it."""
    best = min(trips, key=lambda trip: trip.received - trip.sent)
    length = best.received - best.sent
    return Offset(best.there - (best.sent + best.received) / 2, length / 2, length)


def instant_ns(at_s: float, clock: Offset) -> int:
    """What another clock shows, in nanoseconds, when ours shows this; as exactly as is known."""
    return round((at_s + clock.seconds) * 1e9)
