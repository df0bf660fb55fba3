"""The stream of cases that goes through the probe to one target; what comes back is kept."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.firing.aftermath import Aftermath
from httpmark.harness.firing.crash_recovery import Recovery
from httpmark.harness.firing.play_queue import Flown, PlayQueue, is_whole
from httpmark.harness.firing.probe import IN_FLIGHT
from httpmark.harness.firing.probe_frames import Play
from httpmark.harness.firing.targets import Target, hello
from httpmark.harness.http import masking
from httpmark.harness.judging import quick_look, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.family_results import StoredServer
from httpmark.harness.model.cases import Await, Case, Facts, Op
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.exchanges import SILENT, Attempt, Exchange, ExchangeFlag, Outcome
from httpmark.harness.servers import network_counters

CASES_IN_FLIGHT = 256  # cases that are asked for the first time
AGAIN_IN_FLIGHT = 16  # cases that are asked again: load must not be why they fail
# Silence is believed after a second try, with few in flight and twice the time.
_CONFIRM_IN_FLIGHT = 4
_CONFIRMED_MAX = 256  # thousands of silent cases confirm each other
_LOOK_S = 0.05  # between two looks at whether the server still lives
_SILENT_S = 2.0  # a server that is silent for so long is asked whether it still answers
# How long an answer to the first of two writes is waited for: load made the shorter wait run out.
_UNHURRIED_MS = 250
_LOOKS = (Await.LOOK_FINAL, Await.LOOK_ANY)
_DRAIN_S = 15.0  # for what is on its way when the server seems to have ended
_RECENT = 64  # of those that came back, as much is remembered

Progress = Callable[[int], None]
Which = tuple[str, str]  # family and case


def no_progress(_: int) -> None:
    """For what is not counted."""


class CaseStream:
    """Sends cases to one target through the probe, and keeps what comes back.

    :param quick: thins the largest families (``quick_look.step_of``).
    :param recovery: what is done where the server dies, and what it died of so far.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        target: Target,
        evidence: Evidence,
        fired: suite_results.Fired,
        *,
        progress: Progress = no_progress,
        again: Callable[[int], Progress] = lambda total: no_progress,
        quick: bool = False,
        recovery: Recovery | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.target = target
        self.evidence = evidence
        self.fired = fired
        self.quick = quick
        self.recovery = recovery or Recovery(catalogue)
        self.aftermath = Aftermath(target)
        self._progress = progress
        self._begin_again = again
        self._again: Progress = no_progress
        self._dropped = network_counters.dropped_packets()

    @property
    def facts(self) -> Facts:
        """What is known of the target."""
        return self.target.facts()

    @property
    def stored(self) -> StoredServer:
        """What came back so far, for the judge."""
        return StoredServer(
            self.catalogue, masking.facts(self.facts), self.evidence, self.target.name
        )

    def cases(self, families: Iterable[str]) -> Iterator[Case]:
        """The cases of families, as far as they are asked."""
        facts = self.facts
        for family in families:
            yield from self.catalogue.cases(family, facts, step=self._step(family))

    def only(self, wanted: Iterable[Which]) -> Iterator[Case]:
        """The cases that are wanted, by family and id."""
        for family, cases in _by_family(wanted).items():
            yield from self.catalogue.cases(family, self.facts, step=self._step(family), only=cases)

    def binding(self, cases: list[Which]) -> list[Which]:
        """Those of some cases that bind: in a family of SHOULD, a class of its cases may."""
        binding = {
            (family, planned.case.id)
            for family, wanted in _by_family(cases).items()
            for planned in self.catalogue.planned(
                family, self.facts, step=self._step(family), only=wanted
            )
            if planned.level.is_binding
        }
        return [which for which in cases if which in binding]

    def ask_again(self, total: int) -> None:
        """Say that so many cases are asked again next."""
        self._again = self._begin_again(total)

    def plan(self, families: Iterable[str]) -> None:
        """Tell evidence which cases will be asked, so that it knows them if firing is cut short."""
        self.evidence.plan(
            (slug, family)
            for family in families
            for slug in self.catalogue.slugs(family, step=self._step(family))
        )

    def thin(self, families: Iterable[str]) -> None:
        """Ask only that part of these families that a quick look asks."""
        for name in families:
            one = self.catalogue.families[name]
            left_out = one.count - quick_look.cases_of(one, quick=True)
            self.fired.thinned[name] = left_out
            self._progress(left_out)  # nobody waits for them

    def _step(self, family: str) -> int:
        is_thinned = self.quick or family in self.fired.thinned
        return quick_look.step_of(self.catalogue.families[family], quick=is_thinned)

    def fire_confirmed(self, families: list[str]) -> None:
        """Fire whole families; silence is tried again before it counts."""
        if not families:
            return
        silent = {
            exchange.case: exchange.machine_dropped
            for exchange in self.play(
                self.cases(families), in_flight=IN_FLIGHT, attempt=Attempt.FIRST
            )
        }
        believed = [name for name, dropped in silent.items() if not dropped][_CONFIRMED_MAX:]
        again = silent.keys() - set(believed)
        if again:
            doubted = (patient(case) for case in self.cases(families) if case.id in again)
            exhaust(self.play(doubted, in_flight=_CONFIRM_IN_FLIGHT, attempt=Attempt.REPEAT))

    def play(
        self,
        cases: Iterable[Case],
        *,
        in_flight: int,
        attempt: int,
        connections_max: int | None = None,
        keep: Callable[[Exchange], bool] = lambda exchange: True,
    ) -> Iterator[Exchange]:
        """Play cases into evidence; yields the silent exchanges.

        :param connections_max: as in ``Probe``.
        :param keep: whether an exchange goes into evidence.
        :raises ServerDied: the server has ended, and nothing more can be asked.
        """
        plays = ((case, attempt) for case in cases)
        return self.play_all(plays, in_flight=in_flight, connections_max=connections_max, keep=keep)

    def play_all(
        self,
        plays: Iterable[Play],
        *,
        in_flight: int,
        connections_max: int | None = None,
        keep: Callable[[Exchange], bool] = lambda exchange: True,
    ) -> Iterator[Exchange]:
        """The same, where each case says which attempt at it this is.

        Where the server dies or hangs, the request is looked for, and the rest goes on after a
        restart, without it.
        """
        queue = PlayQueue(plays, self.recovery.is_deadly)
        while not queue.is_done:
            yield from self._flown(queue, in_flight, connections_max, keep)
            ending = None
            if queue.is_stopped or queue.holds_doubtful:
                ending = self.recovery.ending(self.target)
            if ending is None:
                yield from self._stored(queue.landed(), keep)
                continue
            whole, spoiled = queue.parted()
            yield from self._stored(whole, keep)
            self.evidence.flush()
            self.recovery.recover(self.target, ending, spoiled, self.evidence)
            queue.again(one.play for one in spoiled)

    def _flown(
        self,
        queue: PlayQueue,
        in_flight: int,
        connections_max: int | None,
        keep: Callable[[Exchange], bool],
    ) -> Iterator[Exchange]:
        """Play from a queue until it is empty, or until the server seems to have ended. Then what
        is on its way comes back, and nothing more is sent."""
        watch = _Watch(self.target)
        probe = self.target.probe(in_flight=in_flight, connections_max=connections_max)
        enough = threading.Timer(_DRAIN_S, probe.stop)
        try:
            with probe, contextlib.closing(probe.play(queue)) as batches:
                for batch in batches:
                    queue.came_back(batch, time.monotonic())
                    if queue.is_stopped:
                        continue
                    if watch.seems_down(batch):
                        queue.stop()
                        enough.start()
                        continue
                    yield from self._stored(queue.believed(watch.sign_s), keep)
        except Unusable:
            if not queue.is_stopped:
                raise
        finally:
            enough.cancel()
        self.fired.probe_cpu_seconds += probe.cpu_seconds

    def _stored(self, landed: list[Flown], keep: Callable[[Exchange], bool]) -> Iterator[Exchange]:
        """Put exchanges into evidence; yields the silent ones."""
        batch = [masking.exchange(one.exchange) for one in landed if one.exchange is not None]
        quiet = [exchange for exchange in batch if exchange.outcome in SILENT]
        if quiet and network_counters.grown(self._dropped, network_counters.dropped_packets()):
            batch = [_dropped(exchange) for exchange in batch]
            quiet = [exchange for exchange in batch if exchange.outcome in SILENT]
        self.target.last_asked.recent.extend(one.play[0] for one in landed[-_RECENT:])
        self.evidence.add(self.target.name, filter(keep, batch))
        self.fired.exchanges += len(batch)
        first = sum(exchange.attempt == Attempt.FIRST for exchange in batch)
        self._progress(first)
        self._again(len(batch) - first)
        yield from quiet


