"""One run from start to end: servers, suites, load, result. Whatever stops it, the result so far is
written.

A run talks to its caller through :class:`Events` and never prints. Interruption arrives as
:class:`Interrupted` (the command line turns SIGINT and SIGTERM into it).
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from httpmark.harness.catalogue import loading
from httpmark.harness.catalogue.vocabulary import FORWARDING
from httpmark.harness.command import (
    resumption,
    run_load_spread,
    run_result,
    run_servers,
    run_spread,
    stored_runs,
    suite_groups,
)
from httpmark.harness.command.remaining import Remaining
from httpmark.harness.command.run_forwarding import Forwarding
from httpmark.harness.command.run_load import Loads, plans_of
from httpmark.harness.command.run_load_spread import SpreadLoads
from httpmark.harness.command.run_log import RunLog
from httpmark.harness.command.run_options import Options
from httpmark.harness.command.run_servers import Servers
from httpmark.harness.command.run_suites import Suites
from httpmark.harness.judging import second_process
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.load.engines import by_name
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import HarnessError, NothingSelected
from httpmark.harness.model.progress import Events, Interrupted, undisturbed
from httpmark.harness.model.run import SCHEMA_VERSION, Run
from httpmark.harness.servers import containers, machine, scratch_folders, starting


class Runner:
    """Carries one run out; :meth:`result` is valid at any time."""

    def __init__(self, options: Options, events: Events) -> None:
        self.options = options
        self.catalogue = loading.load()
        for suite in options.suites:
            if suite != FORWARDING:
                self.catalogue.suite(suite)
        engine = by_name.engine(options.engine, wrk2=options.wrk2)
        self.plans = plans_of(self.catalogue, options, engine)
        if not options.suites and not options.profiles:
            raise NothingSelected("nothing selected: name a suite or a profile")
        self.seed = options.seed if options.seed is not None else secrets.randbits(31)
        self.earlier = resumption.Resumption(options.resume)
        before = self.earlier.run
        self.id = before.id if before else secrets.token_hex(3)
        self.started = before.started if before else run_folder.now()
        self.finished: str | None = None
        self.interrupted = False
        # A server that does not exist is told before the folder is made.
        chosen = run_servers.chosen(options)
        if options.suites:
            run_spread.check(options, chosen)
        else:
            run_load_spread.check(options, chosen, self.plans.plans)
        self.folder = options.resume or run_folder.folder(options.out)
        self.log = RunLog(events, self.folder)
        self.log.notes.extend(before.notes if before else ())
        self.servers = Servers(options, chosen, self.log, self.id)
        self.suites = Suites(self.catalogue, options, self.servers, self.log)
        self.forwarding = Forwarding(
            self.catalogue, self.log, self.folder, minutes=options.suite_minutes,
            terms=before.forwarding if before else None,
        )  # fmt: skip
        self.spread = run_spread.SpreadSuites(
            self.catalogue, options, self.servers, self.log, self.earlier, self.folder
        )
        kind = Loads if options.cluster is None else SpreadLoads
        self.loads = kind(options, engine, self.plans, self.servers, self.log)
        self.environment = machine.capture()
        if options.profiles:
            self.environment["engine"] = by_name.identity(engine)

    def run(self) -> Run:
        """Do everything. However it ends, the result so far is written.

        :raises Unusable: no server could be used.
        :raises Interrupted: after the partial result was written.
        """
        with run_folder.held(self.folder):
            return self._run()

    def _run(self) -> Run:
        try:
            with scratch_folders.folder("tls") as private:
                os.chmod(private, 0o755)
                self._carry_out(private)
        except Interrupted:
            self.interrupted = True
            raise
        finally:
            with undisturbed():
                self._end()
        return run_folder.read(self.folder)

    def _end(self) -> None:
        """Stop all servers, write the result and draw the page."""
        starting.stop_all()
        for name in dict.fromkeys(containers.NOT_REMOVED):
            self.log.note(
                f"the container {name} could not be removed, as no Docker daemon answers: "
                "the next run removes it"
            )
        self.finished = run_folder.now()
        # The first error is the one to tell: a full disk must not hide behind a second one.
        with contextlib.suppress(HarnessError):
            run_folder.write(self.result(), self.folder)
            # From what is stored, so that drawing again gives the same page.
            stored_runs.draw(self.folder, run_folder.read(self.folder))

    def _carry_out(self, private: Path) -> None:
        removed = containers.sweep()
        if removed:
            self.log.say(f"removed containers of a run that was killed: {', '.join(removed)}")
        for told in self.plans.impossible:
            self.log.note(told)
        self.servers.check_port()
        if self.earlier.run is not None:
            self.log.note(f"interrupted, and carried on at {run_folder.now()}")
            self.earlier.take_up(self.catalogue, self.servers)
        if self.options.cluster is not None and not self.options.suites:
            assert isinstance(self.loads, SpreadLoads)
            self._load_from_cluster(self.loads)
            return
        if self.options.cluster is not None:
            self.spread.carry_out(
                self.options.cluster, self.id, self.seed,
                keep=lambda: run_folder.write(self.result(), self.folder),
            )  # fmt: skip
            self.servers.usable()
            return
        if any(plan.tls for plan in self.plans.plans):
            self.servers.make_certificate(private)
        self.servers.look()
        self._fire_suites()
        usable = self.servers.usable()
        for plan in self.plans.plans:
            if plan.name in self.earlier.completed.profiles:
                continue
            alive = [entry for entry in usable if entry.died is None]
            self.loads.carry_out(plan, alive, seed=self.seed)
            self.earlier.did_profile(plan.name)
            run_folder.write(self.result(), self.folder)
        self.loads.check_figures(self.servers.entries)

    def _load_from_cluster(self, loads: SpreadLoads) -> None:
        def done(profile: str) -> None:
            self.earlier.did_profile(profile)
            run_folder.write(self.result(), self.folder)

        completed = self.earlier.completed.profiles
        left = [plan for plan in self.plans.plans if plan.name not in completed]
        loads.carry_out_all(self.id, left, seed=self.seed, done=done)
        loads.check_figures(self.servers.entries)

    def _fire_suites(self) -> None:
        """Prepare one server after the other, and fire all suites at it: what is built first."""
        entries = self.servers.by_need()
        clock = Remaining(len(entries))
        with second_process.SecondProcess() as second:
            for entry in entries:
                if self.servers.prepare(entry):
                    self._fire_at(entry, second)
                told = clock.after_one()
                if told is not None and self.options.suites:
                    self.log.say(told)

    def _fire_at(self, entry: run_servers.Entry, second: second_process.SecondProcess) -> None:
        name = entry.server.name
        left = [one for one in self.options.suites if not self.earlier.has_suite(one, name)]
        if not left:
            return
        with Evidence(self.folder / run_folder.EVIDENCE, create=True) as evidence:
            for group in suite_groups.groups(left):
                if group == (FORWARDING,):
                    self.forwarding.survey(entry)
                else:
                    self.suites.fire(entry, group, evidence, second)
                for suite in group:
                    self.earlier.did_suite(suite, name)
                run_folder.write(self.result(), self.folder)

    def result(self) -> Run:
        """The run as far as it has come."""
        run = Run(
            schema_version=SCHEMA_VERSION,
            catalogue_version=self.catalogue.version,
            harness_version=machine.version(),
            id=self.id,
            started=self.started,
            finished=self.finished,
            interrupted=self.interrupted,
            quick=self.options.quick,
            seed=self.seed,
            suites=self.options.suites,
            profiles=self.options.profiles,
            environment=self.environment,
            servers=(),
            notes=tuple(self.log.notes),
            forwarding=self.forwarding.terms,
            asked=self.options.asked,
            completed=self.earlier.completed,
        )
        return run_result.filled(
            run, self.options, self.servers, self.loads.races, earlier=self.earlier.paired
        )
