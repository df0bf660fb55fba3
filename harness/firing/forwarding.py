"""Cases played at a reverse proxy, one at a time, and what of each reached the origin.

Between the proxy and the reference server stands a tap. All connections of the proxy to the origin
are ended after each case, so what goes by belongs to the case that is played.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from httpmark.harness.catalogue import forwarding_messages, lookup
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.firing.probe import Probe, RunningProbe
from httpmark.harness.http import request_reader, response_reader
from httpmark.harness.judging import forwarded_requests, quick_look
from httpmark.harness.model.cases import Await, Case, Facts, Op, Step
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.forwarding import LeftOut, Passage, Upstream
from httpmark.harness.servers.recording_tap import Tap

SUITES = ("rfc", "smuggling")
_SENT_BYTES_MAX = 1 << 16


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How long things are waited for. What reaches the origin comes at once, or with the content
    that it waits for; so silence is not waited out."""

    answer_ms: int
    look_ms: int
    pause_ms: int
    quiet_s: float  # nothing went by for so long, where something is not whole
    settle_s: float  # the same, where all is whole
    deadline_s: float  # until what is not whole is left as it is


FIRST = Bounds(answer_ms=250, look_ms=30, pause_ms=10, quiet_s=0.03, settle_s=0.002, deadline_s=0.5)
AGAIN = Bounds(answer_ms=1000, look_ms=50, pause_ms=50, quiet_s=0.15, settle_s=0.02, deadline_s=2.0)
# A proxy that has not seen yet that its connection was cut answers 502 to a POST, as it may not
# send it twice (RFC 9110 9.2.2).
_PLAIN_TRIES = 3
_CUT_DEADLINE_S = 0.1


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A case that is played at proxies."""

    suite: str
    case: Case


def facts_of(host: str, address: str, port: int) -> Facts:
    """What cases need to know of a proxy: it can what the origin behind it can."""
    return Facts(
        host=host, address=address, port=port, capabilities=("hello", "body", "mirror"),
        path="/mirror",
    )  # fmt: skip


def chosen(
    catalogue: Catalogue, facts: Facts, *, only: frozenset[str] | None = None
) -> tuple[list[Chosen], list[LeftOut]]:
    """The cases that are played, and those that are not.

    :param only: families, cases and messages by id; None for all.
    """
    found = [
        Chosen(suite=forwarding_messages.SUITE, case=case)
        for case in forwarding_messages.cases(facts)
        if only is None or case.id in only
    ]
    left: dict[str, int] = {}
    for suite in SUITES:
        for family in catalogue.of_suite(suite):
            if only is not None and not any(
                name == family.id or (family.generated and name.startswith(f"{family.id}-"))
                for name in only
            ):
                continue
            if family.runner is not None:
                left["played by a program of its own"] = (
                    left.get("played by a program of its own", 0) + 1
                )
            elif catalogue.inapplicable(family.id, facts):
                why = "needs what no proxy declares"
                left[why] = left.get(why, 0) + family.count
            elif lookup.has_octets(catalogue, family.id):
                step = 1 if only is not None else quick_look.step_of(family, quick=True)
                cases = [
                    one
                    for one in catalogue.cases(family.id, facts, step=step)
                    if only is None or family.id in only or one.id in only
                ]
                small = [one for one in cases if len(one.sent) <= _SENT_BYTES_MAX]
                found += [Chosen(suite=suite, case=one) for one in small]
                if only is None:
                    _count(left, "every other member of a large family", family.count - len(cases))
                _count(left, "larger than 64 KiB", len(cases) - len(small))
    return found, [LeftOut(why, count) for why, count in sorted(left.items())]


def _count(left: dict[str, int], why: str, cases: int) -> None:
    if cases > 0:
        left[why] = left.get(why, 0) + cases


def bounded(case: Case, bounds: Bounds) -> Case:
    """The same case, which waits for nothing longer than it must."""
    steps = tuple(_bounded(step, bounds) for step in case.steps if step.op is not Op.CLOSE_WAIT)
    waits = sum(step.wait_ms for step in steps)
    return msgspec.structs.replace(
        case, steps=steps, settle_ms=0, close_ms=0, deadline_ms=waits + bounds.answer_ms
    )


def _bounded(step: Step, bounds: Bounds) -> Step:
    if step.op is Op.AWAIT:
        is_look = step.kind in (Await.LOOK_FINAL, Await.LOOK_ANY)
        longest = bounds.look_ms if is_look else bounds.answer_ms
    elif step.op in (Op.PAUSE, Op.WATCH):
        longest = bounds.pause_ms
    else:
        return step
    return msgspec.structs.replace(step, wait_ms=min(step.wait_ms, longest))


class Player:
    """Plays cases at one proxy and takes from the tap what reached the origin.

    :param death: why the proxy ended; None while it runs.
    """

    def __init__(self, address: str, port: int, tap: Tap, death: Callable[[], str | None]) -> None:
        self._probe = RunningProbe(Probe(address, port, in_flight=1))
        self._tap = tap
        self._death = death

    def __enter__(self) -> Player:
        return self

    def __exit__(self, *words: object) -> None:
        self._probe.__exit__(*words)

    def play(self, one: Chosen, bounds: Bounds = FIRST) -> Passage:
        """Play one case.

        :raises Unusable: the probe cannot go on, or the proxy has ended.
        """
        exchange = self._probe.play(bounded(one.case, bounds))
        upstreams = self._taken(bounds)
        if not exchange.received and (why := self._death()):
            raise Unusable(f"{why}, at {one.case.id}")
        return _passage(one, exchange, upstreams)

    def _taken(self, bounds: Bounds) -> tuple[Upstream, ...]:
        """What went by, when nothing more comes."""
        end = time.monotonic() + bounds.deadline_s
        while time.monotonic() < end:
            quiet = self._tap.quiet_for()
            if quiet >= bounds.quiet_s or (
                quiet >= bounds.settle_s and all(map(_is_whole, self._tap.now()))
            ):
                break
            time.sleep(bounds.settle_s / 4)
        return self._tap.cut(deadline_s=_CUT_DEADLINE_S)

    def own_minor(self, facts: Facts) -> int:
        """The minor version in which a plain HTTP/1.1 request is forwarded: 0 or 1.

        :raises Unusable: a plain GET or a plain POST does not come through the proxy.
        """
        minors = [self._control(*one) for one in _plain(facts.host.encode("latin-1"))]
        return max(minors)

    def _control(self, method: str, octets: bytes, content: bytes) -> int:
        steps = (Step(Op.SEND, octets), Step(Op.AWAIT, wait_ms=AGAIN.answer_ms))
        case = Case(f"plain-{method.lower()}", "plain", steps)
        for _ in range(_PLAIN_TRIES):
            passage = self.play(Chosen(suite="", case=case), AGAIN)
            status = response_reader.final_status(passage.received)
            if status // 100 != 5:
                break
        came = forwarded_requests.reached(passage.upstreams)
        if status // 100 != 2:
            raise Unusable(f"does not forward a plain {method}: it answered {status or 'nothing'}")
        if len(came) != 1 or came[0].request.content(came[0].octets) != content:
            raise Unusable(f"does not forward a plain {method}: it did not reach the origin")
        return came[0].request.minor


def _plain(host: bytes) -> tuple[tuple[str, bytes, bytes], ...]:
    """The positive controls: method, bytes and content."""
    return (
        ("GET", b"GET /hello HTTP/1.1\r\nHost: %s\r\n\r\n" % host, b""),
        (
            "POST",
            b"POST /body HTTP/1.1\r\nHost: %s\r\nContent-Length: 5\r\n\r\nhello" % host,
            b"hello",
        ),
    )


def _is_whole(upstream: Upstream) -> bool:
    """Whether all that was sent on a connection is whole, and answered."""
    read = request_reader.read(upstream.to_origin).requests
    answered = forwarded_requests.answers((upstream,))
    return bool(read) and read[-1].whole and answered >= len(read)


def _passage(one: Chosen, exchange: Exchange, upstreams: tuple[Upstream, ...]) -> Passage:
    return Passage(
        case=one.case.id, family=one.case.family, suite=one.suite,
        sent=exchange.sent[: exchange.sent_octets], received=exchange.received,
        upstreams=tuple(up for up in upstreams if up.to_origin),
    )  # fmt: skip


def known_ids(catalogue: Catalogue, words: Iterable[str], facts: Facts) -> frozenset[str]:
    """The families, cases and messages that words name.

    :raises HarnessError: a word names nothing.
    """
    own = {message.id for message in forwarding_messages.messages()}
    return frozenset(name for word in words for name in _named(catalogue, word, own, facts))


def _named(catalogue: Catalogue, word: str, own: set[str], facts: Facts) -> Iterator[str]:
    if word in own:
        yield word
        return
    family, planned = lookup.find(word, facts)
    if family.suite not in SUITES:
        raise HarnessError(f"{word}: only cases of {' and '.join(SUITES)} are sent to proxies")
    yield family.id if word in (family.id, *family.refs) else planned.case.id
