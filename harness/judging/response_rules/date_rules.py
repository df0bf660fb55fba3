"""The rules of Date and Last-Modified: RESP-20, 21, 34 and 35."""

from __future__ import annotations

from httpmark.harness.http import request_reader, response_reader
from httpmark.harness.http.dates import moment
from httpmark.harness.judging.response_rules.answers import Answers, DatedAnswer, shown
from httpmark.harness.judging.response_rules.exchange_view import Clock, ExchangeView
from httpmark.harness.judging.response_rules.findings import Notes

# RFC 9110 6.6.1 asks for the best available approximation of the time of the message. 5 s leave
# room for a server that renders its Date ahead of time and for a busy machine, and still tell a
# wrong clock.
DATE_OFF_S = 5
# A server that renders its Date once a second may repeat it for a second, and be late by another.
STALE_US = 2_000_000
# Many servers render it by a timer, which comes late while many others are in flight: 6.3 s were
# seen. A clock that is wrong is wrong by more, or is so with few in flight, too.
LATE_AMONG_MANY_S = 60


def judge_fields(
    notes: Notes,
    response: response_reader.Response,
    fields: dict[bytes, list[bytes]],
    *,
    has_clock: bool,
) -> None:
    """RESP-20, 21 and 35: what the fields alone decide."""
    status, span = response.status, response.head
    if 200 <= status < 500 and has_clock:
        notes.judge("RESP-20", b"date" not in fields, span, f"no Date on {status}")
    for name in (b"date", b"last-modified"):
        for value in fields.get(name, ()):
            bad = moment(value) is None
            notes.judge("RESP-21", bad, span, f"{name.decode()}: {shown(value)}")
    if b"last-modified" in fields and b"date" in fields:
        changed, now = moment(fields[b"last-modified"][0]), moment(fields[b"date"][0])
        if changed is not None and now is not None:
            notes.judge("RESP-35", changed > now, span, "Last-Modified is later than Date")


def judge_dates(
    notes: Notes,
    seen: ExchangeView,
    clock: Clock,
    requests: request_reader.Requests,
    answers: Answers,
) -> None:
    """RESP-34: within 5 s of the answer, and not the same 2 s later.

    Among many in flight a Date may be late by 60 s.
    """
    stale_us = LATE_AMONG_MANY_S * 1_000_000 if seen.among_many else STALE_US
    earlier: list[tuple[bytes, int]] = []  # a Date, and when its head had come
    for one in answers.dated:
        answer, response = one.answer, one.answer.response
        came_us = clock.received(response.head[1] - 1)
        known = 0 <= answer.request < len(requests.requests)
        asked_us = clock.sent(requests.requests[answer.request].start) if known else None
        _judge_now(notes, seen, clock, one, (asked_us, came_us))
        if came_us is None:
            continue
        if earlier and known and requests.requests[answer.request].valid:
            stale = [
                date for date, us in earlier if asked_us is not None and asked_us - us >= stale_us
            ]
            if stale:
                text = f"the same Date more than 2 s later: {shown(one.date)}"
                notes.judge("RESP-34", one.date in stale, response.head, text)
        earlier.append((one.date, came_us))


def _judge_now(
    notes: Notes,
    seen: ExchangeView,
    clock: Clock,
    one: DatedAnswer,
    times_us: tuple[int | None, int | None],
) -> None:
    """:param times_us: when its request began to be sent, and when its head had come."""
    if seen.began_s is None:
        return
    asked_us, came_us = times_us
    # A server knows nothing of how long its answer waits to be read, on a busy machine for seconds.
    soonest = seen.began_s + (asked_us or 0) / 1e6
    latest = seen.began_s + (clock.end_us if came_us is None else came_us) / 1e6
    # A Date has whole seconds, so it may be late by a fraction of one.
    late_s = LATE_AMONG_MANY_S if seen.among_many else DATE_OFF_S
    off = not soonest - late_s - 1 < one.now < latest + DATE_OFF_S
    notes.judge("RESP-34", off, one.answer.response.head, f"Date: {shown(one.date)}")
