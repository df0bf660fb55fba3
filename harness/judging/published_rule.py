"""The vocabulary of expectations: one small pure function per word a scenario may ask for.

A check sees only what came back, never the request: the request is in the case, and what makes it
good or bad is the case's family. Silence is never a pass, and a close is not an answer.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from httpmark.harness.http import response_reader
from httpmark.harness.model.exchanges import End, Outcome
from httpmark.harness.model.verdicts import Word

PUBLISHED_PREFIX = b"HTTP/1.1 200 OK"


class Seen(msgspec.Struct, frozen=True):
    """The part of an exchange a check may look at; hashable, so equal sights are judged once."""

    outcome: Outcome
    end: End
    received: bytes
    head_only: bool = False
    machine_dropped: bool = False


class Judgement(msgspec.Struct, frozen=True):
    """What a check says: the word, what was expected, what came, and the octets that decided."""

    word: Word
    expected: str
    actual: str
    span: tuple[int, int] | None = None


Check = Callable[[Seen], Judgement]


def reading(seen: Seen) -> tuple[bool, str]:
    """The two readings of a ``seed`` exchange.

    The published one: ``True`` (detected) unless the octets begin ``HTTP/1.1 200 OK``. Ours, one
    of ``rejected`` (a well-formed 4xx or 5xx), ``accepted`` (2xx or 3xx), ``closed`` (FIN or RST
    without an octet), ``mute`` (silence), ``malformed`` (octets that are no strict response) and
    ``void`` (silence while this machine lost packets, or no connection at all).
    """
    detected = not seen.received.startswith(PUBLISHED_PREFIX)
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
    return detected, "rejected" if response.status >= 400 else "accepted"


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
    if response is not None and 200 <= response.status < 300:
        return Judgement(Word.PASS, expected, _actual(seen), response.head)
    return Judgement(Word.FAIL, expected, _actual(seen), response.head if response else None)


WORDS: dict[str, Check] = {"seed": seed, "accepted": accepted}
