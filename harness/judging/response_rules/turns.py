"""Which answers of an exchange belong to its valid requests, as far as that is certain."""

from __future__ import annotations

import msgspec

from httpmark.harness.http import request_reader
from httpmark.harness.judging.response_rules.answers import Answer, Answers
from httpmark.harness.judging.response_rules.exchange_view import Clock, ExchangeView


class Turns(msgspec.Struct, frozen=True, kw_only=True):
    """The valid requests of an exchange, and the final answers while all that was sent is valid.

    :param whole: the requests that went out whole.
    :param begun: another valid one was begun.
    :param wanted: how many of the requests need an answer: not what was sent after a request, or
        an answer, that ends the connection.
    :param certain: all that was sent is part of valid requests.
    :param until_us: when the first byte went out that is not; None: there is none.
    """

    seen: ExchangeView
    clock: Clock
    answers: Answers
    whole: list[request_reader.Request]
    finals: list[Answer]
    wanted: int
    begun: bool
    certain: bool
    until_us: int | None


def turns(
    seen: ExchangeView, clock: Clock, requests: request_reader.Requests, answers: Answers
) -> Turns | None:
    """None where nothing is certain: it is not known when the first invalid byte went out."""
    certain = requests.certain >= len(seen.sent)
    until_us: int | None = None
    if not certain:
        until_us = clock.sent(requests.certain)
        if until_us is None:
            return None
    whole = [request for request in requests.requests if request.valid and request.whole]
    begun = len(requests.requests) > len(whole) and requests.requests[-1].valid
    finals = [
        answer
        for answer in answers.finals
        if until_us is None or _came_before(clock, answer, until_us)
    ]
    wanted = len(whole)
    for number, request in enumerate(whole):
        ended = number < len(finals) and ends_connection(finals[number])
        if request.says_close or ended:
            wanted = number + 1
            begun = False
            break
    return Turns(
        seen=seen, clock=clock, answers=answers, whole=whole, finals=finals, wanted=wanted,
        begun=begun, certain=certain, until_us=until_us,
    )  # fmt: skip


def _came_before(clock: Clock, answer: Answer, until_us: int) -> bool:
    came_us = clock.received(max(answer.response.end - 1, 0))
    return came_us is not None and came_us < until_us


def ends_connection(answer: Answer) -> bool:
    """Whether the connection ends with this answer, by what it says or by its framing."""
    return answer.response.announces_close or answer.response.framing == "close"
