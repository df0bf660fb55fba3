"""The gate for a server somebody else started: one address, suites, a result, an exit code."""

from __future__ import annotations

import ipaddress
import secrets
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from httpmark.harness import catalogue, conformance, environment, run
from httpmark.harness.evidence import Evidence
from httpmark.harness.model import (
    SCHEMA_VERSION,
    Compliance,
    HarnessError,
    NothingSelected,
    Run,
    ServerResult,
    SuiteResult,
    Unusable,
)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What to check."""

    target: str
    suites: tuple[str, ...]
    quick: bool = False
    path: str = "/hello"
    host: str | None = None
    allow_remote: bool = False
    out: Path | None = None


class Address(msgspec.Struct, frozen=True):
    """Where a target listens, and the Host value of its URL."""

    address: str
    port: int
    host: str


def address(text: str, *, allow_remote: bool) -> Address:
    """Read ``http://host:port/`` or ``host:port``.

    :raises HarnessError: it is neither, or names another machine without leave.
    """
    split = urlsplit(text if "://" in text else f"http://{text}")
    if split.scheme != "http":
        raise HarnessError(f"{text}: only http:// targets so far")
    try:
        port = split.port or 80
    except ValueError:
        raise HarnessError(f"{text}: the port must be a number from 1 to 65535") from None
    if not split.hostname:
        raise HarnessError(f"{text}: no host; write http://127.0.0.1:8080/")
    name = "127.0.0.1" if split.hostname == "localhost" else split.hostname
    try:
        local = ipaddress.ip_address(name).is_loopback
    except ValueError:
        local = False
    if not local and not allow_remote:
        raise HarnessError(f"{text} is not this machine: add --allow-remote if you may test it")
    return Address(name, port, split.netloc.rpartition("@")[2])


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
        self.address = address(options.target, allow_remote=options.allow_remote)
        self.last: Run | None = None
        self.folder = run.folder(options.out)

    def check(self) -> Run:
        """Fire all suites at the target.

        :raises Unusable: nothing answers there, or the target died; ``last`` holds what is known.
        """
        where = self.address
        target = conformance.Target(
            name="target",
            address=where.address,
            port=where.port,
            host=self.options.host or where.host,
            path=self.options.path,
        )
        started = run.now()
        suites: dict[str, SuiteResult] = {}
        died: str | None = None
        interrupted = True
        if conformance.hello(target) is None:
            raise Unusable(f"{self.options.target}: nothing answers there: is the server running?")
        try:
            for suite in self.options.suites:
                fired = conformance.Fired()
                task = f"{suite}: {self.options.target}"
                total = sum(family.count for family in self.catalogue.of_suite(suite))
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
                        )
                    except Unusable as error:
                        died = str(error)
                        raise Unusable(f"{self.options.target} {error}") from None
                    finally:
                        scored = conformance.score_suite(
                            self.catalogue, suite, target.name, evidence, fired
                        )
                        suites[suite] = (
                            msgspec.structs.replace(
                                scored, score_percent=None, reason=f"not scored: {died}"
                            )
                            if died
                            else scored
                        )
                self.events.done(task, scored.reason or f"{scored.score_percent:.1f} %")
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
                suites=self.options.suites,
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
