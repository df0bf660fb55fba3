"""What is done when a server dies or hangs: find the request, tell it, start again, go on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.catalogue.delivery_modes import message
from httpmark.harness.catalogue.step_words import own_steps
from httpmark.harness.firing import crash_search, liveness
from httpmark.harness.firing.crash_search import Died, Trials
from httpmark.harness.firing.liveness import Ending
from httpmark.harness.firing.play_queue import Flown
from httpmark.harness.firing.targets import QUESTION, Target, hello
from httpmark.harness.http import masking, shell_lines
from httpmark.harness.http.printable import one_line
from httpmark.harness.judging.evidence import Evidence, crashed, kept_as
from httpmark.harness.model.cases import Case, Family
from httpmark.harness.model.crashes import Blame, Crash, crash_id
from httpmark.harness.model.errors import ServerDied, Unusable
from httpmark.harness.model.exchanges import Attempt

_QUICK_S = 120.0  # for all searches of a quick check together
_FULL_S = 300.0  # of any other
_ONE_S = 30.0  # for one search
_SMALLER_S = 8.0
_SMALLER_MAX = 3  # requests are made smaller, in a quick look one; mostly it is the same fault
_CRASHES_MAX = 32
_UNEXPLAINED_MAX = 3  # crashes that no single request explains: the server would die again
_SUSPECTS_MAX = 256
_SHOWN_MAX = 16  # ids of suspects
_LONG_US = 1_000_000  # who waited longer is asked again last

Answer = TypeVar("Answer")


class Recovery:
    """The crashes of one target in a check, and what is not asked again because of them.

    :param quick: a quick look searches for a shorter time, and makes one request smaller.
    """

    def __init__(self, catalogue: Catalogue, *, quick: bool = False) -> None:
        self._catalogue = catalogue
        self._left_s = _QUICK_S if quick else _FULL_S
        self._deadly: set[tuple[str, str]] = set()
        self._has_answered = False
        self._smaller = 1 if quick else _SMALLER_MAX
        self._unexplained = 0
        self.crashes: list[Crash] = []

    def meet(self, target: Target) -> None:
        """See whether the target answers at all: one that never did cannot be said to hang."""
        self._has_answered = self._has_answered or bool(hello(target))

    def is_deadly(self, case: Case) -> bool:
        """Whether the server is known to die of a case."""
        return bool({(case.id, _WHOLE), (case.id, _delivery(case))} & self._deadly)

    def ending(self, target: Target) -> Ending | None:
        """What became of the target; None if it answers, or never did."""
        if self._has_answered or hello(target) is None:
            return liveness.ended(target, patience_s=liveness.recovers_s(target))
        return liveness.death(target)

    def survived(
        self, target: Target, question: Callable[[Target], Answer], evidence: Evidence | None = None
    ) -> Answer:
        """The answer to a question that sends requests; asked again where the server died of it.

        :raises ServerDied: it did, and nothing more can be asked.
        """
        while True:
            answer = question(target)
            self.meet(target)
            if (ending := self.ending(target)) is None:
                return answer
            self.recover(target, ending, [], evidence)

    def recover(
        self, target: Target, ending: Ending, spoiled: Sequence[Flown], evidence: Evidence | None
    ) -> None:
        """Find the request, and start the server again.

        :param spoiled: what was in flight, in order.
        :raises ServerDied: the server cannot be started again, or dies too often.
        """
        in_flight = [one for one in spoiled if one.has_reached_the_server][-_SUSPECTS_MAX:]
        self._keep(target, in_flight, evidence)
        suspects = [*target.last_asked.recent, *(one.play[0] for one in in_flight)]
        if target.server is None or not self._may_go_on:
            why = _NOT_OURS if target.server is None else _TOO_OFTEN
            self._add(target, _suspected(ending, in_flight, why))
            raise self._stopped(ending, _since(spoiled))
        found, began = 0, time.monotonic()
        end_s = began + min(_ONE_S, self._left_s)
        try:
            with Trials(target, ending.kind, end_s=end_s) as trials:
                for lot in (_likely_first(in_flight), suspects):
                    for died in crash_search.search(trials, lot):
                        self._explained(target, died, evidence)
                        found += 1
                    if found:
                        break
                is_proven = not trials.is_over
            if not found:
                self._unexplained += 1
                crash = _crash(Blame.NOT_AGAIN, ending, suspects)
                self._add(target, msgspec.structs.replace(crash, is_proven=is_proven))
            target.server.restart()
        except Unusable as error:
            if not found:
                self._add(target, _suspected(ending, in_flight, "the server does not start again"))
            raise self._stopped(ending, f"; it cannot be started again: {error}") from None
        finally:
            self._left_s -= time.monotonic() - began
        target.last_asked.recent.clear()

    def by_program(self, target: Target, family: Family, ending: Ending) -> None:
        """A program was played, and the server died meanwhile.

        :raises ServerDied: the server cannot be started again.
        """
        crash = _crash(Blame.SUSPECTED, ending, [])
        crash = msgspec.structs.replace(
            crash, cases=(family.id,), requests=1, suite=family.suite, family=family.id
        )
        self._add(target, crash)
        if target.server is None or not self._may_go_on:
            raise self._stopped(ending)
        try:
            target.server.restart()
        except Unusable as error:
            raise self._stopped(ending, f"; it cannot be started again: {error}") from None

    @property
    def _may_go_on(self) -> bool:
        return (
            len(self.crashes) < _CRASHES_MAX
            and self._unexplained < _UNEXPLAINED_MAX
            and self._left_s > 0
        )

    def _stopped(self, ending: Ending, why: str = "") -> ServerDied:
        self.crashes[-1] = msgspec.structs.replace(self.crashes[-1], went_on=False)
        number = len(self.crashes)
        often = f" (the {number}th time in this run)" if number > 3 else ""
        return ServerDied(f"{ending.reason}{why}{often}")

    def _explained(self, target: Target, died: Died, evidence: Evidence | None) -> None:
        """Tell what the server dies of, and make it smaller."""
        case = died.cases[-1]
        if len(died.cases) > 1:
            self._unexplained += 1
            crash = _crash(Blame.SEQUENCE, died.ending, died.cases)
            crash = msgspec.structs.replace(crash, is_proven=died.is_proven)
            self._add(target, crash, cases=died.cases)
            return
        family = self._catalogue.families.get(case.family)
        crash = msgspec.structs.replace(
            _crash(Blame.ALONE, died.ending, died.cases),
            suite=family.suite if family else "",
            family=case.family if family else "",
            octets=len(message(case)),
        )
        small = None
        if self._smaller > 0:
            self._smaller -= 1
            small = _smaller(target, died)
        if small is not None and masking.leaves_a_part(small.exchange):
            small = None
        if small is not None:
            crash = msgspec.structs.replace(crash, fewest=len(small.exchange.sent))
        self._add(target, crash, cases=small.cases if small else died.cases)
        if case.id == QUESTION:
            target.last_asked.deadly.add(case.sent)
            return
        self._deadly.add((case.id, _delivery(case)))
        if evidence is not None:
            told = msgspec.structs.replace(died.exchange, attempt=Attempt.CRASHED)
            evidence.add(target.name, [told])
            if small is not None:
                least = msgspec.structs.replace(
                    small.exchange, delivery=kept_as(crash_id(case.family))
                )
                evidence.add(target.name, [least])
            evidence.flush()

    def _add(self, target: Target, crash: Crash, *, cases: Sequence[Case] = ()) -> None:
        mask = masking.Mask(target.header)
        words = tuple(
            one_line(mask.received(line.encode()).decode(errors="replace"))
            for line in crash.last_words
        )
        lines = tuple(
            line for case in cases[-_SHOWN_MAX:] if (line := _by_hand(case, target, mask))
        )
        self.crashes.append(msgspec.structs.replace(crash, last_words=words, by_hand=lines))

    def _keep(self, target: Target, spoiled: Iterable[Flown], evidence: Evidence | None) -> None:
        """Store what was in flight, apart from what verdicts look at."""
        if evidence is None:
            return
        number = len(self.crashes) + 1
        kept = [
            msgspec.structs.replace(one.exchange, delivery=crashed(number, one.exchange.delivery))
            for one in spoiled
            if one.exchange is not None
        ]
        evidence.add(target.name, kept)
        evidence.flush()


_WHOLE = "whole"


def _delivery(case: Case) -> str:
    return _WHOLE if case.delivery == "one" else case.delivery


def _crash(blame: Blame, ending: Ending, cases: Sequence[Case]) -> Crash:
    named = [case.id for case in cases if case.id != QUESTION]
    return Crash(
        kind=ending.kind,
        how=ending.how,
        blame=blame,
        cases=tuple(dict.fromkeys(named))[-_SHOWN_MAX:],
        requests=len(cases),
        last_words=ending.last_words,
    )


def _since(spoiled: Sequence[Flown]) -> str:
    """From where on nothing was answered."""
    return f" since case {spoiled[0].play[0].id}" if spoiled else ""


def _suspected(ending: Ending, spoiled: Iterable[Flown], why: str) -> Crash:
    """A crash of which no more is known than what was in flight."""
    crash = _crash(Blame.SUSPECTED, ending, [one.play[0] for one in spoiled])
    return msgspec.structs.replace(crash, why_not=why)


_NOT_OURS = "httpmark starts again only a server that it started, as with --serve"
_TOO_OFTEN = "it died or hung too often before, or the time to look for the request was spent"


def _likely_first(spoiled: Iterable[Flown]) -> list[Case]:
    """What was in flight: those that had begun shortly before come first."""
    waited = [one for one in spoiled if one.exchange and one.exchange.end_us > _LONG_US]
    return [
        *(one.play[0] for one in spoiled if one not in waited),
        *(one.play[0] for one in waited),
    ]


def _smaller(target: Target, died: Died) -> Died | None:
    """The fewest bytes that do the same; none where the server does not start again."""
    end_s = time.monotonic() + _SMALLER_S
    with (
        contextlib.suppress(Unusable),
        Trials(target, died.ending.kind, end_s=end_s) as trials,
    ):
        return crash_search.smaller(trials, died.cases[-1])
    return None


def _by_hand(case: Case, target: Target, mask: masking.Mask) -> str | None:
    """A line of shell that sends a case, where one would copy it."""
    where = shell_lines.place(target.facts())
    if target.server is not None:  # it is gone, and comes again on another port
        where = msgspec.structs.replace(where, port="PORT")
    steps = [msgspec.structs.replace(step, data=mask.sent(step.data)) for step in own_steps(case)]
    line = shell_lines.again(steps, where)
    return line if line is not None and len(line) <= shell_lines.LINE_CHARACTERS_MAX else None
