"""An exchange as answers: which came before the canary, what the mirror understood, how it ended.

Pure: bytes and the probe's timeline in, facts out. Whether they are right is said in ``matching``.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import msgspec

from httpmark.harness.http import request_reader, response_reader
from httpmark.harness.model.cases import Case, Op
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.timeline import Event, EventKind, events

# A close within this time of the last byte belongs to the exchange before it. A case waits as long
# for a close that was announced (model.cases.Case.close_ms).
CLOSE_US = 1_500_000

_MIRROR_FIELDS = ("method", "target", "authority", "version", "content")


class Mirror(msgspec.Struct, frozen=True):
    """What a server says it understood (``mirror``, docs/contract.md); None: not shown."""

    method: bytes | None
    target: bytes | None
    authority: bytes | None
    version: bytes | None
    content: bytes | None
    fields: tuple[tuple[bytes, bytes], ...] | None
    trailers: tuple[tuple[bytes, bytes], ...] | None
    request_number: int | None


class Final(msgspec.Struct, frozen=True):
    """One final response with the interim ones before it."""

    response: response_reader.Response
    interims: tuple[response_reader.Response, ...]
    start: int  # where its first byte is, interim responses included

    @property
    def mirror(self) -> Mirror | None:
        return mirror(self.response.content)


class Sight(msgspec.Struct, frozen=True):
    """What is seen of one exchange.

    ``answers`` are the final responses to the case itself, ``after`` those that began once the
    canary was sent (all in ``answers`` where the canary was part of the case's own bytes).
    """

    outcome: Outcome
    end: End
    answers: tuple[Final, ...]
    after: tuple[Final, ...]
    canary_sent: bool
    completed: bool  # the bytes that complete the message went out
    answers_before_completion: int
    fault: str | None  # bytes that are no HTTP response, and why
    fault_at: int | None
    cut: bool  # the last response is begun and not ended
    cut_after_canary: bool
    cut_status: int | None
    closed_in_time: bool  # FIN or RST within 1.5 s of the last byte either way
    interims: int
    machine_dropped: bool
    received_at_writes: tuple[int, ...] = ()  # bytes that had come, at each of our writes
    received_at_fin: int | None = None  # bytes that had come when we half-closed

    @property
    def closed(self) -> bool:
        return self.end is not End.OPEN


class Played(msgspec.Struct, frozen=True):
    """A case, its exchange, and what is seen in it."""

    case: Case
    exchange: Exchange
    sight: Sight


def sight(case: Case, exchange: Exchange) -> Sight:
    """Read an exchange by what its case says of methods and canary."""
    records = events(exchange.timeline)
    canary_at, completed_at = _boundaries(case, exchange, records)
    finals, fault, fault_at, cut_at, cut_status, interims = _finals(case, exchange, canary_at)
    answers = tuple(final for final in finals if canary_at is None or final.start < canary_at)
    after = tuple(final for final in finals if canary_at is not None and final.start >= canary_at)
    return Sight(
        exchange.outcome,
        exchange.end,
        answers,
        after,
        canary_at is not None,
        completed_at is not None,
        sum(final.start < completed_at for final in finals) if completed_at is not None else 0,
        fault,
        fault_at,
        cut_at is not None,
        cut_at is not None and canary_at is not None and cut_at >= canary_at,
        cut_status,
        closed_in_time(exchange),
        interims,
        exchange.machine_dropped,
        *_received_before(records),
    )


def _received_before(records: list[Event]) -> tuple[tuple[int, ...], int | None]:
    """How many bytes had come at each write, and at our FIN."""
    received = 0
    writes: list[int] = []
    at_fin: int | None = None
    for record in records:
        if record.kind is EventKind.RECEIVED:
            received += record.octets
        elif record.kind is EventKind.SENT:
            writes.append(received)
        elif record.kind is EventKind.OWN_FIN:
            at_fin = received
    return tuple(writes), at_fin


def _boundaries(
    case: Case, exchange: Exchange, records: list[Event]
) -> tuple[int | None, int | None]:
    """How many bytes had come when the canary, and when the completing bytes, went out."""
    received = 0
    before: list[tuple[int, int]] = []  # bytes sent so far, bytes received so far
    sent = 0
    for record in records:
        if record.kind is EventKind.SENT:
            before.append((sent, received))
            sent += record.octets
        elif record.kind is EventKind.RECEIVED:
            received += record.octets
    canary_at = completed_at = None
    if case.canary and not case.joined and before and records:
        last = max(
            (r for r in records if r.kind is EventKind.SENT), key=lambda r: r.at_us, default=None
        )
        # Not every last write of that length is the canary: it may be a piece of the message.
        own = sum(len(step.data) for step in case.steps if step.op is Op.SEND) - len(case.canary)
        is_canary = last is not None and last.octets == len(case.canary) and sent != own
        if is_canary and len(before) > 1:
            canary_at = before[-1][1]
    completing = [step for step in case.steps if step.if_unanswered and step.data]
    if completing:
        # It is known by what went out before it, too: a piece of the message may be as long.
        own = sum(len(step.data) for step in case.steps[: case.steps.index(completing[0])])
        writes = [r.octets for r in records if r.kind is EventKind.SENT]
        for (sent, came), octets in zip(before, writes, strict=True):
            if sent == own and octets == len(completing[0].data):
                completed_at = came
                break
    return canary_at, completed_at


def closed_in_time(exchange: Exchange) -> bool:
    """Whether the server closed within 1.5 s of the last byte either way."""
    if exchange.end is End.OPEN:
        return False
    last = ended = 0
    for event in events(exchange.timeline):
        if event.kind in (EventKind.FIN, EventKind.RST):
            ended = event.at_us
            break
        last = event.at_us
    return ended - last <= CLOSE_US


def _finals(
    case: Case, exchange: Exchange, canary_at: int | None
) -> tuple[list[Final], str | None, int | None, int | None, int | None, int]:
    octets = exchange.received
    ended = exchange.end is not End.OPEN
    finals: list[Final] = []
    interims: list[response_reader.Response] = []
    seen = 0
    at = start = 0
    while at < len(octets):
        method = _method(case, len(finals), canary_at is not None and start >= canary_at)
        try:
            response = response_reader.read(octets, at, method=method, ended=ended)
        except response_reader.Malformed as error:
            return finals, error.why, error.at, None, None, seen
        except response_reader.Incomplete:
            return finals, None, None, start, _status(octets, at), seen
        if not response.complete and ended is False:
            # It ends with a close that has not come: the response is begun and not ended.
            return finals, None, None, start, response.status, seen
        at = response.end
        if response.interim:
            interims.append(response)
            seen += 1
            continue
        if ended and not finals and method == b"HEAD" and _refused_with_content(exchange, response):
            at = len(octets)
        finals.append(Final(response, tuple(interims), start))
        interims = []
        start = at
        if response.status == 101 or (method == b"CONNECT" and 200 <= response.status < 300):
            break
    return finals, None, None, None, None, seen


def _refused_with_content(exchange: Exchange, response: response_reader.Response) -> bool:
    """Whether a malformed HEAD got a refusal with content, as another method would.

    Then only the head of the answer is judged here. RESP-16 judges what follows it."""
    after = exchange.received[response.end : response.end + 7]
    if response.status < 400 or not after or b"HTTP/1.".startswith(after):
        return False
    return not request_reader.read(exchange.sent).requests[0].valid


def _status(octets: bytes, at: int) -> int | None:
    match = re.match(rb"HTTP/1\.[0-9] ([0-9]{3})", octets[at : at + 12])
    return int(match[1]) if match else None


def _method(case: Case, index: int, is_canary: bool) -> bytes:
    if is_canary:
        return b"GET"
    if index < len(case.methods):
        return case.methods[index]
    if case.joined and index >= len(case.methods):
        return b"GET"
    return case.methods[-1] if case.methods else b"GET"


def mirror(content: bytes) -> Mirror | None:
    """The mirror's JSON object, or None where the content is not one."""
    try:
        found: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(found, dict) or "method" not in found or "fields" not in found:
        return None
    try:
        texts = {
            name: None if found.get(name) is None else base64.b64decode(found[name], validate=True)
            for name in _MIRROR_FIELDS
        }
        number = found.get("request_number")
        return Mirror(
            **texts,
            fields=_pairs(found.get("fields")),
            trailers=_pairs(found.get("trailers")),
            request_number=number if isinstance(number, int) else None,
        )
    except (binascii.Error, TypeError, ValueError):
        return None


def _pairs(found: Any) -> tuple[tuple[bytes, bytes], ...] | None:
    if found is None:
        return None
    return tuple(
        (base64.b64decode(name, validate=True), base64.b64decode(value, validate=True))
        for name, value in found
    )
