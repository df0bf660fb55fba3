"""The gate for a server somebody else started: one address, suites, a result, an exit code."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from httpmark.harness import (
    address,
    catalogue,
    conformance,
    delivery,
    discovery,
    environment,
    grammar,
    run,
    runtime,
    servers,
    wire,
)
from httpmark.harness.evidence import Evidence
from httpmark.harness.model import (
    SCHEMA_VERSION,
    Compliance,
    HarnessError,
    NothingSelected,
    ProcessRecipe,
    Run,
    Server,
    ServerResult,
    SuiteResult,
    Unusable,
    Word,
)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What to check."""

    target: str
    suites: tuple[str, ...]
    quick: bool = False
    full: bool = False  # every delivery, too
    path: str = "/hello"
    host: str | None = None
    allow_remote: bool = False
    out: Path | None = None
    cases: tuple[str, ...] = ()  # selectors; none is all
    exclude: tuple[str, ...] = ()
    ruleset: str = "rfc"
    manifest: Path | None = None
    serve: str | None = None  # a command with {port}; started, tested and stopped
    cacert: Path | None = None  # what the certificate of an https target is verified against
    rerun: Path | None = None  # a run folder whose failures are taken
    jobs: int | None = None  # at most so many connections at once
    header: tuple[str, ...] = ()  # field lines that go behind every Host line


_FRAMING = frozenset({
    "host", "connection", "content-length", "transfer-encoding", "trailer", "te", "expect",
    "upgrade",
})  # fmt: skip


def field_lines(given: Iterable[str]) -> tuple[str, ...]:
    """The lines of ``--header``, each a field line that says nothing of framing or of the target.

    :raises HarnessError: another line, named.
    """
    lines = tuple(given)
    for line in lines:
        try:
            octets = line.encode("latin-1") + b"\r\n"
        except UnicodeEncodeError:
            octets = b""
        if grammar.FIELD_LINES.fullmatch(octets) is None or octets.count(b"\n") != 1:
            raise HarnessError(f"--header: {line!r} is no field line; write 'Name: value'")
        name = line.partition(":")[0]
        if name.lower() in _FRAMING:
            raise HarnessError(f"--header: {name} is what the cases are about; leave it out")
    return lines


def _target(
    where: address.Address, *, path: str, host: str | None = None, cacert: Path | None = None
) -> conformance.Target:
    """The target that listens there."""
    return conformance.Target(
        name="target",
        address=where.address,
        port=where.port,
        host=host or where.host,
        path=path,
        unix=where.unix,
        tls=where.tls,
        ca_file=str(cacert) if cacert else None,
    )


def asked(
    text: str, *, path: str, allow_remote: bool, cacert: Path | None = None
) -> conformance.Target:
    """A target by its address, with what it can do.

    :raises HarnessError: no address, or another machine without leave.
    :raises Unusable: nothing answers there.
    """
    target = _target(address.read(text, allow_remote=allow_remote), path=path, cacert=cacert)
    if conformance.hello(target) is None:
        raise Unusable(f"{text}: nothing answers there: is the server running?")
    return msgspec.structs.replace(target, capabilities=discovery.capabilities(target))


