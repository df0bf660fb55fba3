"""The pytest plugin: an item per case, and fixtures that start a server for a project's tests.

``pytest --httpmark=http://127.0.0.1:8080/`` adds an item per case; ``--httpmark-serve COMMAND``
starts the server itself. A suite is sent once, in one batch, by the first of its items that runs,
and only the cases that are still selected (``-k``, node ids). With xdist, one worker sends it and
the others read the result. The rest is read from ``[check]`` of httpmark.toml or
``[tool.httpmark.check]`` of pyproject.toml: ``suite``, ``case``, ``exclude``, ``ruleset``,
``inconclusive``, ``baseline``, ``strict-baseline``, ``manifest``, ``path``, ``host``, ``header``,
``cacert``, ``jobs`` and ``allow-remote``.

A failure shows what was expected, what came, and how to send it again. A warning passes, with its
text in the report. An expected failure of the baseline is an xfail. A case that is inconclusive or
does not apply is skipped.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# pytest loads this in every environment with httpmark: heavy modules are imported when used.
if TYPE_CHECKING:
    from httpmark.harness.gate.findings import Finding
    from httpmark.harness.model.cases import Family

_FOLDER = "httpmark_folder"
_PLAIN = "BASE-01"  # the plain request


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("httpmark", "HTTP/1.1 conformance")
    group.addoption(
        "--httpmark", metavar="URL", help="Test the server that runs at URL: adds an item per case."
    )
    group.addoption(
        "--httpmark-serve",
        metavar="COMMAND",
        help="Start this server, test it and stop it. COMMAND has {port} where its port goes. The "
        "httpmark_server fixture uses it, too.",
    )
    group.addoption(
        "--httpmark-suite",
        metavar="NAME",
        action="append",
        default=[],
        help="Use this suite of cases. Repeatable. Default: all suites.",
    )
    group.addoption(
        "--httpmark-baseline",
        metavar="FILE",
        help="Do not fail on the failures that this file lists.",
    )
    group.addoption(
        "--httpmark-full",
        action="store_true",
        help="Send every request, not a sample of the largest families.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "httpmark: a case of the httpmark catalogue")
    if _asked(config) and not hasattr(config, "workerinput"):
        from httpmark.harness.servers import scratch_folders

        folder = scratch_folders.make("pytest")
        config.stash[_folder_key] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist where findings are shared."""
    if _folder_key in node.config.stash:
        node.workerinput[_FOLDER] = str(node.config.stash[_folder_key])


_folder_key = pytest.StashKey[Path]()
_plan_key = pytest.StashKey["Plan"]()


def _asked(config: pytest.Config) -> bool:
    return bool(config.getoption("--httpmark") or config.getoption("--httpmark-serve"))


def _folder(config: pytest.Config) -> Path:
    if hasattr(config, "workerinput"):
        return Path(config.workerinput[_FOLDER])
    return config.stash[_folder_key]


# --- items ----------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Add our suites to the project's own tests."""
    report = yield
    if isinstance(collector, pytest.Session) and report.passed and _asked(collector.config):
        from httpmark.harness.model.errors import HarnessError

        try:
            plan = collector.config.stash[_plan_key] = Plan(collector.config)
        except HarnessError as error:
            raise pytest.UsageError(f"httpmark: {error}") from None
        report.result = [
            *report.result,
            *(
                Suite.from_parent(
                    collector, name=suite, nodeid=f"httpmark::{suite}", suite=suite, plan=plan
                )
                for suite in plan.suites
            ),
        ]
    return report


class Suite(pytest.Collector):
    """The items of one suite."""

    def __init__(self, *, suite: str, plan: Plan, **rest: Any) -> None:
        super().__init__(**rest)
        self.suite, self.plan = suite, plan

    def collect(self) -> Iterator[pytest.Item]:
        for family in self.plan.suites[self.suite]:
            yield CaseItem.from_parent(
                self, name=family.id, suite=self.suite, words=_words(family), plan=self.plan
            )
        for number, level in self.plan.checks(self.suite):
            yield CaseItem.from_parent(
                self, name=number, suite=self.suite, words={level}, plan=self.plan, check=True
            )


