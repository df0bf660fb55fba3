"""Expectations as scenario files write them, read into alternatives of answers and demands.

``ACC; content hello > REJ; close`` is an alternative of two answers. This module only reads the
words; ``judging.matching`` judges by them. Texts become bytes by ``notation``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from httpmark.harness.catalogue import notation

WORDS = frozenset(
    {"ACC", "PARSED", "R400", "R400C", "REJ", "REJ301", "EITHER", "WAIT", "CLOSE", "ONE", "NO101"}
)
ENDS = frozenset({"close", "fin", "open", "sync", "loose", "fewer", "spoiled", "quiet"})
_BARE = frozenset({
    "empty", "empty?", "nobody", "keeps", "says close", "with 100", "with one 100", "no 100",
    "any target", "any method", "prompt", "before fin",
})  # fmt: skip
_MEANT = {"empty": "content", "empty?": "content?"}
_TEXT = ("content", "decoded", "method", "method?", "target", "target?", "authority", "authority?",
         "version")  # fmt: skip
_FIELDS = ("no field", "no trailer", "field?", "field", "trailer", "has", "lacks")
_NOT_BEFORE = "not before "
_NO_STATUS = "no status "
_UNDECLARED = re.compile(r"undeclared \{(timeout\.[a-z_]+)\}")
_STATUS = re.compile(r"[1-5](?:[0-9]{2}|xx)(?:,[1-5](?:[0-9]{2}|xx))*")
_OWN = re.compile(r"(?:views|talk)\.[a-z0-9_]+")
_FIELD = re.compile(r"(\S+)(?:\s+([=~])(?: (.*))?)?", re.DOTALL)
ANSWERS_MAX = 10_000


class Demand(msgspec.Struct, frozen=True):
    """One demand on one answer: ``field``, ``X-A``, ``=``, the bytes."""

    kind: str
    name: str = ""
    how: str = ""  # "=", "~" or nothing
    text: bytes = b""


class Answer(msgspec.Struct, frozen=True):
    """One expected final answer: a word of :data:`WORDS`, statuses, or a rule of its own."""

    word: str
    demands: tuple[Demand, ...] = ()


class Alternative(msgspec.Struct, frozen=True):
    """Answers in order, and how the connection goes on: a word of :data:`ENDS`, or ``""``."""

    answers: tuple[Answer, ...]
    end: str = ""


class Expectation(msgspec.Struct, frozen=True, cache_hash=True):
    """All answers that a case may get, as alternatives, and the same as written."""

    passes: tuple[Alternative, ...]
    allows: tuple[Alternative, ...] = ()  # permitted, too: warn
    noteds: tuple[Alternative, ...] = ()  # tolerated and noted: warn
    hardened: tuple[Alternative, ...] | None = None
    text: str = ""
    allowed_text: str = ""

    @property
    def waits(self) -> bool:
        """Whether it is permitted that no answer has come yet."""
        return any(
            answer.word == "WAIT"
            for alternative in (*self.passes, *self.allows, *self.noteds)
            for answer in alternative.answers
        )

    @property
    def offers_choice(self) -> bool:
        """Whether the first message may be accepted, and may be refused as well."""
        words = [alternative.answers[0].word for alternative in self.passes]
        taken = any(word in ("ACC", "PARSED") or word.startswith("2") for word in words)
        refused = any(word.startswith(("REJ", "R400", "CLOSE", "4", "5")) for word in words)
        return "EITHER" in words or (taken and refused)

    @property
    def answers(self) -> int:
        """How many final answers are waited for."""
        return max(len(alternative.answers) for alternative in self.passes)


Values = Mapping[str, notation.Value | None]


def expectation(
    passes: Iterable[str],
    allows: Iterable[str] = (),
    noteds: Iterable[str] = (),
    hardened: Iterable[str] | None = None,
    *,
    values: Values,
) -> Expectation:
    """Read all alternatives of a case.

    :raises ValueError: one is not in the language; the message says which and why.
    :raises notation.Unknown: one needs a value that is not known here.
    """
    passes, allows, noteds = tuple(passes), tuple(allows), tuple(noteds)
    return Expectation(
        tuple(alternative(text, values) for text in passes),
        tuple(alternative(text, values) for text in allows),
        tuple(alternative(text, values) for text in noteds),
        None if hardened is None else tuple(alternative(text, values) for text in hardened),
        " or ".join(passes),
        " or ".join((*allows, *(f"{text} (noted)" for text in noteds))),
    )


def alternative(text: str, values: Values) -> Alternative:
    """Read one alternative.

    :raises ValueError: it is not in the language.
    """
    answers: list[Answer] = []
    end = ""
    for part in text.split(" > "):
        if end:
            raise ValueError(f"{text!r}: {end!r} must stand with the last answer")
        word, *demands = (piece.strip() for piece in part.split("; "))
        word, times = _word(word, text)
        found = []
        for demand in demands:
            if demand in ENDS:
                if end:
                    raise ValueError(f"{text!r}: both {end!r} and {demand!r}")
                end = demand
            else:
                found.append(_demand(demand, text, values))
        answers += [Answer(word, tuple(found))] * times
    return Alternative(tuple(answers), end)


def _word(word: str, text: str) -> tuple[str, int]:
    word, star, times = word.partition("*")
    if not (word in WORDS or _STATUS.fullmatch(word) or _OWN.fullmatch(word)):
        raise ValueError(f"{text!r}: no word {word!r}; known are {', '.join(sorted(WORDS))}")
    if star and not (times.isdigit() and 1 <= int(times) <= ANSWERS_MAX):
        raise ValueError(f"{text!r}: in {word}*N, N must be from 1 to {ANSWERS_MAX}")
    return word, int(times) if star else 1


def _demand(demand: str, text: str, values: Values) -> Demand:
    if demand in _BARE:
        return Demand(_MEANT.get(demand, demand))
    if demand.startswith("content? "):
        return Demand("content?", text=notation.expand(demand[9:], values))
    kind, _, rest = demand.removeprefix("no ").partition(" ")
    if kind in _TEXT and rest:
        kind = "no " + kind if demand.startswith("no ") else kind
        return Demand(kind, text=notation.expand(rest, values))
    kind, _, rest = demand.partition(" ")
    if kind == "status" and _STATUS.fullmatch(rest):
        return Demand("status", rest)
    if demand.startswith(_NO_STATUS) and _STATUS.fullmatch(words := demand[len(_NO_STATUS) :]):
        return Demand("no status", words)
    if demand.startswith(_NOT_BEFORE) and (wait := demand[len(_NOT_BEFORE) :]).isdigit():
        return Demand("not before", wait)
    if (timeout := _UNDECLARED.fullmatch(demand)) and timeout[1] in values:
        return Demand("undeclared", "" if values[timeout[1]] else timeout[1])
    if kind == "beyond":
        return Demand("beyond", "yes" if _is_beyond(rest, text, values) else "")
    if demand.startswith("no beyond "):
        return Demand("beyond", "" if _is_beyond(demand[10:], text, values) else "yes")
    if demand.startswith("body lacks "):
        return Demand("body lacks", text=notation.expand(demand[11:], values))
    if demand.startswith("body ~ "):
        return Demand("body", how="~", text=_pattern(demand[7:], text, values))
    for kind in _FIELDS:
        if not demand.startswith(kind + " "):
            continue
        match = _FIELD.fullmatch(demand[len(kind) + 1 :])
        if match is None:
            break
        name = notation.expand(match[1], values).decode("latin-1").lower()
        if match[2] == "~":
            return Demand(kind, name, "~", _pattern(match[3] or "", text, values))
        if match[2] == "=":
            return Demand(kind, name, "=", notation.expand(match[3] or "", values))
        return Demand(kind, name)
    raise ValueError(f"{text!r}: no demand {demand!r}; scenarios/README.md lists them")


def _is_beyond(written: str, text: str, values: Values) -> bool:
    """Whether a number exceeds a limit; where the limit is not known, it does not."""
    limit, _, number = written.partition(" ")
    try:
        most, asked = notation.expand(limit, values), notation.expand(number, values)
    except notation.Unknown:
        return False
    if not asked.isdigit():
        raise ValueError(f"{text!r}: write beyond LIMIT NUMBER, not {written!r}")
    return most.isdigit() and int(asked) > int(most)


def _pattern(written: str, text: str, values: Values) -> bytes:
    # Only placeholders are replaced: the backslashes of a pattern are its own.
    pattern = re.sub(
        r"\{([A-Za-z0-9_.:-]+)\}",
        lambda match: (
            re.escape(_known(values[match[1]])).decode("latin-1")
            if match[1] in values and not match[1].isdigit()
            else match[0]
        ),
        written,
    ).encode("latin-1")
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{text!r}: {written!r} is no pattern: {error}") from None
    return pattern


def _known(value: notation.Value | None) -> bytes:
    if value is None:
        return b""
    return b"%d" % value if isinstance(value, int) else value


class AnyValue(dict[str, Any]):
    """Gives some bytes for any name, to check a text before its values are known."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> bytes:
        return b"1"
