"""Words to calls: the `httpmark` command. No logic; the only place that prints.

Exit codes are those of the contract: 0 gates passed, 1 a gate failed, 2 usage, 3 environment or
target unusable, 4 inconclusive, 5 nothing selected, 130 and 143 interrupted.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import secrets
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn, TypeVar

import click
import msgspec
import rich.console
import rich.progress

from httpmark.harness.catalogue import loading
from httpmark.harness.catalogue import mistakes as catalogue_mistakes
from httpmark.harness.command import (
    check_session,
    compare_runs,
    configuration,
    doctor,
    error_trace,
    listing,
    outputs,
    run_session,
    stored_runs,
)
from httpmark.harness.firing import replay
from httpmark.harness.gate import baseline, conclusion, findings, github
from httpmark.harness.http import printable
from httpmark.harness.judging import second_reader
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.load import calibration, comparison, self_comparison
from httpmark.harness.load.engines import by_name
from httpmark.harness.model import progress, run_folder
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.run import Run
from httpmark.harness.report import (
    calibration_table,
    comparison_text,
    explain,
    export_formats,
    failure_examples,
    scoreboard,
)
from httpmark.harness.servers import machine, manifests, running_target, starting

_PLAIN_EVERY_S = 10.0


class _Number(click.FloatRange):
    """A number of a range; ``nan`` is in none, as nothing is more or less than it."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is no number.", param, ctx)
        return number


Command = TypeVar("Command", bound=Callable[..., Any])


