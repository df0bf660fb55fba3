"""An exchange as the rules see it: what really went out, what came, and when each byte went by."""

from __future__ import annotations

import itertools
import operator

import msgspec

from httpmark.harness.model.cases import Case, Facts, Op
from httpmark.harness.model.exchanges import End, Exchange
from httpmark.harness.model.timeline import EventKind, events


class ExchangeView(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange as the rules see it.

    :param sent: the bytes that really went out, in order.
    :param timeline: the records of ``model.timeline``; empty: not recorded.
    :param began_s: Unix time of the beginning of the connect; None: not known, or the server has
        another clock.
    :param head_only: the exchange ended with the answer's header section.
    :param machine_dropped: the kernel lost packets meanwhile, or many others were in flight, so
        silence proves nothing.
    :param among_many: many others were in flight, so what a server does by a timer may be late.
    :param cut: more came than was kept.
    :param own_close: the client closed its sending side, or reset; with a timeline that is seen.
    """

    sent: bytes
    received: bytes
    end: End
    end_us: int
    timeline: bytes = b""
    began_s: float | None = None
    head_only: bool = False
    machine_dropped: bool = False
    among_many: bool = False
    cut: bool = False
    own_close: bool = False


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """What a manifest says that bears on the rules."""

    answers_1_0_as_1_0: bool = False
    clock: bool = True  # the server has one (RFC 9110 6.6.1)
    idle_s: float | None = None  # its idle timeout; None: not known, 0: none


def declared(facts: Facts) -> Declared:
    """What is known of a target that bears on the rules."""
    return Declared(
        answers_1_0_as_1_0=facts.answers_1_0_as_1_0, idle_s=facts.timeouts.get("idle_s")
    )


_OWN_CLOSES = frozenset((Op.FIN, Op.RESET))
_op_of = operator.attrgetter("op")


def view(case: Case, exchange: Exchange, *, same_clock: bool = True) -> ExchangeView:
    """An exchange of a case as the rules see it.

    :param same_clock: the server's clock is ours.
    """
    known = same_clock and exchange.ended_s is not None
    return ExchangeView(
        sent=_really_sent(case, exchange),
        received=exchange.received,
        end=exchange.end,
        end_us=exchange.end_us,
        timeline=exchange.timeline,
        began_s=(exchange.ended_s or 0) - exchange.end_us / 1e6 if known else None,
        head_only=exchange.head_only,
        # Among many in flight, load may be why an answer did not come in time.
        machine_dropped=exchange.machine_dropped or (exchange.among_many and exchange.ran_out),
        among_many=exchange.among_many,
        cut=exchange.is_cut,
        own_close=not _OWN_CLOSES.isdisjoint(map(_op_of, case.steps)),
    )


def _really_sent(case: Case, exchange: Exchange) -> bytes:
    """The bytes that went out: conditional steps may have been skipped, the last one cut."""
    if exchange.sent_octets >= len(exchange.sent):
        return exchange.sent
    first = case.steps[0]
    if exchange.sent_octets == len(first.data) and not (first.if_open or first.if_unanswered):
        return first.data  # only this was sent, and not the canary
    writes = [one.octets for one in events(exchange.timeline) if one.kind is EventKind.SENT]
    if not writes:
        return exchange.sent[: exchange.sent_octets]
    sent = b""
    steps = [step for step in case.steps if step.op is Op.SEND]
    for number, step in enumerate(steps):
        # A write that the kernel took in pieces has several records.
        so_far = list(itertools.accumulate(writes))
        if len(step.data) in so_far:
            took = so_far.index(len(step.data)) + 1
        elif (step.if_open or step.if_unanswered or step.if_connected) and number + 1 < len(steps):
            continue  # skipped
        else:
            took = len(writes)  # cut short by the end
        sent += step.data[: sum(writes[:took])]
        writes = writes[took:]
    return sent


class Clock:
    """When each byte went by, in microseconds since the beginning of the connect.

    Without a timeline only the end is known.
    """

    def __init__(self, seen: ExchangeView) -> None:
        self.end_us = seen.end_us
        self.own_fin = seen.own_close
        self.closed_us: int | None = None if seen.end is End.OPEN else seen.end_us
        self._sent: list[tuple[int, int]] = []  # bytes so far, when
        self._received: list[tuple[int, int]] = []
        sent = received = 0
        for event in events(seen.timeline):
            if event.kind is EventKind.SENT:
                sent += event.octets
                self._sent.append((sent, event.at_us))
            elif event.kind is EventKind.RECEIVED:
                received += event.octets
                self._received.append((received, event.at_us))
            elif event.kind is EventKind.OWN_FIN:
                self.own_fin = True
            elif event.kind in (EventKind.FIN, EventKind.RST):
                self.closed_us = event.at_us

    def sent(self, byte: int) -> int | None:
        """When the byte of that index was written; None: not known, or never."""
        return _when(self._sent, byte)

    def received(self, byte: int) -> int | None:
        """When the byte of that index came; None: not known, or never."""
        return _when(self._received, byte)

    @property
    def last_us(self) -> int:
        """When the last byte went by, either way."""
        return max((times[-1][1] for times in (self._sent, self._received) if times), default=0)


def _when(times: list[tuple[int, int]], byte: int) -> int | None:
    for so_far, at_us in times:
        if so_far > byte:
            return at_us
    return None
