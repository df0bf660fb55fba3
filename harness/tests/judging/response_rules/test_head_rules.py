"""The rules of the header section, where they do not apply."""

from __future__ import annotations

import pytest

from httpmark.harness.judging.response_rules.judge_answers import judge_answers
from httpmark.harness.tests.shared.made_exchanges import (
    BROKEN,
    BROKEN_LINE,
    GET,
    asked,
    bare,
    names,
    ok,
)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("RESP-02", ok().replace(b"1.1", b"1.0", 1)),
        ("RESP-28", bare(b"400 x", b"Connection: close\r\n")),
    ],
)
def test_an_unreadable_request_line_binds_no_version(name: str, answer: bytes) -> None:
    assert name in names(judge_answers(asked(BROKEN, answer, close="fin")))
    for request in (BROKEN_LINE, GET + BROKEN_LINE, b"GET /a HTTP/1.1x\r\n\r\n"):
        answers = (ok(),) if request.startswith(GET) else ()
        found = judge_answers(asked(request, *answers, answer, close="fin"))
        assert name not in names(found)
