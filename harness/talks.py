"""Judgements of single cases that no word of the language can state: ``talk.NAME`` in scenarios.

Each takes the case, its exchange and what was seen in it, and says whether it is as asked (None
where this server cannot show it) and why not.
"""

from __future__ import annotations

from collections.abc import Callable

from httpmark.harness.model import Case, Exchange
from httpmark.harness.observation import RECEIVED, SENT, Sight, events

Talk = Callable[[Case, Exchange, Sight], tuple[bool | None, str]]

# RFC 8446 5.1: an alert or a handshake record, legacy version 3.x
_TLS_RECORD = (b"\x15\x03", b"\x16\x03")
_H2_SETTINGS = 4  # RFC 9113 6.5, the frame that a server's connection preface is


def tls_record(case: Case, exchange: Exchange, sight: Sight) -> tuple[bool | None, str]:
    """The port speaks TLS as well, and answered in it."""
    return exchange.received.startswith(_TLS_RECORD), "no TLS record"


def http2_settings(case: Case, exchange: Exchange, sight: Sight) -> tuple[bool | None, str]:
    """The port speaks HTTP/2 with prior knowledge, and answered with its SETTINGS."""
    octets = exchange.received
    return len(octets) >= 9 and octets[3] == _H2_SETTINGS and octets[5:9] == b"\0\0\0\0", (
        "no HTTP/2 SETTINGS frame"
    )


_LINEAR_US = 1_000_000
_LINEAR_RATIO = 20  # ten times the chunks, and noise


def linear_cost(case: Case, exchange: Exchange, sight: Sight) -> tuple[bool | None, str]:
    """The second of two like messages, ten times as long, takes at most 1 s or 20 times as long."""
    if len(sight.answers) != 2:
        return False, f"{len(sight.answers)} answers instead of 2"
    if any(not 200 <= final.response.status < 300 for final in sight.answers):
        return False, "not accepted"
    spans: list[int] = []
    start: int | None = None
    received = 0
    ends = [final.response.end for final in sight.answers]
    for event in events(exchange.timeline):
        if event.kind == SENT and start is None:
            start = event.at_us
        elif event.kind == RECEIVED:
            received += event.octets
            while len(spans) < 2 and received >= ends[len(spans)]:
                spans.append(event.at_us - (start or 0))
                start = None
    if len(spans) < 2:
        return None, "the timeline is cut"
    first, second = spans
    return second <= max(_LINEAR_US, _LINEAR_RATIO * first), (
        f"{second / 1e6:.2f} s after {first / 1e6:.2f} s for a tenth of it"
    )


def in_sync_after_refusal(case: Case, exchange: Exchange, sight: Sight) -> tuple[bool | None, str]:
    """One refusal, then a close or the canary answered as itself; nothing to say without one."""
    if not sight.answers or sight.answers[0].response.status < 400:
        return None, "no refusal came"
    if len(sight.answers) > 1:
        return False, f"{len(sight.answers)} answers instead of 1"
    if sight.fault is not None:
        return False, f"no HTTP response: {sight.fault}"
    if not sight.after:
        return sight.closed and not sight.cut, "the next request is not answered"
    mark = b"canary-" + case.id.encode("latin-1")
    shown = sight.after[0].mirror
    named = shown is None or shown.target is None or mark in shown.target
    fine = len(sight.after) == 1 and 200 <= sight.after[0].response.status < 300 and named
    return fine, "the next request is not answered as itself"


def bare_interim(case: Case, exchange: Exchange, sight: Sight) -> tuple[bool | None, str]:
    """Interim answers have neither framing fields nor content (RFC 9110 8.6, RFC 9112 6.1)."""
    if sight.fault is not None:
        return False, f"no HTTP response: {sight.fault}"
    interims = [interim for final in sight.answers for interim in final.interims]
    if not interims:
        return None, "no interim answer came"
    framed = [
        name
        for interim in interims
        for name in (b"content-length", b"transfer-encoding")
        if interim.values(name)
    ]
    return not framed, b", ".join(framed).decode() + " in an interim answer"


def content_given_up(case: Case, exchange: Exchange, sight: Sight) -> tuple[bool | None, str]:
    """After a 100 and silence: 408, or a close."""
    if not sight.interims:
        return None, "no 100 came"
    if sight.answers and sight.answers[0].response.status == 408:
        return True, ""
    return sight.closed, "neither 408 nor a close in time"


def close_announced(case: Case, exchange: Exchange, sight: Sight) -> tuple[bool | None, str]:
    """An answer that a close follows says close."""
    if not sight.answers or not sight.closed_in_time:
        return None, "no answer that a close followed"
    return sight.answers[-1].response.announces_close, "the close was not announced"


def unasked_close_announced(
    case: Case, exchange: Exchange, sight: Sight
) -> tuple[bool | None, str]:
    """A server that closes after one answer, asked for nothing of the kind, says so in it."""
    if len(sight.answers) != 1 or not sight.closed:
        return None, "the connection lives on"
    return sight.answers[0].response.announces_close, "the close was not announced"


_SLOW_US = 300_000  # /slow takes 500 ms (contract.md); what comes much sooner is another answer


def slow_first(case: Case, exchange: Exchange, sight: Sight) -> tuple[bool | None, str]:
    """The quick answer, ready first, waits for the slow one."""
    if sight.fault is not None:
        return False, f"no HTTP response: {sight.fault}"
    if len(sight.answers) != 2:
        return False, f"{len(sight.answers)} answers instead of 2"
    if any(not 200 <= final.response.status < 300 for final in sight.answers):
        return False, "not accepted"
    if exchange.first_us is not None and exchange.first_us < _SLOW_US:
        return False, f"the first answer began after {exchange.first_us / 1000:.0f} ms"
    if case.place == "mirror":
        shown = sight.answers[1].mirror
        if shown is None or (shown.target is not None and not shown.target.endswith(b"?id=1")):
            return False, "the second answer is not that of the second request"
    return True, ""


TALKS: dict[str, Talk] = {
    "bare_interim": bare_interim,
    "close_announced": close_announced,
    "content_given_up": content_given_up,
    "in_sync_after_refusal": in_sync_after_refusal,
    "linear_cost": linear_cost,
    "slow_first": slow_first,
    "unasked_close_announced": unasked_close_announced,
    "tls_record": tls_record,
    "http2_settings": http2_settings,
}
