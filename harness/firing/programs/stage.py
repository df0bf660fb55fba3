"""What a program works with: its case, and what it may do to the server.

A program shows what one exchange cannot (``runner`` in scenarios): it plays cases, looks at the
server's processes if it has to, and says what it found. A program that needs the processes is not
applicable if they are not known: they run on another machine, or may not be looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from httpmark.harness.catalogue.case_builder import patience_ms
from httpmark.harness.catalogue.family_rules import ANSWER_MS
from httpmark.harness.judging.observation import Final, Sight
from httpmark.harness.model.cases import Case, Facts, Op, Step
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.verdicts import Word
from httpmark.harness.servers.sockets import ReadLate


class Negative(msgspec.Struct, frozen=True):
    """A case that a server may refuse, and how it is judged."""

    group: str  # its family in the catalogue
    case: Case
    word: Callable[[Exchange], Word]


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What a program has to work with."""

    case: Case
    facts: Facts
    # fire(cases, in_flight): plays cases, keeps the exchanges, returns them in the order of cases
    fire: Callable[[list[Case], int], list[Exchange]]
    alive: Callable[[], bool]  # whether a plain request is answered
    pids: Callable[[], list[int]]  # the server's processes; none if they are not known
    # flood(message, total, stall_s, look): sends again and again and reads nothing; calls look
    # while it is still connected; returns the bytes sent, and "stalled", "closed" or "sent"
    flood: Callable[[bytes, int, float, Callable[[], None]], tuple[int, str]]
    # trickle(message, clients, seconds, look): clients that ask and read a byte a second; calls
    # look at the end; returns how many connections the server has not closed
    trickle: Callable[[bytes, int, float, Callable[[], None]], int]
    # read_late(octets, is_whole, quiet_s, patience_s, opening): sockets.read_late
    read_late: Callable[[bytes, Callable[[bytearray], bool], float, float, bytes], ReadLate]
    negatives: Callable[[], list[Negative]]  # cases that a server may refuse and that do not wait

    @property
    def answer_ms(self) -> int:
        """How long to wait for an answer of this server."""
        return patience_ms(ANSWER_MS, self.facts)


class Found(msgspec.Struct, frozen=True):
    """What a program says."""

    word: Word
    actual: str


Program = Callable[[Stage], Found]

_SLACK_MS = 2000


def numbered(cases: Iterable[Case], name: str = "runner") -> list[Case]:
    """The cases, each with a delivery of its own, so that evidence keeps all of them."""
    return [
        msgspec.structs.replace(case, delivery=f"{name}@{number}", timeline=True)
        for number, case in enumerate(cases)
    ]


def is_success(final: Final) -> bool:
    """Whether an answer is a 2xx."""
    return 200 <= final.response.status < 300


def mirrored_targets(sight: Sight) -> list[bytes | None]:
    """The targets that the mirror understood; None if an answer shows none."""
    return [final.mirror.target if final.mirror else None for final in sight.answers]


def with_steps(case: Case, steps: list[Step]) -> Case:
    """The case with other steps, and as much time as they need."""
    return msgspec.structs.replace(
        case,
        steps=tuple(steps),
        canary=b"",
        deadline_ms=sum(step.wait_ms for step in steps) + _SLACK_MS,
    )


def request_and_answer(stage: Stage, request: bytes) -> list[Step]:
    """The steps that send a request and wait for its answer."""
    return [Step(Op.SEND, request), Step(Op.AWAIT, wait_ms=stage.answer_ms)]


def bad_cases(stage: Stage) -> list[Case]:
    """The cases that a server may refuse."""
    return [one.case for one in stage.negatives()]
