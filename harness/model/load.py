"""Load: plans, samples and results."""

from __future__ import annotations

import enum
from typing import Literal

import msgspec


class LoadMode(enum.StrEnum):
    """How a load is made (native/load/plan.hpp)."""

    CLOSED = "closed"  # connections x depth requests are always in flight
    OPEN = "open"  # requests are sent when they are due, answered or not
    IDLE = "idle"  # one request on each connection, then the connections are held
    CHURN = "churn"  # each connection ends after depth requests, and the next one is opened
    SLOW = "slow"  # requests are sent while the server takes them; no answer is read


class LoadRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request of a mixed load; fields beyond Host and the framing are its own."""

    method: str = "GET"
    path: str = "/hello"
    fields: tuple[str, ...] = ()  # as "Name: value"
    content: str = ""
    chunked: bool = False  # content goes as one chunk instead of with a Content-Length
    weight: int = 1  # how often it comes in one turn


class Posted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Figures that a benchmark post gives for one machine, by the name of the server here."""

    machine: str
    requests_per_second: dict[str, int]
    vmpeak_kb: dict[str, int] = {}


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One load profile: ``scenarios/load/<name>.toml``; ``name`` and ``source`` are the file's."""

    name: str
    title: str
    why: str
    connections: int
    depth: int
    duration_s: float
    path: str = "/hello"
    warmup_s: float = 0.5
    rounds: int = 5
    quick_duration_s: float = 1.0
    quick_rounds: int = 2
    threads: int = 1
    workers: int = 1
    needs: tuple[str, ...] = ("hello",)
    default: bool = False  # runs where no profile is named
    published: str | None = None  # the published benchmark whose parameters these are
    posted: tuple[Posted, ...] = ()  # and its figures
    mode: LoadMode = LoadMode.CLOSED
    refill: Literal["batch", "window"] = "batch"
    rate: float | None = None  # open: requests a second, the same for every server
    rate_of_capacity: float | None = None  # open: a share of what the server reaches closed
    arrivals: Literal["constant", "poisson"] = "constant"
    bind: str | None = None  # source addresses, as 127.0.0.0/8
    connect_rate: float = 20_000.0  # connections opened a second
    tls_version: Literal["1.2", "1.3"] | None = None  # none: plain
    tls_ciphers: str | None = None  # as OpenSSL names them
    requests: tuple[LoadRequest, ...] = ()  # in turn; none: GET of the path
    split_bytes: int = 0  # send so many bytes at a time, wherever that cuts; 0: all at once
    ladder: tuple[int, ...] = ()  # idle: connections held at each rung, in all
    quick_ladder: tuple[int, ...] = ()
    source: str = ""

    @property
    def tls(self) -> bool:
        return self.tls_version is not None


class Bottleneck(enum.StrEnum):
    """What limited a sample (docs/method.md)."""

    SERVER = "server"
    CLIENT = "client"
    NETWORK = "network"
    NONE = "none"  # both ends idle: too few requests in flight
    STARVED = "starved"
    BROKEN = "broken"
    UNKNOWN = "unknown"


class Cost(msgspec.Struct, frozen=True):
    """CPU time (user + system) per answered request, in nanoseconds, per end."""

    server: float | None
    client: float | None


class GeneratorSample(msgspec.Struct, frozen=True, kw_only=True):
    """What one of several generators did in a sample, and whether it was a limit."""

    name: str
    host: str
    connections: int
    requests: int
    requests_per_second: float
    errors: dict[str, int]
    littles_law_ratio: float | None
    client_on_cpu_ratio: float | None
    run_delay_ratio: float | None
    lag_us: dict[str, float] | None
    start_late_us: float  # later than all were told to begin
    bottleneck: Bottleneck
    bottleneck_why: str
    # The round trip to the server by TCP handshakes: the shortest before, the median under load.
    path_us: float | None = None
    path_loaded_us: float | None = None


