"""`httpmark check`: the gate for one running server."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from httpmark.harness.command import options, printing, progress_display, run_argument
from httpmark.harness.command.printing import is_github_action
from httpmark.harness.model import progress, run_folder
from httpmark.harness.model.errors import HarnessError

if TYPE_CHECKING:
    from httpmark.harness.command import check_options, check_session, outputs
    from httpmark.harness.gate import baseline, findings

Command = TypeVar("Command", bound=Callable[..., Any])


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the command, as click names them."""

    target: str | None
    serve: str | None
    suites: tuple[str, ...]
    cases: tuple[str, ...]
    exclude: tuple[str, ...]
    rerun: Path | None
    quick: bool
    full: bool
    manifest: Path | None
    path: str | None
    post_path: str | None
    host: str | None
    header: tuple[str, ...]
    cacert: Path | None
    jobs: int | None
    allow_remote: bool
    ruleset: str
    fail_under: float | None
    inconclusive: str
    baseline_path: Path | None
    strict_baseline: bool
    update: bool
    growth: str | None
    json_path: Path | None
    junit_path: Path | None
    sarif_path: Path | None
    summary_path: Path | None
    code_quality_path: Path | None
    metrics_path: Path | None
    outputs_path: Path | None
    out: Path | None
    colour: str

    @property
    def files(self) -> dict[str, Path | None]:
        """The files that are asked for, by the name of their format."""
        return {
            "junit": self.junit_path,
            "sarif": self.sarif_path,
            "summary": self.summary_path,
            "code-quality": self.code_quality_path,
            "metrics": self.metrics_path,
        }


def _selected(command: Command) -> Command:
    """Which cases are sent, and how many of them."""
    for option in reversed(
        (
            click.option(
                "--suite",
                "suites",
                multiple=True,
                metavar="NAME",
                help="Use this conformance suite. Repeatable. 'httpmark list suites' shows the "
                "names.  [default: rfc, smuggling and found; with --quick rfc and "
                "smuggling; with --ruleset seed only that]",
            ),
            click.option(
                "--case",
                "cases",
                multiple=True,
                metavar="SELECTOR",
                help="Use only these cases: an id, a number, a family, a clause as 9112/6.3, a "
                "level or an advisory. Repeatable.",
            ),
            click.option(
                "--exclude",
                multiple=True,
                metavar="SELECTOR",
                help="Leave these cases out. Repeatable.",
            ),
            click.option(
                "--rerun",
                metavar="RUN",
                type=run_argument.RunFolder(),
                help="Use only the cases that failed in this run folder, or in the 'latest' one.",
            ),
            click.option(
                "--quick",
                is_flag=True,
                help="Answer within seconds: send a sample of the largest families, ask again only "
                "once about failures, and do not make failing requests smaller. Cases that there "
                "was no time for are void.",
            ),
            click.option(
                "--full",
                is_flag=True,
                help="Use every suite and all of the largest families, and send each case in "
                "every delivery.",
            ),
        )
    ):
        command = option(command)
    return command


def _gated(command: Command) -> Command:
    """What fails, and what the baseline excuses."""
    for option in reversed(
        (
            click.option(
                "--fail-under",
                type=options.Number(0, 100),
                metavar="PERCENT",
                help="Fail if the score of a suite is below this percentage.",
            ),
            click.option(
                "--inconclusive",
                type=options.INCONCLUSIVE,
                default="warn",
                help="What undecided cases do if nothing failed. With warn, the exit code is 4 if "
                "a control or more than one MUST in twenty is undecided; with fail, if any case "
                "is; with pass, never. They are listed.",
            ),
            options.file(
                "--baseline",
                "baseline_path",
                "Do not fail on the failures that this file lists. --allow-growth creates it.",
            ),
            click.option(
                "--strict-baseline",
                is_flag=True,
                help="Fail if a failure that the baseline lists has passed.",
            ),
            click.option(
                "--update",
                is_flag=True,
                help="Remove from the baseline what has passed. Nothing is added.",
            ),
            click.option(
                "--allow-growth",
                "growth",
                metavar="REASON",
                help="Add new failures to the baseline, with this reason.",
            ),
        )
    ):
        command = option(command)
    return command


