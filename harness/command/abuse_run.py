"""`httpmark abuse`: each server started or found, and put through the scenarios."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence

import msgspec

from httpmark.harness.load import abuse
from httpmark.harness.load.abuse_scenarios import BY_NAME, SCENARIOS
from httpmark.harness.model.abuse import Abused, AbuseReport, Fate, Suffered
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.progress import Events
from httpmark.harness.model.servers import Server, Tls
from httpmark.harness.servers import (
    certificates,
    requested_path,
    running_target,
    scratch_folders,
    sockets,
    starting,
)
from httpmark.harness.servers.restartable import Restartable
from httpmark.harness.servers.running import Running

ADDRESS = "127.0.0.1"
FULL = abuse.Asked()
QUICK = abuse.Asked(seconds=2.0, lead_s=0.5)
_GONE = "it does not answer any more, and was not started here"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    servers: tuple[Server, ...] = ()
    targets: tuple[running_target.RunningTarget, ...] = ()
    scenarios: tuple[str, ...] = ()  # none named: all
    path: str | None = None
    runtime: str = "auto"
    asked: abuse.Asked = FULL
    quick: bool = False


class Session:
    """Puts servers through scenarios; :meth:`report` is what is known so far."""

    def __init__(self, options: Options, events: Events) -> None:
        self._options = options
        self._events = events
        self._scenarios = [BY_NAME[name] for name in options.scenarios] or list(SCENARIOS)
        self._done: list[Abused] = []
        self._now: Abused | None = None
        self._load_average = os.getloadavg()

    def report(self) -> AbuseReport:
        asked = self._options.asked
        return AbuseReport(
            rate=asked.rate,
            clients=asked.clients,
            seconds=asked.seconds,
            quick=self._options.quick,
            load_average=self._load_average,
            processors=os.cpu_count() or 1,
            servers=(*self._done, *([self._now] if self._now else [])),
        )

    def run(self) -> None:
        """All servers, one after another."""
        with scratch_folders.folder("abuse") as private:
            pair = certificates.make(private, address=ADDRESS)
            for target in self._options.targets:
                self._besiege(target.name, lambda target=target: _found(target))  # type: ignore[misc]
            for server in self._options.servers:
                self._besiege(server.name, lambda server=server: self._started(server, pair))  # type: ignore[misc]

    def _besiege(self, name: str, up: Callable[[], contextlib.AbstractContextManager[_Up]]) -> None:
        self._now = Abused(name=name)
        self._events.task(name, len(self._scenarios))
        try:
            with up() as one:
                self._now = Abused(name=name, version=one.now().version, runtime=one.now().runtime)
                self._all_scenarios(one)
        except Unusable as error:
            self._now = msgspec.structs.replace(self._now, unavailable=str(error))
        self._events.done(name, self._now.unavailable or _summary(self._now.suffered))
        self._done.append(self._now)
        self._now = None

    def _all_scenarios(self, one: _Up) -> None:
        assert self._now is not None
        besieged = None
        for number, scenario in enumerate(self._scenarios):
            if besieged is None:
                besieged = abuse.Besieged(self._ground(one), self._options.asked)
            found = besieged.suffer(scenario)
            self._now = msgspec.structs.replace(self._now, suffered=(*self._now.suffered, found))
            self._events.advance(self._now.name, 1)
            if found.fate in (Fate.DIED, Fate.SILENT):
                if one.restart is None:
                    rest = self._scenarios[number + 1 :]
                    left = tuple(Suffered(scenario=s.name, reason=_GONE) for s in rest)
                    self._now = msgspec.structs.replace(
                        self._now, suffered=(*self._now.suffered, *left)
                    )
                    return
                one.restart()
                besieged = None

    def _ground(self, one: _Up) -> abuse.Ground:
        running = one.now()
        is_tls = running.tls_port == running.port
        path = self._options.path or one.path
        if path is None:
            path, refused = requested_path.found(
                lambda where: requested_path.status(
                    running.address, running.port, where, tls=is_tls
                )
            )
            if path is None:
                raise Unusable(refused)
        return abuse.Ground(
            address=running.address,
            port=running.port,
            path=path,
            tls=is_tls,
            tls_port=None if is_tls else running.tls_port,
            pids=lambda: one.now().pids(),
            death=one.death,
            is_ours=one.restart is not None,
        )

    @contextlib.contextmanager
    def _started(self, server: Server, pair: certificates.Pair) -> Iterator[_Up]:
        """A server of ours, as it is for a load: one worker, its ordinary timeouts."""
        runtime = starting.for_server(server, self._options.runtime)
        starting.prepare(server, runtime, say=self._events.say)

        def begin() -> Running:
            has_tls = "tls" in server.capabilities
            return starting.start(
                server,
                runtime,
                address=ADDRESS,
                port=sockets.free_port(ADDRESS),
                workers=1,
                cpus=None,
                run_id=secrets.token_hex(3),
                tls=Tls(sockets.free_port(ADDRESS), *pair) if has_tls else None,
            )

        one = Restartable(begin)
        try:
            yield _Up(now=lambda: one.now, death=one.death, restart=one.restart, path=None)
        finally:
            one.stop()


class _Up(msgspec.Struct, frozen=True, kw_only=True):
    """A server that answers, started here or not."""

    now: Callable[[], Running]
    death: Callable[[], str | None]
    restart: Callable[[], None] | None
    path: str | None


@contextlib.contextmanager
def _found(target: running_target.RunningTarget) -> Iterator[_Up]:
    """A server that runs already.

    :raises Unusable: nothing answers there.
    """
    if not target.alive():
        raise Unusable(target.exit_reason())

    def death() -> str | None:
        return None if target.alive() else "it takes no connection any more"

    yield _Up(now=lambda: target, death=death, restart=None, path=target.path)


def _summary(suffered: Sequence[Suffered]) -> str:
    counts = {
        fate: sum(one.fate is fate for one in suffered)
        for fate in Fate
        if any(one.fate is fate for one in suffered)
    }
    return ", ".join(f"{count} {fate}" for fate, count in counts.items()) or "nothing was tried"


def is_failed(report: AbuseReport, fail_over: float | None) -> bool:
    """Whether a server fell, or did worse than is allowed.

    :param fail_over: the p99 under abuse may be so many times the quiet one; None: any.
    """
    fates = {Fate.DIED, Fate.SILENT}
    if fail_over is not None:
        fates.add(Fate.STARVED)
    return any(
        one.fate in fates
        or (fail_over is not None and one.p99_ratio is not None and one.p99_ratio > fail_over)
        for server in report.servers
        for one in server.suffered
    )


def is_undecided(report: AbuseReport) -> bool:
    """Whether some abuse never came, so that a server only seems to have held."""
    return any(
        one.fate is None and one.done is not None
        for server in report.servers
        for one in server.suffered
    )
