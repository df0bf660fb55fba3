"""The suite ``forwarding`` of a run: a server as a reverse proxy, and what reaches the origin."""

from __future__ import annotations

from pathlib import Path

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.command import forwarding_run
from httpmark.harness.command.run_log import RunLog
from httpmark.harness.command.run_servers import Entry
from httpmark.harness.command.run_suites import Clock, OutOfTime
from httpmark.harness.firing import forwarding
from httpmark.harness.judging.forwarding_rules import RULES
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.forwarding import Terms
from httpmark.harness.model.progress import Events

FOLDER = "forwarding"
"""In the run folder: the bytes that show each finding, a file for each server."""


class _Watched:
    """Progress that also looks at the clock."""

    def __init__(self, events: Events, clock: Clock) -> None:
        self.say, self.task, self.done = events.say, events.task, events.done
        self._advance = events.advance
        self._clock = clock

    def advance(self, name: str, by: int) -> None:
        self._clock.watched(lambda by: self._advance(name, by))(by)


class Forwarding:
    """Surveys servers of a run as reverse proxies; what is found goes into their entries.

    :param minutes: the longest that one survey may take.
    :param terms: those of an earlier sitting of the run.
    :param only: families, cases and messages by id; None for all.
    """

    def __init__(
        self,
        known: Catalogue,
        log: RunLog,
        folder: Path,
        *,
        minutes: float,
        terms: Terms | None = None,
        only: frozenset[str] | None = None,
    ) -> None:
        self._known = known
        self._log = log
        self._folder = folder / FOLDER
        self._minutes = minutes
        self._only = only
        self.terms = terms

    def survey(self, entry: Entry) -> None:
        """Start a server as a reverse proxy before the reference, and judge what it forwards.

        :raises HarnessError: the run folder cannot be written to.
        :raises Unusable: the reference server does not start.
        """
        server, clock = entry.server, Clock(self._minutes, 1)
        if server.proxy is None:
            entry.forwarding_reason = "not applicable: its server.toml has no [proxy]"
            return
        events = _Watched(self._log.events, clock)
        with forwarding_run.origin_started() as origin:
            if self.terms is None:
                self.terms = self._terms(forwarding_run.told_of(origin))
            try:
                found, heard = forwarding_run.surveyed_one(
                    server, origin, self._known, self._only, events
                )
            except OutOfTime:
                entry.forwarding_reason = f"not asked to the end: {clock.told}"
                self._log.note(f"forwarding of {server.name} ended early: {clock.told}")
                return
        entry.forwarding = found
        entry.forwarding_reason = found.unavailable
        try:
            forwarding_run.write_heard({server.name: heard}, self._folder)
        except OSError as error:
            raise HarnessError(f"{self._folder}: {error.strerror}") from None

    def _terms(self, origin: str) -> Terms:
        facts = forwarding.facts_of("front.example", forwarding_run.ADDRESS, 80)
        _, left = forwarding.chosen(self._known, facts)
        return Terms(origin=origin, rules=RULES, left_out=tuple(left))