def served(command: str, manifest: Server | None) -> Server:
    """The server that ``--serve`` names, as a process of its own.

    :raises HarnessError: the command is empty, or has no ``{port}``.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise HarnessError(f"--serve: {command!r}: {error}") from None
    if not words or not any("{port}" in word or "{endpoint}" in word for word in words):
        raise HarnessError(
            f"--serve: {command!r} names no {{port}}; write './server --port {{port}}'"
        )
    # It runs in the caller's folder, so that ./server is found there.
    recipe = ProcessRecipe(start=("env", "-C", os.getcwd(), *words))
    if manifest is not None:
        return msgspec.structs.replace(manifest, process=recipe)
    return Server(
        name="target",
        title=command,
        language="",
        version="",
        homepage="",
        capabilities=("hello",),
        process=recipe,
    )


def failures(path: Path, known: catalogue.Catalogue) -> tuple[str, ...]:
    """The entries that failed in an earlier run.

    :raises HarnessError: the folder holds no run.
    :raises NothingSelected: nothing failed there.
    """
    bad = (Word.FAIL, Word.UNSTABLE)
    found: dict[str, None] = {}
    for server in run.read(path).servers:
        for suite in server.compliance.suites.values():
            found |= {id: None for id, verdict in suite.cases.items() if verdict.word in bad}
            found |= {id: None for id, tally in suite.generated.items() if tally.failures}
    chosen = tuple(id for id in found if id in known.families)
    if not chosen:
        raise NothingSelected(f"{path}: nothing failed there")
    return chosen


class Checker:
    """Checks one target; ``last`` is the result as far as it came."""

    def __init__(self, options: Options, events: run.Events) -> None:
        self.options = options
        self.events = events
        self.catalogue = catalogue.load()
        for suite in options.suites:
            self.catalogue.suite(suite)
        if not options.suites:
            raise NothingSelected("nothing selected: name a suite")
        self.manifest = servers.read(options.manifest) if options.manifest else None
        wanted = options.cases
        if options.rerun is not None:
            wanted = (*wanted, *failures(options.rerun, self.catalogue))
        chosen = self.catalogue.select(wanted, options.exclude)
        self.selected = self.catalogue.with_controls(chosen)
        suites = {self.catalogue.families[name].suite for name in chosen}
        self.suites = tuple(suite for suite in options.suites if suite in suites)
        if not self.suites:
            raise NothingSelected("nothing selected: no such case in these suites")
        self.server = served(options.serve, self.manifest) if options.serve else None
        if self.server is None:
            self.address = address.read(options.target, allow_remote=options.allow_remote)
        else:
            port = wire.free_port()
            self.address = address.Address("127.0.0.1", port, f"127.0.0.1:{port}")
        self.last: Run | None = None
        self.folder = run.folder(options.out)

    def check(self) -> Run:
        """Fire all suites at the target.

        :raises Unusable: nothing answers there, or the target died; ``last`` holds what is known.
        """
        if self.server is None:
            return self._check(lambda: None)
        where = self.address
        runtime.prepare(self.server, "process", say=self.events.say)
        running = runtime.start(
            self.server, "process", address=where.address, port=where.port, workers=1, cpus=None,
            run_id=secrets.token_hex(3), conformance=True,
        )  # fmt: skip
        try:
            return self._check(
                lambda: None if running.alive() else f"died: {running.exit_reason()}"
            )
        finally:
            running.stop()

    def _target(self, death: Callable[[], str | None]) -> conformance.Target:
        """Whom to ask, and what it can do: declared, else found by asking.

        :raises Unusable: nothing answers there.
        """
        target = _target(
            self.address, path=self.options.path, host=self.options.host, cacert=self.options.cacert
        )
        target = msgspec.structs.replace(
            target, death=death, jobs=self.options.jobs, header=self.options.header
        )
        if conformance.hello(target) is None:
            raise Unusable(f"{self.options.target}: nothing answers there: is the server running?")
        declared = self.manifest
        if declared is None:
            return msgspec.structs.replace(target, capabilities=discovery.capabilities(target))
        return msgspec.structs.replace(
            target,
            capabilities=declared.capabilities,
            limits=declared.limits | declared.conformance.limits,
            timeouts=declared.timeouts | declared.conformance.timeouts,
            answers_1_0_as_1_0=declared.answers_1_0_as_1_0,
        )

    def _check(self, death: Callable[[], str | None]) -> Run:
        target = self._target(death)
        started = run.now()
        suites: dict[str, SuiteResult] = {}
        died: str | None = None
        interrupted = True
        try:
            for suite in self.suites:
                fired = conformance.Fired()
                task = f"{suite}: {self.options.target}"
                cutting = run.Cutting(self.events, task)
                total = sum(
                    family.count
                    for family in self.catalogue.of_suite(suite)
                    if family.id in self.selected
                )
                with Evidence(self.folder / run.EVIDENCE, create=not suites) as evidence:
                    self.events.task(task, total)
                    try:
                        conformance.fire(
                            self.catalogue,
                            suite,
                            target,
                            evidence,
                            fired,
                            progress=lambda by, task=task: self.events.advance(task, by),  # type: ignore[misc]
                            selected=lambda family: family.id in self.selected,
                            quick=self.options.quick,
                            deliveries=delivery.MODES if self.options.full else (),
                            cutting=cutting.begin,
                        )
                    except Unusable as error:
                        died = str(error)
                        raise Unusable(f"{self.options.target} {error}") from None
                    finally:
                        scored = conformance.score_suite(
                            self.catalogue, suite, target.name, evidence, fired,
                            ruleset=self.options.ruleset,
                        )  # fmt: skip
                        suites[suite] = (
                            msgspec.structs.replace(
                                scored, score_percent=None, reason=f"not scored: {died}"
                            )
                            if died
                            else scored
                        )
                cutting.done(scored.deliveries)
                percent = scored.score_percent
                shown = "no requirement of level MUST" if percent is None else f"{percent:.1f} %"
                self.events.done(task, scored.reason or shown)
            interrupted = False
        finally:
            self.last = Run(
                schema_version=SCHEMA_VERSION,
                catalogue_version=self.catalogue.version,
                harness_version=environment.version(),
                id=secrets.token_hex(3),
                started=started,
                finished=run.now(),
                interrupted=interrupted and died is None,
                quick=self.options.quick,
                seed=0,
                suites=self.suites,
                profiles=(),
                environment=environment.capture(),
                servers=(
                    ServerResult(
                        name=target.name,
                        title=self.options.target,
                        language="",
                        version=None,
                        version_reason="a target is not asked for its version",
                        runtime="address",
                        died=died,
                        compliance=Compliance(suites),
                        memory_reason="the processes of a target are not known",
                    ),
                ),
            )
            run.write(self.last, self.folder)
            run.draw(self.folder, run.read(self.folder))
        return self.last
