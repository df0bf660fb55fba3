"""Exchanges: what went over the wire when a case was played, as facts without judgement."""

from __future__ import annotations

import enum

import msgspec

# --- cases ------------------------------------------------------------------------------------


class Outcome(enum.StrEnum):
    """What came back on the wire, as a fact: one of five outcomes."""

    ANSWERED = "answered"  # at least one byte came
    CLOSED = "closed"  # FIN without a byte
    RESET = "reset"  # RST without a byte
    HUNG = "hung"  # nothing until the deadline
    REFUSED = "refused"  # no connection

    @property
    def said(self) -> str:
        """The outcome for people; an answer says more by itself."""
        return _SAID.get(self, str(self))


_SAID = {
    Outcome.REFUSED: "no connection",
    Outcome.HUNG: "silence until the deadline",
    Outcome.CLOSED: "closed without a byte",
    Outcome.RESET: "reset without a byte",
}


class End(enum.StrEnum):
    """How the connection ended, apart from the outcome."""

    OPEN = "open"  # still open when the probe closed it
    CLOSED = "closed"  # the server's FIN
    RESET = "reset"  # the server's RST


class ExchangeFlag(enum.IntFlag):
    """What else the probe says of a case it played (``native/probe/frames.hpp``); stored."""

    UNSENT = 1  # not everything was sent, because the connection ended
    DEADLINE = 2  # the case's deadline expired before its steps were done
    AWAIT_RAN_OUT = 4  # an answer that was waited for did not come in time
    ANNOUNCED_CLOSE = 8
    CUT = 16  # more came than is kept
    LOOK_RAN_OUT = 32  # the next write went out before an answer to the one before it
    REACHED = 64  # nothing came, and the server's kernel has acknowledged all bytes
    HELD_UP = 128  # the probe itself did not run for a while: times say little


class Attempt(enum.IntEnum):
    """Which attempt at a case an exchange is; the numbers are stored, and the last one counts.

    The first two are made among many others in flight, so their silence may be due to load.
    """

    FIRST = 1
    REPEAT = 2  # of cases that leave the server a choice: it has to choose alike
    LATE = 3  # few in flight, of cases whose end may be due to load (Doubt)
    DOUBTED = 4  # few in flight, of cases that fail or are void
    DOUBTED_AGAIN = 5
    ALONE = 6  # hardly anything else in flight, and more patient
    TO_THE_END = 7  # waits for a close that was announced
    CRASHED = 8  # of a fresh start, with nothing else in flight: the server died or hung of it


class Doubt(enum.StrEnum):
    """Why a case is asked again; of the first six, load or a busy machine may be the cause."""

    TIME_RAN_OUT = "time_ran_out"
    RESET = "reset"
    CLOSED_UNANNOUNCED = "closed_unannounced"
    LOOK_RAN_OUT = "look_ran_out"  # two writes may have come as one, and no 2xx came
    SLOW_TO_CLOSE = "slow_to_close"  # the answer came late, and the close it announced not in time
    HELD_UP = "held_up"  # the probe did not run for a while
    FAILED = "failed"  # or void, or unstable
    CLOSE_AWAITED = "close_awaited"  # a close was announced and did not come

    @property
    def said(self) -> str:
        """The doubt for people, after a number of cases."""
        return _DOUBTS_SAID[self]


_DOUBTS_SAID = {
    Doubt.TIME_RAN_OUT: "ran out of time",
    Doubt.RESET: "ended in a reset",
    Doubt.CLOSED_UNANNOUNCED: "ended in a close without notice",
    Doubt.LOOK_RAN_OUT: "may have got two writes as one",
    Doubt.SLOW_TO_CLOSE: "were answered slowly and not closed in time",
    Doubt.HELD_UP: "were held up by this machine",
    Doubt.FAILED: "failed",
    Doubt.CLOSE_AWAITED: "said close and stayed open",
}


