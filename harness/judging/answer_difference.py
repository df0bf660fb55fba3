"""Whether two deliveries of the same message got the same answers, and how they differ."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from httpmark.harness.catalogue.delivery_modes import PAD, head_end, message
from httpmark.harness.judging import observation
from httpmark.harness.judging.observation import Final, Sight
from httpmark.harness.model.cases import Case, Op
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.timeline import EventKind, events

EARLY = "a 2xx or 3xx began before the header section was whole"


# --- the same, or not ----------------------------------------------------------------------------


class Answer(msgspec.Struct, frozen=True):
    """What is compared of one answer."""

    status: int
    fields: tuple[tuple[bytes, tuple[bytes, ...]], ...]  # by name; Date is not among them
    content: bytes | None  # None where the mirror shows what was understood
    echo: tuple[object, ...] | None


class Compared(msgspec.Struct, frozen=True):
    """What is compared of one exchange."""

    answers: tuple[Answer, ...]
    after: tuple[Answer, ...]  # to the canary
    closed: bool
    canary_sent: bool
    all_sent: bool
    fault: str | None
    cut: bool
    hung: bool
    early: bool  # a 2xx or 3xx began before its whole header section was sent


# The length of a mirror depends on its request_number and the padding, and its framing may depend
# on the length. A close may be announced wherever it is permitted.
_NOT_COMPARED = frozenset({b"date"})
_OF_A_MIRROR = frozenset({b"content-length", b"transfer-encoding", b"etag"})
_OF_A_CLOSE = frozenset({b"connection", b"keep-alive"})


def compared(case: Case, exchange: Exchange) -> Compared:
    """The parts of an exchange that are compared."""
    sight = observation.sight(case, exchange)
    records = events(exchange.timeline)
    sent = sum(event.octets for event in records if event.kind is EventKind.SENT)
    whole = sum(len(step.data) for step in case.steps if step.op is Op.SEND)
    canary = 0 if case.joined else len(case.canary)
    return Compared(
        tuple(_answer(final) for final in sight.answers),
        tuple(_answer(final) for final in sight.after),
        sight.closed,
        sight.canary_sent,
        sent == whole or (sent == whole - canary and not sight.canary_sent),
        sight.fault,
        sight.cut,
        not exchange.received and not sight.closed,
        _early(case, exchange, sight),
    )


def _answer(final: Final) -> Answer:
    response, mirror = final.response, final.mirror
    unheeded = _NOT_COMPARED | (_OF_A_MIRROR if mirror is not None else frozenset())
    fields: dict[bytes, list[bytes]] = {}
    for name, value in response.fields:
        if name.lower() not in unheeded:
            fields.setdefault(name.lower(), []).append(value)
    echo = None
    if mirror is not None:
        echo = (
            mirror.method,
            mirror.target,
            mirror.authority,
            mirror.version,
            mirror.content,
            _by_name(mirror.fields),
            _by_name(mirror.trailers),
        )
    return Answer(
        response.status,
        tuple((name, tuple(values)) for name, values in sorted(fields.items())),
        response.content if mirror is None else None,
        echo,
    )


def _by_name(
    lines: tuple[tuple[bytes, bytes], ...] | None,
) -> tuple[tuple[bytes, tuple[bytes, ...]], ...] | None:
    """Field lines by name, without the padding. A server may order the names as it likes."""
    if lines is None:
        return None
    found: dict[bytes, list[bytes]] = {}
    for name, value in lines:
        if not name.lower().startswith(PAD.lower()):
            found.setdefault(name.lower(), []).append(value)
    return tuple((name, tuple(values)) for name, values in sorted(found.items()))


def _early(case: Case, exchange: Exchange, sight: Sight) -> bool:
    """Whether a 2xx or 3xx began before its whole header section was sent (RFC 9110 5.3)."""
    records = events(exchange.timeline)
    octets = message(case)
    ends: list[int] = []
    at = 0
    for _ in range(len(sight.answers)):
        at = head_end(octets, at)
        if at < 0:
            break
        ends.append(at)
        # After content, where the next request begins depends on how the server reads the content.
        # So only the first request and those directly after a header section are looked at.
        if not re.match(rb"[A-Z]+ ", octets[at : at + 12]):
            break
    for final, end in zip(sight.answers, ends, strict=False):
        sent = received = 0
        for event in records:
            if event.kind is EventKind.SENT:
                sent += event.octets
            elif event.kind is EventKind.RECEIVED:
                received += event.octets
            if sent >= end:
                break
            if received > final.response.head[0] and 200 <= final.response.status < 400:
                return True
    return False


def expected(alone: Compared, delivery: str) -> Compared:
    """What a cut should get, given what one write of the message got."""
    replace = msgspec.structs.replace
    if delivery == "join" and not alone.closed:
        return replace(alone, answers=alone.answers * 2)
    return alone


def difference(alone: Compared, cut: Compared, delivery: str, *, first_only: bool = False) -> str:
    """How a cut differs from one write; empty where it does not.

    A close where one write left the connection open is permitted (RFC 9112 9.5), so it is no
    difference; :func:`closes` reports it.

    :param first_only: compare the first answer only; what follows it answers other bytes.
    """
    if cut.early:
        return EARLY
    wanted = expected(alone, delivery)
    answers = cut.answers
    if delivery == "join@content":
        refused = bool(alone.answers) and alone.answers[0].status >= 400
        # A refusal that replaces the answer before it is judged by PIPE-13.
        if len(answers) > len(wanted.answers) or not refused:
            if not answers or not 200 <= answers[0].status < 300:
                return "the request before it is not answered"
            answers = answers[1:]
    if cut.fault != alone.fault:
        return cut.fault or f"no fault, as one write got: {alone.fault}"
    if cut.hung != alone.hung:
        return "silence" if cut.hung else "an answer where one write got silence"
    if cut.cut and not alone.cut:
        return "an answer begun and not ended"
    if first_only:
        return _unlike(wanted.answers[:1], answers[:1], closes=True)
    closes = cut.closed and not wanted.closed
    if closes and not cut.after and 0 < len(answers) <= len(wanted.answers):
        return _unlike(wanted.answers[: len(answers)], answers, closes=True)
    if found := _unlike(wanted.answers, answers, closes=False):
        return found
    if not cut.all_sent:
        return ""
    if wanted.closed and not cut.closed:
        return "left open, where one write got a close"
    return _unlike(wanted.after, cut.after, closes=False, what="the next request: ")


def closes(alone: Compared, cut: Compared) -> bool:
    """Whether the connection was closed where one write left it open: permitted, and reported."""
    return cut.closed and not alone.closed


def _unlike(
    wanted: tuple[Answer, ...], found: tuple[Answer, ...], *, closes: bool, what: str = ""
) -> str:
    statuses = [answer.status for answer in wanted], [answer.status for answer in found]
    if statuses[0] != statuses[1]:
        told = [", ".join(map(str, some)) or "no answer" for some in statuses]
        return f"{what}{told[1]} instead of {told[0]}"
    for one, other in zip(wanted, found, strict=True):
        if one.echo != other.echo:
            return f"{what}another message is understood"
        if one.content != other.content:
            return f"{what}other content is answered"
        unheeded = _OF_A_CLOSE if closes else frozenset[bytes]()
        lines = [
            Counter({line: 1 for line in answer.fields if line[0] not in unheeded})
            for answer in (one, other)
        ]
        if lines[0] != lines[1]:
            names = sorted({name for name, _ in (lines[0] - lines[1]) + (lines[1] - lines[0])})
            return f"{what}other fields: {b', '.join(names).decode('latin-1')}"
    return ""