def _words(family: Family) -> set[str]:
    """What -k can choose a case by, besides its id."""
    return {
        family.ref,
        *family.refs,
        family.group,
        family.level.value,
        family.suite,
        *family.advisories,
    } - {""}


class CaseItem(pytest.Item):
    """One designed case, one generated family, or one check on every answer of a suite."""

    def __init__(
        self, *, suite: str, words: set[str], plan: Plan, check: bool = False, **rest: Any
    ) -> None:
        super().__init__(**rest)
        self.suite, self.plan, self.check = suite, plan, check
        self.add_marker("httpmark")
        self.extra_keyword_matches |= words

    def runtest(self) -> None:
        from httpmark.harness.gate.findings import Status

        finding = self.plan.finding(self)
        if finding.status is Status.UNDECIDED:
            pytest.skip(f"inconclusive: {finding.message}")
        if finding.status is Status.NOT_APPLICABLE:
            pytest.skip(f"not applicable: {finding.message}")
        if finding.status is Status.EXPECTED:
            pytest.xfail(finding.excuse.words if finding.excuse else finding.message)
        if finding.status in (Status.FAILED, Status.UNUSABLE):
            raise CaseFailed(finding)
        if finding.status is Status.WARNED:
            self.add_report_section("call", "httpmark", told(finding))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailed):
            return told(excinfo.value.finding)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"httpmark {self.suite}: {self.name}"


