"""Exchanges: what went over the wire when a case was played, as facts without judgement."""

from __future__ import annotations

import enum

import msgspec

# --- cases ------------------------------------------------------------------------------------


class Outcome(enum.StrEnum):
    """What came back on the wire, as a fact (house.md: five outcomes)."""

    ANSWERED = "answered"  # at least one octet came
    CLOSED = "closed"  # FIN without an octet
    RESET = "reset"  # RST without an octet
    HUNG = "hung"  # nothing until the deadline
    REFUSED = "refused"  # no connection

    @property
    def said(self) -> str:
        """The outcome for people; an answer says more by itself."""
        return _SAID.get(self, str(self))


_SAID = {
    Outcome.REFUSED: "no connection",
    Outcome.HUNG: "silence until the deadline",
    Outcome.CLOSED: "closed without an octet",
    Outcome.RESET: "reset without an octet",
}


class End(enum.StrEnum):
    """How the connection ended, apart from the outcome."""

    OPEN = "open"  # still open when the probe closed it
    CLOSED = "closed"  # the server's FIN
    RESET = "reset"  # the server's RST


class Exchange(msgspec.Struct, frozen=True):
    """One case played once against one server: every octet both ways, and the end."""

    case: str
    family: str
    sent: bytes
    received: bytes
    outcome: Outcome
    end: End
    first_us: int | None  # first send to first octet
    end_us: int  # connect to the end
    sent_octets: int
    flags: int = 0  # as in the probe's frame
    head_only: bool = False  # the case ended with the answer's header section
    attempt: int = 1
    delivery: str = "whole"
    machine_dropped: bool = False  # the kernel lost packets meanwhile: silence proves nothing
    timeline: bytes = b""  # the probe's event records, where the case asked for them
    ended_s: float | None = None  # Unix time at which its record came from the probe
