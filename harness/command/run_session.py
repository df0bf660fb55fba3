"""One run from start to end: servers, suites, load, memory, result; whatever stops it, what is
known is written.

A run talks to its caller through :class:`Events` and never prints. Interruption arrives as
:class:`Interrupted` (the command line turns SIGINT and SIGTERM into it).
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from httpmark.harness.catalogue import delivery_modes, loading
from httpmark.harness.command.stored_runs import draw, ranked
from httpmark.harness.firing import conformance, shrinking
from httpmark.harness.firing import targets as firing_targets
from httpmark.harness.judging import quick_look, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.load import contestants, memory_ladder, paired_ratios, placing, races, scaling
from httpmark.harness.load.engines import by_name, launch
from httpmark.harness.model.errors import HarnessError, NothingSelected, ServerDied, Unusable
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.model.memory import Memory
from httpmark.harness.model.progress import Events, Interrupted
from httpmark.harness.model.run import SCHEMA_VERSION, Run, ServerResult
from httpmark.harness.model.run_folder import EVIDENCE, LOG, folder, now, read, write
from httpmark.harness.model.servers import Server, Tls
from httpmark.harness.model.verdicts import Compliance, Deliveries, SuiteResult
from httpmark.harness.report import number_format
from httpmark.harness.servers import (
    certificates,
    containers,
    cpu_time,
    machine,
    manifests,
    memory_use,
    open_connections,
    program_identity,
    running_target,
    sockets,
    starting,
)
from httpmark.harness.servers import running as servers_running

_ADDRESS = "127.0.0.1"


class Cutting:
    """The cuts of a suite's messages, as a task of their own."""

    def __init__(self, events: Events, suite: str) -> None:
        self._events = events
        self._task = f"{suite}, cut"
        self._begun = False

    def begin(self, total: int) -> Callable[[int], None]:
        """So many cuts will go out; gives what is told of each."""
        self._begun = True
        self._events.task(self._task, total)
        return functools.partial(self._events.advance, self._task)

    def done(self, told: Deliveries | None) -> None:
        """Say what came of them, where any went out."""
        if self._begun and told is not None:
            cuts, differing = sum(told.fired.values()), len(told.disagreements)
            shown = f"{differing} of {told.messages} messages differ in some of {cuts} cuts"
            self._events.done(self._task, shown)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is asked to do."""

    suites: tuple[str, ...]
    profiles: tuple[str, ...]
    servers: tuple[str, ...] = ()  # none named: all of images/
    runtime: str = "auto"
    quick: bool = False
    full: bool = False  # every delivery, too
    out: Path | None = None
    targets: tuple[running_target.RunningTarget, ...] = ()  # servers that run already
    base: str | None = None  # the server or target that the others are paired with
    engine: str = "native"
    wrk2: str | None = None  # the binary of that engine, which the user brings
    rounds: int | None = None
    seed: int | None = None
    port: int | None = None


class _Entry(msgspec.Struct, kw_only=True):
    """What is known of one server so far."""

    server: Server
    runtime: str | None = None
    unavailable: str | None = None
    died: str | None = None
    version: str | None = None
    image_digest: str | None = None
    # How it was started and what was executed, under load where it was; and by which start.
    program: tuple[tuple[str, ...], str | None] | None = None
    program_of_suites: bool = True
    container_limits: dict[str, str] | None = None
    suites: dict[str, SuiteResult] = {}
    memory: list[Memory] = []
    standing: running_target.RunningTarget | None = None  # never started or stopped


class Runner:
    """Carries one run out; :meth:`result` is valid at any time."""

    def __init__(self, options: Options, events: Events) -> None:
        self.options = options
        self.events = events
        self.catalogue = loading.load()
        for suite in options.suites:
            self.catalogue.suite(suite)
        self.engine = by_name.engine(options.engine, wrk2=options.wrk2)
        self.plans, self.scaled, self.beyond = self._plans()
        if not options.suites and not options.profiles:
            raise NothingSelected("nothing selected: name a suite or a profile")
        known = manifests.servers()
        chosen = [manifests.server(name) for name in dict.fromkeys(options.servers)]
        if not chosen and not options.targets:
            chosen = known
        self.entries = [_Entry(server=server) for server in chosen] + [
            _Entry(server=one.server, standing=one, runtime=one.runtime) for one in options.targets
        ]
        self.null = next((server for server in known if server.control), None)
        self.seed = options.seed if options.seed is not None else secrets.randbits(31)
        self.id = secrets.token_hex(3)
        self.started = now()
        self.finished: str | None = None
        self.interrupted = False
        self.notes: list[str] = []
        self.races: list[races.Race] = []
        self.port = options.port or 0
        self.tls: Tls | None = None
        self.folder = folder(options.out)
        self.environment = machine.capture()
        if options.profiles:
            self.environment["engine"] = by_name.identity(self.engine)

    def _plans(self) -> tuple[list[LoadPlan], dict[str, str], list[str]]:
        """The plans as this machine can carry them, what was cut of which, what the engine cannot.

        :raises HarnessError: the engine can do none of them.
        """
        room, cpus = open_connections.connection_room(), len(os.sched_getaffinity(0))
        plans, cuts, beyond = [], {}, []
        for name in self.options.profiles:
            plan, cut = scaling.scaled(self.catalogue.plan(name), room, cpus=cpus)
            if cut:
                cuts[name] = cut
            if self.options.quick:
                plan = msgspec.structs.replace(
                    plan,
                    duration_s=plan.quick_duration_s,
                    rounds=plan.quick_rounds,
                    ladder=plan.quick_ladder or plan.ladder,
                )
            cannot = None if plan.mode in memory_ladder.MODES else self.engine.cannot(plan)
            if cannot:
                beyond.append(f"{self.engine.name} cannot lay on {name}: {cannot}")
            else:
                plans.append(plan)
        if beyond and not plans:
            raise HarnessError(f"{beyond[0]}; choose another --engine or --profile")
        return plans, cuts, beyond

    # -- the steps -----------------------------------------------------------------------------

    def run(self) -> Run:
        """Do everything; on the way out, whatever the way, the result so far is written.

        :raises Unusable: no server could be used.
        :raises Interrupted: after the partial result was written.
        """
        try:
            self._run()
        except Interrupted:
            self.interrupted = True
            raise
        finally:
            starting.stop_all()
            self.finished = now()
            # The first trouble is the one to tell: a full disk must not hide behind a second error.
            with contextlib.suppress(HarnessError):
                write(self.result(), self.folder)
                # From what is stored, so that drawing again gives the same page.
                draw(self.folder, read(self.folder))
        return read(self.folder)

    def _run(self) -> None:
        with tempfile.TemporaryDirectory(prefix="httpmark-tls-") as private:
            os.chmod(private, 0o755)
            self._carry_out(Path(private))

    def _carry_out(self, private: Path) -> None:
        removed = containers.sweep()
        if removed:
            self.say(f"removed what a dead run left behind: {', '.join(removed)}")
        for told in self.beyond:
            self._note(told)
        self._choose_port()
        if any(plan.tls for plan in self.plans):
            certificate, key = certificates.make(private, address=_ADDRESS)
            self.tls = Tls(sockets.free_port(_ADDRESS), certificate, key)
        self._prepare()
        usable = [entry for entry in self.entries if entry.unavailable is None]
        if not usable:
            first = self.entries[0]
            raise Unusable(f"no server can be used; {first.server.name}: {first.unavailable}")
        for suite in self.options.suites:
            with Evidence(self.folder / EVIDENCE, create=True) as evidence:
                for entry in usable:
                    self._suite(entry, suite, evidence)
                    write(self.result(), self.folder)
        for plan in self.plans:
            self._lay_on(plan, [entry for entry in usable if entry.died is None])
            write(self.result(), self.folder)
        self._see_figures()

    def _see_figures(self) -> None:
        """A load that nobody could be loaded with, though nothing else was asked, is no result.

        :raises Unusable: not one sample of any server, and why.
        """
        if self.options.suites or any(entry.memory for entry in self.entries):
            return
        if any(samples for race in self.races for samples in race.samples.values()):
            return
        why = [
            f"{name} under {race.plan.name}: {said}"
            for race in self.races
            for name, said in (race.died | race.failed).items()
        ]
        told = why[0] if why else self.notes[-1] if self.notes else "no server was loaded"
        raise Unusable(f"no figure at all; {told}")

    def say(self, line: str) -> None:
        """Tell the caller, and the run's log."""
        self._log(line)
        self.events.say(line)

    def _log(self, line: str) -> None:
        with contextlib.suppress(OSError), (self.folder / LOG).open("a", encoding="utf-8") as log:
            log.write(f"{now()} {line}\n")

    def _done(self, task: str, result: str) -> None:
        self._log(f"{task}: {result}")
        self.events.done(task, result)

    def _choose_port(self) -> None:
        """One port for the whole run: the same octets go to every server, and are stored once."""
        if self.port and sockets.port_taken(_ADDRESS, self.port):
            raise Unusable(f"port {self.port} on {_ADDRESS} is taken: name another with --port")
        self.port = self.port or sockets.free_port(_ADDRESS)

    def _prepare(self) -> None:
        for entry in self.entries:
            if entry.standing is not None:
                if not entry.standing.alive():
                    entry.unavailable = entry.standing.exit_reason()
                else:
                    self._note(
                        f"{entry.server.name} runs already: it is not started afresh for each "
                        "sample, so what one start happens to cost is in all of its samples"
                    )
                continue
            try:
                entry.runtime = starting.for_server(entry.server, self.options.runtime)
                starting.prepare(entry.server, entry.runtime, say=self.say)
            except Unusable as error:
                entry.unavailable = str(error)
                self.say(f"{entry.server.name} is unavailable: {error}")

    @contextlib.contextmanager
    def _up(
        self,
        entry: _Entry,
        *,
        workers: int = 1,
        cpus: frozenset[int] | None = None,
        with_tls: bool = False,
        for_suites: bool = False,
    ) -> Iterator[servers_running.Running]:
        if entry.standing is not None:
            yield entry.standing
            return
        assert entry.runtime is not None
        try:
            running = starting.start(
                entry.server,
                entry.runtime,
                address=_ADDRESS,
                port=self.port,
                workers=workers,
                cpus=None if cpus is None else ",".join(map(str, sorted(cpus))),
                run_id=self.id,
                tls=self.tls if with_tls else None,
                conformance=for_suites,
            )
        except Unusable as error:
            raise ServerDied(str(error)) from None
        try:
            entry.version = running.version or entry.version
            entry.image_digest = running.image_digest
            if entry.program is None or (entry.program_of_suites and not for_suites):
                entry.program = program_identity.program(running.pids())
                entry.program_of_suites = for_suites
                if entry.runtime == "docker":
                    entry.container_limits = _container_limits(running.pids())
            yield running
        finally:
            running.stop()

    def _suite(self, entry: _Entry, suite: str, evidence: Evidence) -> None:
        name = entry.server.name
        task = f"{suite}: {name}"
        fired, cutting = suite_results.Fired(), Cutting(self.events, task)
        total = quick_look.size(self.catalogue, (suite,), lambda _: True, quick=self.options.quick)
        self.events.task(task, total)
        cpu: int | None = None
        result: SuiteResult | None = None
        target = firing_targets.Target(
            name=name,
            address=_ADDRESS,
            port=self.port,
            host=f"{_ADDRESS}:{self.port}",
            path=entry.server.ready_path,
            capabilities=entry.server.capabilities,
            limits=entry.server.limits | entry.server.conformance.limits,
            timeouts=entry.server.timeouts | entry.server.conformance.timeouts,
            answers_1_0_as_1_0=entry.server.answers_1_0_as_1_0,
        )
        try:
            with self._up(entry, for_suites=True) as running:
                before = cpu_time.cpu_ns(running.pids())

                def death() -> str | None:
                    return None if running.alive() else f"died: {running.exit_reason()}"

                try:
                    conformance.fire(
                        self.catalogue,
                        suite,
                        msgspec.structs.replace(target, death=death),
                        evidence,
                        fired,
                        progress=lambda by: self.events.advance(task, by),
                        quick=self.options.quick,
                        deliveries=delivery_modes.MODES if self.options.full else (),
                        cutting=cutting.begin,
                    )
                finally:
                    after = cpu_time.cpu_ns(running.pids())
                    cpu = after - before if before is not None and after is not None else None
                    self._remember(entry, running)
                result = suite_results.score_suite(self.catalogue, suite, name, evidence, fired)
                if not self.options.quick:
                    # Judged and measured before: what becomes of the server now is no news.
                    shrinking.of_suite(
                        self.catalogue, result, target, evidence, seconds=shrinking.BUDGET_S
                    )
        except ServerDied as error:
            entry.died = str(error)
            self.say(f"{name}: {error}")
        finally:
            if result is None:
                result = suite_results.score_suite(self.catalogue, suite, name, evidence, fired)
            entry.suites[suite] = msgspec.structs.replace(
                result,
                server_cpu_seconds=cpu / 1e9 if cpu is not None else None,
                reason=f"not scored: {entry.died}" if entry.died else result.reason,
                score_percent=None if entry.died else result.score_percent,
            )
        shown = entry.suites[suite]
        cutting.done(shown.deliveries)
        self._done(
            task,
            f"{number_format.percent(shown.score_percent)} % in {shown.wall_seconds:.1f} s"
            if shown.score_percent is not None
            else shown.reason or "not scored",
        )

    def _remember(self, entry: _Entry, running: servers_running.Running) -> None:
        found = memory_use.memory(running.pids(), cgroup=running.cgroup)
        if found is not None:
            entry.memory.append(found)

    def _note(self, text: str) -> None:
        """A word that belongs to the figures: said now, and kept in the result."""
        self.notes.append(text)
        self.say(text)

    def _lay_on(self, plan: LoadPlan, entries: Sequence[_Entry]) -> None:
        """One profile on all servers that can have it; who cannot is told."""
        able = []
        for entry in entries:
            lacking = sorted(set(plan.needs) - set(entry.server.capabilities))
            if lacking:
                self._note(
                    f"{entry.server.name} has no {', no '.join(lacking)}: not in {plan.name}"
                )
            else:
                able.append(entry)
        if plan.name in self.scaled and able:
            self._note(f"{plan.name} is scaled to this machine: {self.scaled[plan.name]}")
        if able and plan.mode in memory_ladder.MODES:
            self._climb(plan, able)
        elif able:
            self._race(plan, able)

    def _climb(self, plan: LoadPlan, entries: Sequence[_Entry]) -> None:
        """The memory of each server, once: it hardly varies from start to start."""
        task = f"memory {plan.name}"
        self.events.task(task, len(entries))
        place = placing.placement(plan)
        for entry in entries:
            try:
                with self._up(
                    entry, workers=plan.workers, cpus=place.server, with_tls=plan.tls
                ) as running:
                    ground = memory_ladder.Ground(
                        launch.Target(
                            running.address,
                            running.port,
                            tls_port=self._tls_port(entry),
                            path=entry.standing.path if entry.standing else None,
                        ),
                        running.pids,
                        running.alive,
                        running.exit_reason,
                        running.cgroup,
                    )
                    found = memory_ladder.sample(plan, ground, cpus=place.client)
                    entry.memory.append(
                        msgspec.structs.replace(found, ladder_scaled=self.scaled.get(plan.name))
                    )
            except Unusable as error:
                self._note(f"{entry.server.name}: no memory by {plan.name}: {error}")
            self.events.advance(task, 1)
        self._done(task, f"{len(entries)} servers")

    def _tls_port(self, entry: _Entry) -> int | None:
        if entry.standing is not None:
            return entry.standing.tls_port
        return self.tls.port if self.tls else None

    def _race(self, plan: LoadPlan, able: Sequence[_Entry]) -> None:
        racers = list(able)
        if cannot := races.null_cannot(plan):
            self.notes.append(f"no null server beside {plan.name}: {cannot}")
            racers = [entry for entry in able if not entry.server.control]
        elif self.null is not None and not any(e.server.control for e in racers):
            # Not asked for, yet part of every block: it is what the others are measured against.
            hidden = _Entry(server=self.null)
            try:
                hidden.runtime = starting.for_server(self.null, self.options.runtime)
                starting.prepare(self.null, hidden.runtime, say=self.say)
                racers.append(hidden)
            except Unusable as error:
                self.notes.append(f"no null server beside {plan.name}: {error}")
        rounds = self.options.rounds or plan.rounds
        race = races.Race(
            plan,
            self.engine,
            [self._contestant(entry) for entry in racers],
            rounds=rounds,
            duration_s=plan.duration_s,
            seed=self.seed,
        )
        race.scaled = self.scaled.get(plan.name)
        self.races.append(race)
        task = f"load {plan.name}"
        self.events.task(task, race.steps)
        told: set[str] = set()
        for _ in race.run():
            self.events.advance(task, 1)
            for name in race.died.keys() - told:
                told.add(name)
                self.say(f"{name} died under {plan.name}: {race.died[name]}")
                for entry in able:
                    if entry.server.name == name:
                        entry.died = race.died[name]
        for name, why in race.failed.items():
            self._note(f"{name} is not in {plan.name}: {why}")
        self._done(task, f"{rounds} rounds of {len(racers)} servers")

    def _contestant(self, entry: _Entry) -> contestants.Contestant:
        def start(
            plan: LoadPlan, place: placing.Placement
        ) -> contextlib.AbstractContextManager[servers_running.Running]:
            return self._up(entry, workers=plan.workers, cpus=place.server, with_tls=plan.tls)

        return contestants.Contestant(
            entry.server.name,
            start,
            entry.server.control,
            self._tls_port(entry),
            entry.standing.path if entry.standing else None,
            runs_already=entry.standing is not None,
        )

    # -- the result ----------------------------------------------------------------------------

    def result(self) -> Run:
        """The run as far as it has come."""
        folded = [race.results() for race in self.races]
        base = self._base()
        found = []
        for entry in self.entries:
            name = entry.server.name
            memories = entry.memory + [m for race in self.races for m in race.memory.get(name, [])]
            found.append(
                ServerResult(
                    name=name,
                    title=entry.server.title,
                    language=entry.server.language,
                    version=entry.version or entry.server.version or None,
                    runtime=entry.runtime,
                    image_digest=entry.image_digest,
                    command=entry.program[0] if entry.program else None,
                    binary_sha256=entry.program[1] if entry.program else None,
                    container_limits=entry.container_limits,
                    control=entry.server.control,
                    unavailable=entry.unavailable,
                    died=entry.died,
                    compliance=Compliance(dict(entry.suites)),
                    load=tuple(results[name] for results in folded if name in results),
                    memory=_memory(memories),
                    memory_reason=None if memories else entry.unavailable or "never measured",
                )
            )
        return ranked(
            Run(
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
                servers=tuple(found),
                notes=tuple(self.notes),
                paired=tuple(
                    pair
                    for results in folded
                    for pair in paired_ratios.paired(
                        results, base=base, leave_out=self._controls(), seed=self.seed
                    )
                ),
            )
        )

    def _base(self) -> str:
        """Whom the others are compared with: the first that was named, else the reference."""
        first = (*self.options.servers, *(one.name for one in self.options.targets), "reference")
        return self.options.base or first[0]

    def _controls(self) -> set[str]:
        """The controls that were not asked for: in every block, and in no comparison."""
        return {self.null.name} - set(self.options.servers) if self.null else set()


