"""The servers of a run spread over the workers of a cluster, and what they found brought back."""

from __future__ import annotations

import queue
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.cluster import carried_files, suite_tasks, worker_facts
from httpmark.harness.cluster.connecting import Cluster, Worker
from httpmark.harness.cluster.suite_tasks import Done, Order, OtherVersion, Said
from httpmark.harness.cluster.worker_facts import Facts
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.progress import Interrupted

_POLL_S = 0.1
_LOOK_S = 1.0  # how often the workers are counted
_STOP_S = 90.0  # that tasks have to end after an interruption
_LOST_S = 30.0  # that a scheduler may be out of reach
_TRIES = 3  # to bring back what a worker has, each time from another one


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one server: its run folder, or why there is none."""

    server: str
    host: str | None = None
    folder: Path | None = None
    trouble: str | None = None


def suite_workers(cluster: Cluster) -> int:
    """How many workers may fire suites.

    :raises Unusable: none may, or one has another version of httpmark.
    """
    return len(workers_for(cluster, "suite", "fire suites"))


def workers_for(cluster: Cluster, role: str, doing: str) -> list[Worker]:
    """The workers with a role.

    :param doing: what it is for, in words.
    :raises Unusable: there is none, or one has another version of httpmark.
    """
    found = [one for one in cluster.workers() if role in one.roles]
    addresses = [one.address for one in found]
    if not addresses:
        raise Unusable(
            f"no worker of the cluster may {doing}: start one with "
            f"`dask worker ADDRESS --nthreads 1 --resources '{role}=1'`"
        )
    own = worker_facts.facts().version
    for address, told in cluster.ask(worker_facts.facts, of=addresses).items():
        version = told.version if isinstance(told, Facts) else f"not usable ({told})"
        if version != own:
            raise Unusable(
                f"httpmark at the worker {address} is {version}, and {own} here: install the same "
                "there; `httpmark cluster doctor` shows all"
            )
    return found


class Spread:
    """The servers of one run, on their way over the workers.

    :param say: is told lines of progress.
    """

    def __init__(self, cluster: Cluster, run: str, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._run = run
        self._say = say
        self._heard: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._begun: dict[str, str] = {}  # the worker of each server
        self._left: dict[Any, tuple[Order, int]] = {}  # by future: the order, and which try it is
        self._bound: dict[Any, set[str]] = {}  # by future, the only workers that may get it
        self._others: set[str] = set()  # workers that came later, with another version
        cluster.hear(suite_tasks.topic(run), self._heard.put)

    def carry_out(self, orders: Sequence[Order], take: Callable[[Found], None]) -> None:
        """Have all orders carried out.

        :param take: is given what is found, in the order in which it comes. Where it is
            interrupted it gets the same again. The folder is gone afterwards.
        :raises Unusable: the scheduler is gone. What came until then was given.
        :raises Interrupted: after what there was by then was given.
        """
        for order in orders:
            self._submit(order, 1)
        try:
            self._all(None, take)
        except Interrupted:
            workers = [one.address for one in self._cluster.workers()]
            self._cluster.ask(suite_tasks.stop, self._run, of=workers)
            self._all(time.monotonic() + _STOP_S, take)
            raise
        finally:
            self._cluster.cancel(list(self._left))

    def _submit(self, order: Order, number: int) -> None:
        only = self._same_version() if self._others else []
        future = self._cluster.submit(suite_tasks.carry_out, order, role="suite", only=only)
        self._left[future] = (order, number)
        if only:
            self._bound[future] = set(only)

    def _same_version(self) -> list[str]:
        there = [one.address for one in self._cluster.workers() if "suite" in one.roles]
        return [address for address in there if address not in self._others]

    def _release(self) -> None:
        """Offer again what was kept for workers that all died since."""
        there = {one.address for one in self._cluster.workers()}
        for future in [one for one, only in self._bound.items() if not only & there]:
            order, number = self._left.pop(future)
            del self._bound[future]
            self._cluster.cancel([future])
            self._submit(order, number)

    def _all(self, end: float | None, take: Callable[[Found], None]) -> None:
        """Until nothing is left, or the time is up."""
        seen = looked = time.monotonic()
        while self._left and (end is None or time.monotonic() < end):
            self._hear()
            for future in [one for one in self._left if one.done()]:
                if future.cancelled():
                    raise self._lost()
                self._ended(future, take)
            if not self._cluster.is_lost:
                seen = time.monotonic()
            elif time.monotonic() - seen > _LOST_S:
                raise self._lost()
            if self._bound and time.monotonic() - looked > _LOOK_S:
                self._release()
                looked = time.monotonic()
            time.sleep(_POLL_S)
        self._hear()

    def _lost(self) -> Unusable:
        count = len(self._left)
        left = "1 server is" if count == 1 else f"{count} servers are"
        return Unusable(
            f"the scheduler of the cluster went away, and {left} not done; what came back is kept"
        )

    def _ended(self, future: Any, take: Callable[[Found], None]) -> None:
        order, number = self._left[future]
        error = future.exception()
        if isinstance(error, OtherVersion) and number < _TRIES:
            self._others.add(error.worker)
            self._say(f"{order.server}: {error}; another worker takes it")
            self._submit(order, number + 1)
        elif error is not None:
            told = str(error) if isinstance(error, HarnessError) else _in_words(error)
            take(Found(server=order.server, trouble=told))
        elif (done := future.result()) is not None:
            self._take(order, number, done, take)
        del self._left[future]
        self._bound.pop(future, None)

    def _take(self, order: Order, number: int, done: Done, take: Callable[[Found], None]) -> None:
        """Bring a run folder back; what does not come whole is done again."""
        with tempfile.TemporaryDirectory(prefix="httpmark-brought-") as folder:
            try:
                self._bring(done, Path(folder))
            except Unusable as trouble:
                if number < _TRIES:
                    self._say(f"{order.server}: {trouble}; it is done again")
                    self._submit(order, number + 1)
                else:
                    take(Found(server=order.server, trouble=str(trouble)))
                return
            take(Found(server=order.server, host=done.host, folder=Path(folder)))
        self._cluster.ask(suite_tasks.remove, done.folder, of=[done.worker])

    def _bring(self, done: Done, into: Path) -> None:
        def fetch(name: str, number: int) -> object:
            asked = self._cluster.ask(
                carried_files.piece, done.folder, name, number, of=[done.worker]
            )
            return asked.get(done.worker)

        carried_files.bring(done.files, into, fetch)

    def _hear(self) -> None:
        """Tell what the tasks said since."""
        while not self._heard.empty():
            said = msgspec.convert(self._heard.get(), Said)
            before = self._begun.get(said.server)
            self._begun[said.server] = said.worker
            if said.line is not None:
                self._say(said.line)
            elif before is None:
                self._say(f"{said.server}: begun by the worker {said.worker}")
            else:
                self._say(
                    f"{said.server}: the worker {before} is gone; {said.worker} begins it again"
                )


def _in_words(error: BaseException) -> str:
    if type(error).__name__ == "KilledWorker":
        return "the workers that fired its suites died, one after the other"
    return f"{type(error).__name__}: {error}"
