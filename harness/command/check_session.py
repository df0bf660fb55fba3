"""The gate for a server somebody else started: one address, suites, a result, an exit code."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from httpmark.harness.catalogue import catalogue, delivery_modes, loading
from httpmark.harness.command import run_session, stored_runs
from httpmark.harness.firing import conformance, discovery, shrinking, targets, time_budget
from httpmark.harness.gate import findings
from httpmark.harness.http import address, grammar
from httpmark.harness.judging import quick_look, second_process, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model import progress, run_folder
from httpmark.harness.model.cases import Family
from httpmark.harness.model.errors import HarnessError, NothingSelected, Unusable
from httpmark.harness.model.run import SCHEMA_VERSION, Conclusion, Run, ServerResult
from httpmark.harness.model.servers import ProcessRecipe, Server
from httpmark.harness.model.verdicts import Compliance, SuiteResult, Tally, Word
from httpmark.harness.servers import machine, manifests, sockets, starting


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What to check."""

    target: str
    suites: tuple[str, ...]
    quick: bool = False
    hurry: bool = False  # somebody waits: what there is no time for is left void
    full: bool = False  # every delivery, too
    path: str | None = None  # None: that of the target's URL, else PATH
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

    @property
    def again(self) -> tuple[str, ...]:
        """The words that say the same to ``check`` and ``replay`` (``ServerResult.again``)."""
        said = ["--serve", self.serve] if self.serve is not None else [self.target]
        for option, value in (
            ("--path", self.path),
            ("--host", self.host),
            *(("--header", _masked(line)) for line in self.header),
            ("--cacert", self.cacert),
            ("--manifest", self.manifest),
        ):
            said += [option, str(value)] if value is not None else []
        said += ["--allow-remote"] * self.allow_remote
        said += ["--ruleset", self.ruleset] * (self.ruleset != "rfc")
        return tuple(said)


PATH = "/hello"
"""What is asked for where neither ``--path`` nor the target's URL names a path."""

_PATH = re.compile(r"/[!-~]*")
_NO_PATH = ("", "/")  # an address that is written with and without the slash means the same

_MASK = "***"


def own_path(target: str) -> bool:
    """Whether a target's URL names the path that is asked for.

    :raises HarnessError: it is no target.
    """
    return address.read(target, allow_remote=True).path not in _NO_PATH


def _masked(line: str) -> str:
    """A field line without its value, which may be a secret."""
    return f"{line.partition(':')[0]}: {_MASK}"


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
        name, _, value = line.partition(":")
        if value.strip() == _MASK:
            raise HarnessError(f"--header: {name}: write its value where {_MASK} stands for it")
        if name.lower() in _FRAMING:
            raise HarnessError(f"--header: {name} is what the cases are about; leave it out")
    return lines


def asked(
    text: str,
    *,
    path: str | None = None,
    host: str | None = None,
    header: tuple[str, ...] = (),
    cacert: Path | None = None,
    manifest: Path | None = None,
    allow_remote: bool,
) -> targets.Target:
    """A target by its address, with what it can do.

    :param path: as the other words, what ``httpmark check`` was told.
    :raises HarnessError: no address, another machine without leave, or no manifest.
    :raises Unusable: nothing answers there.
    """
    options = Options(target=text, suites=(), path=path, host=host, header=header, cacert=cacert)
    declared = manifests.declared(manifest) if manifest else None
    return _asked(options, address.read(text, allow_remote=allow_remote), declared)


def _path(options: Options, where: address.Address) -> str:
    """The path that is asked for.

    :raises HarnessError: it is none that a request line could name.
    """
    own = where.path if where.path not in _NO_PATH else PATH
    path = own if options.path is None else options.path
    if _PATH.fullmatch(path) is None:
        raise HarnessError(f"{path!r} is no path: write /health, other octets as %XX")
    return path