def _written(command: Command) -> Command:
    """The files that a check writes."""
    for option in reversed(
        (
            options.file("--json", "json_path", "Write the result as JSON into this file."),
            options.file("--junit", "junit_path", "Write JUnit XML into this file."),
            options.file("--sarif", "sarif_path", "Write SARIF 2.1.0 into this file."),
            options.file("--summary", "summary_path", "Write a Markdown summary into this file."),
            options.file(
                "--code-quality",
                "code_quality_path",
                "Write GitLab's code quality JSON into this file.",
            ),
            options.file("--metrics", "metrics_path", "Write OpenMetrics text into this file."),
            options.file(
                "--outputs",
                "outputs_path",
                "Write every format and the page into this folder.",
            ),
            options.out,
            options.colour,
        )
    ):
        command = option(command)
    return command


@click.command("check")
@click.argument("target", required=False)
@options.configured
@options.serve
@_selected
@options.addressed
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    help="Open at most this many connections at once.",
)
@_gated
@_written
@options.takes(Words)
def command(words: Words) -> None:
    """Test one running server and set the exit code.

    \b
    TARGET is the address of a server that runs:
      http://127.0.0.1:8080/         port 80 where none is written, 443 with https
      http://127.0.0.1:8080/health   with a path, the same as --path /health
      https://127.0.0.1:8443/        over TLS; --cacert verifies the certificate
      127.0.0.1:8080                 the same as http://127.0.0.1:8080/
      localhost:8080                 the same as 127.0.0.1:8080, with Host: localhost:8080
      http://[::1]:8080/             IPv6, in brackets; also [::1]:8080
      unix:/run/server.sock          a Unix socket; the path may be relative
      http://192.0.2.7/              another machine: needs --allow-remote

    With --serve COMMAND instead of a TARGET, httpmark starts the server itself and stops it.

    \b
    Exit codes:
      0  every gate passed
      1  a gate failed: a MUST, a control, --fail-under, or a change for the worse
      2  usage or configuration
      3  the server cannot be tested
      4  inconclusive, see --inconclusive
      5  no case was selected

    \b
    Examples:
      httpmark check http://127.0.0.1:8080/health --quick
      httpmark check unix:server.sock --host example.org --suite smuggling
      httpmark check --serve "./server --port {port}" --case 9112/6.3
    """
    from httpmark.harness.catalogue import loading
    from httpmark.harness.command import check_session
    from httpmark.harness.gate import baseline, findings

    asked = _options(words)
    gate = findings.Gate(
        ruleset=words.ruleset, fail_under=words.fail_under, inconclusive=words.inconclusive
    )
    held = baseline.opened(
        words.baseline_path,
        known=findings.listable(loading.load().families),
        update=words.update,
        growth=words.growth,
        strict=words.strict_baseline,
    )
    with progress_display.display() as events:
        checker = check_session.Checker(asked, events)
        try:
            checker.check()
        finally:
            # An interrupted check is concluded, too: its files say what is known.
            if checker.last is not None:
                with progress.undisturbed():
                    concluded = _conclude(checker, words, gate, held, events.say)
    _print(concluded, checker, words.colour)
    if words.baseline_path is not None and not words.baseline_path.exists():
        failed = any(one.status is findings.Status.FAILED for one in concluded.found)
        printing.echo(f"baseline: {baseline.lacking(words.baseline_path, failed=failed)}")
    raise SystemExit(concluded.code)


def _options(words: Words) -> check_options.Options:
    """What to check.

    :raises HarnessError: the words contradict each other, or name no target.
    """
    from httpmark.harness.command import check_options

    quick = options.is_quick(words.quick, words.full)
    target, serve, path = _target(words.target, words.serve, words.path)
    full = words.full and not quick
    return check_options.Options(
        target=target,
        suites=words.suites or _default_suites(words.ruleset, quick=quick, full=full),
        quick=quick,
        full=full,
        path=path,
        post_path=words.post_path,
        host=words.host,
        header=check_options.field_lines(words.header),
        allow_remote=words.allow_remote,
        out=words.out,
        cases=words.cases,
        exclude=words.exclude,
        ruleset=words.ruleset,
        manifest=words.manifest,
        cacert=words.cacert,
        jobs=words.jobs,
        serve=serve,
        rerun=words.rerun,
    )


