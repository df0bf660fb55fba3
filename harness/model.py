"""The nouns, as frozen structs; every other module speaks in these.

*Outcome* is a fact of the wire, *verdict* a judgement of it. Units stand last in a name
(``deadline_ms``, ``vmpeak_kb``). An absent value is ``None`` with a reason beside it, never 0.
"""

from __future__ import annotations

import enum
from typing import Any, Literal

import msgspec

SCHEMA_VERSION = "1.0"


# --- what can go wrong, and the exit code that says so ---------------------------------------


class HarnessError(Exception):
    """The user's file or command is wrong: says where, what, and what to do. Exit code 2."""

    exit_code = 2


class Unusable(HarnessError):
    """The environment or the target cannot be used (did not start, not reachable, controls fail).

    Exit code 3.
    """

    exit_code = 3


class ServerDied(Unusable):
    """A server did not start or went away: its own fault, told beside its name; others go on."""


class NothingSelected(HarnessError):
    """The selection is empty. Exit code 5."""

    exit_code = 5


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


class Word(enum.StrEnum):
    """A verdict: the judgement of one exchange against one case."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    VOID = "void"
    NOT_APPLICABLE = "not_applicable"
    UNSTABLE = "unstable"  # the same case, asked again, drew another verdict


class Level(enum.StrEnum):
    """How strongly the clause of a case binds."""

    CTRL = "CTRL"  # positive control: a valid message must be accepted
    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
    SEC = "SEC"
    INFO = "INFO"


class Op(enum.IntEnum):
    """The steps the probe can play; the numbers are those of its frames (native/probe)."""

    SEND = 1
    PAUSE = 2
    AWAIT = 3
    FIN = 4
    RESET = 5
    WATCH = 6
    CLOSE_WAIT = 7


class Await(enum.IntEnum):
    """What an AWAIT waits for; the look words leave the response to a later AWAIT."""

    FINAL = 0
    HEAD = 1  # a final response, and the request was HEAD
    CONNECT = 2
    ANY = 3  # interim responses too
    LOOK_FINAL = 4
    LOOK_ANY = 5


class Step(msgspec.Struct, frozen=True):
    """One thing done on the connection of a case."""

    op: Op
    data: bytes = b""  # SEND
    wait_ms: int = 0  # PAUSE, AWAIT, WATCH, CLOSE_WAIT
    kind: int = 0  # AWAIT: an Await
    if_open: bool = False  # only while the connection is open and no answer announced close
    if_unanswered: bool = False  # only while no final response has come


# The words a manifest declares limits in: octets, and a number of field lines.
LIMITS = (
    "request_target_bytes",
    "request_line_bytes",
    "field_line_bytes",
    "head_bytes",
    "fields",
    "content_bytes",
)


# What the harness plants and learns where a server has the capability ``static``.
PLANTED = (
    "secret", "secret_text", "file_text", "etag", "modified", "modified_rfc850",
    "modified_asctime",
)  # fmt: skip


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What scenario texts and verdicts need to know of a target; stored with its exchanges."""

    host: str  # the Host value
    port: int = 80
    address: str | None = None  # where it listens; None in evidence that does not say
    unix: str | None = None  # the path of a Unix socket, instead of address and port
    path: str = "/hello"  # the target that answers 2xx to a plain GET
    capabilities: tuple[str, ...] = ("hello",)
    scheme: str = "http"
    limits: dict[str, int | None] = {}  # declared; the words of LIMITS
    timeouts: dict[str, float | None] = {}  # declared, seconds; the words of servers.TIMEOUTS
    answers_1_0_as_1_0: bool = False
    values: dict[str, str] = {}  # names of planted files and the like
    header: tuple[str, ...] = ()  # field lines that go behind every Host line
    slowest_ms: int = 0  # of a few plain requests one after the other
    at_once: int | None = None  # plain requests that it answers at once; None: not asked

    @property
    def host_lines(self) -> str:
        """The Host line, the field lines that go with it, and their CRLFs."""
        return "".join(f"{line}\r\n" for line in (f"Host: {self.host}", *self.header))