class LoadSample(msgspec.Struct, frozen=True, kw_only=True):
    """One window of one engine against one fresh server."""

    round: int
    order: int  # position within its block
    requests: int
    seconds: float
    requests_per_second: float
    cpu_ns_per_request: Cost
    littles_law_ratio: float | None
    bottleneck: Bottleneck
    bottleneck_why: str
    errors: dict[str, int] = {}
    statuses: dict[str, int] = {}  # answers that were not the expected 2xx, by status
    # Good Dates that the server should have renewed by then. They are errors, but where the sample
    # starved: who has no processor renews no Date.
    late_dates: int = 0
    server_on_cpu_ratio: float | None = None
    client_on_cpu_ratio: float | None = None
    run_delay_ratio: float | None = None
    latency_us: dict[str, float] | None = None
    latency_reason: str | None = None
    histogram: str | None = None
    redo: bool = False  # this sample replaced one that starved
    rate_offered: float | None = None  # open: requests a second that were due
    service_us: dict[str, float] | None = None  # open: from the send, not from when it was due
    lag_us: dict[str, float] | None = None  # open: how late the generator turned to what was due
    # Open: the rate was not served: requests that were due were not sent or not answered, or more
    # and more of them were in flight (native/load/report.hpp).
    saturated: bool | None = None
    # In flight when the drain was over, on connections that still answered: slow, not wrong. They
    # are in no other figure but the server's CPU time. None: the engine does not count them.
    unanswered: int | None = None
    connections_per_second: float | None = None  # churn
    connect_us: dict[str, float] | None = None
    handshake_us: dict[str, float] | None = None  # TLS: without the connect
    tls: str | None = None  # version and cipher that were agreed on
    context_switches_per_request: Cost | None = None
    started: str | None = None  # when this sample was taken; UTC, ISO 8601
    instructions_per_request: Cost | None = None  # where the machine has hardware counters
    null_cpu_ns_per_request: float | None = None  # what null cost in the same block
    steal_ratio: float | None = None  # of all CPUs' time, what the hypervisor took
    retransmit_ratio: float | None = None  # of this machine's TCP segments, sent again
    machine_dropped: dict[str, int] = {}  # packets that the kernel dropped, of any program
    cost_reason: str | None = None  # why the server's CPU time is not known
    generators: tuple[GeneratorSample, ...] = ()  # where they were the workers of a cluster
    start_spread_us: float | None = None  # between the first of them to begin and the last
    clocks_known_to_us: float | None = None  # the clocks of their hosts are known so exactly

    @property
    def is_sound(self) -> bool:
        """Whether its figures count: no error, and every connection established."""
        return not self.errors and self.bottleneck is not Bottleneck.BROKEN


class LoadResult(msgspec.Struct, frozen=True, kw_only=True):
    """All samples of one profile and engine on one server; medians and the interval of cost."""

    profile: str
    connections: int
    depth: int
    engine: str
    requests_per_second: float | None
    cpu_ns_per_request: Cost
    bottleneck: Bottleneck
    bottleneck_why: str
    ranked: bool  # requests per second may be ranked: the server was the bottleneck
    ranked_reason: str
    littles_law_ratio: float | None
    interval_95: tuple[float, float] | None  # of the server's CPU ns per request
    interval_reason: str | None = None
    rounds: int
    redone: int = 0
    errors: dict[str, int] = {}
    histogram: str | None = None
    histogram_reason: str | None = None
    cost_rank: int | None = None  # equal ranks where intervals overlap
    cost_rank_reason: str | None = None
    cost_over_null: float | None = None
    samples: tuple[LoadSample, ...] = ()
    reason: str | None = None
    # Most answers of a window were none of the expected 2xx, by status: it measured nothing.
    refused: dict[str, int] = {}
    path: str | None = None  # that GET asked for; None: the profile has requests of its own
    mode: LoadMode = LoadMode.CLOSED
    scaled: str | None = None  # the profile is too large for this machine: what was cut, and why
    rate_offered: float | None = None  # open: requests a second that were due
    latency_us: dict[str, float] | None = None  # medians over the samples
    latency_reason: str | None = None
    service_us: dict[str, float] | None = None
    lag_us: dict[str, float] | None = None
    connections_per_second: float | None = None
    handshake_us: dict[str, float] | None = None
    tls: str | None = None
    context_switches_per_request: Cost | None = None
    instructions_per_request: Cost | None = None
    instructions_reason: str | None = None


class PairedRatio(msgspec.Struct, frozen=True, kw_only=True):
    """How one server's figure compares with another's, pair by pair within blocks.

    ``ratio`` is head over base: exp of the trimmed mean of the log-ratios.
    """

    profile: str
    engine: str
    metric: str  # cpu_ns_per_request, requests_per_second
    base: str
    head: str
    ratio: float | None
    interval_95: tuple[float, float] | None
    pairs: int
    detectable: float | None  # the least ratio that so many pairs would show, 80 times in 100
    reason: str | None = None
