"""Reads all answers of an exchange, and applies the rules that their bytes alone decide."""

from __future__ import annotations

from collections.abc import Iterator

from httpmark.harness.http import request_reader, response_reader
from httpmark.harness.http.dates import moment
from httpmark.harness.judging.remembering import remembers_answers
from httpmark.harness.judging.response_rules import framing_rules, head_rules
from httpmark.harness.judging.response_rules.answers import (
    Answer,
    Answers,
    Circumstances,
    DatedAnswer,
    is_html,
    says_close,
)
from httpmark.harness.judging.response_rules.exchange_view import Clock, Declared, ExchangeView
from httpmark.harness.judging.response_rules.findings import Notes
from httpmark.harness.judging.response_rules.request_view import Asked, asked
from httpmark.harness.model.exchanges import End


def read_answers(
    seen: ExchangeView, clock: Clock, requests: request_reader.Requests, declared: Declared
) -> Answers:
    """The answers of an exchange, with the findings of all rules that need no times."""
    given = Circumstances(
        fin=seen.end is End.CLOSED and not seen.cut and not clock.own_fin,
        closed=seen.end is not End.OPEN,
        head_only=seen.head_only,
        as_1_0=declared.answers_1_0_as_1_0,
        has_clock=declared.clock,
    )
    return _answers(seen.received, asked(seen.sent, requests), given)


@remembers_answers(lambda octets, to_whom, given: len(octets))
def _answers(octets: bytes, to_whom: tuple[Asked, ...], given: Circumstances) -> Answers:
    """The same; remembered, because in a suite most answers are alike.

    :param to_whom: what is known of the request of each answer; the last one is for all others.
    """
    notes = Notes()
    answers: list[Answer] = []
    at = finals = 0
    garbage: int | None = None
    stopped = False
    while at < len(octets) and not stopped:
        to = to_whom[min(finals, len(to_whom) - 1)]
        reading = _read(octets, at, to, given)
        if reading is None:
            garbage = at
            # A request line without a version may be answered in HTTP/0.9; its case judges that.
            if not (to.may_be_no_http or to_whom[-1].may_be_no_http):
                notes.judge("RESP-01", True, (at, len(octets)), "bytes that are no response")
            break
        response = reading.response
        answers.append(Answer(reading, finals if finals < len(to_whom) - 1 else -1))
        head_rules.judge_head(notes, reading, to, given)
        if not response.complete and reading.cut and response.framing == "none":
            # The head itself is cut: by the server's FIN it is no response.
            notes.judge("RESP-01", given.fin, response.head, "a head that does not end")
            stopped = True
        elif _is_last_word(response, to):
            stopped = True
        elif given.head_only:
            break
        else:
            at = framing_rules.judge_content(notes, octets, reading, to, given)
            finals += not response.interim
            stopped = reading.lost or reading.cut or at == framing_rules.UNKNOWN
    responses = [answer.response for answer in answers]
    last_words = tuple(answer for answer in answers if not answer.response.interim)
    closing = (n for n, answer in enumerate(last_words) if says_close(answer.response))
    return Answers(
        answers=tuple(answers),
        findings=notes.findings,
        finals=last_words,
        closing=next(closing, None),
        garbage=garbage,
        stopped=stopped,
        html=any(response.status >= 400 and is_html(response) for response in responses),
        dated=tuple(_dated(answers)),
        not_modified=any(response.status == 304 for response in responses),
    )


def _dated(answers: list[Answer]) -> Iterator[DatedAnswer]:
    for answer in answers:
        dates = answer.response.values(b"date")
        if len(dates) == 1 and (now := moment(dates[0])) is not None:
            yield DatedAnswer(answer, dates[0], now)


def _read(
    octets: bytes, at: int, to: Asked, given: Circumstances
) -> response_reader.Reading | None:
    method = b"HEAD" if given.head_only else to.method or b"GET"
    reading = response_reader.read_on(octets, at, method=method, ended=given.fin)
    if reading is None or to.method or not to.may_be_head:
        return reading
    # Perhaps it answers a HEAD: then nothing, or the next response, follows its head.
    bare = response_reader.read_on(octets, at, method=b"HEAD", ended=given.fin)
    if bare is not None and bare.response.complete:
        after = octets[bare.response.end : bare.response.end + 7]
        if not after or after == b"HTTP/1.":
            return bare
    return reading


def _is_last_word(response: response_reader.Response, to: Asked) -> bool:
    """After a 101 or a 2xx to CONNECT nothing more is HTTP/1.1."""
    if response.status == 101:
        return True
    if not 200 <= response.status < 300:
        return False
    return to.method == b"CONNECT" or (not to.method and to.may_be_connect)
