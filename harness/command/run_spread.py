"""The suites of a run, fired by the workers of a cluster, and their run folders merged into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.catalogue.vocabulary import FORWARDING
from httpmark.harness.cluster import addresses, connecting, spreading
from httpmark.harness.cluster.spreading import Found
from httpmark.harness.cluster.suite_tasks import Order
from httpmark.harness.command import resumption
from httpmark.harness.command.run_log import RunLog
from httpmark.harness.command.run_options import Options
from httpmark.harness.command.run_servers import Entry, Servers
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.run import Run
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import brought, machine

_TASK = "servers"


class SpreadSuites:
    """Has the suites of a run fired on workers; what is found goes into the servers' entries."""

    def __init__(
        self,
        catalogue: Catalogue,
        options: Options,
        servers: Servers,
        log: RunLog,
        earlier: resumption.Resumption,
        folder: Path,
    ) -> None:
        self._catalogue = catalogue
        self._options = options
        self._servers = servers
        self._log = log
        self._earlier = earlier
        self._folder = folder

    def carry_out(self, cluster: str, run: str, seed: int, *, keep: Callable[[], None]) -> None:
        """Fire all that is left.

        :param keep: is called after each server.
        :raises Unusable: the cluster cannot be used.
        :raises Interrupted: after what there was by then was merged.
        """
        orders = [order for one in self._servers.entries if (order := self._order(one, run, seed))]
        if not orders:
            return
        entries = {one.server.name: one for one in self._servers.entries}
        hosts: set[str] = set()

        def take(found: Found) -> None:
            self._merge(entries[found.server], found)
            hosts.update(filter(None, [found.host]))
            keep()
            self._log.events.advance(_TASK, 1)

        with connecting.opened(addresses.parse(cluster)) as opened:
            workers = spreading.suite_workers(opened)
            self._log.events.task(_TASK, len(orders))
            spread = spreading.Spread(opened, run, self._log.say)
            try:
                spread.carry_out(orders, take)
            finally:
                if hosts:
                    self._log.keep(
                        f"suites were fired by {workers} workers of a cluster, on "
                        f"{', '.join(sorted(hosts))}"
                    )
        self._log.done(_TASK, f"{len(orders)} done by {workers} workers")

    def _order(self, entry: Entry, run: str, seed: int) -> Order | None:
        """What is left to do at a server; None: nothing."""
        name = entry.server.name
        suites = [one for one in self._options.suites if not self._earlier.has_suite(one, name)]
        if not suites or entry.unavailable is not None:
            return None
        words = ["--server", name, "--runtime", self._options.runtime, "--seed", str(seed)]
        words += ["--suite-minutes", f"{self._options.suite_minutes:g}"]
        words += ["--quick"] * self._options.quick + ["--full"] * self._options.full
        for suite in suites:
            words += ["--suite", suite]
        return Order(run=run, version=machine.version(), server=name, words=tuple(words))

    def _merge(self, entry: Entry, found: Found) -> None:
        """Take over the run folder that came of a server."""
        name = found.server
        if found.folder is None:
            entry.unavailable = found.trouble
            self._log.say(f"{name} is unavailable: {found.trouble}")
            return
        run = run_folder.read(found.folder)
        if run.catalogue_version != self._catalogue.version:
            entry.unavailable = f"the scenarios on {found.host} are of another version"
            self._log.say(f"{name} is unavailable: {entry.unavailable}")
            return
        stored = found.folder / run_folder.EVIDENCE
        if stored.is_file():
            with Evidence(self._folder / run_folder.EVIDENCE, create=True) as evidence:
                evidence.take(stored, name)
        self._take(entry, run)
        self._log.say(f"{name}: came back from {found.host}")

    def _take(self, entry: Entry, run: Run) -> None:
        (known,) = (one for one in run.servers if one.name == entry.server.name)
        resumption.recognise(entry, known)
        entry.runtime, entry.unavailable = known.runtime, known.unavailable
        entry.suites = entry.suites | known.compliance.suites
        asked = known.compliance.suites.keys()
        before = [one for one in entry.crashes if one.suite not in asked]
        entry.crashes = [*before, *known.crashes]
        for suite, server in run.completed.suites:
            if not self._earlier.has_suite(suite, server):
                self._earlier.did_suite(suite, server)
        for note in run.notes:
            self._log.keep(note)


def check(options: Options, chosen: Sequence[Server]) -> None:
    """What cannot be spread.

    :raises HarnessError: it was asked.
    """
    if options.cluster is None:
        return
    addresses.parse(options.cluster)
    if options.profiles:
        raise HarnessError(
            "run --cluster spreads suites: name suites with --suite, and leave out --profile; "
            "`httpmark bench --cluster` measures load"
        )
    if FORWARDING in options.suites:
        raise HarnessError(f"the suite {FORWARDING} cannot be spread: leave it out, or --cluster")
    if options.port is not None:
        raise HarnessError("--cluster and --port exclude each other: workers choose ports")
    check_known(chosen)


def check_known(chosen: Sequence[Server]) -> None:
    """Workers know the servers of images/ only.

    :raises HarnessError: another one was asked for.
    """
    ours = {one.name: one for one in brought.Field().servers()}
    for server in chosen:
        if ours.get(server.name) != server:
            raise HarnessError(
                f"{server.name} is brought by you, and workers know only the servers of images/: "
                "leave it out, or leave out --cluster"
            )
