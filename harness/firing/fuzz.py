"""The search for messages that a server and the grammar read differently.

Valid requests, and the same with one thing wrong, go to one server. What it reads differently from
the harness's own reader of requests (``request_reader``) is made smaller and told.
``found_scenarios`` saves it; ``server_agreement`` compares servers with each other.
"""

from __future__ import annotations

import enum
import hashlib
import random
import time
from collections.abc import Callable
from typing import TypeGuard

import msgspec

from httpmark.harness.catalogue.placeholder_values import canary_request
from httpmark.harness.firing import strategies, targets
from httpmark.harness.firing.probe import RunningProbe
from httpmark.harness.http import request_reader, tolerances
from httpmark.harness.http.request_reader import Broken
from httpmark.harness.judging import observation
from httpmark.harness.model.cases import Await, Case, Op, Step
from httpmark.harness.model.exchanges import Exchange, Outcome

FINDS_MAX = 64  # nobody reads more

_SURPLUS_MS = 5  # after an answer, for bytes that nobody asked for
_ANSWER_MS = 1000
_SHRINKING_S = 10.0  # after the time is up, to make the last find smaller
_REFUSALS = frozenset({400, 505})


class Kind(enum.StrEnum):
    """How a server and the grammar disagree."""

    REFUSED = "refused"  # a valid request gets 400, 505 or a close
    MISREAD = "misread"  # the mirror shows another request than the one that was sent
    ACCEPTED = "accepted"  # bytes outside the grammar get a 2xx
    HUNG = "hung"  # a whole message, or one that no further byte can complete, gets no answer
    OUT_OF_SYNC = "out_of_sync"  # the next request on the connection is not answered as itself
    MALFORMED = "malformed"  # the answer is no HTTP response


class Find(msgspec.Struct, frozen=True):
    """A disagreement, made smaller: the bytes, the part that is wrong, and what came back.

    ``about`` tells faults of the same kind and part from each other. For a broken message it names
    the rule that is broken. For a valid message it names what the mirror shows differently, or else
    what the message has that the plainest one lacks.
    """

    kind: Kind
    part: str  # "request line", "field section", "content", or "valid"
    octets: bytes
    actual: str
    about: frozenset[str] = frozenset()

    def covers(self, other: Find) -> bool:
        """Whether another find probably shows the same fault."""
        same = (self.kind, self.part) == (other.kind, other.part)
        return same and self.about <= other.about

    @property
    def slug(self) -> str:
        """The permanent id of the scenario that is saved."""
        digest = hashlib.sha256(self.octets).hexdigest()[:8]
        part = self.part.replace(" ", "-")
        return f"found-{self.kind.replace('_', '-')}-{part}-{digest}"


class Answer(msgspec.Struct, frozen=True):
    """How a server read a message, in words that two servers can be compared by."""

    reading: str  # "accepted", "refused", "closed", "hung", "malformed"
    statuses: tuple[int, ...]
    understood: tuple[bytes, ...] = ()  # method, target and content, if a mirror shows them


