"""The stream of cases that goes through the probe to one target; what comes back is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.firing.probe import IN_FLIGHT
from httpmark.harness.firing.probe_frames import Play
from httpmark.harness.firing.targets import Target, hello
from httpmark.harness.judging import quick_look, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.family_results import StoredServer
from httpmark.harness.model.cases import Case, Facts, Op
from httpmark.harness.model.errors import ServerDied
from httpmark.harness.model.exchanges import SILENT, Attempt, Exchange, Outcome
from httpmark.harness.servers import network_counters

CASES_IN_FLIGHT = 256  # cases that are asked for the first time
AGAIN_IN_FLIGHT = 16  # cases that are asked again: load must not be why they fail
# Silence is believed after a second try, with few in flight and twice the time.
_CONFIRM_IN_FLIGHT = 4
_CONFIRMED_MAX = 256  # thousands of silent cases confirm each other
_LAST_WORDS_S = 2.0  # for a process that has closed its listener to end and to say why

Progress = Callable[[int], None]
Which = tuple[str, str]  # family and case


def no_progress(_: int) -> None:
    """For what is not counted."""


class CaseStream:
    """Sends cases to one target through the probe, and keeps what comes back.

    :param quick: thins the largest families (``quick_look.step_of``).
    """

    def __init__(
        self,
        catalogue: Catalogue,
        target: Target,
        evidence: Evidence,
        fired: suite_results.Fired,
        *,
        progress: Progress = no_progress,
        quick: bool = False,
    ) -> None:
        self.catalogue = catalogue
        self.target = target
        self.evidence = evidence
        self.fired = fired
        self.quick = quick
        self._progress = progress

    @property
    def facts(self) -> Facts:
        """What is known of the target."""
        return self.target.facts()

    @property
    def stored(self) -> StoredServer:
        """What came back so far, for the judge."""
        return StoredServer(self.catalogue, self.facts, self.evidence, self.target.name)

    def cases(self, families: Iterable[str]) -> Iterator[Case]:
        """The cases of families, as far as they are asked."""
        facts = self.facts
        for family in families:
            yield from self.catalogue.cases(family, facts, step=self._step(family))

    def only(self, wanted: Iterable[Which]) -> Iterator[Case]:
        """The cases that are wanted, by family and id."""
        chosen: dict[str, set[str]] = {}
        for family, case in sorted(wanted):
            chosen.setdefault(family, set()).add(case)
        for family, cases in chosen.items():
            yield from self.catalogue.cases(family, self.facts, step=self._step(family), only=cases)

    def plan(self, families: Iterable[str]) -> None:
        """Tell evidence which cases will be asked, so that it knows them if firing is cut short."""
        self.evidence.plan(
            (slug, family)
            for family in families
            for slug in self.catalogue.slugs(family, step=self._step(family))
        )

    def _step(self, family: str) -> int:
        return quick_look.step_of(self.catalogue.families[family], quick=self.quick)

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
        :raises ServerDied: connections are refused and the server is gone.
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
        """The same, where each case says which attempt at it this is."""
        before = network_counters.dropped_packets()
        target = self.target
        with target.probe(in_flight=in_flight, connections_max=connections_max) as probe:
            try:
                for batch in probe.play(plays):
                    quiet = [exchange for exchange in batch if exchange.outcome in SILENT]
                    if quiet:
                        self._check_alive(quiet)
                        if network_counters.grown(before, network_counters.dropped_packets()):
                            batch = [_dropped(exchange) for exchange in batch]
                            quiet = [e for e in batch if e.outcome in SILENT]
                    self.evidence.add(target.name, filter(keep, batch))
                    self.fired.exchanges += len(batch)
                    self._progress(sum(exchange.attempt == Attempt.FIRST for exchange in batch))
                    yield from quiet
            finally:
                probe.stop()
        self.fired.probe_cpu_seconds += probe.cpu_seconds

    def _check_alive(self, quiet: list[Exchange]) -> None:
        refused = any(exchange.outcome is Outcome.REFUSED for exchange in quiet)
        gone = refused and hello(self.target) is None
        reason = self.target.death()
        deadline = time.monotonic() + _LAST_WORDS_S
        while gone and reason is None and time.monotonic() < deadline:
            # A listener closes a moment before its process has ended and can say why.
            time.sleep(0.05)
            reason = self.target.death()
        if reason is not None:
            raise ServerDied(reason)
        if gone:
            raise ServerDied(f"{self.target.place} refuses connections since case {quiet[0].case}")


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


def _dropped(exchange: Exchange) -> Exchange:
    if exchange.outcome not in SILENT:
        return exchange
    return msgspec.structs.replace(exchange, machine_dropped=True)
