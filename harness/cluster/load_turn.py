"""One window of load on a cluster, from the start of the server to its stop."""

from __future__ import annotations

import contextlib
import queue
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

import msgspec

from httpmark.harness.cluster import generator_task, inspection, server_task, worker_task
from httpmark.harness.cluster.clock_offsets import Offset, instant_ns
from httpmark.harness.cluster.connecting import Cluster, Worker
from httpmark.harness.cluster.generator_task import START_WAIT_S
from httpmark.harness.cluster.load_crew import Crew, WorkerLost
from httpmark.harness.cluster.server_task import Identity, Served
from httpmark.harness.load import merging, refusals, sampling, splitting
from httpmark.harness.load.engines.launch import Target
from httpmark.harness.load.engines.native import read_native
from httpmark.harness.load.sampling import GeneratorWindow, Taken
from httpmark.harness.load.window_clocks import MachineUse
from httpmark.harness.load.windows import NotLoaded
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.load import LoadPlan

_POLL_S = 0.02
_LOOK_S = 0.2  # how often the workers are counted
_LEAD_S = 0.25  # until the start, once all are ready: time to tell everybody
_SILENT_S = 10.0  # after a question that was not answered, until who is gone must be known
_STOP_S = 20.0  # that tasks have to end
_LOST = "the scheduler of the cluster went away"
_LOST_S = 30.0  # that a scheduler may be out of reach


_Answer = TypeVar("_Answer")


