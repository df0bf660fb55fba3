"""Timeouts that a server does not declare, found by asking: how long it keeps a silent client.

Some clients stop in a request, others stop after an answer, all at once, for half a minute. A
timeout counts as found if the server ends every one of them, and all after about the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from httpmark.harness.model.cases import Await, Case, Facts, Op, Step
from httpmark.harness.model.exchanges import End, Exchange
from httpmark.harness.model.timeline import Event, EventKind, events

Fire = Callable[[list[Case]], Iterable[Exchange]]

NAMES = ("head_s", "idle_s")
WATCHED_MS = 30_000
_ANSWER_MS = 1_000  # what comes later after a whole request is no answer to it but a 408
_CLIENTS = 2  # that stop at the same place
# Servers look at their clocks now and then: two looks a second apart are one timeout.
_APART_S = 1.5
_APART_SHARE = 0.2
_SHORTEST_S = 0.5  # what ends sooner was refused, or closed after its answer


def found(fire: Fire, facts: Facts, wanted: Iterable[str]) -> dict[str, float]:
    """The timeouts of ``wanted``, words of ``NAMES``, that the server shows, in seconds."""
    cases = {name: _cases(name, facts) for name in wanted if name in NAMES}
    if not cases:
        return {}
    played: dict[str, list[Exchange]] = {name: [] for name in cases}
    for exchange in fire([case for some in cases.values() for case in some]):
        played[exchange.family].append(exchange)
    timeouts = {}
    for name, exchanges in played.items():
        kept = [_kept_s(exchange) for exchange in exchanges]
        if len(kept) == len(cases[name]) and (seconds := _agreed(kept)) is not None:
            timeouts[name] = seconds
    return timeouts


def _agreed(kept: list[float | None]) -> float | None:
    """The longest time, if each client was ended, and all after about the same time."""
    times = [seconds for seconds in kept if seconds is not None]
    if len(times) < len(kept):
        return None
    shortest, longest = min(times), max(times)
    if shortest < _SHORTEST_S or longest - shortest > max(_APART_S, _APART_SHARE * longest):
        return None
    return longest


def _cases(name: str, facts: Facts) -> list[Case]:
    line = f"GET {facts.path} HTTP/1.1\r\n".encode("latin-1")
    head = line + facts.host_lines.encode("latin-1")
    stops = [head + b"\r\n"] if name == "idle_s" else [b"GET", line, head + b"X-A: b"]
    waits = [Step(Op.WATCH, wait_ms=WATCHED_MS)]
    if name == "idle_s":
        waits.insert(0, Step(Op.AWAIT, wait_ms=_ANSWER_MS, kind=Await.FINAL))
    return [
        Case(
            f"{name}-{place}-{client}", name, (Step(Op.SEND, sent), *waits),
            deadline_ms=WATCHED_MS + 2 * _ANSWER_MS, timeline=True,
        )
        for place, sent in enumerate(stops)
        for client in range(_CLIENTS)
    ]  # fmt: skip


def _kept_s(exchange: Exchange) -> float | None:
    """How long a client was kept after its last byte, or after the answer to a whole request.

    None where it was not ended, or where a whole request was not answered.
    """
    if exchange.end is End.OPEN:
        return None
    records = events(exchange.timeline)
    since_us = max(event.at_us for event in records if event.kind is EventKind.SENT)
    later = [event for event in records if event.at_us >= since_us]
    if exchange.family == "idle_s":
        answer = [e.at_us for e in later if e.kind is EventKind.RECEIVED and _is_soon(e, since_us)]
        if not answer:
            return None
        since_us = answer[-1]
    # The first that comes of the end: a 408, or the close itself.
    ends = [e.at_us for e in later if e.kind is not EventKind.SENT and e.at_us > since_us]
    return (ends[0] - since_us) / 1e6 if ends else None


def _is_soon(event: Event, since_us: int) -> bool:
    return event.at_us - since_us <= _ANSWER_MS * 1000
