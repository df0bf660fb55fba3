"""The rules of the end of a connection: RESP-29, 30 and 33."""

from __future__ import annotations

from httpmark.harness.http import request_reader
from httpmark.harness.judging.observation import CLOSE_US
from httpmark.harness.judging.response_rules.answers import Answers
from httpmark.harness.judging.response_rules.exchange_view import Clock, Declared
from httpmark.harness.judging.response_rules.findings import Notes
from httpmark.harness.judging.response_rules.turns import Turns, ends_connection
from httpmark.harness.model.exchanges import End

# A server may linger for the client's FIN (RFC 9112 9.6). After this long the close has not come.
CLOSE_LATE_US = 10_000_000
# A close after this part of the declared idle timeout, or later, counts as the timeout.
_OF_IDLE = 0.9
# How the finding of RESP-33 begins where the exchange ended too early to tell.
STILL_OPEN = "says close, and is still open"


def judge_said_close(notes: Notes, clock: Clock, answers: Answers, closing: int) -> None:
    """RESP-33: an answer that says close is followed by the close, and by no further answer.

    :param closing: which of the final answers says close.
    """
    answer = answers.finals[closing]
    response = answer.response
    if closing + 1 < len(answers.finals):
        after = answers.finals[closing + 1].response
        text = f"another answer ({after.status}) after one that says close"
        notes.judge("RESP-33", True, after.head, text)
        return
    if clock.own_fin or answer.reading.cut or answer.reading.lost or answers.garbage is not None:
        return
    whole_us = clock.received(response.end - 1)
    if clock.closed_us is not None:
        late_us = clock.closed_us - (whole_us or 0)
        if whole_us is None and late_us > CLOSE_US:
            return
    elif whole_us is None:
        return
    else:
        late_us = clock.end_us - whole_us
    seconds = f"{late_us / 1e6:.1f} s"
    if late_us <= CLOSE_US:
        if clock.closed_us is not None:
            notes.apply("RESP-33")
    elif late_us > CLOSE_LATE_US:
        notes.judge("RESP-33", True, response.head, f"says close, and is open after {seconds}")
    elif clock.closed_us is not None:
        notes.warn("RESP-33", response.head, f"says close, and closes after {seconds}")
    else:
        notes.warn("RESP-33", response.head, f"{STILL_OPEN} after {seconds}")


def judge_close(notes: Notes, turns: Turns, declared: Declared) -> None:
    """RESP-29: an early close was announced. RESP-30: a promise to stay open is kept."""
    clock, whole, finals = turns.clock, turns.whole, turns.finals
    if not finals or len(finals) > len(whole) + turns.begun:
        return
    response = finals[-1].response
    if len(finals) > 1 and not ends_connection(finals[0]):
        notes.apply("RESP-30")
    if turns.seen.end is End.OPEN:
        return
    whole_us = clock.received(response.end - 1)
    if response.framing == "close":
        return
    if len(finals) < turns.wanted:
        if response.announces_close or whole[len(finals) - 1].says_close:
            return
        following = whole[len(finals)]
        asked_us = clock.sent(following.start)
        if whole_us is None or asked_us is None or asked_us - whole_us > CLOSE_US:
            return  # the server may have stopped waiting
        notes.judge("RESP-30", True, response.head, "closed after the next request was sent")
        return
    if turns.begun and len(finals) == len(whole):
        return  # the server may have given up the unfinished request
    if len(finals) <= len(whole) and _is_1_0(whole[len(finals) - 1]):
        return
    assert clock.closed_us is not None
    late_us = clock.closed_us - (whole_us or 0)
    if late_us > CLOSE_US:
        return
    if declared.idle_s and late_us >= declared.idle_s * (_OF_IDLE * 1e6):
        return
    announced = response.announces_close
    notes.judge("RESP-29", not announced, response.head, "closed, and did not say so")


def _is_1_0(request: request_reader.Request) -> bool:
    return request.minor == 0 and request.says_close
