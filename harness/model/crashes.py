"""Crashes: a server that died or hangs of what it was sent."""

from __future__ import annotations

import enum

import msgspec

CRASH = "-crash"
"""The finding on a crash has the id of a case or of a generated family, and this behind it."""


def crash_id(family: str) -> str:
    """The id of the finding that a server dies or hangs of a case."""
    return f"{family}{CRASH}"


class CrashKind(enum.StrEnum):
    """What became of the server."""

    DIED = "died"
    HUNG = "hung"  # its process runs and answers no plain request any more


class Blame(enum.StrEnum):
    """What is known of the request that does it."""

    ALONE = "alone"  # one request does it again, alone and of a fresh start
    SEQUENCE = "sequence"  # these requests do it again, in this order; no single one does
    NOT_AGAIN = "not again"  # it was asked again, one by one, and does not do it again
    SUSPECTED = "suspected"  # it was in flight; nothing could be asked again


class Crash(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a server died or hung while it was asked."""

    kind: CrashKind
    how: str  # exit code, signal, or what it no longer does
    blame: Blame
    cases: tuple[str, ...] = ()  # the ids of those requests that are cases, the first few
    requests: int = 0  # how many requests the blame is about
    is_proven: bool = True  # of a sequence: each of its requests was asked alone; else: each again
    why_not: str = ""  # why nothing could be asked again
    suite: str = ""  # of the case; empty: a question that belongs to none
    family: str = ""  # of the case, where one is to blame
    by_hand: tuple[str, ...] = ()  # lines of shell that send them
    octets: int = 0  # how many bytes the request has
    fewest: int = 0  # how many of them are enough; 0 where fewer were not found
    last_words: tuple[str, ...] = ()  # what the server wrote last, in its own words
    went_on: bool = True  # it was started again, and the rest was asked
