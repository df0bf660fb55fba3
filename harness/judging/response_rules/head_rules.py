"""The rules of the header section: RESP-01 to 08, 22 to 25 and 31."""

from __future__ import annotations

import re

from httpmark.harness.http import grammar, response_reader
from httpmark.harness.judging.response_rules import date_rules, framing_rules
from httpmark.harness.judging.response_rules.answers import (
    Circumstances,
    connection_options,
    shown,
)
from httpmark.harness.judging.response_rules.findings import Notes
from httpmark.harness.judging.response_rules.request_view import Asked

_SINGLETONS = (
    b"date", b"content-length", b"content-type", b"location", b"etag", b"last-modified", b"server",
    b"retry-after", b"age", b"content-range", b"content-location",
)  # fmt: skip
_GRAMMAR = (
    (b"location", grammar.URI_REFERENCE),
    (b"etag", grammar.ENTITY_TAG),
    (b"last-modified", grammar.IMF_FIXDATE),
    (b"server", grammar.SERVER),
    (b"vary", re.compile(rb"(?:" + grammar.TOKEN_LIST.pattern + rb")?")),  # "*" is a token
)

Fields = dict[bytes, list[bytes]]


def judge_head(
    notes: Notes, reading: response_reader.Reading, to: Asked, given: Circumstances
) -> None:
    """All that the header section decides."""
    response = reading.response
    # What the reader itself finds at fault.
    notes.apply("RESP-01", "RESP-03", "RESP-04", "RESP-05", "RESP-06", "RESP-07")
    for fault in reading.faults:
        notes.judge(fault.check, True, fault.span, fault.text)
    if reading.cut and response.framing == "none" and not response.complete:
        return
    fields: Fields = {}
    for name, value in response.fields:
        fields.setdefault(name.lower(), []).append(value)
    twice = [name for name in _SINGLETONS if len(fields.get(name, ())) > 1]
    text = f"{b', '.join(twice).decode()} more than once"
    notes.judge("RESP-08", bool(twice), response.head, text)
    _judge_version(notes, response, to, as_1_0=given.as_1_0)
    framing_rules.judge_fields(notes, response, to, fields)
    date_rules.judge_fields(notes, response, fields, has_clock=given.has_clock)
    _judge_status_fields(notes, response, fields)
    for name, pattern in _GRAMMAR:
        for value in fields.get(name, ()):
            bad = pattern.fullmatch(value) is None
            notes.judge("RESP-31", bad, response.head, f"{name.decode()}: {shown(value)}")


def _judge_version(
    notes: Notes, response: response_reader.Response, to: Asked, *, as_1_0: bool
) -> None:
    """RESP-02."""
    if to.line_valid and to.major == 1:
        fine = response.minor == 1 or (response.minor == 0 and to.minor == 0 and as_1_0)
        text = f"HTTP/1.{response.minor} to a request of HTTP/1.{to.minor}"
        notes.judge("RESP-02", not fine, response.head, text)


def _judge_status_fields(notes: Notes, response: response_reader.Response, fields: Fields) -> None:
    """RESP-22 to 25: the fields that a status asks for."""
    status, span = response.status, response.head
    if status == 405 or b"allow" in fields:
        allow = b", ".join(fields.get(b"allow", ()))
        missing = b"allow" not in fields
        bad = missing or (allow != b"" and grammar.TOKEN_LIST.fullmatch(allow) is None)
        text = "no Allow on 405" if missing else f"Allow: {shown(allow)}"
        notes.judge("RESP-22", bad, span, text)
    if status == 401:
        missing = b"www-authenticate" not in fields
        notes.judge("RESP-23", missing, span, "no WWW-Authenticate on 401")
    if status in (101, 426) or b"upgrade" in fields:
        missing = b"upgrade" not in fields
        bad = missing or b"upgrade" not in connection_options(response)
        text = f"no Upgrade on {status}" if missing else "Upgrade is not in Connection"
        notes.judge("RESP-24", bad, span, text)
    if status == 206:
        kind = b"".join(fields.get(b"content-type", ())).lower()
        both = (b"content-range" in fields) + kind.startswith(b"multipart/byteranges")
        notes.judge("RESP-25", both != 1, span, "neither a range nor parts" if not both else "both")
