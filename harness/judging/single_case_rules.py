"""Rules for single cases that no word of the language can state: ``talk.NAME`` in scenarios.

Each says whether a played case is as it should be (None: this server cannot show it), and why not.
What each asks for is told to people by ``catalogue.vocabulary.SINGLE_CASE_RULES``.
"""

from __future__ import annotations

from collections.abc import Callable

from httpmark.harness.judging.observation import Played, Sight
from httpmark.harness.model.timeline import EventKind, events

Rule = Callable[[Played], tuple[bool | None, str]]

# RFC 8446 5.1: an alert or a handshake record, legacy version 3.x
_TLS_RECORD = (b"\x15\x03", b"\x16\x03")
_H2_SETTINGS = 4  # RFC 9113 6.5; a server's connection preface is this frame


def tls_record(played: Played) -> tuple[bool | None, str]:
    """The port speaks TLS as well, and answered in it."""
    return played.exchange.received.startswith(_TLS_RECORD), "no TLS record"


def http2_settings(played: Played) -> tuple[bool | None, str]:
    """The port speaks HTTP/2 with prior knowledge, and answered with its SETTINGS."""
    octets = played.exchange.received
    return len(octets) >= 9 and octets[3] == _H2_SETTINGS and octets[5:9] == b"\0\0\0\0", (
        "no HTTP/2 SETTINGS frame"
    )


def _ended_early(sight: Sight) -> bool:
    """A good answer that says close, and the close: the second of two requests was never sent.
    Other cases test persistence."""
    if len(sight.answers) != 1 or sight.fault is not None or sight.cut or not sight.closed:
        return False
    response = sight.answers[0].response
    return 200 <= response.status < 300 and response.announces_close


def _is_own(sight: Sight, at: int) -> bool:
    """Whether an answer is that of an application which does not take HEAD."""
    return len(sight.answers) > at and sight.answers[at].response.status in (404, 405, 501)


_HEAD_NOT_TAKEN = "the application does not take HEAD"
_ONE_ONLY = "the connection was closed, as announced, after the first answer"
# Ten times the chunks may take ten times as long; noise may double that. One second is always fine.
_LINEAR_US = 1_000_000
_LINEAR_RATIO = 20


def linear_cost(played: Played) -> tuple[bool | None, str]:
    """The second of two like messages, ten times as long, takes at most 1 s or 20 times as long."""
    sight = played.sight
    if _ended_early(sight):
        return None, _ONE_ONLY
    if len(sight.answers) != 2:
        return False, f"{len(sight.answers)} answers instead of 2"
    if any(not 200 <= final.response.status < 300 for final in sight.answers):
        return False, "not accepted"
    spans: list[int] = []
    start: int | None = None
    received = 0
    ends = [final.response.end for final in sight.answers]
    for event in events(played.exchange.timeline):
        if event.kind is EventKind.SENT and start is None:
            start = event.at_us
        elif event.kind is EventKind.RECEIVED:
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


def in_sync_after_refusal(played: Played) -> tuple[bool | None, str]:
    """One refusal, then a close or an answer to the canary. Not judged without a refusal."""
    sight = played.sight
    if not sight.answers or sight.answers[0].response.status < 400:
        return None, "no refusal came"
    if len(sight.answers) > 1:
        return False, f"{len(sight.answers)} answers instead of 1"
    if sight.fault is not None:
        return False, f"no HTTP response: {sight.fault}"
    if not sight.after:
        return sight.closed and not sight.cut, "the next request is not answered"
    mark = b"canary-" + played.case.id.encode("latin-1")
    shown = sight.after[0].mirror
    named = shown is None or shown.target is None or mark in shown.target
    fine = len(sight.after) == 1 and 200 <= sight.after[0].response.status < 300 and named
    return fine, "the next request is not answered as itself"


def bare_interim(played: Played) -> tuple[bool | None, str]:
    """Interim answers have neither framing fields nor content (RFC 9110 8.6, RFC 9112 6.1)."""
    sight = played.sight
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


def content_given_up(played: Played) -> tuple[bool | None, str]:
    """After a 100 and silence: 408, or a close."""
    sight = played.sight
    if not sight.interims:
        return None, "no 100 came"
    if sight.answers and sight.answers[0].response.status == 408:
        return True, ""
    return sight.closed, "neither 408 nor a close in time"


def close_announced(played: Played) -> tuple[bool | None, str]:
    """An answer before a close says close."""
    sight = played.sight
    if not sight.answers or not sight.closed_in_time:
        return None, "no answer that a close followed"
    return sight.answers[-1].response.announces_close, "the close was not announced"


_ENDS = (EventKind.CLOSE_NOTIFY, EventKind.FIN, EventKind.RST)


def close_notify(played: Played) -> tuple[bool | None, str]:
    """A closure alert before the close of the connection (RFC 9112 9.8)."""
    sight = played.sight
    if not sight.closed:
        return False, "the connection was not closed"
    kinds = [event.kind for event in events(played.exchange.timeline)]
    ends = [kind for kind in kinds if kind in _ENDS]
    return ends[:1] == [EventKind.CLOSE_NOTIFY], "the connection ended without a closure alert"


