"""The messages that are sent to proxies alone: what their rules ask, and no case of a suite sends.

``scenarios/forwarding.toml`` lists them, in the notation of all scenario files.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from httpmark.harness.catalogue import loading, notation, toml_files
from httpmark.harness.model.cases import Case, Facts, Op, Step
from httpmark.harness.model.errors import HarnessError

SUITE = "forwarding"
_ANSWER_MS = 2000
_DEADLINE_MS = 5000


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the file."""

    id: str
    title: str
    send: str


class _Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file as written."""

    message: tuple[Message, ...]


def messages(path: Path = loading.FORWARDING) -> tuple[Message, ...]:
    """All messages of the file.

    :raises HarnessError: it has a mistake.
    """
    name = path.relative_to(path.parents[1]).as_posix()
    found = toml_files.decoded_as(toml_files.parsed_toml(path, name), name, _Text).message
    ids = [one.id for one in found]
    if twice := {one for one in ids if ids.count(one) > 1}:
        raise HarnessError(f"{name}: message {min(twice)!r}: there are two of that id")
    return found


def cases(facts: Facts, path: Path = loading.FORWARDING) -> list[Case]:
    """The messages as cases, addressed to a proxy."""
    return [_case(message, facts) for message in messages(path)]


def _case(message: Message, facts: Facts) -> Case:
    known: dict[str, notation.Value | None] = {
        "h": facts.host.encode("latin-1"), "id": message.id.encode("latin-1")
    }  # fmt: skip
    octets = notation.expand(message.send, known)
    steps = (Step(Op.SEND, octets), Step(Op.AWAIT, wait_ms=_ANSWER_MS))
    return Case(message.id, message.id, steps, deadline_ms=_DEADLINE_MS)
