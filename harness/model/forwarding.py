"""What a reverse proxy made of a message: the bytes on both of its sides, and what is wrong."""

from __future__ import annotations

import msgspec

from httpmark.harness.model.cases import Level


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """One connection from a proxy to its origin: every byte of both directions.

    Times are microseconds since the tap began.
    """

    number: int
    opened_us: int
    to_origin: bytes
    from_origin: bytes
    writes: tuple[tuple[int, int], ...] = ()  # when a piece came from the proxy, and its bytes
    ended_by_proxy: bool = False


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """One message played at a proxy: what the client sent and got, and what reached the origin."""

    case: str
    family: str
    suite: str
    sent: bytes
    received: bytes
    upstreams: tuple[Upstream, ...]

    @property
    def reached(self) -> bytes:
        """All bytes that reached the origin, connection after connection."""
        return b"".join(one.to_origin for one in self.upstreams)


class Rule(msgspec.Struct, frozen=True):
    """What a clause asks of a proxy. At ``INFO`` nothing is broken: it is a note."""

    id: str
    clause: str
    level: Level
    title: str
    why: str


class Remark(msgspec.Struct, frozen=True):
    """What one rule says of one passage."""

    rule: str
    what: str
    shown: bytes  # the bytes that show it


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """A passage with what is said of it; ``repeated`` are the rules that it broke again."""

    passage: Passage
    remarks: tuple[Remark, ...]
    repeated: frozenset[str] = frozenset()
    asked_again: bool = False


class RuleCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often one front end broke a rule, and the case that shows it best."""

    rule: str
    cases: tuple[str, ...]
    example: str  # the case
    what: str
    shown: bytes  # what reached the origin
    asked_again: int  # so many of the cases were asked again, and broke it again


class MessageCount(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one message, or of the cases of one family."""

    family: str
    suite: str
    asked: int
    forwarded: int  # something of it reached the origin
    rules: dict[str, int]  # broken by so many cases


class FrontEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one server as a reverse proxy."""

    name: str
    title: str
    version: str | None = None
    unavailable: str | None = None
    asked: int = 0
    forwarded: int = 0
    seconds: float = 0.0
    not_repeated: int = 0  # cases that broke a rule once, and not when they were asked again
    rules: tuple[RuleCount, ...] = ()
    messages: tuple[MessageCount, ...] = ()


class LeftOut(msgspec.Struct, frozen=True):
    """Cases that are not played at proxies, and why."""

    why: str
    cases: int


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What all front ends of a survey have in common."""

    origin: str  # the server behind them, with its version
    rules: tuple[Rule, ...]
    left_out: tuple[LeftOut, ...]


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of all front ends."""

    date: str  # UTC
    harness_version: str
    catalogue_version: str
    origin: str  # the server behind them, with its version
    rules: tuple[Rule, ...]
    left_out: tuple[LeftOut, ...]
    front_ends: tuple[FrontEnd, ...]
