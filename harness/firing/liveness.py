"""Whether a server still answers, and if not, what became of it: dead, or hung.

A hang is told from a busy server: nothing else is open when it is asked, and it has time.
"""

from __future__ import annotations

import time

import msgspec

from httpmark.harness.firing.targets import Target, hello
from httpmark.harness.model.crashes import CrashKind

LAST_WORDS_S = 2.0  # for a process that has closed its listener to end and to say why
# A server that answered before and is silent for so long hangs. Apache's event module was silent
# for 27 s after a crowd, and then answered at once.
_RECOVERS_S = 40.0
_HUNG_S = 10.0  # the same, where a request is known to do it
_CONNECTIONS = 3  # in that time: a server may have lost one and take others
_SLOWER = 20  # a slow server has that many times its own time: it may work off what it was sent
_PAUSE_S = 0.02


class Ending(msgspec.Struct, frozen=True):
    """What became of a server."""

    kind: CrashKind
    how: str
    reason: str  # the same, with the last line that it wrote
    last_words: tuple[str, ...] = ()


def death(target: Target) -> Ending | None:
    """How the process of a target ended; None while it lives, or is not known."""
    reason = target.death()
    if reason is None:
        return None
    server = target.server
    if server is None:
        return Ending(CrashKind.DIED, reason.removeprefix("died: "), reason)
    return Ending(CrashKind.DIED, server.ending(), reason, server.last_words())


def death_soon(target: Target, *, within_s: float) -> Ending | None:
    """The same, for a process that may be about to end: connections close a moment before."""
    end = time.monotonic() + within_s
    while (found := death(target)) is None and time.monotonic() < end:
        time.sleep(_PAUSE_S)
    return found


def hung_s(target: Target) -> float:
    """How long a server may be silent to a request that may be why."""
    return max(_HUNG_S, _SLOWER * target.slowest_ms / 1000)


def recovers_s(target: Target) -> float:
    """How long a server may be silent before anything is known to be why."""
    return max(_RECOVERS_S, hung_s(target))


def ended(target: Target, *, patience_s: float | None = None) -> Ending | None:
    """What became of a target; None if it answers a plain request.

    Nothing else should be open: a server with one thread may wait for another connection.

    :param patience_s: how long it may be silent; None for as long as is fair.
    """
    if (found := death(target)) is not None:
        return found
    each_s = hung_s(target) / _CONNECTIONS
    end = time.monotonic() + (hung_s(target) if patience_s is None else patience_s)
    while True:
        left_s = max(end - time.monotonic(), _PAUSE_S)
        answer = hello(target, deadline_s=min(left_s, each_s))
        if answer:
            return None
        if answer is None:
            return death_soon(target, within_s=LAST_WORDS_S) or _without_listener(target)
        if (found := death(target)) is not None:
            return found
        if time.monotonic() >= end:
            return death_soon(target, within_s=0) or _silent(target)
        time.sleep(_PAUSE_S)


def _without_listener(target: Target) -> Ending | None:
    """Nobody takes connections, and no process is known to have ended."""
    if hello(target):
        return None  # it listens again
    if target.server is None:
        told = f"{target.place} refuses connections"
        return Ending(CrashKind.DIED, "it refuses connections", told)
    how = "its process runs and takes no connection any more"
    return Ending(CrashKind.HUNG, how, how, target.server.last_words())


def _silent(target: Target) -> Ending:
    if target.server is None:
        how = "it takes connections and answers no request any more"
        return Ending(CrashKind.HUNG, how, f"{target.place}: {how}")
    how = "its process runs and answers no request any more"
    return Ending(CrashKind.HUNG, how, how, target.server.last_words())