class Case(msgspec.Struct, frozen=True):
    """What is sent, and what may come back.

    ``id`` is the permanent slug; ``family`` names the entry of a scenario file it comes from.
    """

    id: str
    family: str
    steps: tuple[Step, ...]
    head_only: bool = False  # an answer is complete with its header section
    deadline_ms: int = 2000
    settle_ms: int = 0
    close_ms: int = 1500
    timeline: bool = False  # record when each write and each octet went by
    delivery: str = "whole"  # how the octets are cut: a word of delivery.py
    variant: int = -1  # the class of its family that it falls into; -1 is none
    place: str = "hello"  # the capability that {p} stands for: "mirror", "body" or "hello"
    methods: tuple[bytes, ...] = ()  # of the requests that are answered, where known
    canary: bytes = b""  # the request that shows both ends agree; the last SEND, or joined
    joined: bool = False  # the canary is part of the case's own octets

    @property
    def sent(self) -> bytes:
        """All octets the case would send, in order."""
        return b"".join([step.data for step in self.steps if step.data])  # only a SEND has any


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A set of cases under one rule: one entry of a scenario file. A designed case is a set of one.

    ``group`` is the catalogue's family (``CL``, ``SEED-PATH``), ``refs`` its numbers.
    """

    id: str
    ref: str
    suite: str
    title: str
    level: Level
    clause: str
    why: str
    judged_by: str  # a word of checks.WORDS, or "expectation"
    count: int
    generated: bool
    needs: tuple[str, ...] = ("hello",)
    gates: tuple[str, ...] = ()  # a control: the families it gates; ("*",) gates the suite
    source: str = ""  # the file, for messages
    refs: tuple[str, ...] = ()
    group: str = ""
    framing: bool = False  # a wrong answer moves the message boundary (SHOULD* of the catalogue)
    contested: str | None = None
    advisories: tuple[str, ...] = ()
    realistic: bool = False
    deliver: bool = False
    transport: str | None = None
    runner: str | None = None


class Requirement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the ledger: what a clause asks of a server, and the cases that show it.

    ``cases`` are selectors: numbers, ranges (``CL-10..37``), families, checks on every answer.
    """

    id: str
    clause: str
    level: Level
    title: str
    cases: tuple[str, ...]


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


class Verdict(msgspec.Struct, frozen=True):
    """The judgement of one exchange: what was expected, what came, and the span that decided."""

    case: str
    word: Word
    expected: str
    actual: str
    span: tuple[int, int] | None = None  # octets of ``Exchange.received``
    level: Level = Level.CTRL
    closed_unanswered: bool = False  # a failure that is only a close without an answer
    late: bool = False  # a failure that is only of time: an answer had not begun when it was due


# --- servers ----------------------------------------------------------------------------------