def _asked(
    options: Options,
    where: address.Address,
    declared: Server | None,
    death: Callable[[], str | None] = lambda: None,
) -> targets.Target:
    """Whom to ask, and what it can do: declared, else found by asking.

    :raises Unusable: nothing answers there.
    """
    path = _path(options, where)
    found = where.address if where.unix else sockets.resolved(where.address, where.port)
    if found is None:
        raise Unusable(f"{options.target}: no address is known of {where.name}: is it right?")
    target = targets.Target(
        name="target",
        address=found,
        port=where.port,
        host=options.host or where.host,
        path=path,
        unix=where.unix,
        tls=where.tls,
        tls_name=where.name if where.tls else None,
        ca_file=str(options.cacert) if options.cacert else None,
        jobs=options.jobs,
        header=options.header,
        death=death,
    )
    answer = targets.hello(target)
    if answer is None:
        raise Unusable(f"{options.target}: nothing answers there: is the server running?")
    # The first answer of all may take its time; who is silent twice has nothing to show.
    is_mute = not answer and not targets.hello(target)
    said = declared.capabilities if declared is not None else ()
    capabilities = said or (("hello",) if is_mute else discovery.capabilities(target))
    if declared is None:
        return msgspec.structs.replace(target, capabilities=capabilities)
    return msgspec.structs.replace(
        target,
        capabilities=capabilities,
        limits=declared.limits | declared.conformance.limits,
        timeouts=declared.timeouts | declared.conformance.timeouts,
        answers_1_0_as_1_0=declared.answers_1_0_as_1_0,
    )


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
    """The entries that failed in an earlier run: cases and families, and those whose answers failed
    a check on every answer, or whose deliveries disagreed.

    :raises HarnessError: the folder holds no run.
    :raises NothingSelected: nothing failed there.
    """
    found: list[str] = []
    for server in run_folder.read(path).servers:
        for suite in server.compliance.suites.values():
            found += (id for id, verdict in suite.cases.items() if verdict.word in _FAILED)
            found += (id for id, tally in suite.generated.items() if _has_failed(tally))
            found += (id for id, one in suite.families.items() if one.undetected or one.mute)
            for tally in suite.answers.values():
                found += (one.case for one in tally.failures if one.word in _FAILED)
            if suite.controls is not None:
                found += (one.case for one in suite.controls.failures)
            if suite.deliveries is not None:
                found += (one.case for one in suite.deliveries.disagreements)
    entries = (_entry(id, known) for id in found)
    chosen = tuple(dict.fromkeys(entry for entry in entries if entry is not None))
    if not chosen:
        raise NothingSelected(f"{path}: nothing failed there")
    return chosen


_FAILED = (Word.FAIL, Word.UNSTABLE)


def _entry(case: str, known: catalogue.Catalogue) -> str | None:
    """The entry of the catalogue that a case is of: its own, or the family that it begins with."""
    if case in known.families:
        return case
    families = (id for id, family in known.families.items() if family.generated)
    return max((id for id in families if case.startswith(f"{id}-")), key=len, default=None)


def _has_failed(tally: Tally) -> bool:
    return any(words.get(word) for words in tally.words.values() for word in _FAILED)


def for_terminal(result: Run) -> Run:
    """The result without what a check never measures, which is no news."""
    return msgspec.structs.replace(
        result,
        servers=tuple(msgspec.structs.replace(one, memory_reason=None) for one in result.servers),
    )


def _advice(target: targets.Target) -> str:
    """What to add where the plain request is not accepted; nothing where it is."""
    if targets.accepts(target):
        return ""
    if targets.accepts(msgspec.structs.replace(target, path="/")):
        return f"GET {target.path} is not accepted, GET / is: add --path /"
    return (
        f"GET {target.path} is not accepted: name a path that is, as --path /health, or what the "
        "server asks for with --host or --header"
    )


def _score(scored: SuiteResult) -> str:
    """A suite's score in words, with what it is of."""
    must = scored.must
    if scored.score_percent is None:
        idle = (must or {}).get("not_applicable", 0)
        return f"none of {idle} MUSTs and controls applicable" if idle else "no MUST was asked for"
    if must is None:
        return f"{findings.floor(scored.score_percent)} %"
    asked = sum(must.get(word, 0) for word in ("passed", "failed", "warned", "void", "unstable"))
    return (
        f"{findings.floor(scored.score_percent)} % of {asked} MUSTs and controls; "
        f"{must.get('not_applicable', 0)} more not applicable"
    )


