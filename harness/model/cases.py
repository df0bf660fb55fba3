"""Cases: what is sent, step by step, and what is known of the target that it is sent to."""

from __future__ import annotations

import enum

import msgspec


class Level(enum.StrEnum):
    """How strongly the clause of a case binds."""

    CTRL = "CTRL"  # positive control: a valid message must be accepted
    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
    SEC = "SEC"
    INFO = "INFO"

    @property
    def is_binding(self) -> bool:
        """Whether a failure counts in the score and fails the gate; the others are told only."""
        return self in (Level.MUST, Level.CTRL)

    @property
    def is_judged(self) -> bool:
        """Whether a failure is told; at ``INFO`` nothing fails."""
        return self is not Level.INFO

    def unless_contested(self, contested: str | None) -> Level:
        """The level of a case with this level in its file: what readers of the RFC differ on never
        binds, whatever the strict reading says."""
        return Level.SHOULD if contested and self.is_binding else self


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
    if_connected: bool = False  # only while the connection is open, whatever an answer announced
    if_prompt: bool = False  # only while no wait for an answer has run out


# What the harness learns of the files that it gives to a server with the capability ``static``.
STATIC_FILE_FACTS = (
    "secret", "secret_text", "file_text", "etag", "modified", "modified_rfc850",
    "modified_asctime",
)  # fmt: skip


# The files that a server with the capability ``static`` is given to serve.
SECRET = "httpmark-secret.txt"
SECRET_TEXT = "httpmark: nothing leads here 6a9f3c\n"
FILE_TEXT = "<!doctype html><title>httpmark</title><p>the planted file\n"


class OwnAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """The statuses that the application itself answers to good requests; None: not known.

    What a malformed request gets is compared with what its good neighbour gets at the same place.
    """

    unknown_path: int | None = None  # GET of a path that it does not know
    query: int | None = None  # GET of its path, with a query
    head: int | None = None  # HEAD of its path
    post: int | None = None  # POST of five bytes to the path that takes POST
    post_empty: int | None = None  # the same with no content


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What scenario texts and verdicts need to know of a target; stored with its exchanges."""

    host: str  # the Host value
    port: int = 80
    address: str | None = None  # where it listens; None in evidence that does not say
    unix: str | None = None  # the path of a Unix socket, instead of address and port
    path: str = "/hello"  # the target that answers 2xx to a plain GET
    post_path: str | None = ""  # the target that takes POST; "": path does, too; None: none does
    own: OwnAnswers = OwnAnswers()
    capabilities: tuple[str, ...] = ("hello",)
    scheme: str = "http"
    limits: dict[str, int | None] = {}  # declared; the words of LIMITS
    timeouts: dict[str, float | None] = {}  # declared, seconds; the words of model.servers.TIMEOUTS
    timeouts_found: tuple[str, ...] = ()  # those of timeouts that were found by asking
    answers_1_0_as_1_0: bool = False
    values: dict[str, str] = {}  # what is known of the static files: the words of STATIC_FILE_FACTS
    header: tuple[str, ...] = ()  # field lines that go after every Host line
    slowest_ms: int = 0  # of a few plain requests one after the other
    at_once: int | None = None  # plain requests that it answers at once; None: not asked

    @property
    def posted_to(self) -> str | None:
        """The target that takes POST; None if none is known."""
        return self.path if self.post_path == "" else self.post_path

    @property
    def takes_query(self) -> bool:
        """Whether the path is the same with a query, as far as is known."""
        return self.own.query is None or self.own.query // 100 == 2

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
    timeline: bool = False  # record when each write and each byte went by
    delivery: str = "whole"  # how the bytes are cut: a word of delivery_modes
    variant: int = -1  # the class of its family that it falls into; -1 is none
    place: str = "hello"  # the capability that {p} stands for: "mirror", "body" or "hello"
    methods: tuple[bytes, ...] = ()  # of the requests that are answered, where known
    canary: bytes = b""  # the request that shows both ends agree; the last SEND, or joined
    joined: bool = False  # the canary is part of the case's own bytes

    @property
    def sent(self) -> bytes:
        """All bytes the case would send, in order."""
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
    judged_by: str  # a word of PUBLISHED_WORDS, or "expectation"
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