def _memory(memories: Sequence[Memory]) -> Memory | None:
    """What a server holds: the ladder that went highest, with the peak while suites or load
    were fired beside it.

    Where no ladder was climbed, the highest figure of each kind over all starts.
    """
    if not memories:
        return None

    def top(values: Iterable[int | None]) -> int | None:
        return max((value for value in values if value is not None), default=None)

    climbed = [memory for memory in memories if memory.ladder]
    poured = [memory.slow_readers for memory in memories if memory.slow_readers]
    busy = [memory for memory in memories if not memory.ladder and not memory.slow_readers]
    if climbed:
        chosen = max(climbed, key=lambda memory: memory.connections_held)
    else:
        chosen = msgspec.structs.replace(
            memories[-1],
            vmpeak_kb=top(memory.vmpeak_kb for memory in memories),
            vmhwm_kb=top(memory.vmhwm_kb for memory in memories),
            pss_kb=top(memory.pss_kb for memory in memories),
            cgroup_peak_kb=top(memory.cgroup_peak_kb for memory in memories),
            connections_held=max(memory.connections_held for memory in memories),
            processes=max(memory.processes for memory in memories),
        )
    return msgspec.structs.replace(
        chosen,
        busy_vmhwm_kb=top(memory.vmhwm_kb for memory in busy),
        slow_readers=poured[-1] if poured else None,
    )


def _container_limits(pids: Sequence[int]) -> dict[str, str] | None:
    """What the container of these processes may use; None where it does not say."""
    return machine.cgroup_limits(pids[0]) or None if pids else None
