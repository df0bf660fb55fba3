"""RESP-26: a 304 repeats what the 200 to the same request without its condition had."""

from __future__ import annotations

from httpmark.harness.http import request_reader, response_reader
from httpmark.harness.judging.response_rules.answers import Answers
from httpmark.harness.judging.response_rules.findings import Notes

_REPEATED = (b"date", b"etag", b"vary", b"cache-control", b"expires", b"content-location")


def judge_not_modified(notes: Notes, requests: request_reader.Requests, answers: Answers) -> None:
    """Each 304 against the last plain 200 to the same target in the exchange."""
    plain: dict[bytes, response_reader.Response] = {}
    for answer in answers.answers:
        response = answer.response
        if response.interim or not 0 <= answer.request < len(requests.requests):
            continue
        request = requests.requests[answer.request]
        if not request.valid or request.method not in (b"GET", b"HEAD"):
            continue
        if response.status == 200 and not request.conditional:
            plain[request.target] = response
        elif response.status == 304 and request.target in plain:
            before = plain[request.target]
            missing = [
                name for name in _REPEATED if before.values(name) and not response.values(name)
            ]
            text = f"without {b', '.join(missing).decode()}"
            if not missing and before.values(b"etag") != response.values(b"etag"):
                missing, text = [b"etag"], "another ETag than the 200"
            notes.judge("RESP-26", bool(missing), response.head, text)
