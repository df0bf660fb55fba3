"""The load profiles of a run, taken by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from httpmark.harness.cluster import addresses, connecting, load_windows
from httpmark.harness.cluster.server_task import Identity
from httpmark.harness.command import run_spread
from httpmark.harness.command.run_load import Loads
from httpmark.harness.command.run_options import Options
from httpmark.harness.command.run_servers import Entry
from httpmark.harness.load import memory_ladder, races, scaling
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.load import Bottleneck, LoadPlan, LoadSample
from httpmark.harness.model.servers import Server

AUTO = 0
"""``--generators auto``."""


class SpreadLoads(Loads):
    """Loads the servers of a run from several generators."""

    _crew: load_windows.LoadCluster

    def carry_out_all(
        self, run: str, plans: Sequence[LoadPlan], *, seed: int, done: Callable[[str], None]
    ) -> None:
        """These profiles on all servers of the run.

        :param done: is called after each profile.
        :raises Unusable: the cluster cannot be used, or no server.
        :raises WorkerLost: it went away; what was measured until then is kept.
        """
        assert self._options.cluster is not None
        entries = self._servers.usable()
        with connecting.opened(addresses.parse(self._options.cluster)) as opened:
            self._crew = crew = load_windows.LoadCluster(
                opened, run, say=self._log.say, remember=self._remember
            )
            self._known = {one.server.name: one for one in entries}
            self._take = crew
            self._check_count()
            for entry in entries:
                self._prepare(entry)
            usable = self._servers.usable()
            for plan in plans:
                fitted = self._fitted(plan)
                alive = [entry for entry in usable if entry.died is None]
                self.carry_out(fitted, alive, seed=seed)
                done(plan.name)

    def _check_count(self) -> None:
        there, wanted = self._crew.count, self._options.generators
        if wanted and wanted > there:
            raise Unusable(f"the cluster has {there} generators, and --generators is {wanted}")
        if wanted:
            self._crew.count = wanted

    def _prepare(self, entry: Entry) -> None:
        name = entry.server.name
        try:
            self._crew.prepare(name, self._options.runtime)
        except Unusable as error:
            entry.unavailable = str(error)
            self._log.say(f"{name} is unavailable: {error}")
            return
        entry.runtime = self._crew.runtimes[name]

    def _null(self) -> Entry | None:
        null = self._servers.null
        if null is None:
            return None
        self._crew.prepare(null.name, self._options.runtime)
        return Entry(server=null, path=self._options.path, runtime=self._crew.runtimes[null.name])

    def _remember(self, name: str, told: Identity) -> None:
        entry = self._known.get(name)
        if entry is None:
            return
        entry.version = told.version or entry.version
        entry.image_digest = told.image_digest
        if entry.program is None:
            entry.program, entry.program_of_suites = told.program, False
        entry.container_limits = told.container_limits

    def _fitted(self, plan: LoadPlan) -> LoadPlan:
        """A plan as these workers can carry it."""
        server, generators = self._crew.roster.facts()
        room = {}
        if server.descriptors is not None:
            room["descriptors"] = server.descriptors
        if None not in (ports := [one.ports for one in generators]):
            room["ports"] = sum(filter(None, ports))
        fitted, cut = scaling.scaled(plan, room, cpus=plan.workers + plan.threads)
        workers = min(plan.workers, server.cores)
        threads = min(plan.threads, *(one.cores for one in generators))
        if (workers, threads) != (plan.workers, plan.threads):
            said = (
                f"{workers} + {threads} threads instead of {plan.workers} + {plan.threads}: "
                "processors of the hosts"
            )
            cut = "; ".join(filter(None, (cut, said)))
            fitted = msgspec.structs.replace(fitted, workers=workers, threads=threads)
        if cut:
            self._scaled[plan.name] = cut
        return fitted

    def _race(self, plan: LoadPlan, able: Sequence[Entry], *, seed: int) -> None:
        if self._options.generators == AUTO:
            self._find_count(plan, able, seed=seed)
        super()._race(plan, able, seed=seed)
        race = self.races[-1]
        taken = [one for samples in race.samples.values() for one in samples if one.generators]
        if taken:
            self._log.note(f"{plan.name}: {_told(taken)}")

    def _find_count(self, plan: LoadPlan, able: Sequence[Entry], *, seed: int) -> None:
        """Add generators until the server is the bottleneck, or they run out."""
        there = min(len(self._crew.roster.generators()), plan.connections)
        count = 0
        while True:
            count = min(2 * count or 1, there)
            self._crew.count = count
            limited = self._limited_elsewhere(plan, able, seed=seed)
            if limited is None:
                self._log.note(
                    f"{plan.name}: {_counted(count)} of {there} are enough: the server is the "
                    "bottleneck"
                    if plan.rate is None and plan.rate_of_capacity is None
                    else f"{plan.name}: {_counted(count)} of {there} are enough for the rate"
                )
                return
            if count == there:
                self._log.note(
                    f"{plan.name}: the generators ran out: with {_counted(count)} the server is "
                    f"not the bottleneck: {limited}"
                )
                return
            self._log.say(f"{plan.name}: with {_counted(count)}, {limited}")

    def _limited_elsewhere(self, plan: LoadPlan, able: Sequence[Entry], *, seed: int) -> str | None:
        """What else than the server is the limit, by one sample of each; None: nothing is."""
        racers = self._racers(plan, able)
        race = races.Race(
            plan, self._engine, [self._contestant(one) for one in racers], rounds=1,
            duration_s=plan.duration_s, seed=seed, take=self._take,
        )  # fmt: skip
        for _ in race.run():
            pass
        for name, why in (race.died | race.failed).items():
            return f"{name}: {why}"
        enough = (Bottleneck.SERVER, Bottleneck.NONE) if _is_paced(plan) else (Bottleneck.SERVER,)
        for entry in able:
            name = entry.server.name
            for sample in race.samples[name]:
                if sample.bottleneck not in enough:
                    return f"{name}: {sample.bottleneck} ({sample.bottleneck_why})"
        return None


def _is_paced(plan: LoadPlan) -> bool:
    return plan.rate is not None or plan.rate_of_capacity is not None


def _counted(count: int) -> str:
    return "1 generator" if count == 1 else f"{count} generators"


def _told(samples: Sequence[LoadSample]) -> str:
    """Who made the load, and how well they began together."""
    names = sorted({(one.name, one.host) for sample in samples for one in sample.generators})
    who = ", ".join(f"{name} on {host}" for name, host in names)
    spread = max(one.start_spread_us or 0.0 for one in samples) / 1000
    known = max(one.clocks_known_to_us or 0.0 for one in samples) / 1000
    most = max(len(one.generators) for one in samples)
    together = f", begun within {spread:.1f} ms of each other (clocks known to {known:.1f} ms)"
    return f"load by {_counted(most)} ({who})" + (together if most > 1 else "") + _path(samples)


def _path(samples: Sequence[LoadSample]) -> str:
    """What of the latencies is the way between the hosts."""
    found = [
        (one.path_us, one.name)
        for sample in samples
        for one in sample.generators
        if one.path_us is not None
    ]
    if not found:
        return ""
    (least, near), (most, far) = min(found), max(found)
    each = f"{least / 1000:.1f} ms from {near}"
    if far != near:
        each += f", {most / 1000:.1f} ms from {far}"
    return f"; latencies include the path to the server, a round trip of {each} before the load"


def check(options: Options, chosen: Sequence[Server], plans: Sequence[LoadPlan]) -> None:
    """What cannot be loaded from a cluster.

    :raises HarnessError: it was asked.
    """
    if options.cluster is None:
        if options.generators is not None:
            raise HarnessError("--generators needs --cluster")
        return
    where = addresses.parse(options.cluster)
    if options.port is not None:
        raise HarnessError("--cluster and --port exclude each other: workers choose ports")
    if options.engine != "native":
        raise HarnessError(f"--cluster needs the engine native, and --engine is {options.engine}")
    if options.targets:
        raise HarnessError(
            f"{options.targets[0].name} runs already, and a cluster starts its servers itself: "
            "name servers of `httpmark list servers`, or leave out --cluster"
        )
    run_spread.check_known(chosen)
    for plan in plans:
        if plan.mode in memory_ladder.MODES:
            raise HarnessError(f"{plan.name} measures memory on one machine: leave out --cluster")
    if isinstance(where, addresses.Local):
        if where.workers < 2:
            raise HarnessError(
                "local:1 is one worker, and a load needs two: one for the server, and one for each "
                "generator"
            )
        if options.generators and options.generators > where.workers - 1:
            raise HarnessError(
                f"{where} has {where.workers - 1} generators beside the server, and --generators "
                f"is {options.generators}"
            )
    for plan in plans:
        if options.generators and options.generators > plan.connections:
            raise HarnessError(
                f"{plan.name} has {plan.connections} connections, too few for "
                f"{options.generators} generators"
            )
