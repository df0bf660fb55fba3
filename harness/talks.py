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


TALKS: dict[str, Talk] = {
    "linear_cost": linear_cost,
    "tls_record": tls_record,
    "http2_settings": http2_settings,
}
