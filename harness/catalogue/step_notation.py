"""The notation of ``steps`` in scenario files: a text to one step of a case."""

from __future__ import annotations

import re

import msgspec

from httpmark.harness.catalogue import notation
from httpmark.harness.model.cases import Facts

_MS = r"(?:\d+|(?:\d+(?:\.\d+)?\*|past )timeout\.[a-z_]+(?:\|[a-z_]+)*(?: else \d+)?)"
_STEP = re.compile(
    rf"(?:(?:open|unanswered) )*(?:send .+|look(?: any)? {_MS}|await(?: any)?(?: {_MS})?"
    rf"|pause {_MS}|watch {_MS}|drip .+ every {_MS} for {_MS}|fin|reset|canary)",
    re.DOTALL,
)
_DRIP = re.compile(rf"(.+) every ({_MS}) for ({_MS})", re.DOTALL)
# A server has its declared timeout and 20 % more, at least 2 s more (docs/catalogue.md).
_PAST_SHARE = 1.2
_PAST_MS = 2000


def milliseconds(text: str, facts: Facts) -> int:
    """A written wait: a number, ``1.5*timeout.NAME`` or ``past timeout.NAME``; nothing is 0.

    Of several timeouts, as ``timeout.NAME|NAME``, the longest counts. ``else 2000`` after it holds
    where one is not declared, or is declared as none.

    :raises notation.Unknown: the target does not declare that timeout.
    """
    text, _, otherwise = text.partition(" else ")
    factor, _, name = text.rpartition("timeout.")
    if not name or name.isdigit():
        return int(text or 0)
    waits: list[float] = []
    for one in name.split("|"):
        if otherwise and not facts.timeouts.get(one):
            return int(otherwise)
        if (wait := facts.timeouts.get(one)) is None:
            raise notation.Unknown(f"timeout.{one}")
        waits.append(wait)
    seconds = max(waits)
    if factor.strip() == "past":
        return max(round(1000 * seconds * _PAST_SHARE), round(1000 * seconds) + _PAST_MS)
    return round(1000 * seconds * float(factor.rstrip("*")))


def complaint(step: str) -> str | None:
    """What is wrong with a written step; None where nothing is."""
    return None if _STEP.fullmatch(step) else f"no step {step!r}; scenarios/README.md lists them"


class WrittenStep(msgspec.Struct, frozen=True):
    """A step as written: ``open await any 500`` has the word ``await`` and the argument ``500``."""

    word: str
    argument: str
    is_any: bool = False  # of await and look: an interim answer will do
    if_open: bool = False
    if_unanswered: bool = False


def read(text: str) -> WrittenStep:
    """Read one step that has no :func:`complaint`."""
    conditions = set()
    word, _, argument = text.partition(" ")
    while word in ("open", "unanswered"):
        conditions.add(word)
        word, _, argument = argument.partition(" ")
    is_any = word in ("await", "look") and argument.startswith("any")
    return WrittenStep(
        word,
        argument.removeprefix("any").strip() if is_any else argument,
        is_any,
        if_open="open" in conditions,
        if_unanswered="unanswered" in conditions,
    )


class Drip(msgspec.Struct, frozen=True):
    """The argument of ``drip``: what is sent again and again, how often, and for how long."""

    text: str
    every_ms: int
    times: int


def drip(argument: str, facts: Facts) -> Drip:
    """Read the argument of ``drip``.

    :raises notation.Unknown: the target does not declare a timeout that it names.
    """
    match = _DRIP.fullmatch(argument)
    assert match is not None, argument
    every_ms = max(milliseconds(match[2], facts), 1)
    return Drip(match[1], every_ms, milliseconds(match[3], facts) // every_ms)
