"""The rules of the suite ``seed``: the published one, and the one of its positive controls.

A rule sees only what came back: what makes a request good or bad is its family. A close without an
answer passes the published rule, as it did in the published benchmark; beside it stands our strict
reading.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from httpmark.harness.http import response_reader
from httpmark.harness.judging import own_answers
from httpmark.harness.judging.remembering import remembers_answers
from httpmark.harness.model.cases import Facts, Family
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.verdicts import Verdict, Word

PUBLISHED_PREFIX = b"HTTP/1.1 200 OK"


class Seen(msgspec.Struct, frozen=True):
    """The part of an exchange that a rule may look at; equal ones are judged once."""

    outcome: Outcome
    end: End
    received: bytes
    head_only: bool = False
    machine_dropped: bool = False
    own: frozenset[int] = frozenset()  # statuses that the application gives to good requests here


class Judgement(msgspec.Struct, frozen=True):
    """What a rule says: the word, what was expected, what came, and the bytes that decided."""

    word: Word
    expected: str
    actual: str
    span: tuple[int, int] | None = None


Rule = Callable[[Seen], Judgement]


def reading(seen: Seen) -> tuple[bool, str]:
    """The two readings of a ``seed`` exchange.

    The published one: ``True`` (detected) unless the bytes begin ``HTTP/1.1 200 OK``, or unless an
    application answers good requests with this status at the same place (a router's 404). Ours, one
    of ``rejected`` (a well-formed 4xx or 5xx), ``accepted`` (2xx or 3xx), ``closed`` (FIN or RST
    without a byte), ``mute`` (silence), ``malformed`` (bytes that are no strict response) and
    ``void`` (silence while this machine lost packets, or no connection at all).
    """
    is_own = response_reader.final_status(seen.received) in seen.own
    detected = not (seen.received.startswith(PUBLISHED_PREFIX) or is_own)
    match seen.outcome:
        case Outcome.REFUSED:
            return detected, "void"
        case Outcome.HUNG:
            return detected, "void" if seen.machine_dropped else "mute"
        case Outcome.CLOSED | Outcome.RESET:
            return detected, "closed"
    response, _ = _final(seen)
    if response is None:
        return detected, "malformed"
    return detected, "rejected" if response.status >= 400 and not is_own else "accepted"


def _final(seen: Seen) -> tuple[response_reader.Response | None, str]:
    """The first final response, or why there is none."""
    at = 0
    ended = seen.end is not End.OPEN
    try:
        while True:
            response = response_reader.read(
                seen.received, at, ended=ended, head_only=seen.head_only
            )
            if not response.interim:
                return response, ""
            at = response.end
    except response_reader.Malformed as error:
        return None, f"no HTTP response: {error}"
    except response_reader.Incomplete:
        return None, "an answer cut short"


def _actual(seen: Seen) -> str:
    """What came back, in a few words."""
    if seen.outcome is not Outcome.ANSWERED:
        return seen.outcome.said
    response, why = _final(seen)
    if response is None:
        return why
    return f"{response.status} {response.reason.decode('latin-1')}".rstrip()


def _void(seen: Seen) -> bool:
    """Whether the harness or the machine, not the server, may be why nothing came."""
    return seen.outcome is Outcome.REFUSED or (
        seen.outcome is Outcome.HUNG and seen.machine_dropped
    )


def seed(seen: Seen) -> Judgement:
    """The published rule: pass unless the answer begins ``HTTP/1.1 200 OK``."""
    expected = "anything that does not begin with HTTP/1.1 200 OK (published rule)"
    detected, strict = reading(seen)
    if strict == "void":
        return Judgement(Word.VOID, expected, _actual(seen))
    if detected:
        return Judgement(Word.PASS, expected, f"{_actual(seen)} ({strict})")
    return Judgement(Word.FAIL, expected, _actual(seen), (0, len(PUBLISHED_PREFIX)))


def accepted(seen: Seen) -> Judgement:
    """A positive control: a whole, strictly framed 2xx."""
    expected = "a well-formed 2xx"
    if _void(seen):
        return Judgement(Word.VOID, expected, _actual(seen))
    response, _ = _final(seen) if seen.outcome is Outcome.ANSWERED else (None, "")
    status = 0 if response is None else response.status
    if response is not None and (200 <= status < 300 or status in seen.own):
        return Judgement(Word.PASS, expected, _actual(seen), response.head)
    return Judgement(Word.FAIL, expected, _actual(seen), response.head if response else None)


WORDS: dict[str, Rule] = {"seed": seed, "accepted": accepted}


@remembers_answers(lambda word, seen: len(seen.received))
def _judged(word: str, seen: Seen) -> Judgement:
    """Remembered by value: a suite of 124,000 exchanges has a few dozen different answers."""
    return WORDS[word](seen)


@remembers_answers(lambda seen: len(seen.received))
def _reading(seen: Seen) -> tuple[bool, str]:
    return reading(seen)


def _seen(exchange: Exchange, facts: Facts | None) -> Seen:
    own = own_answers.at(own_answers.of(exchange.sent, facts), 0)
    return Seen(
        exchange.outcome,
        exchange.end,
        exchange.received,
        exchange.head_only,
        exchange.machine_dropped,
        own,
    )


def verdict_by_word(family: Family, exchange: Exchange, facts: Facts | None) -> Verdict:
    """The verdict on one exchange, by the word its family is judged by."""
    found = _judged(family.judged_by, _seen(exchange, facts))
    return Verdict(exchange.case, found.word, found.expected, found.actual, found.span)


def reading_of(exchange: Exchange, facts: Facts | None) -> tuple[bool, str]:
    """Both readings of a ``seed`` exchange: detected, and our strict word (:func:`reading`)."""
    return _reading(_seen(exchange, facts))