class GeneratorsLost(Exception):
    """Generators that ended without a result, by name, and why."""

    def __init__(self, why: dict[str, str]) -> None:
        super().__init__(str(why))
        self.why = why


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What window is wanted."""

    key: str
    run: str
    server: str
    runtime: str
    path: str | None
    plan: LoadPlan
    duration_s: float
    seed: int


class Waiting:
    """Waits for tasks and for what they say, as long as their workers live."""

    def __init__(self, cluster: Cluster, topic: str, say: Callable[[str], None]) -> None:
        self.cluster = cluster
        self.topic = topic
        self._say = say
        self._heard: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self.said: dict[str, Mapping[str, Any]] = {}  # by key
        self._said_once: set[str] = set()
        cluster.hear(topic, self._heard.put)

    def result(self, function: Callable[..., Any], *words: Any, of: Worker) -> Any:
        """What a function gives on the worker of servers.

        :raises WorkerLost: it is gone.
        """
        future = self.cluster.submit_to(function, *words, of=of.address, role="server")
        try:
            for _ in self.looks([of]):
                if self.is_done(future):
                    return future.result()
        finally:
            self.cluster.cancel([future])

    def looks(self, needed: Iterable[Worker]) -> Iterator[set[str]]:
        """Again and again the addresses of the workers that live.

        :raises WorkerLost: one that is needed is gone, or the scheduler is.
        """
        counted = 0.0
        alive: set[str] = set()
        while True:
            self._check_scheduler()
            while not self._heard.empty():
                self._take(self._heard.get())
            if time.monotonic() - counted > _LOOK_S:
                alive = {one.address for one in self.cluster.workers()}
                for one in needed:
                    if one.address not in alive and not self.cluster.is_lost:
                        raise WorkerLost(f"the worker {one.name}, which ran the server, died")
                counted = time.monotonic()
            yield alive
            time.sleep(_POLL_S)

    def _check_scheduler(self) -> None:
        """Wait while the scheduler cannot be reached.

        :raises WorkerLost: for too long.
        """
        end = time.monotonic() + _LOST_S
        while self.cluster.is_lost:
            if time.monotonic() > end:
                raise WorkerLost(_LOST)
            time.sleep(_POLL_S)

    def is_done(self, future: Any) -> bool:
        """Whether a task has ended.

        :raises WorkerLost: the scheduler forgot it: it is not the one that was asked.
        """
        if future.cancelled():
            self._check_scheduler()
            raise WorkerLost(_LOST)
        return bool(future.done())

    def say_once(self, line: str) -> None:
        """Say something that each window would say again."""
        if line not in self._said_once:
            self._said_once.add(line)
            self._say(line)

    def _take(self, said: Mapping[str, Any]) -> None:
        if "line" in said:
            self._say(said["line"])
        else:
            self.said[said["key"]] = said


class Turn:
    """One window; everything begun for it has ended when :meth:`take` returns."""

    def __init__(self, waiting: Waiting, crew: Crew, ask: Ask) -> None:
        self._waiting = waiting
        self._cluster = waiting.cluster
        self._crew = crew
        self._ask = ask
        self._shares = splitting.shares(ask.plan, [crew.host(one) for one in crew.generators])
        self._keys = [f"{ask.key}/{one.name}" for one in crew.generators]
        self._up: Mapping[str, Any] = {}  # the ports of the server
        self._served: Any = None
        self._generated: list[Any] = []
        self._is_closing = False

    def take(self) -> tuple[Taken, Identity]:
        """Take the window.

        :raises GeneratorsLost: some ended without a result, and the server lives.
        :raises NotLoaded: no generator could load it, and it lives.
        :raises Unusable: the server did not start, or died.
        :raises WorkerLost: its worker is gone, or the scheduler.
        """
        try:
            self._up = self._start_server()
            self._start_generators(self._up)
            self._wait_for_connections()
            offsets = self._begin()
            self._wait_for_generators()
            served = self._close()
            return self._taken(served, offsets), served.identity
        finally:
            self._stop()

    def _start_server(self) -> Mapping[str, Any]:
        ask, server = self._ask, self._crew.server
        order = server_task.Order(
            key=ask.key, topic=self._waiting.topic, server=ask.server, runtime=ask.runtime,
            address=_host(server), plan=ask.plan, path=ask.path, run=ask.run,
            generators=self._crew.beside_server,
        )  # fmt: skip
        self._served = self._cluster.submit_to(
            server_task.serve, order, of=server.address, role="server"
        )
        for _ in self._waiting.looks([server]):
            if ask.key in self._waiting.said:
                return self._waiting.said.pop(ask.key)
            if self._waiting.is_done(self._served):
                self._fail(self._served)
        raise AssertionError

    def _fail(self, future: Any) -> NoReturn:
        """:raises Unusable: why the server's task ended before its time."""
        error = future.exception()
        if isinstance(error, refusals.Refused):
            raise NotLoaded(str(error), error.statuses)
        if isinstance(error, HarnessError):
            raise error
        raise WorkerLost(f"{self._ask.server} on {self._crew.server.name}: {error}")

    def _start_generators(self, up: Mapping[str, Any]) -> None:
        ask, crew = self._ask, self._crew
        target = Target(_host(crew.server), up["port"], (), up["tls_port"], ask.path)
        for number, (one, place) in enumerate(zip(crew.generators, crew.places(), strict=True)):
            order = generator_task.Order(
                key=self._keys[number], topic=self._waiting.topic, plan=self._shares[number],
                target=target, duration_s=ask.duration_s, seed=ask.seed + number,
                phase=number / len(crew.generators), number=place.number,
                generators=place.generators, has_server=place.has_server,
            )  # fmt: skip
            self._generated.append(
                self._cluster.submit_to(
                    generator_task.generate, order, of=one.address, role="generator"
                )
            )

    def _wait_for_connections(self) -> None:
        end = time.monotonic() + START_WAIT_S
        for alive in self._waiting.looks([self._crew.server]):
            self._check(alive)
            late = [
                one.name
                for one, key, future in zip(
                    self._crew.generators, self._keys, self._generated, strict=True
                )
                if key not in self._waiting.said and not future.done()
            ]
            if not late:
                return
            if time.monotonic() > end:
                raise GeneratorsLost(
                    dict.fromkeys(late, f"opened no connections in {START_WAIT_S:.0f} s")
                )

    def _begin(self) -> dict[str, Offset]:
        """Tell all when to begin, each in the time of its own clock."""
        addresses = [one.address for one in self._crew.workers]
        offsets = self._asked(lambda: inspection.clocks(self._cluster, addresses))
        for one in self._crew.workers:
            if inspection.is_off(clock := offsets[one.address]):
                self._waiting.say_once(
                    f"the clock of the worker {one.name} is {clock.seconds:+.1f} s off; times are "
                    "put right by it"
                )
        begin_s = time.time() + _LEAD_S + 2 * max(one.round_trip_s for one in offsets.values())
        said = {
            key: instant_ns(begin_s, offsets[one.address])
            for one, key in zip(self._crew.generators, self._keys, strict=True)
        }
        window_s = begin_s + self._ask.plan.warmup_s
        said[self._ask.key] = instant_ns(window_s, offsets[self._crew.server.address])
        self._tell(said)
        return offsets

    def _tell(self, said: Mapping[str, Any]) -> None:
        there = {one.address for one in self._cluster.workers()}
        of = [one.address for one in self._crew.workers if one.address in there]
        self._asked(lambda: self._cluster.ask(worker_task.tell, dict(said), of=of))

    def _asked(self, ask: Callable[[], _Answer]) -> _Answer:
        """What workers answer; where one does not, who is gone is found out.

        :raises WorkerLost: nobody is, and yet there is no answer.
        """
        try:
            return ask()
        except Unusable as error:
            end = time.monotonic() + _SILENT_S
            for alive in self._waiting.looks([self._crew.server]):
                if not self._is_closing:
                    self._check(alive)
                if time.monotonic() > end:
                    raise WorkerLost(str(error)) from None
            raise AssertionError from None

    def _wait_for_generators(self) -> None:
        for alive in self._waiting.looks([self._crew.server]):
            self._check(alive)
            if all(future.done() for future in self._generated):
                return

    def _check(self, alive: set[str]) -> None:
        """Whether all generators live or have a result.

        :raises GeneratorsLost: not all, and the server is not why.
        """
        if self._waiting.is_done(self._served):
            self._fail(self._served)
        lost, failed = {}, {}
        for one, future in zip(self._crew.generators, self._generated, strict=True):
            if self._waiting.is_done(future) and (error := future.exception()) is not None:
                failed[one.name] = f"failed: {error}"
            elif not future.done() and one.address not in alive:
                lost[one.name] = f"on {self._crew.host(one)} died"
        if not lost and not failed:
            return
        served = self._close()
        if served.died is not None:
            raise Unusable(served.died)
        if len(failed) == len(self._generated):
            raise NotLoaded("; ".join(f"{name} {why}" for name, why in failed.items()), {})
        raise GeneratorsLost(lost | failed)

    def _close(self) -> Served:
        """The end of the server's books, and of the server.

        :raises Unusable: it died.
        """
        self._is_closing = True
        self._tell({self._ask.key: server_task.CLOSE})
        for _ in self._waiting.looks([self._crew.server]):
            if self._waiting.is_done(self._served):
                if self._served.exception() is not None:
                    self._fail(self._served)
                served: Served = self._served.result()
                return served
        raise AssertionError

    def _taken(self, served: Served, offsets: Mapping[str, Offset]) -> Taken:
        if served.died is not None:
            raise Unusable(served.died)
        plan, crew = self._ask.plan, self._crew
        done = [future.result() for future in self._generated]
        whole = merging.with_server(merging.merged(one.report for one in done), served.accounts)
        measured = read_native(whole, plan, has_server=True)
        try:
            refusals.reject(plan, Target(_host(crew.server), 0, path=self._ask.path), measured)
        except refusals.Refused as error:
            raise NotLoaded(str(error), error.statuses) from None
        generators = tuple(
            GeneratorWindow(
                name=one.name, host=found.host, connections=share.connections,
                measured=read_native(found.report, share, has_server=False),
                machine=found.machine, start_late_us=found.report["start_late_us"] or 0.0,
                path=found.path,
            )
            for one, share, found in zip(crew.generators, self._shares, done, strict=True)
        )  # fmt: skip
        late = [one.start_late_us for one in generators]
        machine = together(served.machine, {one.host: one.machine for one in generators})
        return Taken(
            measured=sampling.excused(measured, machine),
            machine=machine,
            is_pinned=served.is_pinned,
            memory=served.memory,
            generators=generators,
            start_spread_us=max(late) - min(late),
            clocks_known_to_us=1e6 * max(offsets[one.address].bound_s for one in crew.generators),
        )

    def _stop(self) -> None:
        """End what still runs, and wait for that.

        Where the scheduler is gone, workers end, and with them what they started.
        """
        self._is_closing = True
        futures = [one for one in (self._served, *self._generated) if one is not None]
        if not all(one.done() for one in futures) and not self._cluster.is_lost:
            with contextlib.suppress(WorkerLost):
                self._tell(dict.fromkeys((self._ask.key, *self._keys), generator_task.STOP))
                self._wait_for_end()
        for key in (self._ask.key, *self._keys):
            self._waiting.said.pop(key, None)
        self._cluster.cancel(futures)

    def _wait_for_end(self) -> None:
        end = time.monotonic() + _STOP_S
        every = [(self._crew.server, self._served)]
        every += zip(self._crew.generators, self._generated, strict=False)
        for alive in self._waiting.looks([]):
            if all(f is None or f.done() or one.address not in alive for one, f in every):
                return
            if time.monotonic() > end:
                return


def together(server: MachineUse, hosts: Mapping[str, MachineUse]) -> MachineUse:
    """What the machines of a window did: the worst of all.

    :param hosts: those of the generators, by name.
    """
    every = (server, *hosts.values())

    def worst(values: Iterable[float | None]) -> float | None:
        return max((value for value in values if value is not None), default=None)

    dropped: dict[str, int] = {}
    for one in every:
        for name, count in one.dropped.items():
            dropped[name] = max(dropped.get(name, 0), count)
    return MachineUse(
        steal_ratio=worst(one.steal_ratio for one in every),
        retransmit_ratio=worst(one.retransmit_ratio for one in every),
        dropped=dropped,
        strangers_ratio=server.strangers_ratio,
    )


def _host(one: Worker) -> str:
    """Where a worker is reached, and a server beside it."""
    host = urllib.parse.urlsplit(one.address).hostname
    assert host is not None
    return host
