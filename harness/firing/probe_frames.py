"""The frames that the harness and the native probe exchange."""

from __future__ import annotations

import struct
import time

from httpmark.harness.model.cases import Case, Op
from httpmark.harness.model.exchanges import End, Exchange, Outcome

_NO_TIME = 0xFFFFFFFF
_HEAD_ONLY = 1
_TIMELINE = 2

_LENGTH = struct.Struct("<I")
_CASE = struct.Struct("<IIIIIBBH")  # length, number, deadline, settle, close, flags, zero, steps
_STEP = struct.Struct("<BI")
_EXCHANGE = struct.Struct("<IBBBBIIIIIHH")
_EVENT_OCTETS = 9

Play = tuple[Case, int]  # and which attempt at it this is

_OUTCOMES = (Outcome.ANSWERED, Outcome.CLOSED, Outcome.RESET, Outcome.HUNG, Outcome.REFUSED)
_ENDS = (End.OPEN, End.CLOSED, End.RESET)


def encode(number: int, case: Case) -> bytes:
    """A case as the probe reads it."""
    steps = bytearray()
    for step in case.steps:
        op = step.op | (0x80 if step.if_open else 0) | (0x40 if step.if_unanswered else 0)
        if step.op is Op.SEND:
            steps += _STEP.pack(op, len(step.data)) + step.data
        else:
            steps += _STEP.pack(op, step.wait_ms)
            if step.op is Op.AWAIT:
                steps.append(step.kind)
    head = _CASE.pack(
        _CASE.size - 4 + len(steps),
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
    """The whole frames at the front of what is held, and how many octets they take."""
    unpack, size = _EXCHANGE.unpack_from, _EXCHANGE.size
    now_s = time.time()
    batch: list[Exchange] = []
    at, end = 0, len(held)
    while end - at >= 4:
        length = _LENGTH.unpack_from(held, at)[0]
        if end - at - 4 < length:
            break
        (number, outcome, ending, flags, _, _, first_us, end_us, sent, count, events, _) = unpack(
            held, at + 4
        )
        start = at + 4 + size
        case, attempt = waiting.pop(number)
        received = held[start : start + count]
        assert length == size + count + events * _EVENT_OCTETS, "a torn frame"
        batch.append(
            Exchange(
                case.id,
                case.family,
                case.steps[0].data if len(case.steps) == 2 else case.sent,
                received,
                _OUTCOMES[outcome],
                _ENDS[ending],
                None if first_us == _NO_TIME else first_us,
                end_us,
                sent,
                flags,
                case.head_only,
                attempt,
                case.delivery,
                False,
                held[start + count : at + 4 + length],
                now_s,
            )
        )
        at += 4 + length
    return batch, at