def _by_family(wanted: Iterable[Which]) -> dict[str, set[str]]:
    """The ids of cases by their families."""
    chosen: dict[str, set[str]] = {}
    for family, case in sorted(wanted):
        chosen.setdefault(family, set()).add(case)
    return chosen


class _Watch:
    """Looks at what comes back for a sign that the server has ended; asks it where there is one."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.sign_s = time.monotonic()  # the last time that it answered
        self._looked_s = 0.0

    def seems_down(self, batch: list[Exchange]) -> bool:
        """Whether the server seems to have ended. One that is busy may seem so, too."""
        now_s = time.monotonic()
        if any(exchange.outcome is Outcome.ANSWERED for exchange in batch):
            self.sign_s = now_s
        if now_s - self._looked_s < _LOOK_S or all(map(is_whole, batch)):
            return False
        self._looked_s = now_s
        if self._target.death() is not None:
            return True
        if any(exchange.outcome is Outcome.REFUSED for exchange in batch):
            return hello(self._target) is None
        if now_s - self.sign_s < _SILENT_S or not any(map(_is_silent, batch)):
            return False
        if hello(self._target, deadline_s=_SILENT_S):
            self.sign_s = time.monotonic()
            return False
        return True


def _is_silent(exchange: Exchange) -> bool:
    return exchange.outcome is Outcome.HUNG


def exhaust(exchanges: Iterable[Exchange]) -> None:
    """Play to the end what goes into evidence."""
    for _ in exchanges:
        pass


def patient(case: Case) -> Case:
    """The same case with twice the time to answer."""
    replace = msgspec.structs.replace
    steps = tuple(
        replace(step, wait_ms=2 * step.wait_ms) if step.op is Op.AWAIT else step
        for step in case.steps
    )
    return replace(case, steps=steps, deadline_ms=2 * case.deadline_ms)


def unhurried(case: Case) -> Case:
    """The same case with more time for an answer before the next write."""
    replace = msgspec.structs.replace
    steps = tuple(
        replace(step, wait_ms=max(step.wait_ms, _UNHURRIED_MS)) if step.kind in _LOOKS else step
        for step in case.steps
    )
    more = sum(step.wait_ms for step in steps) - sum(step.wait_ms for step in case.steps)
    return replace(case, steps=steps, deadline_ms=case.deadline_ms + more)


def _dropped(exchange: Exchange) -> Exchange:
    """The same, where what the machine dropped may be why nothing came.

    It is not where the server's kernel acknowledged the whole request: then the server has it.
    """
    if exchange.outcome not in SILENT or exchange.flags & ExchangeFlag.REACHED:
        return exchange
    return msgspec.structs.replace(exchange, machine_dropped=True)
