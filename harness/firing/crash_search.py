"""The request that a server dies or hangs of: asked again of fresh starts, and made smaller."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence

import msgspec

from httpmark.harness.catalogue import delivery_modes
from httpmark.harness.catalogue.case_builder import patience_ms
from httpmark.harness.firing import delta_debugging, liveness
from httpmark.harness.firing.liveness import Ending
from httpmark.harness.firing.play_queue import is_whole
from httpmark.harness.firing.probe import RunningProbe
from httpmark.harness.firing.targets import Target
from httpmark.harness.model.cases import Case, Op, Step
from httpmark.harness.model.crashes import CrashKind
from httpmark.harness.model.exchanges import Exchange

_WAIT_MS = 200  # for the answer to a request that is asked again
_SOON_S = 0.1  # from the end of a connection to that of the process
_LATER_S = 0.5  # a process that ends by then ended of the request
_HUNG_S = 1.5  # silence of a server that is known to hang
_START_S = 10.0  # for a fresh start
_SEQUENCE_TRIES = 40
_SMALLER_TRIES = 120
_EACH_ALONE_MAX = 16
_SMALLER_BYTES_MAX = 1 << 16


class Died(msgspec.Struct, frozen=True):
    """A server that died or hung of one request, or of several in order."""

    cases: tuple[Case, ...]
    exchange: Exchange  # of the last one
    ending: Ending
    is_proven: bool = True  # where there are several: no single one does it


class Trials:
    """Asks requests of fresh starts of a server, one at a time.

    :param kind: what is looked for.
    :param end_s: when to stop, on the monotonic clock.
    :raises Unusable: the server does not start again, or the probe cannot go on.
    """

    def __init__(self, target: Target, kind: CrashKind, *, end_s: float) -> None:
        assert target.server is not None
        self._target = target
        self._server = target.server
        self._kind = kind
        self._end_s = end_s
        self._is_fresh = False
        self._is_down = True
        self._probe: RunningProbe | None = None

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *error: object) -> None:
        if self._probe is not None:
            self._probe.__exit__(*error)

    @property
    def is_over(self) -> bool:
        """Whether time has run out."""
        return time.monotonic() >= self._end_s

    def fresh(self) -> None:
        """Start the server afresh, unless nobody asked it anything yet."""
        if not self._is_fresh:
            self._server.restart(patience_s=_START_S)
        self._is_fresh, self._is_down = True, False

    def played(self, case: Case, *, later: bool = False) -> Died | None:
        """Ask the running server one request; says whether it died of it.

        :param later: give it time to die after its answer.
        """
        self._is_fresh = False
        if self._probe is None:
            self._probe = RunningProbe(self._target.probe(in_flight=1))
        exchange = self._probe.play(_hurried(case, patience_ms(_WAIT_MS, self._target.facts())))
        ending = self._ending(exchange, later=later)
        if ending is None:
            return None
        self._is_down = True
        return Died((case,), exchange, ending)

    def _ending(self, exchange: Exchange, *, later: bool) -> Ending | None:
        if self._kind is CrashKind.HUNG:
            soon_s = patience_ms(round(_HUNG_S * 1000), self._target.facts()) / 1000
            # What is told of a request is told after all the time that is fair.
            return liveness.ended(self._target, patience_s=None if later else soon_s)
        within_s = _LATER_S if later else 0 if is_whole(exchange) else _SOON_S
        return liveness.death_soon(self._target, within_s=within_s)

    def in_order(self, cases: Sequence[Case]) -> tuple[int, Died] | None:
        """Ask requests in order, until the server dies: of which, and how."""
        for at, case in enumerate(cases):
            if at and self.is_over:
                return None
            if died := self.played(case, later=at == len(cases) - 1):
                return at, died
        return None

    def alone(self, *cases: Case) -> Died | None:
        """Ask a request of a fresh start, or a few in order."""
        self.fresh()
        found = self.in_order(cases)
        return None if found is None else msgspec.structs.replace(found[1], cases=cases)

    def again(self, case: Case) -> Died | None:
        """Ask a request of the server as it is; of a fresh start only where it is down."""
        if self._is_down:
            self.fresh()
        return self.played(case)


def search(trials: Trials, suspects: Sequence[Case]) -> Iterator[Died]:
    """What the server dies of among suspects: single requests, or at most one sequence of them.

    Requests that each kill it are found one after the other. What is found stays found where time
    runs out.
    """
    rest = list(suspects)
    while rest and not trials.is_over:
        trials.fresh()
        found = trials.in_order(rest)
        if found is None:
            return
        at, died = found
        alone = trials.alone(rest[at])
        if alone is None:
            if (several := _sequence(trials, rest[: at + 1], died)) is not None:
                yield several
            return
        yield alone
        # The same one in flight a second time would be found a second time.
        rest = [case for case in rest[at + 1 :] if _which(case) != _which(rest[at])]


def _which(case: Case) -> tuple[str, str, bytes]:
    """What makes two plays the same request, whatever the waits for its answer."""
    return case.id, case.delivery, case.sent


def _sequence(trials: Trials, cases: list[Case], died: Died) -> Died | None:
    """The fewest of some requests that the server dies of in their order; None if it does not die
    of all of them again."""
    last = died

    def holds(some: list[Case]) -> bool:
        nonlocal last
        found = trials.alone(*some)
        last = found or last
        return found is not None

    size = 1  # the last few are the likely ones
    while size < len(cases) and not trials.is_over and not holds(cases[-size:]):
        size *= 2
    whole = cases[-size:]
    if size >= len(cases) and not holds(cases):
        return None
    budget = delta_debugging.Budget(_SEQUENCE_TRIES, lambda: trials.is_over)
    few = delta_debugging.fewest(whole, holds, budget)
    proven = len(few) <= _EACH_ALONE_MAX
    for case in few if proven and len(few) > 1 else ():
        if trials.is_over:
            proven = False
            break
        if (alone := trials.alone(case)) is not None:
            return alone
    return Died(tuple(few), last.exchange, last.ending, is_proven=proven)


def smaller(trials: Trials, case: Case) -> Died | None:
    """The case with the fewest bytes found that the server still dies of, in one write.

    None where one write of all its bytes does not kill it, or nothing smaller does.
    """
    octets = delivery_modes.message(case)
    if len(octets) > _SMALLER_BYTES_MAX or not trials.again(written(case, octets)):
        return None
    budget = delta_debugging.Budget(_SMALLER_TRIES, lambda: trials.is_over)

    def kills(some: list[bytes]) -> bool:
        return trials.again(written(case, b"".join(some))) is not None

    lines = delta_debugging.fewest(octets.splitlines(keepends=True), kills, budget)
    # Without the end of the head most servers wait: to leave it out takes time and tells little.
    head, end, content = b"".join(lines).rpartition(b"\r\n\r\n")

    def kills_with_its_end(some: list[bytes]) -> bool:
        return kills([*some, end, content])

    pieces: list[bytes] = re.findall(rb"\r\n|.", head, re.DOTALL)
    least = delta_debugging.fewest(pieces, kills_with_its_end, budget)
    few = b"".join((*least, end, content))
    return trials.alone(written(case, few)) if len(few) < len(octets) else None


def written(case: Case, octets: bytes) -> Case:
    """A case that sends some bytes in one write, and waits for an answer."""
    steps = (Step(Op.SEND, octets), Step(Op.AWAIT, wait_ms=_WAIT_MS))
    return Case(case.id, case.family, steps, deadline_ms=2 * _WAIT_MS, close_ms=0)


def _hurried(case: Case, wait_ms: int) -> Case:
    """The case with shorter waits for answers: a server that dies closes the connection at once."""
    steps = tuple(
        msgspec.structs.replace(step, wait_ms=min(step.wait_ms, wait_ms))
        if step.op in (Op.AWAIT, Op.CLOSE_WAIT, Op.WATCH)
        else step
        for step in case.steps
    )
    most = sum(step.wait_ms for step in steps) + wait_ms
    return msgspec.structs.replace(
        case, steps=steps, deadline_ms=min(case.deadline_ms, most),
        settle_ms=min(case.settle_ms, wait_ms), close_ms=min(case.close_ms, wait_ms),
    )  # fmt: skip