class _Plain:
    """Plain lines, for CI and pipes."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[int, int, float]] = {}

    def __enter__(self) -> _Plain:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def say(self, line: str) -> None:
        click.echo(line, err=True)

    def task(self, name: str, total: int) -> None:
        self._tasks[name] = (0, total, time.monotonic())

    def advance(self, name: str, by: int) -> None:
        done, total, told = self._tasks[name]
        done += by
        if time.monotonic() - told >= _PLAIN_EVERY_S:
            told = time.monotonic()
            self.say(f"{name}: {done} of {total}")
        self._tasks[name] = (done, total, told)

    def done(self, name: str, result: str) -> None:
        self.say(f"{name}: {result}")


class _Bars:
    """Progress bars, for a terminal."""

    def __init__(self) -> None:
        self._progress = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
            console=rich.console.Console(stderr=True),
            transient=True,
        )
        self._tasks: dict[str, rich.progress.TaskID] = {}

    def __enter__(self) -> _Bars:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._progress.stop()

    def say(self, line: str) -> None:
        self._progress.console.print(line, markup=False, highlight=False)

    def task(self, name: str, total: int) -> None:
        self._tasks[name] = self._progress.add_task(name, total=total)

    def advance(self, name: str, by: int) -> None:
        self._progress.advance(self._tasks[name], by)

    def done(self, name: str, result: str) -> None:
        self._progress.remove_task(self._tasks.pop(name))
        self.say(f"{name}: {result}")


def _events() -> _Plain | _Bars:
    plain = not sys.stderr.isatty() or bool(os.environ.get("CI"))
    return _Plain() if plain else _Bars()


def _json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _written(path: Path, text: str | bytes) -> None:
    try:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    except OSError as error:
        raise HarnessError(f"{path}: {error.strerror}: name another file") from None


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(machine.version(), prog_name="httpmark")
def httpmark() -> None:
    """The referee for HTTP/1.1 servers: does it obey HTTP, and how fast is it really?"""


_quick = click.option("--quick", is_flag=True, help="Shorter windows, fewer rounds.")
_full = click.option("--full", is_flag=True, help="Everything, in full length.")
_out = click.option("--out", type=click.Path(path_type=Path), help="The run folder to make.")


def _every_profile(
    _: click.Context, __: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    """The word ``all`` stands for every profile there is."""
    return tuple(loading.load().plans) if "all" in names else names


_profile = click.option(
    "--profile",
    "profiles",
    multiple=True,
    callback=_every_profile,
    help="A load profile, or all; repeatable.",
)
_json_flag = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
_seed = click.option("--seed", type=int, help="Of the order of samples and of intervals.")
_runtime = click.option(
    "--runtime",
    "runtime_name",
    type=click.Choice(["auto", "docker", "process"]),
    default="auto",
    help="How servers run; auto takes Docker where a daemon answers.",
)


def _configured(command: Command) -> Command:
    """Let a file say what the command line leaves out."""

    def take(context: click.Context, _: click.Parameter, value: Path | None) -> None:
        found = configuration.read(value) if value else configuration.find(Path.cwd())
        if found is not None and context.info_name is not None:
            context.default_map = configuration.defaults(found, context.info_name, configurable())

    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=take,
        help="Read this file, not the nearest httpmark.toml or pyproject.toml.",
    )(command)


def configurable() -> dict[str, click.Command]:
    """The commands that a configuration file may speak of."""
    return {
        name: command
        for name, command in httpmark.commands.items()
        if any(parameter.name == "config" for parameter in command.params)
    }


def _file(option: str, name: str, help_text: str) -> Callable[[Command], Command]:
    return click.option(option, name, type=click.Path(path_type=Path), help=help_text)


def _quicker(quick: bool, full: bool) -> bool:
    """Whether to be quick; the command line's word beats the file's."""
    said = click.get_current_context().get_parameter_source
    from_file = click.core.ParameterSource.DEFAULT_MAP
    if quick and full and from_file not in (said("quick"), said("full")):
        raise HarnessError("--quick and --full exclude each other: leave one out")
    return quick and not (full and said("quick") is from_file)


def _whom(
    target: str | None, serve: str | None, path: str | None
) -> tuple[str, str | None, str | None]:
    """Whom to check: TARGET or --serve, and the path; the command line's word drops the file's
    other one, and its TARGET the file's path.

    :raises HarnessError: neither is named, or both in one place.
    """
    said = click.get_current_context().get_parameter_source
    from_file = click.core.ParameterSource.DEFAULT_MAP
    if target is not None and serve is not None:
        if said("target") is said("serve"):
            raise HarnessError("check: a TARGET and --serve exclude each other: leave one out")
        target, serve = (None, serve) if said("target") is from_file else (target, None)
    if target is None and serve is None:
        raise HarnessError("check: name a TARGET, as http://127.0.0.1:8080/, or --serve COMMAND")
    if target is not None and said("target") is not from_file and said("path") is from_file:
        path = None if check_session.own_path(target) else path
    return target or serve or "", serve, path


def _carry_out(options: run_session.Options, *, as_json: bool) -> None:
    """One run, and what it says; 3 where a server that was named could not be used to the end."""
    with _events() as events:
        runner = run_session.Runner(options, events)
        result = runner.run()
    if as_json:
        _json(result)
    else:
        click.echo(scoreboard.scoreboard(result))
        click.echo(f"\nreport: {runner.folder / run_folder.REPORT}")
    wanted = {*options.servers, *(target.name for target in options.targets)}
    named = [server for server in result.servers if server.name in wanted]
    unloaded = any(load.reason for server in named for load in server.load)
    if unloaded or any(server.unavailable or server.died for server in named):
        raise SystemExit(3)


@httpmark.command("run")
@_configured
@click.option("--suite", "suites", multiple=True, help="A conformance suite; repeatable.")
@_profile
@click.option("--server", "names", multiple=True, help="A server of images/; repeatable.")
@_runtime
@_quick
@_full
@_out
@click.option("--port", type=click.IntRange(1, 65535), help="The port servers listen on.")
@_seed
@_json_flag
def run_command(
    suites: tuple[str, ...],
    profiles: tuple[str, ...],
    names: tuple[str, ...],
    runtime_name: str,
    quick: bool,
    full: bool,
    out: Path | None,
    port: int | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Launch servers, fire the corpora, run the load, measure memory, score."""
    quick = _quicker(quick, full)
    if not suites and not profiles:
        known = loading.load()
        suites = known.default_suites(quick=quick, full=full, only_one=False)
        profiles = known.default_plans
    options = run_session.Options(
        suites=suites,
        profiles=profiles,
        servers=names,
        runtime=runtime_name,
        quick=quick,
        full=full and not quick,
        out=out,
        port=port,
        seed=seed,
    )
    _carry_out(options, as_json=as_json)


