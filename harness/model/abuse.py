"""What abuse does to a server: how its honest clients fared, what it held, whether it recovered."""

from __future__ import annotations

import enum

import msgspec


class Fate(enum.StrEnum):
    """How a server came through one kind of abuse, from good to bad."""

    HELD = "held"  # the honest noticed little
    SLOWED = "slowed"  # all were served, but their p99 is more than ten times the quiet one
    STARVED = "starved"  # honest requests got errors or no answer
    SILENT = "silent"  # it did not answer again when the abuse had ended
    DIED = "died"  # its process ended


class Honest(msgspec.Struct, frozen=True, kw_only=True):
    """What clients got that ask at a low fixed rate, whatever the server does."""

    due: int  # requests that were due
    answered: int
    errors: dict[str, int] = {}
    p50_us: float | None = None  # from when a request was due
    p99_us: float | None = None  # None: more than one in a hundred got no good answer
    lag_p99_us: float | None = None  # of p99: how late the generator itself was
    new_asked: int = 0  # clients that came anew, each with one request
    new_answered: int = 0
    reason: str | None = None  # why there are no figures

    @property
    def lost(self) -> int:
        """Requests that were due and got no good answer."""
        return max(0, self.due - self.answered) + max(0, self.new_asked - self.new_answered)


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What the abusers could do in the window."""

    seconds: float
    opened: int  # connections
    refused: int  # connections that could not be opened
    held_max: int  # open at the same time
    sent_bytes: int


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """Memory before and at most during the abuse, in kB; None where it is not ours to watch."""

    pss_before_kb: int | None = None
    pss_peak_kb: int | None = None
    # Buffers of all TCP sockets of this machine, both ends.
    tcp_before_kb: int | None = None
    tcp_peak_kb: int | None = None


class Suffered(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of abuse on one server."""

    scenario: str
    fate: Fate | None = None  # None: it was not tried
    reason: str | None = None  # why not, or what is behind the fate
    quiet: Honest | None = None
    under: Honest | None = None
    p99_ratio: float | None = None  # under abuse over quiet
    done: Done | None = None  # given without a fate: no abuser came
    held: Held = Held()
    again_s: float | None = None  # until it answered once the abuse had ended
    descriptors: int | None = None  # of its processes, where they were limited for this


class Abused(msgspec.Struct, frozen=True, kw_only=True):
    """All that one server went through."""

    name: str
    version: str | None = None
    runtime: str | None = None
    unavailable: str | None = None
    suffered: tuple[Suffered, ...] = ()


class AbuseReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``httpmark abuse`` found."""

    rate: float  # honest requests a second
    clients: int  # honest connections
    seconds: float  # of each window
    quick: bool
    load_average: tuple[float, float, float]  # of the machine at the begin
    processors: int
    servers: tuple[Abused, ...] = ()
