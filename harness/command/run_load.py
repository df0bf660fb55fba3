"""The load profiles of a run: those this machine can do, on the servers that can have them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

import msgspec

from httpmark.harness.catalogue import catalogue
from httpmark.harness.command.run_log import RunLog
from httpmark.harness.command.run_options import Options
from httpmark.harness.command.run_servers import Entry, Servers
from httpmark.harness.load import (
    contestants,
    memory_ladder,
    placing,
    races,
    refusals,
    scaling,
    windows,
)
from httpmark.harness.load.engines import launch
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.servers import open_connections, running


class Plans(msgspec.Struct, frozen=True, kw_only=True):
    """The profiles of a run, as this machine and the engine can carry them out."""

    plans: tuple[LoadPlan, ...]
    scaled: dict[str, str]  # by profile: what was made smaller for this machine
    impossible: tuple[str, ...]  # what the engine cannot do, and why


def plans_of(known: catalogue.Catalogue, options: Options, engine: launch.Engine) -> Plans:
    """The profiles that are asked for.

    :raises HarnessError: the engine can do none of them.
    """
    room, cpus = open_connections.connection_room(), len(os.sched_getaffinity(0))
    plans, scaled, impossible = [], {}, []
    for name in options.profiles:
        plan, cut = known.plan(name), None
        if options.cluster is None:  # else its workers say what they can carry
            plan, cut = scaling.scaled(plan, room, cpus=cpus)
        if cut:
            scaled[name] = cut
        if options.quick:
            plan = msgspec.structs.replace(
                plan,
                duration_s=plan.quick_duration_s,
                rounds=plan.quick_rounds,
                ladder=plan.quick_ladder or plan.ladder,
            )
        cannot = None if plan.mode in memory_ladder.MODES else engine.cannot(plan)
        if cannot:
            impossible.append(f"{engine.name} cannot do {name}: {cannot}")
        else:
            plans.append(plan)
    if impossible and not plans:
        raise HarnessError(f"{impossible[0]}; choose another --engine or --profile")
    return Plans(plans=tuple(plans), scaled=scaled, impossible=tuple(impossible))


class Loads:
    """Loads the servers of a run; what is found is in ``races`` and in the servers' entries."""

    def __init__(
        self, options: Options, engine: launch.Engine, plans: Plans, servers: Servers, log: RunLog
    ) -> None:
        self.races: list[races.Race] = []
        self._options = options
        self._engine = engine
        self._scaled = plans.scaled
        self._servers = servers
        self._log = log
        self._take: windows.Taker = windows.taken_here

    def _null(self) -> Entry | None:
        """The null server, prepared; None if there is none.

        :raises Unusable: it cannot be used.
        """
        return self._servers.null_entry()

    def carry_out(self, plan: LoadPlan, entries: Sequence[Entry], *, seed: int) -> None:
        """One profile on all servers that have what it needs; the others are noted."""
        able = []
        for entry in entries:
            lacking = sorted(set(plan.needs) - set(entry.server.capabilities))
            if lacking:
                self._log.note(
                    f"{entry.server.name} has no {', no '.join(lacking)}: not in {plan.name}"
                )
            else:
                able.append(entry)
        if plan.requests and self._options.path and able:
            self._log.note(f"--path does not change {plan.name}: it has requests of its own")
        if plan.name in self._scaled and able:
            self._log.note(f"{plan.name} is scaled to this machine: {self._scaled[plan.name]}")
        if able and plan.mode in memory_ladder.MODES:
            self._climb(plan, able)
        elif able:
            self._race(plan, able, seed=seed)

    def check_figures(self, entries: Sequence[Entry]) -> None:
        """A run that is nothing but load must have measured something.

        :raises Unusable: there is not one sample of any server, and why.
        """
        if self._options.suites or any(entry.memory or entry.load for entry in entries):
            return
        named = {entry.server.name for entry in entries}
        if any(race.samples.get(name) for race in self.races for name in named):
            return
        why = [
            f"{name} under {race.plan.name}: {said}"
            for race in self.races
            for name, said in (race.died | race.failed).items()
        ]
        notes = self._log.notes
        told = why[0] if why else notes[-1] if notes else "no server was loaded"
        raise Unusable(f"nothing could be measured; {told}")

    def _climb(self, plan: LoadPlan, entries: Sequence[Entry]) -> None:
        """The memory of each server, once: it hardly varies from start to start."""
        task = f"memory {plan.name}"
        self._log.events.task(task, len(entries))
        place = placing.placement(plan)
        for entry in entries:
            try:
                with self._servers.up_for_load(entry, plan, place) as one:
                    ground = self._ground(entry, one)
                    refusals.ask_first(plan, ground.target)
                    found = memory_ladder.sample(plan, ground, cpus=place.client)
                    entry.memory.append(
                        msgspec.structs.replace(found, ladder_scaled=self._scaled.get(plan.name))
                    )
            except Unusable as error:
                self._log.note(f"{entry.server.name}: no memory by {plan.name}: {error}")
            self._log.events.advance(task, 1)
        self._log.done(task, _counted(len(entries), "server"))

    def _ground(self, entry: Entry, one: running.Running) -> memory_ladder.Ground:
        target = launch.Target(
            one.address,
            one.port,
            tls_port=one.tls_port,
            path=entry.path,
        )
        return memory_ladder.Ground(target, one.pids, one.alive, one.exit_reason, one.cgroup)

    def _race(self, plan: LoadPlan, able: Sequence[Entry], *, seed: int) -> None:
        racers = self._racers(plan, able)
        race = races.Race(
            plan,
            self._engine,
            [self._contestant(entry) for entry in racers],
            rounds=self._options.rounds or plan.rounds,
            duration_s=plan.duration_s,
            seed=seed,
            take=self._take,
        )
        race.scaled = self._scaled.get(plan.name)
        self.races.append(race)
        task = f"load {plan.name}"
        self._log.events.task(task, race.steps)
        told: set[str] = set()
        for _ in race.run():
            self._log.events.advance(task, 1)
            for name in race.died.keys() - told:
                told.add(name)
                self._log.say(f"{name} died under {plan.name}: {race.died[name]}")
                for entry in able:
                    if entry.server.name == name:
                        entry.died = race.died[name]
        for name, why in race.failed.items():
            self._log.note(f"{name} is not in {plan.name}: {why}")
        rounds = _counted(self._options.rounds or plan.rounds, "round")
        self._log.done(task, f"{rounds} of {_counted(len(racers), 'server')}")

    def _racers(self, plan: LoadPlan, able: Sequence[Entry]) -> list[Entry]:
        """The servers, and the null server beside them: they are measured against it."""
        if cannot := races.null_cannot(plan):
            self._log.keep(f"no null server beside {plan.name}: {cannot}")
            return [entry for entry in able if not entry.server.control]
        if any(entry.server.control for entry in able):
            return list(able)
        try:
            null = self._null()
        except Unusable as error:
            self._log.keep(f"no null server beside {plan.name}: {error}")
            return list(able)
        return [*able, null] if null is not None else list(able)

    def _contestant(self, entry: Entry) -> contestants.Contestant:
        def start(
            plan: LoadPlan, place: placing.Placement
        ) -> contextlib.AbstractContextManager[running.Running]:
            return self._servers.up_for_load(entry, plan, place)

        return contestants.Contestant(
            entry.server.name,
            start,
            entry.server.control,
            entry.path,
            runs_already=entry.target is not None,
        )


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