class Need(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something a server needs on this machine to run as a process, and how to get it.

    Exactly one of ``command``, ``file``, ``pkg_config`` and ``python`` is given.
    """

    install: str  # the command, or the words, that mend the lack
    command: str | None = None  # an executable on PATH
    file: str | None = None  # a file that must exist (a header, a library)
    pkg_config: str | None = None  # a pkg-config module, "Qt6HttpServer >= 6.8"
    python: str | None = None  # a module of the Python that runs httpmark
    at_least: str | None = None  # the oldest version of ``command`` that will do
    ask: tuple[str, ...] = ("--version",)  # the words ``command`` tells its version to


class ProcessRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a server is built and started as a local process.

    Placeholders in words: ``{address}`` ``{port}`` ``{endpoint}`` (both, as address:port)
    ``{workers}`` ``{build}`` (a cache folder) ``{source}`` (the image's folder) ``{scratch}`` (a
    temporary folder of this start) ``{static}`` (the folder it serves, with ``static``)
    ``{python}`` (the Python that runs httpmark); with TLS also
    ``{tls_port}`` ``{tls_endpoint}`` ``{tls_cert}`` ``{tls_key}``.
    """

    start: tuple[str, ...]
    build: tuple[tuple[str, ...], ...] = ()
    needs: tuple[Need, ...] = ()
    files: dict[str, str] = {}  # configuration written to {scratch}, placeholders filled in
    env: dict[str, str] = {}  # added to the environment of the server
    build_env: dict[str, str] = {}  # added to the environment of the build
    binary: str | None = None  # the executable, where a listing should name it
    version: tuple[str, ...] = ()  # a command that prints the server's version
    tls: tuple[str, ...] = ()  # words added to start where TLS is asked for
    tls_files: dict[str, str] = {}  # more files, where TLS is asked for
    conformance: tuple[str, ...] = ()  # words added to start where suites are fired
    conformance_files: dict[str, str] = {}  # more files, where suites are fired


class ContainerRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a server is built and started as a container (host network).

    Placeholders in words: ``{address}`` ``{port}`` ``{endpoint}`` ``{workers}`` ``{scratch}`` (a
    folder in the container) ``{static}`` (the folder it serves); with TLS also
    ``{tls_port}`` ``{tls_endpoint}`` ``{tls_cert}`` ``{tls_key}``. Exactly one of
    ``dockerfile`` and ``image`` is given.
    """

    start: tuple[str, ...] = ()  # the command; empty: the one the image names
    dockerfile: str | None = None
    image: str | None = None  # an image the user brings, instead of a Dockerfile
    context: tuple[str, ...] = ()  # folders of the package that join the build context
    files: dict[str, str] = {}
    env: dict[str, str] = {}
    version: tuple[str, ...] = ()  # a command in the container that prints the server's version
    tls: tuple[str, ...] = ()  # words added to start where TLS is asked for
    tls_files: dict[str, str] = {}  # more files, where TLS is asked for
    conformance: tuple[str, ...] = ()  # words added to start where suites are fired
    conformance_files: dict[str, str] = {}  # more files, where suites are fired


class Tls(msgspec.Struct, frozen=True):
    """That a server serves TLS too: where, and with which certificate."""

    port: int
    cert: str  # path of the certificate chain, PEM
    key: str  # path of its private key, PEM


class Conformance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a server declares where suites are fired, in place of what it declares otherwise."""

    limits: dict[str, int | None] = {}
    timeouts: dict[str, float | None] = {}


class Server(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server under test: ``images/<name>/server.toml``."""

    name: str
    title: str
    language: str
    version: str
    homepage: str
    capabilities: tuple[str, ...]
    process: ProcessRecipe | None = None
    container: ContainerRecipe | None = None
    control: bool = False  # a calibration server: measured, never ranked
    ready_path: str = "/hello"
    ready_timeout_s: float = 15.0
    answers_1_0_as_1_0: bool = False
    limits: dict[str, int | None] = {}  # the words of LIMITS
    timeouts: dict[str, float | None] = {}  # seconds; the words of servers.TIMEOUTS
    conformance: Conformance = Conformance()
    notes: str = ""
    source: str = ""  # the folder of the manifest


# --- load -------------------------------------------------------------------------------------


class LoadMode(enum.StrEnum):
    """How a load is laid on (native/load_plan.hpp)."""

    CLOSED = "closed"  # connections x depth requests are always under way
    OPEN = "open"  # requests go out when they are due, whatever became of those before
    IDLE = "idle"  # one request on each connection, then the connections are held
    CHURN = "churn"  # each connection ends after depth requests, and the next one is opened
    SLOW = "slow"  # requests go out as long as the server takes them; nothing is read


class LoadRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request of a mixed load; fields beyond Host and the framing are its own."""

    method: str = "GET"
    path: str = "/hello"
    fields: tuple[str, ...] = ()  # as "Name: value"
    content: str = ""
    chunked: bool = False  # content goes as one chunk instead of with a Content-Length
    weight: int = 1  # how often it comes in one turn


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
    split_bytes: int = 0  # send so many octets at a time, wherever that cuts; 0 = all
    ladder: tuple[int, ...] = ()  # idle: connections held at each rung, in all
    quick_ladder: tuple[int, ...] = ()
    source: str = ""

    @property
    def tls(self) -> bool:
        return self.tls_version is not None


class Bottleneck(enum.StrEnum):
    """Who limited a sample (load.md 4.5)."""

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
    # Open: the rate was not served: requests that were due were not sent or not answered, or ever
    # more of them were under way (native/load_report).
    saturated: bool | None = None
    # Under way when the drain was over, on connections that still answered: slow, not wrong, and in
    # no other figure but the server's CPU time. None where the engine does not count them.
    unanswered: int | None = None
    connections_per_second: float | None = None  # churn
    connect_us: dict[str, float] | None = None
    handshake_us: dict[str, float] | None = None  # TLS: without the connect
    tls: str | None = None  # version and cipher that were agreed on
    context_switches_per_request: Cost | None = None
    started: str | None = None  # when this sample was taken; UTC, ISO 8601
    instructions_per_request: Cost | None = None  # where the machine has hardware counters
    null_cpu_ns_per_request: float | None = None  # what null cost in the same block
    steal_ratio: float | None = None  # of all CPUs' time, what the hypervisor took meanwhile
    retransmit_ratio: float | None = None  # of this machine's TCP segments, sent again meanwhile
    machine_dropped: dict[str, int] = {}  # what the kernel lost meanwhile, whoever's it was
    cost_reason: str | None = None  # why the server's CPU time is not known

    @property
    def is_sound(self) -> bool:
        """Whether its figures count: all answers right, and all connections there."""
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


# --- memory -----------------------------------------------------------------------------------


class BytesPerConnection(msgspec.Struct, frozen=True):
    """Slope over held connections, in bytes."""

    virtual: float | None
    resident: float | None
    kernel: float | None
    total: float | None = None  # resident and kernel, of one end


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """One height of the memory ladder: what the server holds, and what it uses then."""

    connections: int  # asked for
    held: int  # established and accepted, counted on the server's side
    vmpeak_kb: int | None
    pss_kb: int | None
    kernel_kb: int | None  # of one end: half of the growth of both, as they are on one machine
    socket_buffers_kb: int | None = None  # of all TCP sockets of the machine (/proc/net/sockstat)


class Trickle(msgspec.Struct, frozen=True, kw_only=True):
    """Memory while every connection asks once in ``seconds``: what idle ones do not show."""

    connections: int
    seconds: float
    requests: int
    pss_peak_kb: int | None
    errors: dict[str, int] = {}
    vmhwm_kb: int | None = None  # the peak of this phase alone; None where it cannot be told apart


class SlowReaders(msgspec.Struct, frozen=True, kw_only=True):
    """What a server piles up for clients that send without end and never read."""

    connections: int
    seconds: float
    sent_kb: int  # octets that the server took
    pss_before_kb: int | None
    pss_peak_kb: int | None
    socket_buffers_kb: int | None = None  # what the kernel piled up at its peak, at both ends
    vmhwm_kb: int | None = None  # the peak of this phase alone; None where it cannot be told apart


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of a server's whole process tree, in kB; VmPeak is address space, not memory."""

    vmpeak_kb: int | None
    vmhwm_kb: int | None
    pss_kb: int | None
    busy_vmhwm_kb: int | None = None  # the highest while suites or load were fired
    cgroup_peak_kb: int | None = None
    cgroup_reason: str | None = None
    # Of the cgroup now: anon, file, kernel, slab, sock, pagetables (v2); v1 has rss and cache, kmem
    # and kmem_tcp.
    cgroup_parts_kb: dict[str, int] | None = None
    vmhwm_reason: str | None = None  # of a ladder: why its peak is that since the start
    baseline: Rung | None = None  # at rest, before there was any connection
    bytes_per_connection: BytesPerConnection | None = None
    # Where the lines of those slopes meet no connection, in bytes; beside the baseline it shows
    # what the first connections cost once for all.
    intercept_bytes: BytesPerConnection | None = None
    connections_held: int = 0
    processes: int = 1
    reason: str | None = None
    ladder: tuple[Rung, ...] = ()
    ladder_scaled: str | None = None  # the ladder is too high for this machine: what was cut, why
    after_close_pss_kb: int | None = None  # when all connections of the ladder have gone
    trickle: Trickle | None = None
    trickle_reason: str | None = None
    slow_readers: SlowReaders | None = None


# --- compliance -------------------------------------------------------------------------------


class SeedFamily(msgspec.Struct, frozen=True):
    """Counts of one published family: the published reading and our strict one.

    Published: ``detected`` (the answer does not begin with ``HTTP/1.1 200 OK``) or
    ``undetected``. Strict: ``rejected`` (a well-formed 4xx or 5xx), ``closed`` (without an
    octet), ``accepted`` (2xx or 3xx), ``mute`` (hung), ``malformed`` (an answer that is no strict
    HTTP response), ``void`` (the machine lost packets).
    """

    detected: int
    undetected: int
    rejected: int
    closed: int
    accepted: int
    mute: int
    malformed: int = 0
    void: int = 0

    @property
    def requests(self) -> int:
        return self.detected + self.undetected


class Controls(msgspec.Struct, frozen=True):
    """Positive controls: good requests that must be accepted before a score counts."""

    passed: int
    failed: int
    failures: tuple[Verdict, ...] = ()  # the first few


class Difference(msgspec.Struct, frozen=True):
    """A family whose counts are not the published ones, with the requests that differ."""

    family: str
    published_detected: int
    detected: int
    cases: tuple[str, ...]  # the first differing cases
    more: int = 0


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Verdicts of one generated family: how many of each word at each level, and the first few."""

    words: dict[Level, dict[Word, int]] = {}
    closed_unanswered: int = 0  # failures that are only a close without an answer
    failures: tuple[Verdict, ...] = ()  # the first few that are no pass
    ways: dict[str, int] = {}  # how often it fails which way (ways.way)


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A message whose answer depends on how it was cut."""

    case: str
    level: Level
    count: int  # cuts that drew something else than one write, every time they were asked
    deliveries: tuple[str, ...]  # the first of them (delivery.py)
    what: str  # how the most of them differ


class Deliveries(msgspec.Struct, frozen=True, kw_only=True):
    """What the delivery corpus of a suite drew in other cuts than one write."""

    messages: int
    fired: dict[str, int]  # cuts by mode
    unstable: tuple[str, ...] = ()  # one write did not draw the same twice: not compared
    early: tuple[str, ...] = ()  # a 2xx or 3xx began before the header section was whole
    disagreements: tuple[Disagreement, ...] = ()


class SuiteResult(msgspec.Struct, frozen=True, kw_only=True):
    """One suite on one server."""

    score_percent: float | None
    reason: str | None = None  # why there is no score
    families: dict[str, SeedFamily] = {}
    must: dict[str, int] | None = None  # requirements of level MUST and CTRL, by verdict
    levels: dict[Level, dict[Word, int]] = {}  # cases by level and verdict
    cases: dict[str, Verdict] = {}  # designed cases
    generated: dict[str, Tally] = {}  # generated families
    answers: dict[str, Tally] = {}  # the checks on every answer
    requirements: dict[str, Word] = {}  # rows of the ledger
    ruleset: str | None = None
    deliveries: Deliveries | None = None  # None: one write only
    controls: Controls | None = None
    published: str | None = None  # "exact", "differs", None when nothing was published
    differences: tuple[Difference, ...] = ()
    requests: int = 0
    wall_seconds: float = 0.0  # suites that go out in one stream share it
    probe_cpu_seconds: float | None = None
    server_cpu_seconds: float | None = None


class Compliance(msgspec.Struct, frozen=True):
    suites: dict[str, SuiteResult] = {}


# --- the result of a run ----------------------------------------------------------------------


class ServerResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one run knows of one server. ``unavailable`` and ``died`` are said, not hidden."""

    name: str
    title: str
    language: str
    version: str | None
    version_reason: str | None = None
    runtime: str | None
    image_digest: str | None = None
    command: tuple[str, ...] | None = None  # how it was started under load, else for the suites
    binary_sha256: str | None = None  # of its first process
    # What its container may use, as its cgroup says; None of a process, which has our own limits.
    container_limits: dict[str, str] | None = None
    control: bool = False
    unavailable: str | None = None
    died: str | None = None
    compliance: Compliance = Compliance()
    load: tuple[LoadResult, ...] = ()
    memory: Memory | None = None
    memory_reason: str | None = None
    # How ``httpmark check`` is asked the same of it: the target, or --serve and its command, and
    # the options that say what is sent and where. Values of field lines are masked.
    again: tuple[str, ...] = ()


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate made of a run, in words for people."""

    exit_code: int
    headline: str
    counts: str  # of cases


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """``result.json``: the truth for scores and samples."""

    schema_version: str
    catalogue_version: str
    harness_version: str
    id: str
    started: str  # UTC, ISO 8601
    finished: str | None
    interrupted: bool
    quick: bool
    seed: int
    suites: tuple[str, ...]
    profiles: tuple[str, ...]
    environment: dict[str, Any]
    servers: tuple[ServerResult, ...]
    notes: tuple[str, ...] = ()
    paired: tuple[PairedRatio, ...] = ()
    conclusion: Conclusion | None = None  # of the gate of ``check``; None where nothing gates
