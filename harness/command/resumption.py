"""A run that was interrupted, carried on: what it was asked, and what it has already.

A suite of a server counts as done if it was fired to its end, and a profile if all servers had it.
What was begun and not ended is forgotten and done again.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.catalogue.vocabulary import FORWARDING
from httpmark.harness.command import configuration
from httpmark.harness.command.run_options import Options
from httpmark.harness.command.run_servers import ADDRESS, Entry, Servers
from httpmark.harness.command.server_word import ServerWord
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.load import PairedRatio
from httpmark.harness.model.run import Completed, Run, ServerResult
from httpmark.harness.servers import brought, machine, starting


def options(folder: Path) -> Options:
    """The options of the run in a folder, as it was asked.

    :raises HarnessError: there is no run, it cannot be carried on, or it has ended.
    """
    run = run_folder.read(folder)
    asked = run.asked
    if asked is None:
        raise HarnessError(f"{folder}: not of 'httpmark run', so it cannot be carried on")
    if run.finished is not None and not run.interrupted:
        raise HarnessError(f"{folder}: this run has ended: there is nothing to carry on")
    if run.harness_version != machine.version():
        raise HarnessError(
            f"{folder}: begun by httpmark {run.harness_version}, and this is {machine.version()}: "
            "start a new run"
        )
    found = configuration.read(Path(asked.configuration)) if asked.configuration else None
    field = brought.Field(configuration.stated(found) if found is not None else ())
    words = [ServerWord.of_file(one.word, Path(one.folder)) for one in asked.servers]
    return Options(
        suites=run.suites,
        profiles=run.profiles,
        servers=tuple(field.take(word, allow_remote=asked.allow_remote) for word in words),
        all_servers=asked.all_servers,
        field=field,
        allow_remote=asked.allow_remote,
        runtime=asked.runtime,
        quick=run.quick,
        full=asked.full,
        port=asked.port,
        suite_minutes=asked.suite_minutes,
        seed=run.seed,
        asked=asked,
        resume=folder,
    )


class Resumption:
    """What a run did before it was interrupted; of a new run, nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.run: Run | None = run_folder.read(folder) if folder is not None else None
        self.completed = self.run.completed if self.run is not None else Completed()

    @property
    def paired(self) -> tuple[PairedRatio, ...]:
        """The ratios of the profiles that are done."""
        known = self.run.paired if self.run is not None else ()
        return tuple(one for one in known if one.profile in self.completed.profiles)

    def has_suite(self, suite: str, server: str) -> bool:
        """Whether a server had a suite to its end."""
        return (suite, server) in self.completed.suites

    def did_suite(self, suite: str, server: str) -> None:
        """A server has had a suite to its end."""
        suites = (*self.completed.suites, (suite, server))
        self.completed = msgspec.structs.replace(self.completed, suites=suites)

    def did_profile(self, profile: str) -> None:
        """All servers have had a profile."""
        profiles = (*self.completed.profiles, profile)
        self.completed = msgspec.structs.replace(self.completed, profiles=profiles)

    def take_up(self, catalogue: Catalogue, servers: Servers) -> None:
        """Give the servers what is known of them, and forget what was begun and not ended."""
        if self.run is None or self._folder is None:
            return
        results = {one.name: one for one in self.run.servers}
        with Evidence(self._folder / run_folder.EVIDENCE, create=True) as evidence:
            for entry in servers.entries:
                known = results.get(entry.server.name)
                if known is not None:
                    self._take_up(catalogue, entry, known, evidence)

    def _take_up(
        self, catalogue: Catalogue, entry: Entry, known: ServerResult, evidence: Evidence
    ) -> None:
        name = known.name
        facts = evidence.facts(name)
        if entry.target is None and facts is not None:
            port = int(facts.host.rpartition(":")[2])
            if starting.port_trouble(ADDRESS, port):
                # What its suites sent names the port, and they are judged together.
                done = tuple(one for one in self.completed.suites if one[1] != name)
                self.completed = msgspec.structs.replace(self.completed, suites=done)
            else:
                entry.suites_port = port
        assert self.run is not None
        begun = [one for one in self.run.suites if not self.has_suite(one, name)]
        for suite in begun:
            evidence.forget(name, [family.id for family in catalogue.of_suite(suite)])
        if len(begun) == len(self.run.suites):
            evidence.forget_facts(name)
        suites = known.compliance.suites
        entry.suites = {one: suites[one] for one in suites if one not in begun}
        if FORWARDING not in begun:
            entry.forwarding = known.forwarding
            entry.forwarding_reason = known.forwarding_reason
        entry.crashes = [one for one in known.crashes if one.suite not in begun]
        entry.load = tuple(one for one in known.load if one.profile in self.completed.profiles)
        recognise(entry, known)


def recognise(entry: Entry, known: ServerResult) -> None:
    """Keep what a result says of how a server was started, and what it held."""
    entry.memory = [known.memory] if known.memory is not None else []
    entry.died = known.died
    entry.version, entry.image_digest = known.version, known.image_digest
    if known.command is not None:
        entry.program = known.command, known.binary_sha256
        entry.program_of_suites = not entry.load
    entry.container_limits = known.container_limits
