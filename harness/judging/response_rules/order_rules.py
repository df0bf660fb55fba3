"""The rules of how many answers come and in which order: RESP-18, 19 and a part of 30."""

from __future__ import annotations

import base64
import binascii

import msgspec

from httpmark.harness.http import response_reader
from httpmark.harness.judging.response_rules.answers import Answer, shown
from httpmark.harness.judging.response_rules.findings import Notes
from httpmark.harness.judging.response_rules.turns import Turns
from httpmark.harness.model.exchanges import End

# An exchange lasts 2 s after its last step (model.cases.Case.deadline_ms). This is a little less,
# because the probe's timing is not exact.
SILENCE_US = 1_950_000
# A 400 that comes this long after the last request ends an idle connection; it is no second answer.
IDLE_US = 1_000_000


def judge_surplus(notes: Notes, turns: Turns) -> None:
    """RESP-18, and the "exactly one" of RESP-19."""
    answers, finals, wanted = turns.answers, turns.finals, turns.wanted + turns.begun
    if not finals or len(finals) < wanted:
        return
    last = finals[wanted - 1] if wanted else None
    end = last.response.end if last is not None else 0
    if answers.stopped and last is finals[-1]:
        return
    surplus = finals[wanted:]
    if surplus and _may_go_on(turns):
        return
    if surplus:
        first = surplus[0].response
        if len(surplus) == 1 and _ends_idling(turns, last, first):
            return
        span = (first.head[0], first.end)
        text = f"a {first.status} after the last expected answer"
        notes.judge("RESP-18", True, span, text)
        ended = last is not None and last.response.announces_close
        if not ended and not surplus[0].reading.cut:
            notes.judge("RESP-19", True, span, f"a {first.status} that no request asked for")
        return
    if turns.until_us is not None:
        return
    received = len(turns.seen.received)
    if answers.garbage is not None:
        notes.judge("RESP-18", True, (answers.garbage, received), "surplus bytes")
    elif received > end and last is finals[-1]:
        notes.judge("RESP-18", True, (end, received), "surplus bytes")
    else:
        notes.apply("RESP-18", "RESP-19")


def _may_go_on(turns: Turns) -> bool:
    """A connection of HTTP/1.0 that nobody closed: RFC 9112 9.3 expects a close after its answer,
    and no clause forbids to answer the next request."""
    if not 0 < turns.wanted < len(turns.finals) <= len(turns.whole):
        return False
    asked, answer = turns.whole[turns.wanted - 1], turns.finals[turns.wanted - 1]
    return asked.minor == 0 and not answer.response.announces_close


def _ends_idling(turns: Turns, last: Answer | None, surplus: response_reader.Response) -> bool:
    """A 408, or a 400 after a while, that ends an idle or unfinished connection."""
    seen, clock, whole = turns.seen, turns.clock, turns.whole
    if surplus.status not in (400, 408) or not (
        seen.end is not End.OPEN or surplus.announces_close
    ):
        return False
    sent_to = whole[-1].end if whole else 0
    if surplus.status == 408 or sent_to < len(seen.sent):
        return True
    came_us = clock.received(surplus.head[0])
    before_us = clock.received(last.response.end - 1) if last is not None else None
    sent_us = clock.sent(len(seen.sent) - 1)
    if came_us is None or sent_us is None:
        return False
    return came_us - max(before_us or 0, sent_us) >= IDLE_US


def judge_mirrored_order(notes: Notes, turns: Turns) -> None:
    """RESP-19, in order: a mirror that shows another request's target was sent out of turn."""
    targets = {request.target for request in turns.whole}
    if len(targets) < 2 or not all(target[:1] == b"/" for target in targets):
        return
    for request, answer in zip(turns.whole, turns.finals, strict=False):
        mirrored = _mirrored_target(answer.response)
        if mirrored is None or mirrored == request.target:
            continue
        if mirrored in targets:
            text = f"an answer to {shown(mirrored)} where {shown(request.target)} is next"
            notes.judge("RESP-19", True, (answer.response.head[0], answer.response.end), text)
            return


def _mirrored_target(response: response_reader.Response) -> bytes | None:
    if response.status != 200 or response.content[:1] != b"{":
        return None
    try:
        found = msgspec.json.decode(response.content, type=dict[str, object]).get("target")
        return base64.b64decode(found, validate=True) if isinstance(found, str) else None
    except (msgspec.DecodeError, UnicodeDecodeError, binascii.Error, ValueError):
        return None


def can_judge_rest(turns: Turns) -> bool:
    """Whether silence and the end of the connection say anything: the answers are all read."""
    if not turns.certain or turns.clock.own_fin or turns.seen.cut:
        return False
    answers, finals = turns.answers, turns.finals
    if answers.garbage is not None:
        return False
    if answers.stopped and not (finals and finals[-1].response.framing == "close"):
        return False
    return not (finals and (finals[-1].reading.cut or finals[-1].reading.lost))


def judge_silence(notes: Notes, turns: Turns) -> None:
    """RESP-19: a valid request that is neither answered nor ended by a close; RESP-30, if an
    answer before it promised to stay open."""
    seen, clock, finals = turns.seen, turns.clock, turns.finals
    if seen.end is not End.OPEN or seen.machine_dropped or len(finals) >= turns.wanted:
        return
    asked_us = clock.sent(turns.whole[len(finals)].end - 1)
    if asked_us is None or clock.end_us - max(asked_us, clock.last_us) < SILENCE_US:
        return
    at = finals[-1].response.end if finals else 0
    text = f"no answer to request {len(finals) + 1} in {(clock.end_us - asked_us) / 1e6:.1f} s"
    notes.judge("RESP-19", True, (at, at), text)
    if finals:
        span = finals[-1].response.head
        notes.judge("RESP-30", True, span, "the next request met silence")
