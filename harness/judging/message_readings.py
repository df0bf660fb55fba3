"""How a server read one message: as how many requests, and what it made of the rest.

Where two servers read the same bytes in two ways and both go on, one may stand before the other:
then what the first takes for content can be a request to the second (request smuggling, RFC 9112
11.2). A refusal is safe, and is no reading.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import msgspec

from httpmark.harness.judging import canary
from httpmark.harness.judging.canary import Canary
from httpmark.harness.judging.observation import Sight
from httpmark.harness.model.cases import Case, Op

# If this many bytes of the next request stand in the content, it was read as part of the message.
_TAKEN_IN = 12
_BAD_REQUEST = 400


class Rest(enum.Enum):
    """What became of the bytes after the requests that were answered."""

    READ = "nothing left over"
    LEFT = "what follows refused"
    TAKEN = "the next request taken as content"
    UNKNOWN = "at least"


class Reading(msgspec.Struct, frozen=True, order=True):
    """How many requests a server read and accepted, and what it made of what follows them."""

    requests: int
    rest: Rest

    @property
    def said(self) -> str:
        number = f"{self.requests} request" + ("s" if self.requests != 1 else "")
        if self.rest is Rest.UNKNOWN:
            return f"{number} {self.rest.value}"
        return number if self.rest is Rest.READ else f"{number}, {self.rest.value}"


def reading(case: Case, sight: Sight) -> Reading | None:
    """How a server read a message; None where it refused it, or nothing can be said.

    Only of bytes that go out before any answer is waited for, or are one request; with the canary
    after them.
    """
    message = _message(case)
    if message is None or sight.fault is not None or sight.cut:
        return None
    statuses = [final.response.status for final in sight.answers]
    accepted = next(
        (number for number, status in enumerate(statuses) if not 200 <= status < 300), len(statuses)
    )
    if not statuses:
        return Reading(1, Rest.TAKEN) if _took_canary(case, sight) else None
    if accepted == 0:
        return None
    if accepted < len(statuses):
        # A second request may be refused for what it is; bytes of the only one, read as another,
        # get 400.
        refused = statuses[accepted] == _BAD_REQUEST and len(case.methods) <= 1
        return Reading(accepted, Rest.LEFT if refused else Rest.UNKNOWN)
    fate = canary.fate(case, sight, None)
    if fate is Canary.ITSELF:
        return Reading(accepted, Rest.READ)
    if fate is Canary.OTHERWISE and _took_canary(case, sight):
        return Reading(accepted, Rest.TAKEN)
    if fate is Canary.OTHERWISE and accepted == 1 and _leaves(message, sight):
        return Reading(accepted, Rest.LEFT)
    return Reading(accepted, Rest.UNKNOWN)


def _message(case: Case) -> bytes | None:
    """The bytes of a case before its canary; None where an answer to some decides on others."""
    *writes, last = [step.data for step in case.steps if step.op is Op.SEND] or [b""]
    if not case.canary or case.joined or last != case.canary:
        return None
    return b"".join(writes) if len(writes) == 1 or len(case.methods) <= 1 else None


def _took_canary(case: Case, sight: Sight) -> bool:
    """Whether the mirror shows the canary's bytes in what it understood as content."""
    begins = case.canary[:_TAKEN_IN]
    shown = [final.mirror for final in sight.after]
    return any(one is not None and one.content and begins in one.content for one in shown)


def _leaves(message: bytes, sight: Sight) -> bool:
    """Whether the mirror shows that bytes of the message were not read as part of its request.

    A refusal of the next request alone does not show it: a server may not want another one.
    """
    shown = sight.answers[0].mirror
    if shown is None or shown.content is None:
        return False
    _, _, rest = message.lstrip(b"\r\n").partition(b"\r\n\r\n")
    _, found, after = rest.partition(shown.content) if shown.content else (b"", b"x", rest)
    return bool(found) and bool(after) and not after.startswith(b"\r\n")


def differ(one: Reading, other: Reading) -> bool:
    """Whether two servers that read in these ways disagree on where a request ends.

    Of one whose rest is unknown, only more answers than the other one gave show that it read on.
    """
    if one.rest is Rest.UNKNOWN or other.rest is Rest.UNKNOWN:
        unknown, told = (one, other) if one.rest is Rest.UNKNOWN else (other, one)
        return told.rest is not Rest.UNKNOWN and unknown.requests > told.requests
    return one != other


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """One message that servers read in two ways."""

    case: str
    title: str
    clause: str
    readings: tuple[tuple[str, tuple[str, ...]], ...]  # what it was read as, and by whom


def split(
    case: str, title: str, clause: str, read: Mapping[str, Reading], names: Sequence[str]
) -> Split | None:
    """Who reads a message how; None where no two servers differ.

    :param read: the readings by server.
    :param names: the servers in the order in which they are told.
    """
    known = [name for name in names if name in read]
    disagrees = {name for name in known for other in known if differ(read[name], read[other])}
    if not disagrees:
        return None
    told: dict[Reading, list[str]] = {}
    for name in known:
        if name in disagrees:
            told.setdefault(read[name], []).append(name)
    rows = sorted(told.items(), key=lambda one: (-len(one[1]), one[0].said))
    return Split(
        case=case,
        title=title,
        clause=clause,
        readings=tuple((one.said, tuple(servers)) for one, servers in rows),
    )