class CaseFailed(Exception):
    """A case that failed; pytest shows :func:`told` of its finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def told(finding: Finding) -> str:
    """A finding in full: the rule, what was expected and seen, reproducers, the wire."""
    number = f" ({finding.ref})" if finding.ref else ""
    lines = [
        f"{finding.id}{number}: {finding.title}",
        f"{finding.level.value}: {finding.clause}" if finding.clause else finding.level.value,
        finding.message,
        *finding.details,
    ]
    if finding.reproducers:
        lines += ["to send it again:", *finding.reproducers]
    if finding.wire:
        lines += ["", finding.wire]
    return "\n".join(lines)


# --- firing ---------------------------------------------------------------------------------------


class Plan:
    """Which cases are sent to which server, and what was found so far."""

    def __init__(self, config: pytest.Config) -> None:
        """:raises HarnessError: an option or the configuration file is wrong."""
        from httpmark.harness.catalogue import loading
        from httpmark.harness.command import (
            check_options,
            configuration,
            known_commands,
            named_target,
        )
        from httpmark.harness.gate import baseline, findings
        from httpmark.harness.http import address
        from httpmark.harness.model.cases import Level

        said: dict[str, Any] = {}
        source = configuration.find(config.rootpath)
        if source is not None:
            said = configuration.defaults(source, "check", known_commands.configurable())
        option = config.getoption
        self.config = config
        self.target: str | None = option("--httpmark")
        self.command: str | None = None if self.target else option("--httpmark-serve")
        self.said = said
        self.header = check_options.field_lines(said.get("header", ()))
        # An address on the command line that has a path beats the path of the file.
        own = self.target is not None and named_target.has_own_path(self.target)
        self.path: str | None = None if own else said.get("path")
        self.quick = not option("--httpmark-full")
        self.gate = findings.Gate(
            ruleset=said.get("ruleset", "rfc"), inconclusive=said.get("inconclusive", "warn")
        )
        self.catalogue = loading.load()
        file = option("--httpmark-baseline") or said.get("baseline_path")
        known = findings.listable(self.catalogue.families)
        self.strict = bool(said.get("strict_baseline"))
        self.baseline = baseline.read(Path(file), known=known) if file else None
        if self.target is not None:
            address.read(self.target, allow_remote=bool(said.get("allow_remote")))
        chosen = self.catalogue.select(said.get("cases", ()), said.get("exclude", ()))
        wanted = tuple(option("--httpmark-suite")) or said.get("suites", self.catalogue.suites)
        self.suites: dict[str, list[Family]] = {}
        for suite in wanted:
            self.suites[self.catalogue.suite(suite)] = [
                family
                for family in self.catalogue.of_suite(suite)
                # The published suite reports its controls together, in its reason.
                if family.id in chosen and not (suite == "seed" and family.level is Level.CTRL)
            ]
        self._found: dict[str, dict[str, Finding]] = {}

    def checks(self, suite: str) -> list[tuple[str, str]]:
        """The checks on every answer, with their levels; the published suite has none."""
        from httpmark.harness.judging.response_rules.rule_table import RULES

        return [(name, check.level.value) for name, check in RULES.items() if suite != "seed"]

    def finding(self, item: CaseItem) -> Finding:
        """The finding of one item. The first item of a suite fires the suite."""
        from httpmark.harness.gate.findings import CUT, Status
        from httpmark.harness.model.crashes import crash_id

        if item.suite not in self._found:
            self._found[item.suite] = self._shared(item.suite, item.session)
        found = self._found[item.suite]
        if (crash := found.get(crash_id(item.name))) is not None:
            return crash
        own = found.get(item.name)
        if own is None:
            return _unjudged(item, found)
        cut = found.get(f"{item.name}{CUT}")
        # A case that passes in one write but not in pieces does not pass.
        return cut if cut is not None and own.status in (Status.PASSED, Status.WARNED) else own

    def _shared(self, suite: str, session: pytest.Session) -> dict[str, Finding]:
        """Fire the suite, or wait for the worker that does, and read what it found."""
        import msgspec

        from httpmark.harness.gate.findings import Finding

        folder = _folder(self.config)
        file = folder / f"{suite}.json"
        with (folder / f"{suite}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                own = [
                    item
                    for item in session.items
                    if isinstance(item, CaseItem) and item.suite == suite
                ]
                ids = [item.name for item in own if not item.check]
                # A check looks at the answers of all cases.
                ids = ids or [family.id for family in self.suites[suite]]
                found = self._fire(suite, ids, folder / suite)
                file.write_bytes(msgspec.json.encode(found))
        read = msgspec.json.decode(file.read_bytes(), type=list[Finding])
        return {finding.id: finding for finding in read}

    def _fire(self, suite: str, ids: list[str], out: Path) -> list[Finding]:
        from httpmark.harness.command import check_options, check_session
        from httpmark.harness.gate import findings
        from httpmark.harness.gate.baseline import hold
        from httpmark.harness.model.cases import Level
        from httpmark.harness.model.errors import HarnessError
        from httpmark.harness.report import failure_examples

        whole = len(ids) == len(self.suites[suite])
        # Also a few cases need the controls: good requests must be accepted.
        controls = [
            family.id
            for family in self.catalogue.of_suite(suite)
            if (family.level is Level.CTRL if suite == "seed" else _PLAIN in family.refs)
        ]
        options = check_options.Options(
            target=self.target or self.command or "",
            serve=self.command,
            suites=(suite,),
            cases=() if whole and not self.said.get("cases") else (*controls, *ids),
            exclude=tuple(self.said.get("exclude", ())) if whole else (),
            quick=self.quick,
            path=self.path,
            post_path=self.said.get("post_path"),
            host=self.said.get("host"),
            header=self.header,
            cacert=self.said.get("cacert"),
            jobs=self.said.get("jobs"),
            allow_remote=bool(self.said.get("allow_remote")),
            manifest=self.said.get("manifest"),
            ruleset=self.gate.ruleset,
            out=out,
        )
        checker = check_session.Checker(options, _Silent())
        trouble = None
        try:
            checker.check()
        except HarnessError as error:
            trouble = str(error)
        if checker.last is None:
            return [_trouble(suite, trouble or "the check ended without a result")]
        found = findings.findings(checker.last, gate=self.gate, families=self.catalogue.families)
        found = failure_examples.of_run(found, checker.folder, checker.last)
        if self.baseline is not None:
            today = datetime.datetime.now(datetime.UTC).date()
            found = hold(found, self.baseline, today=today, strict=self.strict)
        return [*found, *([_trouble(suite, trouble)] if trouble else [])]


def _trouble(suite: str, why: str) -> Finding:
    from httpmark.harness.gate.findings import Finding, Status
    from httpmark.harness.model.cases import Level

    return Finding(
        server="target",
        suite=suite,
        id="server",
        title="the server can be judged",
        level=Level.CTRL,
        clause="",
        status=Status.UNUSABLE,
        message=why,
    )


def _unjudged(item: CaseItem, found: dict[str, Finding]) -> Finding:
    """The finding of a case without a verdict: why nothing could be judged, or that it was not
    sent."""
    import msgspec

    from httpmark.harness.gate import crashes
    from httpmark.harness.gate.findings import Finding, Status
    from httpmark.harness.model.cases import Level

    spoiling = ("controls", crashes.NAMELESS)
    failed = [one for one in found.values() if one.id in spoiling and one.status is Status.FAILED]
    unusable = [one for one in found.values() if one.status is Status.UNUSABLE]
    if why := [*failed, *unusable]:
        return msgspec.structs.replace(why[0], status=Status.UNUSABLE)
    return Finding(
        server="target",
        suite=item.suite,
        id=item.name,
        title=item.name,
        level=Level.INFO,
        clause="",
        status=Status.NOT_APPLICABLE if item.check else Status.UNDECIDED,
        message="no answer is of the kind that this check is for"
        if item.check
        else "it was not sent",
    )


class _Silent:
    """Progress that is not shown: pytest has its own."""

    def say(self, line: str) -> None: ...

    def task(self, name: str, total: int) -> None: ...

    def advance(self, name: str, by: int) -> None: ...

    def done(self, name: str, result: str) -> None: ...


# --- fixtures -------------------------------------------------------------------------------------

Serve = Callable[[str], str]


@contextlib.contextmanager
def _serving(command: str) -> Iterator[str]:
    """Start a command with ``{port}``, give its address, and stop it after the block."""
    import secrets

    from httpmark.harness.command import named_target
    from httpmark.harness.servers import sockets, starting

    server = named_target.served(command, None)
    port = sockets.free_port()
    running = starting.start(
        server, "process", address="127.0.0.1", port=port, workers=1, cpus=None,
        run_id=secrets.token_hex(3),
    )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        running.stop()


@pytest.fixture(scope="session")
def httpmark_server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of the project's server: that of ``--httpmark``, else one started for the
    session by ``--httpmark-serve`` or the ``serve`` of the configuration file."""
    from httpmark.harness.command import configuration, known_commands

    config = request.config
    if config.getoption("--httpmark"):
        yield config.getoption("--httpmark")
        return
    command = config.getoption("--httpmark-serve")
    if command is None:
        source = configuration.find(config.rootpath)
        said = (
            configuration.defaults(source, "check", known_commands.configurable()) if source else {}
        )
        command = said.get("serve")
    if command is None:
        pytest.fail(
            "httpmark_server: name the server with --httpmark-serve 'COMMAND with {port}', or as "
            "serve in [tool.httpmark.check] of pyproject.toml",
            pytrace=False,
        )
    with _serving(command) as url:
        yield url


@pytest.fixture
def httpmark_serve() -> Iterator[Serve]:
    """Start servers in a test: ``url = httpmark_serve("./server --strict --port {port}")``.

    Each answers when its address is returned, and is stopped after the test.
    """
    with contextlib.ExitStack() as stack:
        yield lambda command: stack.enter_context(_serving(command))