class Checker:
    """Checks one target; ``last`` is the result as far as it came."""

    def __init__(self, options: Options, events: progress.Events) -> None:
        self.options = options
        self.events = events
        self.catalogue = loading.load()
        for suite in options.suites:
            self.catalogue.suite(suite)
        if not options.suites:
            raise NothingSelected("nothing selected: name a suite")
        self.manifest = manifests.declared(options.manifest) if options.manifest else None
        wanted = options.cases
        if options.rerun is not None:
            wanted = (*wanted, *failures(options.rerun, self.catalogue))
        if options.ruleset == "realistic" and not wanted:
            wanted = ("realistic",)  # nothing else is judged by it
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
            port = sockets.free_port()
            self.address = address.loopback(port)
        _path(options, self.address)  # before anything is started
        self.last: Run | None = None
        self.budget = time_budget.TimeBudget.from_now() if options.hurry else None
        self.folder = run_folder.folder(options.out)

    def check(self) -> Run:
        """Fire all suites at the target.

        :raises Unusable: nothing answers there, or the target died; ``last`` holds what is known.
        """
        if self.server is None:
            return self._check(lambda: None)
        where = self.address
        starting.prepare(self.server, "process", say=self.events.say)
        running = starting.start(
            self.server, "process", address=where.address, port=where.port, workers=1, cpus=None,
            run_id=secrets.token_hex(3), conformance=True,
        )  # fmt: skip
        try:
            return self._check(
                lambda: None if running.alive() else f"died: {running.exit_reason()}"
            )
        finally:
            running.stop()

    def _check(self, death: Callable[[], str | None]) -> Run:
        with second_process.SecondProcess() as second:
            # It gets ready while the target is asked what it can do, which is mostly waiting.
            second.start(self._size(self.suites))
            return self._fire(death, second)

    def _fire(self, death: Callable[[], str | None], second: second_process.SecondProcess) -> Run:
        target = _asked(self.options, self.address, self.manifest, death)
        advice = _advice(target)
        started = run_folder.now()
        suites: dict[str, SuiteResult] = {}
        died: str | None = None
        interrupted = True
        try:
            for group in self._groups():
                fired = suite_results.Fired()
                task = f"{', '.join(group)}: {self.options.target}"
                cutting = run_session.Cutting(self.events, task)
                with Evidence(self.folder / run_folder.EVIDENCE, create=not suites) as evidence:
                    self.events.task(task, self._size(group))
                    try:
                        conformance.fire(
                            self.catalogue,
                            group[0],
                            target,
                            evidence,
                            fired,
                            along=group[1:],
                            progress=lambda by, task=task: self.events.advance(task, by),  # type: ignore[misc]
                            selected=self._is_selected,
                            quick=self.options.quick,
                            budget=self.budget,
                            second=second,
                            deliveries=delivery_modes.MODES if self.options.full else (),
                            cutting=cutting.begin,
                        )
                    except Unusable as error:
                        died = str(error)
                        raise Unusable(f"{self.options.target} {error}") from None
                    finally:
                        for suite in group:
                            scored = suite_results.score_suite(
                                self.catalogue, suite, target.name, evidence, fired,
                                ruleset=self.options.ruleset,
                            )  # fmt: skip
                            if died:
                                scored = msgspec.structs.replace(
                                    scored, score_percent=None, reason=f"not scored: {died}"
                                )
                            elif advice and scored.reason:
                                scored = msgspec.structs.replace(
                                    scored, reason=f"{scored.reason}: {advice}"
                                )
                            suites[suite] = scored
                for suite in group:
                    cutting.done(suites[suite].deliveries)
                self.events.done(
                    task,
                    "; ".join(
                        (f"{suite} " if len(group) > 1 else "")
                        + (suites[suite].reason or _score(suites[suite]))
                        for suite in group
                    ),
                )
            if not self.options.quick:
                self._shrink(target, suites)
            interrupted = False
        finally:
            self.last = Run(
                schema_version=SCHEMA_VERSION,
                catalogue_version=self.catalogue.version,
                harness_version=machine.version(),
                id=secrets.token_hex(3),
                started=started,
                finished=run_folder.now(),
                interrupted=interrupted and died is None,
                quick=self.options.quick,
                seed=0,
                suites=self.suites,
                profiles=(),
                environment=machine.capture(),
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
                        again=self.options.again,
                    ),
                ),
            )
            run_folder.write(self.last, self.folder)
        return self.last

    def _is_selected(self, family: Family) -> bool:
        return family.id in self.selected

    def _size(self, suites: tuple[str, ...]) -> int:
        """How many cases of these suites go out."""
        return quick_look.size(self.catalogue, suites, self._is_selected, quick=self.options.quick)

    def _groups(self) -> list[tuple[str, ...]]:
        """The suites, those together that are fired in one go: where somebody waits, all share the
        waits there are."""
        if self.budget is not None and "seed" not in self.suites:
            return [self.suites]
        return [(suite,) for suite in self.suites]

    def _shrink(self, target: targets.Target, suites: dict[str, SuiteResult]) -> None:
        """Make the failing requests smaller: when all is fired and judged, so that a target which
        does not survive it has its verdicts."""
        end = time.monotonic() + shrinking.BUDGET_S
        with Evidence(self.folder / run_folder.EVIDENCE) as evidence:
            for suite in suites.values():
                shrinking.of_suite(
                    self.catalogue, suite, target, evidence, seconds=end - time.monotonic()
                )

    def conclude(self, conclusion: Conclusion) -> Run:
        """Keep what the gate makes of the result beside it, and draw the page."""
        assert self.last is not None, "nothing was checked"
        self.last = msgspec.structs.replace(self.last, conclusion=conclusion)
        run_folder.write(self.last, self.folder)
        stored_runs.draw(self.folder, run_folder.read(self.folder))
        return self.last
