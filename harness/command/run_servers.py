"""The servers of a run: chosen, prepared, and started for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from httpmark.harness.command.run_log import RunLog
from httpmark.harness.command.run_options import Options
from httpmark.harness.load import placing
from httpmark.harness.model.crashes import Crash
from httpmark.harness.model.errors import HarnessError, ServerDied, Unusable
from httpmark.harness.model.forwarding import FrontEnd
from httpmark.harness.model.load import LoadPlan, LoadResult
from httpmark.harness.model.memory import Memory
from httpmark.harness.model.servers import Server, Tls
from httpmark.harness.model.verdicts import SuiteResult
from httpmark.harness.servers import (
    certificates,
    machine,
    program_identity,
    requested_path,
    running,
    running_target,
    sockets,
    starting,
)
from httpmark.harness.servers.restartable import Restartable

ADDRESS = "127.0.0.1"


def chosen(options: Options) -> list[Server]:
    """The servers that the options name; if they name none, those that are part of a run by
    default, or all that are known.

    :raises HarnessError: there is no such server.
    """
    if not options.servers and not options.targets:
        known = options.field.servers()
        return [one for one in known if one.by_default or options.all_servers]
    return [options.field.server(name) for name in dict.fromkeys(options.servers)]


class Entry(msgspec.Struct, kw_only=True):
    """What is known about one server so far."""

    server: Server
    runtime: str | None = None
    unavailable: str | None = None
    died: str | None = None
    crashes: list[Crash] = []
    version: str | None = None
    image_digest: str | None = None
    # How it was started and what was executed: under load, if it was loaded, else in suites.
    program: tuple[tuple[str, ...], str | None] | None = None
    program_of_suites: bool = True
    container_limits: dict[str, str] | None = None
    suites: dict[str, SuiteResult] = {}
    suites_port: int | None = None
    forwarding: FrontEnd | None = None
    forwarding_reason: str | None = None
    memory: list[Memory] = []
    load: tuple[LoadResult, ...] = ()  # of an earlier sitting of this run
    target: running_target.RunningTarget | None = None  # it runs already: never started or stopped
    path: str | None = None  # what load requests, instead of the profiles' paths


def _entry(server: Server, options: Options) -> Entry:
    """What is known of a server before anything was asked of it."""
    if not server.url:
        return Entry(server=server, path=options.path)
    try:
        target = running_target.of_server(server, allow_remote=options.allow_remote)
    except HarnessError as error:
        return Entry(server=server, unavailable=str(error))
    return Entry(
        server=server, target=target, runtime=target.runtime, path=options.path or target.path
    )


class _Load(msgspec.Struct, frozen=True):
    """What a server is started for, where it is no suite."""

    plan: LoadPlan
    cpus: frozenset[int] | None


class Servers:
    """All servers of a run, their ports, and the certificate they show."""

    def __init__(
        self, options: Options, chosen: Sequence[Server], log: RunLog, run_id: str
    ) -> None:
        self.entries = [_entry(server, options) for server in chosen] + [
            Entry(server=one.server, target=one, runtime=one.runtime, path=one.path)
            for one in options.targets
        ]
        self._path = options.path
        self.null = next((one for one in options.field.servers() if one.control), None)
        self._port = options.port
        self._pair: certificates.Pair | None = None
        self._runtime = options.runtime
        self._log = log
        self._run_id = run_id

    def usable(self) -> list[Entry]:
        """The servers that can be used, as far as is known.

        :raises Unusable: there is none.
        """
        found = [entry for entry in self.entries if entry.unavailable is None]
        if not found:
            first = self.entries[0]
            raise Unusable(f"no server can be used; {first.server.name}: {first.unavailable}")
        return found

    def by_need(self) -> list[Entry]:
        """The servers that can be used as far as is known: what is built already comes first."""
        return sorted(self.usable(), key=self._must_be_built)

    @staticmethod
    def _must_be_built(entry: Entry) -> bool:
        if entry.target is not None or entry.runtime is None:
            return False
        try:
            return not starting.is_prepared(entry.server, entry.runtime)
        except Unusable:  # what is wrong is told when it is prepared
            return True

    def check_port(self) -> None:
        """Check the port that was asked for, if one was.

        :raises Unusable: it is taken.
        """
        if self._port and (trouble := starting.port_trouble(ADDRESS, self._port)):
            raise Unusable(f"{trouble} with --port")

    def make_certificate(self, private: Path) -> None:
        """A certificate in a folder of its own."""
        self._pair = certificates.make(private, address=ADDRESS)

    def look(self) -> None:
        """Find how each server can be started here. One that cannot be used has the reason."""
        for entry in self.entries:
            if entry.unavailable is not None:
                continue
            if entry.target is not None:
                self._look_at_target(entry, entry.target)
                continue
            try:
                self._choose(entry)
            except Unusable as error:
                self._exclude(entry, error)

    def prepare(self, entry: Entry) -> bool:
        """Build and install what a server needs; a second time it is there already.

        :returns: whether it can be used. One that cannot has the reason.
        """
        if entry.unavailable is None and entry.target is None:
            assert entry.runtime is not None
            try:
                starting.prepare(entry.server, entry.runtime, say=self._log.say)
            except Unusable as error:
                self._exclude(entry, error)
        return entry.unavailable is None

    def _exclude(self, entry: Entry, error: Unusable) -> None:
        entry.unavailable = str(error)
        self._log.say(f"{entry.server.name} is unavailable: {error}")

    def _look_at_target(self, entry: Entry, target: running_target.RunningTarget) -> None:
        if not target.alive():
            entry.unavailable = target.exit_reason()
            return
        if entry.path is None:
            entry.path, refused = requested_path.found(target.status)
            if entry.path is None:
                entry.unavailable = refused
                return
        self._log.note(
            f"{entry.server.name} runs already and is not restarted for each sample, so all of its "
            "samples include the chance effects of one start"
        )

    def _choose(self, entry: Entry) -> None:
        entry.runtime = starting.for_server(entry.server, self._runtime)
        own = starting.own_port(entry.server, entry.runtime)
        if None not in (own, self._port) and own != self._port:
            raise Unusable(f"listens on port {own} alone: leave out --port {self._port}")

    def null_entry(self) -> Entry | None:
        """The null server, prepared; None if there is none.

        :raises Unusable: it cannot be used here.
        """
        if self.null is None:
            return None
        entry = Entry(server=self.null, path=self._path)
        self._choose(entry)
        assert entry.runtime is not None
        starting.prepare(entry.server, entry.runtime, say=self._log.say)
        return entry

    @contextlib.contextmanager
    def up_for_suites(self, entry: Entry) -> Iterator[Restartable]:
        """A server that runs while its suites are fired: one worker, short timeouts.

        It can be started again in the same way, where a request kills it.
        """
        try:
            one = Restartable(lambda: self._started(entry, None))
        except Unusable as error:
            raise ServerDied(str(error)) from None
        try:
            self._remember(entry, one.now, for_suites=True)
            yield one
        finally:
            one.stop()

    @contextlib.contextmanager
    def up_for_load(
        self, entry: Entry, plan: LoadPlan, place: placing.Placement
    ) -> Iterator[running.Running]:
        """A server that runs while it is loaded, on the CPUs that are its own."""
        try:
            one = self._started(entry, _Load(plan, place.server))
        except Unusable as error:
            raise ServerDied(str(error)) from None
        try:
            self._remember(entry, one, for_suites=False)
            yield one
        finally:
            one.stop()

    def _started(self, entry: Entry, load: _Load | None) -> running.Running:
        """A server as it is for a load, or for suites."""
        if entry.target is not None:
            return entry.target
        assert entry.runtime is not None
        cpus = load.cpus if load else None
        pair = self._pair if load and load.plan.tls else None
        return starting.start(
            entry.server,
            entry.runtime,
            address=ADDRESS,
            port=self._port_of(entry, for_suites=load is None),
            workers=load.plan.workers if load else 1,
            cpus=None if cpus is None else ",".join(map(str, sorted(cpus))),
            run_id=self._run_id,
            tls=Tls(sockets.free_port(ADDRESS), *pair) if pair else None,
            conformance=load is None,
        )

    @staticmethod
    def _remember(entry: Entry, one: running.Running, *, for_suites: bool) -> None:
        """Keep what a server that runs tells of itself."""
        if entry.target is not None:
            return
        entry.version = one.version or entry.version
        entry.image_digest = one.image_digest
        if entry.program is None or (entry.program_of_suites and not for_suites):
            entry.program = program_identity.program(one.pids())
            entry.program_of_suites = for_suites
            if entry.runtime == "docker":
                entry.container_limits = _container_limits(one.pids())

    def _port_of(self, entry: Entry, *, for_suites: bool) -> int:
        """The port that was asked for, else a fresh one: connections that were closed on an earlier
        one may keep servers off it for a minute.

        All suites of a server have one port: what they send, and what is judged, names it.
        """
        if self._port:
            return self._port
        if not for_suites:
            return sockets.free_port(ADDRESS)
        entry.suites_port = entry.suites_port or sockets.free_port(ADDRESS)
        return entry.suites_port


def _container_limits(pids: Sequence[int]) -> dict[str, str] | None:
    """What the container of these processes may use; None if it does not say."""
    return machine.cgroup_limits(pids[0]) or None if pids else None