def unasked_close_announced(played: Played) -> tuple[bool | None, str]:
    """A server that closes after one answer, without being asked to, says so in the answer."""
    sight = played.sight
    if len(sight.answers) != 1 or not sight.closed:
        return None, "the connection lives on"
    return sight.answers[0].response.announces_close, "the close was not announced"


def timeout_announced(played: Played) -> tuple[bool | None, str]:
    """A 408 says close (RFC 9112 9.6)."""
    sight = played.sight
    if not sight.answers or sight.answers[-1].response.status != 408:
        return None, "no 408 came"
    return sight.answers[-1].response.announces_close, "a 408 without Connection: close"


def http2_upgrade(played: Played) -> tuple[bool | None, str]:
    """A 101 to h2c that an HTTP/2 SETTINGS frame follows."""
    sight = played.sight
    if not sight.answers or sight.answers[0].response.status != 101:
        return False, "no 101"
    response = sight.answers[0].response
    frame = played.exchange.received[response.head[1] :]
    fine = len(frame) >= 9 and frame[3] == _H2_SETTINGS and frame[5:9] == b"\0\0\0\0"
    return fine and response.values(b"upgrade") == [b"h2c"], "a 101, and no HTTP/2 after it"


def content_before_switch(played: Played) -> tuple[bool | None, str]:
    """After a 101 to a request with content: nothing comes until the client speaks again."""
    sight = played.sight
    if not sight.answers or sight.answers[0].response.status != 101:
        return False, "no 101"
    end = sight.answers[0].response.head[1]
    received = 0
    switched = False
    for event in events(played.exchange.timeline):
        if event.kind is EventKind.SENT and switched:
            break
        if event.kind is EventKind.RECEIVED:
            received += event.octets
        elif event.kind is not EventKind.SENT and switched:
            return False, "closed: the content was taken for the new protocol"
        switched = switched or received >= end
        if received > end:
            return False, "bytes after the 101: the content was taken for the new protocol"
    return True, ""


# RFC 9110 9.3.2: fields that depend on the content or the connection may be left out
_OF_CONTENT = frozenset((
    b"content-length", b"transfer-encoding", b"trailer", b"content-digest", b"repr-digest",
    b"digest", b"content-md5", b"etag", b"vary", b"connection", b"keep-alive",
))  # fmt: skip


def head_fields(played: Played) -> tuple[bool | None, str]:
    """GET, then HEAD: the same field names, except those that depend on the content."""
    sight = played.sight
    if _ended_early(sight):
        return None, _ONE_ONLY
    if _is_own(sight, 1):
        return None, _HEAD_NOT_TAKEN
    if len(sight.answers) != 2 or any(f.response.status != 200 for f in sight.answers):
        return False, "not two answers of 200"
    get, head = (
        {name.lower() for name, _ in final.response.fields} - _OF_CONTENT for final in sight.answers
    )
    others = b", ".join(sorted(get ^ head)).decode("latin-1")
    return not others, f"{others} in one of the two only"


def head_length(played: Played) -> tuple[bool | None, str]:
    """HEAD, then GET: Content-Length of HEAD is the length of GET's content, or absent."""
    sight = played.sight
    if _ended_early(sight):
        return None, _ONE_ONLY
    if _is_own(sight, 0):
        return None, _HEAD_NOT_TAKEN
    if len(sight.answers) != 2 or any(f.response.status != 200 for f in sight.answers):
        return False, "not two answers of 200"
    head, get = (final.response for final in sight.answers)
    said = head.values(b"content-length")
    length = b"%d" % len(get.content)
    return said in ([], [length]), f"{b', '.join(said).decode()} instead of {length.decode()}"


def allow_on_405(played: Played) -> tuple[bool | None, str]:
    """Each 405 has Allow."""
    sight = played.sight
    refused = [f.response for f in sight.answers if f.response.status == 405]
    if not refused:
        return None, "no 405 came"
    return all(response.values(b"allow") for response in refused), "a 405 without Allow"


def upgrade_on_426(played: Played) -> tuple[bool | None, str]:
    """A 426 has Upgrade."""
    sight = played.sight
    if not sight.answers or sight.answers[0].response.status != 426:
        return None, "no 426 came"
    return bool(sight.answers[0].response.values(b"upgrade")), "a 426 without Upgrade"


def three_date_formats(played: Played) -> tuple[bool | None, str]:
    """A plain GET, then the same date in three formats: what gets 304 in one gets it in all."""
    sight = played.sight
    statuses = [final.response.status for final in sight.answers]
    if statuses[:2] != [200, 304]:
        return None, "the server does not compare dates"
    return statuses[2:] == [304, 304], f"{statuses[2:]} to the obsolete formats"


RULES: dict[str, Rule] = {
    "allow_on_405": allow_on_405,
    "bare_interim": bare_interim,
    "close_announced": close_announced,
    "close_notify": close_notify,
    "content_before_switch": content_before_switch,
    "content_given_up": content_given_up,
    "head_fields": head_fields,
    "head_length": head_length,
    "http2_upgrade": http2_upgrade,
    "in_sync_after_refusal": in_sync_after_refusal,
    "linear_cost": linear_cost,
    "upgrade_on_426": upgrade_on_426,
    "unasked_close_announced": unasked_close_announced,
    "three_date_formats": three_date_formats,
    "timeout_announced": timeout_announced,
    "tls_record": tls_record,
    "http2_settings": http2_settings,
}
