"""Who takes part in a load: the worker with the server, and the generators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from httpmark.harness.cluster import spreading, worker_facts
from httpmark.harness.cluster.connecting import Cluster, Worker
from httpmark.harness.cluster.worker_facts import Facts
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.load import LoadPlan


class WorkerLost(HarnessError):
    """What a load cannot go on without is gone, by no fault of the server."""

    exit_code = 3


class Place(msgspec.Struct, frozen=True):
    """What one generator shares its host with."""

    number: int  # of the generators there, from 0
    generators: int
    has_server: bool


class Crew(msgspec.Struct, frozen=True, kw_only=True):
    """The workers of one window."""

    server: Worker
    generators: tuple[Worker, ...]
    facts: dict[str, Facts]  # by name of the worker

    @property
    def workers(self) -> tuple[Worker, ...]:
        return (self.server, *self.generators)

    def host(self, one: Worker) -> str:
        return self.facts[one.name].host

    def places(self) -> list[Place]:
        """Of each generator."""
        hosts = [self.host(one) for one in self.generators]
        on_host, met, found = Counter(hosts), Counter[str](), []
        for host in hosts:
            found.append(Place(met[host], on_host[host], host == self.host(self.server)))
            met[host] += 1
        return found

    @property
    def beside_server(self) -> int:
        """How many generators are on the server's host."""
        return sum(self.host(one) == self.host(self.server) for one in self.generators)


class Roster:
    """The workers that are there for a load."""

    def __init__(self, cluster: Cluster, say: Callable[[str], None] = lambda line: None) -> None:
        """:param say: is told who takes no part.
        :raises Unusable: the roles are not filled, or a version differs."""
        self._cluster = cluster
        self._say = say
        servers = spreading.workers_for(cluster, "server", "run the server of a load")
        spreading.workers_for(cluster, "generator", "generate load")
        # One that is only there for servers leaves the others to generate.
        self._server = min(servers, key=lambda one: ("generator" in one.roles, one.name)).name
        self._facts: dict[str, Facts] = {}
        self.dead: set[str] = set()  # by name; they are asked no more
        if not self.generators():
            raise Unusable(
                "the cluster has one worker, and a load needs two: one for the server, and one "
                "for each generator"
            )

    @property
    def server(self) -> Worker:
        """:raises WorkerLost: it is gone."""
        for one in self._cluster.workers():
            if one.name == self._server:
                return one
        raise WorkerLost(f"the worker {self._server}, which ran the servers, is gone")

    def generators(self) -> list[Worker]:
        """Those that are there, in an order that stays."""
        return sorted(
            (
                one
                for one in self._cluster.workers()
                if "generator" in one.roles and one.name not in self.dead | {self._server}
            ),
            key=lambda one: (len(one.name), one.name),
        )

    def crew(self, plan: LoadPlan, count: int, without: set[str]) -> Crew | None:
        """Who takes a window; None where no generator is left."""
        there = [one for one in self.generators() if one.name not in without]
        chosen = there[: min(count, plan.connections)]
        if not chosen:
            return None
        server = self.server
        self._ask((server, *chosen))
        if any(one.name in self.dead for one in chosen):
            return self.crew(plan, count, without)
        return Crew(server=server, generators=tuple(chosen), facts=self._facts)

    def facts(self) -> tuple[Facts, list[Facts]]:
        """Those of the server's worker, and of all generators."""
        server, generators = self.server, self.generators()
        self._ask((server, *generators))
        left = [one for one in generators if one.name not in self.dead]
        return self._facts[server.name], [self._facts[one.name] for one in left]

    def _ask(self, workers: Sequence[Worker]) -> None:
        new = {one.address: one.name for one in workers if one.name not in self._facts}
        if not new:
            return
        try:
            answers = self._cluster.ask(worker_facts.facts, of=list(new))
        except Unusable as error:
            raise WorkerLost(str(error)) from None
        own = worker_facts.facts().version
        for address, told in answers.items():
            if not isinstance(told, Facts):
                raise WorkerLost(f"the worker {new[address]} does not answer: {told}")
            self._facts[new[address]] = told
            if told.version != own:  # it came later, else the load had not begun
                self.dead.add(new[address])
                self._say(
                    f"httpmark at the worker {new[address]} is {told.version}, and {own} here: it "
                    "takes no part"
                )