def _default_suites(ruleset: str, *, quick: bool, full: bool) -> tuple[str, ...]:
    """The suites that are fired where none is named."""
    from httpmark.harness.catalogue import loading

    if ruleset == "seed":
        return ("seed",)  # nothing else is judged by it
    return loading.load().default_suites(quick=quick, full=full, only_one=True)


def _target(
    target: str | None, serve: str | None, path: str | None
) -> tuple[str, str | None, str | None]:
    """TARGET or --serve, and the path. One of them on the command line replaces the other one of
    the configuration file; a TARGET with a path replaces the path of the file.

    :raises HarnessError: neither is named, or both in one place.
    """
    from httpmark.harness.command import named_target

    source = click.get_current_context().get_parameter_source
    from_file = click.core.ParameterSource.DEFAULT_MAP
    if target is not None and serve is not None:
        if source("target") is source("serve"):
            raise HarnessError("check: a TARGET and --serve exclude each other: leave one out")
        target, serve = (None, serve) if source("target") is from_file else (target, None)
    if target is None and serve is None:
        raise HarnessError("check: name a TARGET, as http://127.0.0.1:8080/, or --serve COMMAND")
    if target is not None and source("target") is not from_file and source("path") is from_file:
        path = None if named_target.has_own_path(target) else path
    return target or serve or "", serve, path


def _conclude(
    checker: check_session.Checker,
    words: Words,
    gate: findings.Gate,
    held: baseline.Baseline | None,
    say: Callable[[str], None],
) -> outputs.Gated:
    """Judge the result by the gate, keep that in the run folder, and write the files."""
    from httpmark.harness.command import outputs
    from httpmark.harness.gate import baseline, conclusion, findings
    from httpmark.harness.report import failure_examples

    assert checker.last is not None
    families = checker.catalogue.families
    raw = findings.findings(checker.last, gate=gate, families=families)
    raw = failure_examples.of_run(raw, checker.folder, checker.last)
    if held is not None:
        held, changes = baseline.changed(
            held, raw, update=words.update, growth=words.growth,
            known=findings.listable(families), whole=not checker.last.interrupted,
        )  # fmt: skip
        for line in changes:
            say(f"{held.path}: {line}")
    stop = sys.exc_info()[1]
    gated = outputs.gated(
        checker.last, raw, gate=gate, held=held, strict=words.strict_baseline,
        today=datetime.datetime.now(datetime.UTC).date(),
        signal=stop.signal if isinstance(stop, progress.Interrupted) else 2,
    )  # fmt: skip
    told = conclusion.conclusion(gated.run, gated.found, gated.code)
    gated = msgspec.structs.replace(gated, run=checker.conclude(told))
    if words.json_path is not None:
        outputs.write(words.json_path, msgspec.json.encode(gated.run).decode())
    for name, file in words.files.items():
        if file is not None:
            outputs.write(file, outputs.render(name, gated))
    if words.outputs_path is not None:
        outputs.write_all(gated, words.outputs_path)
        page = (checker.folder / run_folder.REPORT).read_text("utf-8")
        outputs.write(words.outputs_path / run_folder.REPORT, page)
    return gated


def _print(gated: outputs.Gated, checker: check_session.Checker, colour: str) -> None:
    """The verdict and what it rests on, and annotations where GitHub reads them."""
    from httpmark.harness.command import outputs, painting
    from httpmark.harness.gate import github

    painting.print_lines(outputs.verdict_lines(gated, checker.folder, painting.columns()), colour)
    printing.echo(f"report: {checker.folder / run_folder.REPORT}")
    if is_github_action():
        told = gated.run.conclusion.sentences if gated.run.conclusion is not None else ()
        for line in github.workflow_commands(gated.found, verdict=told):
            printing.echo(line)