# What an attempt that ran out of time has: the first alone may be due to a slow connect.
SILENT = (Outcome.HUNG, Outcome.REFUSED)
RAN_OUT = ExchangeFlag.DEADLINE | ExchangeFlag.AWAIT_RAN_OUT
_RAN_OUT, _CUT = int(RAN_OUT), int(ExchangeFlag.CUT)
_HELD_UP = int(ExchangeFlag.HELD_UP)
_ANNOUNCED_CLOSE, _LOOK_RAN_OUT = int(ExchangeFlag.ANNOUNCED_CLOSE), int(ExchangeFlag.LOOK_RAN_OUT)
# A close after this long is a timeout's; load makes none of those. A reset may be load's at any
# time: a kernel resets a connection that the server was too busy to take.
_CLOSE_OF_LOAD_US = 4_000_000
# A server that takes so long for an answer may take as long for its close, and a case waits 1.5 s.
SLOW_ANSWER_US = 500_000
_STATUS_CLASS_AT = len(b"HTTP/1.1 ")


def doubt(
    outcome: Outcome,
    end: End,
    flags: int,
    times_us: tuple[int | None, int],
    status_class: bytes | None,
) -> Doubt | None:
    """Why load may be the cause of what an exchange shows; None where it cannot be.

    :param times_us: of the first byte of an answer, if one came, and of the end.
    :param status_class: the first digit of the first answer's status.
    """
    if outcome in SILENT or flags & _RAN_OUT:
        return Doubt.TIME_RAN_OUT
    first_us, end_us = times_us
    if end is End.OPEN and flags & _ANNOUNCED_CLOSE and (first_us or 0) > SLOW_ANSWER_US:
        return Doubt.SLOW_TO_CLOSE
    if end is End.RESET and not flags & _ANNOUNCED_CLOSE:
        return Doubt.RESET
    if end is End.CLOSED and not flags & _ANNOUNCED_CLOSE and end_us <= _CLOSE_OF_LOAD_US:
        return Doubt.CLOSED_UNANNOUNCED
    if _may_be_one_write(flags, status_class):
        return Doubt.LOOK_RAN_OUT
    return Doubt.HELD_UP if flags & _HELD_UP else None


def _may_be_one_write(flags: int, status_class: bytes | None) -> bool:
    return bool(flags & _LOOK_RAN_OUT) and status_class != b"2"


class Exchange(msgspec.Struct, frozen=True):
    """One case played once against one server: every byte both ways, and the end."""

    case: str
    family: str
    sent: bytes
    received: bytes
    outcome: Outcome
    end: End
    first_us: int | None  # first send to first byte
    end_us: int  # connect to the end
    sent_octets: int
    flags: int = 0  # of ExchangeFlag
    head_only: bool = False  # the case ended with the answer's header section
    attempt: int = Attempt.FIRST  # of Attempt; of a cut: how many times it was asked so far
    delivery: str = "whole"
    # The kernel lost packets meanwhile, or load may be why time ran out: silence proves nothing.
    machine_dropped: bool = False
    timeline: bytes = b""  # the probe's event records, where the case asked for them
    ended_s: float | None = None  # Unix time of its end, by the clock of the probe

    @property
    def among_many(self) -> bool:
        """Whether many others were in flight: load may be why nothing came."""
        return self.attempt <= Attempt.REPEAT

    @property
    def crashed(self) -> bool:
        """Whether the server died or hung of it, alone and of a fresh start."""
        return self.attempt == Attempt.CRASHED

    @property
    def doubt(self) -> Doubt | None:
        """Why load may be the cause of what came; None where it cannot be."""
        times_us = (self.first_us, self.end_us)
        return doubt(self.outcome, self.end, self.flags, times_us, self._status_class)

    @property
    def was_disturbed(self) -> bool:
        """Whether a busy machine got in the way of the probe, however few were in flight.

        The probe did not run for a while, or two writes may have come as one, and no 2xx came.
        """
        return bool(self.flags & _HELD_UP) or _may_be_one_write(self.flags, self._status_class)

    @property
    def _status_class(self) -> bytes:
        return self.received[_STATUS_CLASS_AT : _STATUS_CLASS_AT + 1]

    @property
    def is_cut(self) -> bool:
        """More came than is kept."""
        return bool(self.flags & _CUT)

    @property
    def ran_out(self) -> bool:
        """Whether an answer did not come in time, or no connection did."""
        return self.outcome in SILENT or bool(self.flags & _RAN_OUT)