class Searcher:
    """Sends messages to one target and says where it and the grammar disagree."""

    def __init__(self, target: targets.Target, probe: RunningProbe) -> None:
        self.facts = target.facts()
        self.place = b"/mirror" if "mirror" in target.capabilities else target.path.encode()
        self._probe = probe

    @property
    def requests(self) -> strategies.Requests:
        """Requests for this target: valid ones, and the same with one thing wrong."""
        return strategies.requests(host=self.facts.host.encode("latin-1"), place=self.place)

    def play(self, octets: bytes) -> tuple[Case, Exchange]:
        """Send a message in one write, then a canary."""
        canary = canary_request(self.facts, "fuzz")
        case = Case(
            "fuzz",
            "fuzz",
            (
                Step(Op.SEND, octets),
                Step(Op.AWAIT, wait_ms=_ANSWER_MS, kind=Await.FINAL),
                Step(Op.WATCH, wait_ms=_SURPLUS_MS, if_open=True),
                Step(Op.SEND, canary, if_open=True),
                Step(Op.AWAIT, wait_ms=_ANSWER_MS, if_open=True),
            ),
            deadline_ms=3 * _ANSWER_MS,
            timeline=True,
            place="mirror" if self.place == b"/mirror" else "hello",
            methods=(octets.split(b" ", 1)[0] or b"GET",),
            canary=canary,
        )
        return case, self._probe.play(case)

    def disagreement(self, octets: bytes) -> Find | None:
        """Where the target and the grammar disagree.

        None if they agree, or if it cannot be said: the message is not whole, or it is more than
        one message.
        """
        read = request_reader.read(octets)
        last = read.requests[-1] if read.requests else None
        if last is None or (last.valid and not last.whole):
            return None
        if len(read.requests) > 1 or last.end != len(octets):
            return None
        if last.valid and dict(last.fields).get(b"host") != self.facts.host.encode("latin-1"):
            return None  # a server may refuse a name that is not its own
        case, exchange = self.play(octets)
        seen = observation.sight(case, exchange)
        broken = None if last.valid else tolerances.broken(octets)
        told = (
            self._of_valid(octets, last, seen)
            if broken is None
            else self._of_broken(octets, broken, seen)
        )
        if told is None:
            return None
        kind, about, actual = told
        part = "valid" if broken is None else tolerances.part(broken)
        return Find(kind, part, octets, actual, about)

    def _of_valid(
        self, octets: bytes, request: request_reader.Request, seen: observation.Sight
    ) -> tuple[Kind, frozenset[str], str] | None:
        shape, actual = _shape(octets, request), _described(seen)
        if seen.fault is not None:
            return Kind.MALFORMED, shape, actual
        if seen.outcome is Outcome.HUNG:
            return Kind.HUNG, shape, actual
        if not seen.answers:
            closed = seen.outcome in (Outcome.CLOSED, Outcome.RESET)
            return (Kind.REFUSED, shape, actual) if closed else None
        status = seen.answers[0].response.status
        if status in _REFUSALS:
            return Kind.REFUSED, shape, actual
        if 200 <= status < 300 and request.method not in (b"HEAD", b"CONNECT"):
            differs = self._misread(octets, request, seen)
            if differs:
                said = f"{actual}, mirrored other {', '.join(sorted(differs))}"
                return Kind.MISREAD, differs, said
        return (Kind.OUT_OF_SYNC, shape, actual) if _out_of_sync(seen) else None

    def _of_broken(
        self, octets: bytes, broken: Broken, seen: observation.Sight
    ) -> tuple[Kind, frozenset[str], str] | None:
        about, actual = frozenset({str(broken)}), _described(seen)
        if seen.fault is not None:
            return Kind.MALFORMED, about, actual
        if seen.outcome is Outcome.HUNG:
            # What follows may complete a message whose header section has not ended.
            first = request_reader.read(octets).requests[0].broken
            waits = not tolerances.MAY_WAIT.isdisjoint({first, broken})
            waits = waits or b"\r\n\r\n" not in octets
            return None if waits else (Kind.HUNG, about, actual)
        if not seen.answers or not 200 <= seen.answers[0].response.status < 300:
            return None
        allowed = tolerances.tolerance(octets)
        if allowed is None or allowed.allows:
            return Kind.ACCEPTED, about, actual
        if allowed.request is None:
            return None
        # A server may accept it, but only with the meaning that the RFCs give it.
        differs = self._misread(allowed.octets, allowed.request, seen) - {"trailers"}
        if differs:
            said = f"{actual}, mirrored other {', '.join(sorted(differs))}"
            return Kind.MISREAD, about | differs, said
        return (Kind.OUT_OF_SYNC, about, actual) if _out_of_sync(seen) else None

    def _misread(
        self, octets: bytes, request: request_reader.Request, seen: observation.Sight
    ) -> frozenset[str]:
        shown = seen.answers[0].mirror if self.place == b"/mirror" else None
        return frozenset() if shown is None else frozenset(misread(octets, request, shown))

    def answer(self, octets: bytes) -> Answer:
        """How the target read a message, for the comparison of several servers."""
        case, exchange = self.play(octets)
        seen = observation.sight(case, exchange)
        statuses = tuple(final.response.status for final in seen.answers)
        if seen.fault is not None:
            return Answer("malformed", statuses)
        if not statuses:
            word = "hung" if exchange.outcome is Outcome.HUNG else "closed"
            return Answer(word, statuses)
        if statuses[0] >= 300:
            return Answer("refused", statuses[:1])
        shown = seen.answers[0].mirror
        understood = (
            ()
            if shown is None
            else (shown.method or b"", shown.target or b"", shown.content or b"")
        )
        return Answer("accepted", statuses[:1], understood)


