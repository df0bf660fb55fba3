"""An exchange as the rules see it: what was really sent, and how it ended."""

from __future__ import annotations

from typing import Any

import msgspec

from httpmark.harness.judging.response_rules.exchange_view import ExchangeView, view
from httpmark.harness.model.cases import Case, Op, Step
from httpmark.harness.model.exchanges import Attempt, End, Exchange, Outcome
from httpmark.harness.model.timeline import EVENT_RECORD
from httpmark.harness.tests.shared.made_exchanges import GET


def played(
    steps: list[Step], writes: list[int], received: bytes = b"", **changes: Any
) -> ExchangeView:
    """An exchange of these steps, of which these writes were recorded, as the rules see it."""
    case = Case("c", "f", tuple(steps))
    timeline = b"".join(EVENT_RECORD.pack(1, 10, size) for size in writes)
    made = Exchange(
        "c", "f", case.sent, received, Outcome.ANSWERED, End.OPEN, 1, 9000, sum(writes),
        timeline=timeline,
    )  # fmt: skip
    return view(case, msgspec.structs.replace(made, **changes))


def test_what_was_skipped_was_not_sent() -> None:
    first, rest, last = Step(Op.SEND, b"a" * 9), Step(Op.SEND, b"b" * 5), Step(Op.SEND, b"c" * 7)
    rest = msgspec.structs.replace(rest, if_unanswered=True)
    last = msgspec.structs.replace(last, if_open=True)
    steps = [first, rest, last]
    assert played(steps, [9, 5, 7]).sent == b"a" * 9 + b"b" * 5 + b"c" * 7
    assert played(steps, [9, 7]).sent == b"a" * 9 + b"c" * 7
    assert played(steps, [9, 5]).sent == b"a" * 9 + b"b" * 5
    assert played(steps, [9]).sent == b"a" * 9
    assert played(steps, [4, 5, 3, 4]).sent == b"a" * 9 + b"c" * 7
    assert played(steps, [6]).sent == b"a" * 6
    assert played(steps, [9, 5, 2]).sent == b"a" * 9 + b"b" * 5 + b"c" * 2
    assert played([first, last], []).sent == b""


def test_without_records_the_bytes_went_out_in_order() -> None:
    steps = [Step(Op.SEND, b"a" * 9), Step(Op.SEND, b"c" * 7, if_open=True)]
    assert played(steps, [9], timeline=b"").sent == b"a" * 9
    assert played(steps, [9, 7], timeline=b"").sent == b"a" * 9 + b"c" * 7


def test_what_an_exchange_says_of_its_end_is_taken_over() -> None:
    one = played([Step(Op.SEND, GET), Step(Op.FIN)], [len(GET)], ended_s=100.0, end_us=2_000_000)
    assert one.own_close
    assert one.began_s == 98.0
    assert played([Step(Op.SEND, GET)], [len(GET)], flags=16).cut
    assert one.among_many
    assert not played([Step(Op.SEND, GET)], [len(GET)], attempt=Attempt.LATE).among_many
    assert played([Step(Op.SEND, GET)], [len(GET)]).began_s is None
