"""The rule of 304: which answers are compared."""

from __future__ import annotations

from httpmark.harness.judging.response_rules.judge_answers import judge_answers
from httpmark.harness.tests.shared.made_exchanges import asked, bare, get


def test_a_fixed_304_is_not_compared() -> None:
    found = judge_answers(asked(get(b"/304"), bare(b"304 x", b'ETag: "x"\r\n')))
    assert "RESP-26" not in found.judged