# Fields that frame a message or are about the connection: a server may leave them out of what it
# hands on.
_CONSUMED = frozenset(
    (b"host", b"content-length", b"transfer-encoding", b"trailer", b"connection", b"expect")
)


def misread(
    octets: bytes, request: request_reader.Request, shown: observation.Mirror
) -> tuple[str, ...]:
    """What a mirror shows differently from what was sent. What it does not compute is left out.

    Field names are compared without case, values exactly. Values of the same name form a list, in
    order; the order of lines with different names has no meaning (RFC 9110 5.2, 5.3).
    """
    told = {
        "method": shown.method in (None, request.method),
        "target": shown.target in (None, request.target),
        "content": shown.content in (None, request.content(octets)),
        "fields": shown.fields is None or by_name(shown.fields) == by_name(request.fields),
        "trailers": shown.trailers is None or by_name(shown.trailers) == by_name(request.trailers),
    }
    return tuple(name for name, same in told.items() if not same)


def by_name(fields: tuple[tuple[bytes, bytes], ...]) -> dict[bytes, bytes]:
    lists: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        if name.lower() not in _CONSUMED:
            lists.setdefault(name.lower(), []).append(value)
    return {name: b", ".join(values) for name, values in lists.items()}


def _shape(octets: bytes, request: request_reader.Request) -> frozenset[str]:
    """What a valid request has that the plainest one lacks."""
    own = [(name, value) for name, value in request.fields if name not in _CONSUMED]
    has = {
        "query": b"?" in request.target,
        "percent": b"%" in request.target,
        "field": bool(own),
        "obs-text": any(not value.isascii() for _, value in own),
        "empty value": any(not value for _, value in own),
        "content": bool(request.pieces),
        "chunked": any(name == b"transfer-encoding" for name, _ in request.fields),
        "trailer": bool(request.trailers),
    }
    method = {request.method.decode("latin-1")} - {"GET"}
    return frozenset({name for name, holds in has.items() if holds} | method)


def _out_of_sync(seen: observation.Sight) -> bool:
    in_sync = len(seen.after) == 1 and 200 <= seen.after[0].response.status < 300
    return seen.canary_sent and not seen.closed and not in_sync


def _described(seen: observation.Sight) -> str:
    statuses = ", ".join(str(final.response.status) for final in (*seen.answers, *seen.after))
    return statuses or str(seen.outcome)


def search(
    searcher: Searcher,
    *,
    seconds: float,
    seed: int,
    tell: Callable[[Find], None],
    most: int | None = None,
) -> tuple[list[Find], int]:
    """Look for disagreements until the time is up, or until ``most`` are found.

    :param tell: is called with each new find, after it was made smaller.
    :param most: :data:`FINDS_MAX` at most.
    :returns: the finds, and how many messages were sent.
    """
    end = time.monotonic() + seconds
    chance = random.Random(seed)
    found: list[Find] = []
    sent = 0
    most = FINDS_MAX if most is None else min(most, FINDS_MAX)

    def is_new(told: Find | None) -> TypeGuard[Find]:
        return told is not None and not any(known.covers(told) for known in found)

    while time.monotonic() < end and len(found) < most:
        best: list[bytes] = []

        def disagrees(tried: bytes, best: list[bytes] = best) -> bool:
            nonlocal sent
            # The last find may be made smaller after the time is up.
            if time.monotonic() > end + (_SHRINKING_S if best else 0.0):
                return False
            sent += 1
            if not is_new(searcher.disagreement(tried)):
                return False
            if not best or (len(tried), tried) < (len(best[0]), best[0]):
                best[:] = [tried]
            return True

        strategies.smallest(searcher.requests, disagrees, chance)
        find = searcher.disagreement(best[0]) if best else None
        if is_new(find):
            found.append(find)
            tell(find)
    return found, sent
