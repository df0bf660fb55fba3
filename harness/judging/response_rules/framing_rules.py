"""The rules of framing and content: RESP-09 to 17, 27, 28 and 36."""

from __future__ import annotations

from httpmark.harness.http import grammar, response_reader
from httpmark.harness.judging.response_rules.answers import Circumstances, shown
from httpmark.harness.judging.response_rules.findings import Notes
from httpmark.harness.judging.response_rules.request_view import Asked

UNKNOWN = -1  # where the next answer begins cannot be told
_NEXT = b"HTTP/1."  # how it begins


def judge_fields(
    notes: Notes, response: response_reader.Response, to: Asked, fields: dict[bytes, list[bytes]]
) -> None:
    """RESP-09 to 13, and 36: what Content-Length and Transfer-Encoding say, and to whom."""
    status, span = response.status, response.head
    lengths, codings = fields.get(b"content-length"), fields.get(b"transfer-encoding")
    if lengths is not None:
        bad = any(grammar.CONTENT_LENGTH.fullmatch(value) is None for value in lengths)
        notes.judge("RESP-09", bad, span, f"Content-Length: {shown(b', '.join(lengths))}")
    if lengths is not None or codings is not None:
        both = lengths is not None and codings is not None
        notes.judge("RESP-10", both, span, "Content-Length beside Transfer-Encoding")
    tunnel = to.line_valid and to.method == b"CONNECT" and 200 <= status < 300
    if status < 200 or status == 204 or tunnel:
        what = f"{status} to CONNECT" if tunnel else str(status)
        notes.judge("RESP-11", codings is not None, span, f"Transfer-Encoding on {what}")
        notes.judge("RESP-12", lengths is not None, span, f"Content-Length on {what}")
    if status < 200 and to.line_valid and to.major == 1:
        notes.judge("RESP-36", to.minor == 0, span, f"{status} to a request of HTTP/1.0")
    if codings is None:
        return
    if to.line_valid and to.major is not None:
        old = (to.major, to.minor) == (1, 0) or to.major != 1
        text = f"Transfer-Encoding to a request of HTTP/{to.major}.{to.minor}"
        notes.judge("RESP-13", old, span, text)


def judge_content(
    notes: Notes,
    octets: bytes,
    reading: response_reader.Reading,
    to: Asked,
    given: Circumstances,
) -> int:
    """All that the content decides. Where to read on, or UNKNOWN."""
    response = reading.response
    _judge_codings(notes, octets, reading, given)
    at = response.end
    if response.framing == "length":
        at = _judge_length(notes, octets, reading, to, fin=given.fin)
    bodiless = response.status < 200 or response.status in (204, 304)
    if bodiless or (to.method == b"HEAD" and to.line_valid):
        at = _judge_no_body(notes, octets, reading, to, given)
    if response.status == 205:
        notes.judge("RESP-17", bool(response.content), response.head, "content on 205")
    _judge_type(notes, response, to)
    if (
        to.line_valid
        and to.major == 1
        and to.minor >= 1
        and response.status >= 200
        and not bodiless
        and to.method != b"HEAD"
    ):
        ends_by_close = response.framing == "close"
        notes.judge("RESP-28", ends_by_close, response.head, "delimited by the close only")
    return at


def _judge_codings(
    notes: Notes, octets: bytes, reading: response_reader.Reading, given: Circumstances
) -> None:
    """RESP-14 and 15: Transfer-Encoding, and the chunks."""
    response = reading.response
    codings = [
        coding.strip(b" \t").lower()
        for value in response.values(b"transfer-encoding")
        for coding in value.split(b",")
    ]
    if codings:
        chunked = codings.count(b"chunked")
        bad = chunked > 1 or (codings[-1] != b"chunked" and not given.closed)
        text = f"Transfer-Encoding: {shown(b', '.join(codings))}"
        notes.judge("RESP-14", bad, response.head, text)
    if response.framing == "chunked" and (given.fin or not reading.cut):
        broken = any(fault.check == "RESP-15" for fault in reading.faults)
        if not broken:
            notes.judge("RESP-15", reading.cut, (response.head[0], len(octets)), "cut short by FIN")


def _judge_type(notes: Notes, response: response_reader.Response, to: Asked) -> None:
    """RESP-27; what a handler of the image answers is not the server's own."""
    if response.status < 300 or not response.content:
        return
    text = f"content of {response.status} without Content-Type"
    missing = not response.values(b"content-type")
    if missing and to.handled:
        notes.warn("RESP-27", response.head, text)
    else:
        notes.judge("RESP-27", missing, response.head, text)


def _judge_length(
    notes: Notes, octets: bytes, reading: response_reader.Reading, to: Asked, *, fin: bool
) -> int:
    """RESP-09: whether Content-Length is what was sent; where to read on."""
    response = reading.response
    content_at = response.head[1]
    span = (response.head[0], response.end)
    if reading.lost:
        return UNKNOWN
    if reading.cut:
        unseen = not to.method and to.may_be_head and response.end == content_at
        if fin and not unseen:
            text = f"cut short by FIN after {response.end - content_at}"
            notes.judge("RESP-09", True, span, text)
        return UNKNOWN
    after = octets[response.end : response.end + 9]
    if after and not _NEXT.startswith(after[: len(_NEXT)]):
        # More was sent than announced; or less, and the next response was read as content.
        inside = octets.find(_NEXT, content_at, response.end + len(_NEXT))
        if inside > content_at and response_reader.read_on(
            octets, inside, method=b"GET", ended=fin
        ):
            notes.judge("RESP-09", True, span, f"only {inside - content_at} bytes were sent")
            return inside
        notes.judge("RESP-09", True, span, "more bytes were sent")
    return response.end


def _judge_no_body(
    notes: Notes,
    octets: bytes,
    reading: response_reader.Reading,
    to: Asked,
    given: Circumstances,
) -> int:
    """RESP-16: nothing but another response may follow the head; where to read on."""
    response = reading.response
    at = response.end
    after = octets[at : at + len(_NEXT)]
    body = bool(after) and not _NEXT.startswith(after)
    if not body:
        notes.apply("RESP-16")
        return at
    span = (at, len(octets))
    to_head = response.status >= 200 and response.status not in (204, 304)
    if to_head and not to.valid and response.status >= 400 and given.closed:
        notes.warn("RESP-16", span, "a body to a HEAD that is refused as malformed")
    else:
        what = "to HEAD" if to_head else f"after {response.status}"
        notes.judge("RESP-16", True, span, f"a body {what}")
    lengths, codings = response.values(b"content-length"), response.values(b"transfer-encoding")
    if to_head and (lengths or codings):
        start = response.head[0]
        skipped = response_reader.read_on(octets, start, method=b"GET", ended=given.fin)
        if skipped is not None and not skipped.lost and not skipped.cut:
            return skipped.response.end
    return UNKNOWN
