"""Verdicts on exchanges, and what they add up to for a suite."""

from __future__ import annotations

import enum

import msgspec

from httpmark.harness.model.cases import Level
from httpmark.harness.model.exchanges import Doubt


class Word(enum.StrEnum):
    """A verdict: the judgement of one exchange against one case."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    VOID = "void"
    NOT_APPLICABLE = "not_applicable"
    UNSTABLE = "unstable"  # the same case, asked again, got another verdict


class Verdict(msgspec.Struct, frozen=True):
    """The judgement of one exchange: what was expected, what came, and the span that decided."""

    case: str
    word: Word
    expected: str
    actual: str
    span: tuple[int, int] | None = None  # bytes of ``Exchange.received``
    level: Level = Level.CTRL
    closed_unanswered: bool = False  # a failure that is only a close without an answer
    late: bool = False  # a failure that is only of time: an answer had not begun when it was due


# --- compliance -------------------------------------------------------------------------------


class SeedFamily(msgspec.Struct, frozen=True):
    """Counts of one published family: the published reading and our strict one.

    Published: ``detected`` (the answer does not begin with ``HTTP/1.1 200 OK``) or
    ``undetected``. Strict: ``rejected`` (a well-formed 4xx or 5xx), ``closed`` (without a
    byte), ``accepted`` (2xx or 3xx), ``mute`` (hung), ``malformed`` (an answer that is no strict
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
    # How often it fails how (judging.failure_modes).
    failure_modes: dict[str, int] = msgspec.field(default_factory=dict, name="ways")


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A message whose answer depends on how it was cut."""

    case: str
    level: Level
    count: int  # cuts that got something else than one write, every time they were asked
    deliveries: tuple[str, ...]  # the first of them (delivery.py)
    what: str  # how the most of them differ


class Deliveries(msgspec.Struct, frozen=True, kw_only=True):
    """What the delivery corpus of a suite got in other cuts than one write."""

    messages: int
    fired: dict[str, int]  # cuts by mode
    unstable: tuple[str, ...] = ()  # one write did not get the same twice: not compared
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
    answers: dict[str, Tally] = {}  # the rules on every answer
    requirements: dict[str, Word] = {}  # rows of the ledger
    ruleset: str | None = None
    deliveries: Deliveries | None = None  # None: one write only
    controls: Controls | None = None
    published: str | None = None  # "exact", "differs", None when nothing was published
    differences: tuple[Difference, ...] = ()
    requests: int = 0
    asked_again: dict[Doubt, int] = {}  # cases that were asked again, by reason
    wall_seconds: float = 0.0  # suites that go out in one stream share it
    probe_cpu_seconds: float | None = None
    server_cpu_seconds: float | None = None


class Compliance(msgspec.Struct, frozen=True):
    suites: dict[str, SuiteResult] = {}
