"""The formats that a judged run can be written in, by name: one place that knows them all."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.gate import badge, charts, github, gitlab, junit, metrics, sarif
from httpmark.harness.gate.baseline import Baseline, hold, in_repository
from httpmark.harness.gate.conclusion import as_concluded, exit_code
from httpmark.harness.gate.findings import Finding, Gate, Status, findings
from httpmark.harness.http import printable
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.load import comparison, paired_verdicts
from httpmark.harness.model import run_folder
from httpmark.harness.model.cases import Facts, Level
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.progress import undisturbed
from httpmark.harness.model.run import SCHEMA_VERSION, Run
from httpmark.harness.report import (
    comparison_text,
    export_formats,
    export_tables,
    failure_examples,
    scoreboard,
    verdict_text,
)
from httpmark.harness.servers import machine


class Gated(msgspec.Struct, frozen=True, kw_only=True):
    """A run, what a gate found in it, and the exit code."""

    run: Run
    found: tuple[Finding, ...]
    code: int
    location: str = "README.md"  # the file that results without one of their own point at
    evidence: Path | None = None  # of its exchanges


def gated(
    result: Run,
    raw: Sequence[Finding],
    *,
    gate: Gate,
    held: Baseline | None = None,
    strict: bool = False,
    today: datetime.date,
    signal: int = 2,
) -> Gated:
    """What a gate concludes about a run.

    :param raw: its findings, before any baseline.
    :param held: the baseline that excuses some of them.
    :param strict: what the baseline lists and has passed is a failure.
    :param signal: the one that ended an interrupted run.
    """
    found = tuple(raw) if held is None else hold(raw, held, today=today, strict=strict)
    code = exit_code(result, found, gate=gate, signal=signal)
    location = in_repository(held.path) if held is not None else "README.md"
    return Gated(run=result, found=found, code=code, location=location)


def stored(folder: Path, result: Run) -> Gated:
    """What a gate with default options concludes about a stored run."""
    gate = Gate()
    raw = findings(result, gate=gate, families=loading.load().families)
    found = failure_examples.of_run(raw, folder, result)
    one = gated(result, found, gate=gate, today=datetime.date.min)
    return msgspec.structs.replace(one, evidence=folder / run_folder.EVIDENCE)


def verdict_lines(gated: Gated, folder: Path, width: int) -> list[verdict_text.Line]:
    """A check as text for a terminal.

    :param folder: of the run, whose evidence says what is known of the target.
    """
    stored = folder / run_folder.EVIDENCE
    known: dict[str, Facts] = {}
    if stored.is_file():
        with Evidence(stored, masked=True) as evidence:
            for server in gated.run.servers:
                if (facts := evidence.facts(server.name)) is not None:
                    known[server.name] = facts
    return verdict_text.verdict_lines(
        verdict_text.Judged(run=gated.run, found=gated.found, code=gated.code, facts=known),
        width=width,
    )


def scoreboard_text(folder: Path, result: Run) -> str:
    """A stored run as text: what ``check`` printed of it, else the scoreboard."""
    if result.conclusion is None:
        return scoreboard.scoreboard(result)
    one = stored(folder, result)
    found = as_concluded(one.found, result.conclusion)
    one = msgspec.structs.replace(one, found=found, code=result.conclusion.exit_code)
    lines = verdict_lines(one, folder, 80)
    return "".join(f"{line.text}\n" for line in lines)


def compared(found: comparison.Comparison, *, inconclusive: str) -> Gated:
    """A comparison of speed as findings, one per metric: passed, failed or undecided as its gate
    says. A metric without a gate does not apply."""
    said = {
        paired_verdicts.Gate.PASS: Status.PASSED,
        paired_verdicts.Gate.FAIL: Status.FAILED,
        paired_verdicts.Gate.INCONCLUSIVE: Status.UNDECIDED,
        None: Status.NOT_APPLICABLE,
    }
    now = run_folder.now()
    return Gated(
        run=Run(
            schema_version=SCHEMA_VERSION,
            catalogue_version=loading.load().version,
            harness_version=machine.version(),
            id=f"compare-{found.seed}",
            started=now,
            finished=now,
            interrupted=found.signal is not None,
            quick=False,
            seed=found.seed,
            suites=(),
            profiles=tuple(dict.fromkeys(line.profile for line in found.lines)),
            environment=machine.capture(),
            servers=(),
            notes=found.notes,
        ),
        found=tuple(
            Finding(
                server=line.server or found.head,
                suite="performance",
                id=f"{line.profile}.{line.metric}",
                title=f"{line.metric} under {line.profile} is no worse than that of {found.base}",
                level=Level.MUST,
                clause="",
                status=said[line.verdict],
                message=comparison_text.figures(line.judged) + line.why,
                details=found.notes,
            )
            for line in found.lines
        ),
        code=comparison.exit_code(found, inconclusive=inconclusive),
    )


def _badge(gated: Gated) -> str:
    names = [server.name for server in gated.run.servers if not server.control]
    if len(names) != 1:
        raise HarnessError(
            f"a badge shows one server, and this run has {len(names)}: take a run of one server"
        )
    return badge.badge(gated.run, names[0])


Render = Callable[[Gated], str]

FORMATS: dict[str, tuple[str, Render]] = {
    "junit": ("junit.xml", lambda it: junit.junit(it.run, it.found)),
    "sarif": ("results.sarif", lambda it: sarif.sarif(it.run, it.found, location=it.location)),
    "summary": ("summary.md", lambda it: github.summary(it.run, it.found, code=it.code)),
    "code-quality": (
        "codequality.json",
        lambda it: gitlab.code_quality(it.found, location=it.location),
    ),
    "metrics": ("metrics.txt", lambda it: metrics.metrics(it.run, it.found)),
    "badge": ("badge.json", _badge),
    "benchmark": (
        "github-action-benchmark.json",
        lambda it: charts.github_action_benchmark(it.run),
    ),
    "bencher": ("bencher.json", lambda it: charts.bencher(it.run)),
    "tables": (
        "tables.json",
        lambda it: export_formats.as_json(
            export_tables.tables(it.run, it.found, evidence=it.evidence).values()
        ),
    ),
}
"""What each format is called, the file it has in a folder of outputs, and how it is made."""


def render(name: str, gated: Gated) -> str:
    """A run in one format.

    :raises HarnessError: no format of that name, or a badge of several servers.
    """
    if name not in FORMATS:
        raise HarnessError(f"unknown format {name!r}: known are {', '.join(FORMATS)}")
    return FORMATS[name][1](gated)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all. A device, as /dev/stdout, is written to directly.

    :raises HarnessError: it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            # It may be a terminal.
            path.write_text(printable.terminal_text(text), "utf-8", newline="")
            return
        # A link keeps leading to the file that is replaced.
        path = path.resolve()
        part = path.with_name(f".{path.name}.part")
        with undisturbed():
            part.write_text(text, "utf-8", newline="")
            part.replace(path)
    except OSError as error:
        raise HarnessError(f"{path}: {error.strerror}: name another file") from None


def write_all(gated: Gated, folder: Path) -> None:
    """Write every format into a folder, which is created if it is missing.

    :raises HarnessError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HarnessError(f"{folder}: {error.strerror}: name another folder") from None
    servers = [server.name for server in gated.run.servers if not server.control]
    for name, (file, make) in FORMATS.items():
        if name != "badge" or len(servers) == 1:
            write(folder / file, make(gated))
        else:
            for server in servers:
                write(folder / f"badge-{server}.json", badge.badge(gated.run, server))
    write(folder / "result.json", msgspec.json.encode(gated.run).decode())