@httpmark.command("bench")
@click.argument("names", nargs=-1, required=True, metavar="TARGET|SERVER...")
@_configured
@_profile
@click.option("--rounds", type=click.IntRange(1, 100), help="Samples of each server.")
@click.option("--engine", type=click.Choice(by_name.NAMES), default="native")
@click.option("--wrk2", metavar="PATH", help="The binary of --engine wrk2, which you bring.")
@click.option("--allow-remote", is_flag=True, help="A TARGET is not this machine, and I may.")
@_runtime
@_quick
@_out
@_seed
@_json_flag
def bench_command(
    names: tuple[str, ...],
    profiles: tuple[str, ...],
    rounds: int | None,
    engine: str,
    wrk2: str | None,
    allow_remote: bool,
    runtime_name: str,
    quick: bool,
    out: Path | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Load only: interleaved and compared in pairs with the first that is named.

    A SERVER of images/ is started afresh for every sample; a TARGET, as
    http://127.0.0.1:8080/, runs already and cannot be.
    """
    found = {name: running_target.parse(name, allow_remote=allow_remote) for name in names}
    options = run_session.Options(
        suites=(),
        profiles=profiles or loading.load().default_plans,
        servers=tuple(name for name, target in found.items() if target is None),
        targets=tuple(target for target in found.values() if target is not None),
        base=names[0],
        wrk2=wrk2,
        runtime=runtime_name,
        quick=quick,
        out=out,
        engine=engine,
        rounds=rounds,
        seed=seed,
    )
    _carry_out(options, as_json=as_json)


@httpmark.command("calibrate")
@_configured
@click.option(
    "--engine", "names", type=click.Choice(calibration.ENGINES), multiple=True, help="Repeatable."
)
@click.option("--rounds", type=click.IntRange(1, 100), default=5, help="Samples of each engine.")
@click.option("--seconds", type=_Number(0.1, 60), default=2.0, help="Of a window.")
@_seed
@_json_flag
def calibrate_command(
    names: tuple[str, ...], rounds: int, seconds: float, seed: int | None, as_json: bool
) -> None:
    """What the generators themselves cost per response: ours beside wrk and h2load, to null.

    1 where ours misses its aim.
    """
    seed = secrets.randbits(31) if seed is None else seed
    cells: list[calibration.Cell] = []
    with _events() as events:
        try:
            for cell in calibration.measure(
                names or calibration.ENGINES,
                rounds=rounds,
                seconds=seconds,
                seed=seed,
                say=events.say,
            ):
                cells.append(cell)
        finally:
            if cells and as_json:
                _json({"seed": seed, "cells": cells})
            elif cells:
                click.echo("\n".join([*calibration_table.lines(cells), f"seed {seed}"]))
    if any(cell.meets_aim is False for cell in cells):
        raise SystemExit(1)


@httpmark.command("compare")
@click.argument("base")
@click.argument("head", required=False)
@_configured
@_profile
@click.option("--margin", type=_Number(0, 100), help="Percent of cost that is borne (3).")
@click.option(
    "--pairs", type=click.IntRange(3, 200), default=comparison.PAIRS_MIN, show_default=True
)
@click.option(
    "--aa", type=click.IntRange(1, 1000), metavar="N", help="BASE against itself, N times."
)
@click.option("--inconclusive", type=click.Choice(findings.INCONCLUSIVE), default="warn")
@click.option("--force", is_flag=True, help="Compare runs of different environments.")
@click.option("--engine", type=click.Choice(by_name.NAMES), default="native")
@click.option("--wrk2", metavar="PATH", help="The binary of --engine wrk2, which you bring.")
@click.option("--path", help="A path that answers 2xx to GET.")
@click.option(
    "--allow-remote", is_flag=True, help="A target is not this machine, and I may load it."
)
@_runtime
@_quick
@_seed
@_file("--junit", "junit_path", "Write JUnit XML here.")
@_file("--sarif", "sarif_path", "Write SARIF 2.1.0 here.")
@_file("--summary", "summary_path", "Write a Markdown summary here.")
@_json_flag
def compare_command(
    base: str,
    head: str | None,
    profiles: tuple[str, ...],
    margin: float | None,
    pairs: int,
    aa: int | None,
    inconclusive: str,
    force: bool,
    engine: str,
    wrk2: str | None,
    path: str | None,
    allow_remote: bool,
    runtime_name: str,
    quick: bool,
    seed: int | None,
    junit_path: Path | None,
    sarif_path: Path | None,
    summary_path: Path | None,
    as_json: bool,
) -> None:
    """Is HEAD worse than BASE: pass, fail or inconclusive.

    Two run folders, or two servers measured side by side: names, targets, or commands that say
    {port} where their port goes. With --aa, BASE against itself: what this machine can tell apart.
    """
    if (head is None) != (aa is not None):
        raise HarnessError("compare: name BASE and HEAD, or BASE and --aa N")
    options = comparison.Options(
        base=base,
        head=head or base,
        profiles=profiles,
        margin=None if margin is None else margin / 100,
        pairs=pairs,
        force=force,
        quick=quick,
        runtime=runtime_name,
        path=path,
        engine=engine,
        wrk2=wrk2,
        seed=seed,
        allow_remote=allow_remote,
    )
    with _events() as events:
        found: comparison.Comparison | list[comparison.AgainstItself]
        found = (
            compare_runs.measure(options, events)
            if aa is None
            else (self_comparison.run_against_itself(options, events, comparisons=aa))
        )
    if isinstance(found, comparison.Comparison):
        gated = outputs.compared(found, inconclusive=inconclusive)
        for name, file in (("junit", junit_path), ("sarif", sarif_path), ("summary", summary_path)):
            if file is not None:
                outputs.write(file, outputs.render(name, gated))
        if os.environ.get("GITHUB_ACTIONS") == "true":
            for line in github.workflow_commands(gated.found):
                click.echo(line, err=as_json)
    if as_json:
        _json(found)
    else:
        for line in comparison_text.lines(found):
            click.echo(line)
    code = comparison.exit_code(found, inconclusive=inconclusive)
    raise progress.Interrupted(code) if code > progress.SIGNALLED else SystemExit(code)


def _addressed(command: Command) -> Command:
    """What ``check`` and ``replay`` are told of a target besides its address.

    What is added here belongs into ``check.Options.again``, too.
    """
    for option in reversed(
        (
            _file("--manifest", "manifest", "What TARGET can do: the keys of a server.toml."),
            click.option(
                "--path",
                help="A path that answers 2xx to GET, whatever follows. "
                f"[default: that of TARGET, where it has one, else {check_session.PATH}]",
            ),
            click.option("--host", help="The Host value; by default that of TARGET."),
            click.option(
                "--header",
                multiple=True,
                metavar="LINE",
                help="A field line for every request; repeatable.",
            ),
            _file("--cacert", "cacert", "Verify the certificate of an https TARGET against these."),
            click.option(
                "--allow-remote",
                is_flag=True,
                help="TARGET is not this machine, and I may test it.",
            ),
            click.option(
                "--ruleset",
                type=click.Choice(findings.RULESETS),
                default="rfc",
                help="What counts as failed.",
            ),
        )
    ):
        command = option(command)
    return command


@httpmark.command("check")
@click.argument("target", required=False)
@_configured
@click.option("--serve", metavar="COMMAND", help="Start this, with {port}, instead of a TARGET.")
@click.option("--suite", "suites", multiple=True, help="A conformance suite; repeatable.")
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="SELECTOR",
    help="Only these: id, number, family, clause (9112/6.3), level, advisory; repeatable.",
)
@click.option("--exclude", multiple=True, metavar="SELECTOR", help="Not these; repeatable.")
@_file("--rerun", "rerun", "Only what failed in this run folder.")
@click.option(
    "--quick",
    is_flag=True,
    help="For an answer within seconds: a sample of the largest families, failures asked again "
    "once and not made smaller; what there was no time for is said to be void.",
)
@click.option("--full", is_flag=True, help="Every suite, in every delivery.")
@_addressed
@click.option("--jobs", type=click.IntRange(1, 256), help="At most so many connections at once.")
@click.option("--fail-under", type=_Number(0, 100), help="Least score in percent.")
@click.option(
    "--inconclusive",
    type=click.Choice(findings.INCONCLUSIVE),
    default="warn",
    help="What an undecided gate is: said, a failure (exit code 4), or nothing.",
)
@_file("--baseline", "baseline_path", "Known failures, each with a reason.")
@click.option("--strict-baseline", is_flag=True, help="What it lists and passes is a failure.")
@click.option("--update", is_flag=True, help="Take out of the baseline what passes; adds nothing.")
@click.option(
    "--allow-growth", "growth", metavar="REASON", help="List new failures, too, for this reason."
)
@_file("--json", "json_path", "Write the result here.")
@_file("--junit", "junit_path", "Write JUnit XML here.")
@_file("--sarif", "sarif_path", "Write SARIF 2.1.0 here.")
@_file("--summary", "summary_path", "Write a Markdown summary here.")
@_file("--code-quality", "code_quality_path", "Write GitLab's code quality JSON here.")
@_file("--metrics", "metrics_path", "Write OpenMetrics text here.")
@_file("--outputs", "outputs_path", "Write every format into this folder.")
@_out
def check_command(
    target: str | None,
    serve: str | None,
    suites: tuple[str, ...],
    cases: tuple[str, ...],
    exclude: tuple[str, ...],
    rerun: Path | None,
    quick: bool,
    full: bool,
    manifest: Path | None,
    path: str | None,
    host: str | None,
    header: tuple[str, ...],
    cacert: Path | None,
    jobs: int | None,
    allow_remote: bool,
    ruleset: str,
    fail_under: float | None,
    inconclusive: str,
    baseline_path: Path | None,
    strict_baseline: bool,
    update: bool,
    growth: str | None,
    json_path: Path | None,
    junit_path: Path | None,
    sarif_path: Path | None,
    summary_path: Path | None,
    code_quality_path: Path | None,
    metrics_path: Path | None,
    outputs_path: Path | None,
    out: Path | None,
) -> None:
    """The gate for a server that runs at TARGET, or is started for it by --serve."""
    quick = _quicker(quick, full)
    target, serve, path = _whom(target, serve, path)
    gate = findings.Gate(ruleset=ruleset, fail_under=fail_under, inconclusive=inconclusive)
    known = findings.listable(loading.load().families)
    held = baseline.opened(
        baseline_path, known=known, update=update, growth=growth, strict=strict_baseline
    )
    options = check_session.Options(
        target=target,
        suites=suites
        or loading.load().default_suites(quick=quick, full=full and not quick, only_one=True),
        quick=quick,
        hurry=quick,
        full=full and not quick,
        path=path,
        host=host,
        header=check_session.field_lines(header),
        allow_remote=allow_remote,
        out=out,
        cases=cases,
        exclude=exclude,
        ruleset=ruleset,
        manifest=manifest,
        cacert=cacert,
        jobs=jobs,
        serve=serve,
        rerun=rerun,
    )
    written = {
        "junit": junit_path,
        "sarif": sarif_path,
        "summary": summary_path,
        "code-quality": code_quality_path,
        "metrics": metrics_path,
    }
    with _events() as events:
        checker = check_session.Checker(options, events)
        try:
            checker.check()
        finally:
            if checker.last is not None:
                raw = findings.findings(
                    checker.last, gate=gate, families=checker.catalogue.families
                )
                raw = failure_examples.of_run(raw, checker.folder, checker.last)
                if held is not None:
                    held, changes = baseline.changed(
                        held, raw, update=update, growth=growth, known=known,
                        whole=not checker.last.interrupted,
                    )  # fmt: skip
                    for line in changes:
                        events.say(f"{held.path}: {line}")
                stop = sys.exc_info()[1]
                gated = outputs.gated(
                    checker.last, raw, gate=gate, held=held, strict=strict_baseline,
                    today=datetime.datetime.now(datetime.UTC).date(),
                    signal=stop.signal if isinstance(stop, progress.Interrupted) else 2,
                )  # fmt: skip
                told = conclusion.conclusion(gated.run, gated.found, gated.code)
                gated = msgspec.structs.replace(gated, run=checker.conclude(told))
                if json_path is not None:
                    _written(json_path, msgspec.json.encode(gated.run))
                for name, file in written.items():
                    if file is not None:
                        outputs.write(file, outputs.render(name, gated))
                if outputs_path is not None:
                    outputs.write_all(gated, outputs_path)
    click.echo(scoreboard.scoreboard(check_session.for_terminal(gated.run)))
    for line in conclusion.spoken(
        gated.found,
        gated.code,
        interrupted=gated.run.interrupted,
        requirements=conclusion.failed_requirements(gated.run),
    ):
        click.echo(line)
    click.echo(f"\nreport: {checker.folder / run_folder.REPORT}")
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in github.workflow_commands(gated.found):
            click.echo(line)
    raise SystemExit(gated.code)


@httpmark.command("report")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["page", "scoreboard", *outputs.FORMATS]),
    default="page",
    help="The page, the scoreboard, or what a CI job reads.",
)
@click.option("--out", type=click.Path(path_type=Path), help="The file to write.")
@click.option("--json", "as_json", is_flag=True, help="Print every table as JSON.")
def report_command(folder: Path, form: str, out: Path | None, as_json: bool) -> None:
    """Draw the report of a stored run again, in any format; no server needed."""
    result = run_folder.read(folder)
    if form == "page" and not as_json:
        click.echo(stored_runs.draw(folder, result, out=out))
        return
    if form == "scoreboard" and not as_json:
        text = scoreboard.scoreboard(result)
    else:
        text = outputs.render("tables" if as_json else form, outputs.stored(folder, result))
    if out is None:
        click.echo(text, nl=False)
    else:
        outputs.write(out, text)
        click.echo(out)


@httpmark.command("export")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--table", "names", multiple=True, help="Only this table; repeatable.")
@click.option("--markdown", "form", flag_value="markdown", default=True, help="The default.")
@click.option("--csv", "form", flag_value="csv", help="A file per table.")
@click.option("--json", "form", flag_value="json", help="A table is a list of objects.")
@click.option("--parquet", "form", flag_value="parquet", help="With every exchange, too.")
@_file("--out", "out", "The folder for a file per table; else printed, or RUN/tables.")
def export_command(folder: Path, names: tuple[str, ...], form: str, out: Path | None) -> None:
    """Every table of a stored run, for tools of your own."""
    stored = outputs.stored(folder, run_folder.read(folder))
    evidence = folder / run_folder.EVIDENCE
    out = out or export_formats.folder_of(folder, names, form)
    if out is None:
        text = export_formats.printed(stored.run, stored.found, names, form, evidence=evidence)
        click.echo(text, nl=False)
        return
    for path in export_formats.export(
        stored.run, stored.found, names, form, out, evidence=evidence
    ):
        click.echo(path)


@httpmark.command("judge")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--second-opinion", is_flag=True, help="Where h11 reads an answer otherwise.")
@_json_flag
def judge_command(folder: Path, second_opinion: bool, as_json: bool) -> None:
    """Judge a stored run again by its evidence alone; writes result and report anew."""
    if second_opinion:
        with Evidence(folder / run_folder.EVIDENCE, masked=True) as evidence:
            found = second_reader.disagreements(evidence)
        if as_json:
            _json({"disagreements": found})
            return
        for one in found:
            click.echo(f"{one.exchanges:8,} {one.server}: ours {one.ours}; h11 {one.h11}")
            click.echo(f"{'':9}{printable.escaped(one.received[:120])}")
        click.echo(f"{len(found)} ways in which our reader and h11 differ")
        return
    result = stored_runs.rejudge(folder)
    run_folder.write(result, folder)
    stored_runs.draw(folder, result)
    if as_json:
        _json(result)
    else:
        click.echo(scoreboard.scoreboard(result))


@httpmark.command("list")
@click.argument("what", type=click.Choice(["servers", "suites", "cases", "profiles", "schema"]))
@click.option(
    "--of",
    type=click.Choice(["result", "configuration", "baseline"]),
    default="result",
    help="With schema: whose.",
)
@_json_flag
def list_command(what: str, of: str, as_json: bool) -> None:
    """What there is: servers, suites, cases, profiles, or a JSON Schema."""
    if what == "schema":
        if of == "configuration":
            _json(configuration.schema(configurable()))
        else:
            _json(msgspec.json.schema({"result": Run, "baseline": baseline.File}[of]))
        return
    rows, value = listing.listing(what)
    if as_json:
        _json(value)
    else:
        for row in rows:
            click.echo(row)


@httpmark.command("explain")
@click.argument("case")
def explain_command(case: str) -> None:
    """The rule of a case, its octets, and a one-line reproducer; or of any word that a report says,
    as RESP-20, CL, 9112/6.3, void, a requirement or a column, what it means."""
    click.echo(explain.explain(case))


@httpmark.command("replay")
@click.argument("case")
@click.argument("target")
@_addressed
@click.option("--minimise", is_flag=True, help="Find the fewest octets that break the same rule.")
@click.option(
    "--delivery", "cut", metavar="CUT", help="Cut so, as two@17, beside one write of the same."
)
def replay_command(
    case: str,
    target: str,
    manifest: Path | None,
    path: str | None,
    host: str | None,
    header: tuple[str, ...],
    cacert: Path | None,
    allow_remote: bool,
    ruleset: str,
    minimise: bool,
    cut: str | None,
) -> None:
    """Send one case again and show both sides of the wire."""
    if minimise and cut is not None:
        raise HarnessError("--minimise and --delivery exclude each other: leave one out")
    asked = check_session.asked(
        target,
        path=path,
        host=host,
        header=check_session.field_lines(header),
        cacert=cacert,
        manifest=manifest,
        allow_remote=allow_remote,
    )
    hardened = ruleset == "hardened"
    if minimise:
        click.echo(replay.minimised(case, asked, hardened=hardened))
    elif cut is not None:
        click.echo(replay.replay_cut(case, asked, cut))
    else:
        click.echo(replay.replay(case, asked, hardened=hardened))


@httpmark.command("fuzz")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--seconds", type=_Number(0.1, 86400), default=60.0, help="How long.")
@click.option("--seed", type=int, help="Of the search; by default another each time, and told.")
@click.option(
    "--path",
    help="A path that answers 2xx to GET, whatever follows. "
    f"[default: that of TARGET, where it has one, else {check_session.PATH}]",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"The folder that finds are saved in. [default: ${loading.FOUND_SET}, "
    f"else {loading.FOUND}]",
)
@click.option("--allow-remote", is_flag=True, help="TARGET is not this machine, and I may test it.")
@click.option("--json", "as_json", is_flag=True, help="Print the finds, or the grid, as JSON.")
def fuzz_command(
    targets: tuple[str, ...],
    seconds: float,
    seed: int | None,
    path: str | None,
    out: Path | None,
    allow_remote: bool,
    as_json: bool,
) -> None:
    """Search until TARGET and the grammar disagree; with several, who agrees with whom."""
    # Hypothesis takes a while to load, and no other command needs it.
    from httpmark.harness.firing import found_scenarios, fuzz, server_agreement
    from httpmark.harness.firing.probe import RunningProbe

    seed = secrets.randbits(32) if seed is None else seed
    folder = out or loading.found_folder()
    if len(set(targets)) == 1:
        found_scenarios.ready(folder)
    click.echo(f"seed {seed}", err=as_json)
    asked = {
        text: check_session.asked(text, path=path, allow_remote=allow_remote) for text in targets
    }
    with contextlib.ExitStack() as stack:
        searchers = {
            text: fuzz.Searcher(one, stack.enter_context(RunningProbe(one.probe(in_flight=1))))
            for text, one in asked.items()
        }
        if len(searchers) > 1:
            agreed, sent = server_agreement.agreement(searchers, seconds=seconds, seed=seed)
            if as_json:
                pairs = [
                    {"servers": pair, "agreed": alike, "compared": compared}
                    for pair, (alike, compared) in agreed.items()
                ]
                names = list(searchers)
                _json({"seed": seed, "sent": sent, "servers": names, "pairs": pairs,
                       "grid": server_agreement.shares(names, agreed)})  # fmt: skip
                return
            click.echo("\n".join(server_agreement.grid(list(searchers), agreed)))
            click.echo(f"{sent} messages; two agree where both refuse, or understand the same")
            return
        [(text, searcher)] = searchers.items()
        words = check_session.Options(
            target=text, suites=(), path=path, allow_remote=allow_remote
        ).again
        saved_to = ("--out", str(out)) if out is not None else ()
        command = shlex.join(
            (
                "httpmark",
                "fuzz",
                *words,
                "--seconds",
                f"{seconds:g}",
                "--seed",
                str(seed),
                *saved_to,
            )
        )
        # Where finds are looked for by themselves nothing needs to be said.
        place = f"{loading.FOUND_SET}={shlex.quote(str(out))} " if out is not None else ""

        def tell(find: fuzz.Find) -> None:
            again = found_scenarios.reproducers(find, asked[text], words=words)
            again[0] = place + again[0]
            saved = found_scenarios.save(
                find, folder, host=searcher.facts.host, command=command, again=again
            )
            click.echo(
                f"{find.kind}: {find.part}: answered {find.actual}; saved as {saved}", err=as_json
            )
            click.echo(printable.escaped_lines(find.octets), err=as_json)
            click.echo("\n".join(f"  {line}" for line in again), err=as_json)

        finds, sent = fuzz.search(searcher, seconds=seconds, seed=seed, tell=tell)
    if as_json:
        _json({"seed": seed, "sent": sent, "command": command, "finds": [
            {"kind": f.kind, "part": f.part, "about": sorted(f.about), "octets": f.octets,
             "actual": f.actual, "id": f.slug,
             "reproducers": found_scenarios.reproducers(f, asked[text], words=words)}
            for f in finds
        ]})  # fmt: skip
    else:
        click.echo(f"{sent} messages, {len(finds)} disagreements")
        click.echo(f"the search again: {command}")
    if finds:
        raise SystemExit(1)


@httpmark.group("images")
def images_group() -> None:
    """Container images of the servers."""


@images_group.command("build")
@click.argument("names", nargs=-1, metavar="[SERVER]...")
def images_build_command(names: tuple[str, ...]) -> None:
    """Build the images of servers, all by default."""
    chosen = [manifests.server(name) for name in names]
    if not chosen:
        chosen = [s for s in manifests.servers() if s.container and s.container.dockerfile]
    for server in chosen:
        starting.prepare(server, "docker", say=lambda line: click.echo(line, err=True))
        click.echo(f"{server.name}: built")


@httpmark.command("doctor")
@_json_flag
def doctor_command(as_json: bool) -> None:
    """What this machine can and cannot do, with the exact mend."""
    found = doctor.doctor()
    if as_json:
        _json({"binaries": doctor.executables(), "checks": found})
        return
    click.echo("\n".join(doctor.lines(found)))


def _interrupted(number: int, _: FrameType | None) -> NoReturn:
    # One word is enough: what follows is tidying, and must not be torn by a second.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise progress.Interrupted(progress.SIGNALLED + number)


def main() -> None:
    """Entry point of the command."""
    signal.signal(signal.SIGINT, _interrupted)
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        httpmark(prog_name="httpmark", standalone_mode=False)
        code = 0
    except progress.Interrupted as stop:
        click.echo("httpmark: interrupted; what was known by then is kept", err=True)
        code = stop.code
    except HarnessError as error:
        mistakes = error.lines if isinstance(error, catalogue_mistakes.Mistakes) else (str(error),)
        for line in mistakes:
            click.echo(f"httpmark: {' '.join(line.split())}", err=True)
        code = error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f"; see {context.command_path} --help" if context else ""
        said = " ".join(error.format_message().split()).removesuffix(".")
        click.echo(f"httpmark: {said}{hint}", err=True)
        code = 2
    except click.Abort:
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception:
        # The one boundary: the harness itself is wrong, and says so without a screenful.
        where = error_trace.internal_error(None)
        click.echo(f"httpmark: internal error, not your fault: {where}", err=True)
        code = 3
    raise SystemExit(code)
