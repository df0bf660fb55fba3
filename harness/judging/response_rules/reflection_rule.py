"""RESP-32: an error page does not show the request as it was sent."""

from __future__ import annotations

import re

from httpmark.harness.judging.response_rules.answers import Answers, is_html, shown
from httpmark.harness.judging.response_rules.exchange_view import ExchangeView
from httpmark.harness.judging.response_rules.findings import Notes

# A match of "<" with this many characters before or after it is no coincidence.
_PIECES = (rb"(?=(<[!-~\x80-\xff]{4,8}))", rb"(?=([!-~\x80-\xff]{6}<))")


def judge_reflection(notes: Notes, seen: ExchangeView, answers: Answers) -> None:
    """A piece of the request with a "<" in it stands in an error page as it was sent."""
    found = (match[1] for side in _PIECES for match in re.finditer(side, seen.sent))
    pieces = dict.fromkeys(found)  # each once, in order
    for answer in answers.answers:
        response = answer.response
        if response.status < 400 or not response.content or not is_html(response):
            continue
        piece = next((piece for piece in pieces if piece in response.content), None)
        span = (response.head[1], response.end)
        notes.judge("RESP-32", piece is not None, span, f"{shown(piece or b'')} as it was sent")
