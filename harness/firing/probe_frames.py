"""The frames that the harness and the native probe exchange.

The numbers and the fields are those of ``harness/native/probe/frames.hpp``; a test compares them
with what ``httpmark-probe --print-layout`` prints. Numbers are little endian.
"""

from __future__ import annotations

import enum
import struct

from httpmark.harness.model.cases import Case, Op
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.timeline import EVENT_RECORD

Play = tuple[Case, int]  # and which attempt at it this is


class StepFlag(enum.IntFlag):
    """What a step depends on; stands beside the number of its operation."""

    IF_PROMPT = 0x10
    IF_CONNECTED = 0x20
    IF_UNANSWERED = 0x40
    IF_OPEN = 0x80


class CaseFlag(enum.IntFlag):
    """What the probe is told about a case."""

    HEAD_ONLY = 1
    TIMELINE = 2


class Record:
    """A record of fixed size: the names of its fields, in order, and their widths."""

    def __init__(self, **fields: str) -> None:
        """:param fields: "u8", "u16", "u32" or "u64" for each name."""
        codes = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
        layout = struct.Struct("<" + "".join(codes[width] for width in fields.values()))
        self.fields = tuple(fields.items())
        self.size = layout.size
        self.pack = layout.pack
        self.unpack_from = layout.unpack_from


LENGTH = Record(length="u32")  # of what follows it; every frame begins with it
CASE = Record(
    length="u32",
    number="u32",
    deadline_ms="u32",
    settle_ms="u32",
    close_ms="u32",
    flags="u8",
    zero="u8",
    steps="u16",
)
STEP = Record(op="u8", n="u32")  # n: the bytes that follow a SEND, else milliseconds
AWAIT = Record(kind="u8")  # follows the step
EXCHANGE = Record(
    length="u32",
    number="u32",
    outcome="u8",
    end="u8",
    flags="u8",
    steps_done="u8",
    connect_us="u32",
    first_us="u32",
    end_us="u32",
    sent="u32",
    received="u32",
    events="u16",
    finals="u16",
    ended_unix_us="u64",
)
NEVER_US = 0xFFFFFFFF  # of first_us: nothing came

# Their numbers in the frames are their places here.
OUTCOMES = (Outcome.ANSWERED, Outcome.CLOSED, Outcome.RESET, Outcome.HUNG, Outcome.REFUSED)
ENDS = (End.OPEN, End.CLOSED, End.RESET)

_IF_OPEN, _IF_UNANSWERED = int(StepFlag.IF_OPEN), int(StepFlag.IF_UNANSWERED)
_IF_CONNECTED = int(StepFlag.IF_CONNECTED)
_IF_PROMPT = int(StepFlag.IF_PROMPT)
_HEAD_ONLY, _TIMELINE = int(CaseFlag.HEAD_ONLY), int(CaseFlag.TIMELINE)


def encode(number: int, case: Case) -> bytes:
    """A case as the probe reads it; the exchange comes back with the same number."""
    steps = bytearray()
    for step in case.steps:
        op = (
            step.op
            | (_IF_OPEN if step.if_open else 0)
            | (_IF_UNANSWERED if step.if_unanswered else 0)
            | (_IF_CONNECTED if step.if_connected else 0)
            | (_IF_PROMPT if step.if_prompt else 0)
        )
        if step.op is Op.SEND:
            steps += STEP.pack(op, len(step.data)) + step.data
        else:
            steps += STEP.pack(op, step.wait_ms)
            if step.op is Op.AWAIT:
                steps += AWAIT.pack(step.kind)
    head = CASE.pack(
        CASE.size - LENGTH.size + len(steps),
        number,
        case.deadline_ms,
        case.settle_ms,
        case.close_ms,
        (_HEAD_ONLY if case.head_only else 0) | (_TIMELINE if case.timeline else 0),
        0,
        len(case.steps),
    )
    return head + bytes(steps)


def decoded(held: bytes, waiting: dict[int, Play]) -> tuple[list[Exchange], int]:
    """The exchanges of the whole frames at the front of ``held``, and how many bytes they take.

    :param waiting: the plays by number; those that came back are taken out.
    """
    unpack, size, first = EXCHANGE.unpack_from, EXCHANGE.size, LENGTH.size
    batch: list[Exchange] = []
    at, end = 0, len(held)
    while end - at >= size:
        (
            length, number, outcome, ending, flags, _, _, first_us, end_us, sent, count, events, _,
            ended_unix_us,
        ) = unpack(held, at)  # fmt: skip
        if end - at - first < length:
            break
        start = at + size
        case, attempt = waiting.pop(number)
        received = held[start : start + count]
        assert length == size - first + count + events * EVENT_RECORD.size, "a torn frame"
        batch.append(
            Exchange(
                case.id,
                case.family,
                case.steps[0].data if len(case.steps) == 2 else case.sent,
                received,
                OUTCOMES[outcome],
                ENDS[ending],
                None if first_us == NEVER_US else first_us,
                end_us,
                sent,
                flags,
                case.head_only,
                attempt,
                case.delivery,
                False,
                held[start + count : at + first + length],
                ended_unix_us / 1e6,
            )
        )
        at += first + length
    return batch, at
