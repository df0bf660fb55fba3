"""`httpmark compare`: is HEAD worse than BASE?"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from httpmark.harness.command import options, progress_display
from httpmark.harness.command.printing import is_github_action, print_json
from httpmark.harness.http.printable import one_line
from httpmark.harness.load import comparison
from httpmark.harness.model import progress
from httpmark.harness.model.errors import HarnessError


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the command, as click names them."""

    base: str
    head: str | None
    profiles: tuple[str, ...]
    margin: float | None
    pairs: int
    aa: int | None
    inconclusive: str
    force: bool
    engine: str
    wrk2: str | None
    path: str | None
    allow_remote: bool
    runtime_name: str
    quick: bool
    seed: int | None
    junit_path: Path | None
    sarif_path: Path | None
    summary_path: Path | None
    as_json: bool


@click.command("compare")
@click.argument("base")
@click.argument("head", required=False)
@options.configured
@options.profile
@click.option(
    "--margin",
    type=options.Number(0, 100),
    help="Allow HEAD to cost this much more CPU time per request, in percent.  [default: 3]",
)
@click.option(
    "--pairs",
    type=click.IntRange(3, 200),
    default=comparison.PAIRS_MIN,
    help="Number of sample pairs at the first look. Up to 2.5 times as many are measured while the "
    "answer is undecided.",
)
@click.option(
    "--aa",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Compare BASE with itself, N times, to see which differences this machine can detect.",
)
@click.option(
    "--inconclusive",
    type=options.INCONCLUSIVE,
    default="warn",
    help="What an undecided comparison does. fail: exit with 4. warn, pass: exit with 0.",
)
@click.option(
    "--force", is_flag=True, help="Compare runs of different machines or settings anyway."
)
@options.engine
@options.wrk2
@click.option("--path", help="The path to request. GET must answer 2xx there.")
@options.allow_remote("load")
@options.runtime
@options.quick
@options.seed
@options.file("--junit", "junit_path", "Write JUnit XML into this file.")
@options.file("--sarif", "sarif_path", "Write SARIF 2.1.0 into this file.")
@options.file("--summary", "summary_path", "Write a Markdown summary into this file.")
@options.json_flag
@options.takes(Words)
def command(words: Words) -> None:
    """Decide whether HEAD is worse than BASE.

    BASE and HEAD are two run folders, or two servers that are measured side by side. A server is a
    name of 'httpmark list servers', an address, or a command with {port} where its port goes. The
    answer is pass, fail or inconclusive.

    With --aa, BASE is compared with itself instead of with HEAD.

    \b
    Examples:
      httpmark compare httpmark-runs/A httpmark-runs/B
      httpmark compare "./base --port {port}" "./head --port {port}" --margin 5
      httpmark compare reference --aa 40
    """
    if (words.head is None) != (words.aa is not None):
        raise HarnessError("compare: name BASE and HEAD, or BASE and --aa N")
    asked = comparison.Options(
        base=words.base,
        head=words.head or words.base,
        profiles=words.profiles,
        margin=None if words.margin is None else words.margin / 100,
        pairs=words.pairs,
        force=words.force,
        quick=words.quick,
        runtime=words.runtime_name,
        path=words.path,
        engine=words.engine,
        wrk2=words.wrk2,
        seed=words.seed,
        allow_remote=words.allow_remote,
    )
    _compare(asked, words)


def _compare(asked: comparison.Options, words: Words) -> None:
    from httpmark.harness.command import compare_runs
    from httpmark.harness.load import self_comparison
    from httpmark.harness.report import comparison_text

    with progress_display.display() as events:
        found: comparison.Comparison | list[comparison.AgainstItself]
        if words.aa is None:
            found = compare_runs.measure(asked, events)
        else:
            found = self_comparison.run_against_itself(asked, events, comparisons=words.aa)
    if isinstance(found, comparison.Comparison):
        _write(found, words)
    if words.as_json:
        print_json(found)
    else:
        for line in comparison_text.lines(found):
            click.echo(one_line(line))
    code = comparison.exit_code(found, inconclusive=words.inconclusive)
    raise progress.Interrupted(code) if code > progress.SIGNALLED else SystemExit(code)


def _write(found: comparison.Comparison, words: Words) -> None:
    """The files that were asked for, and annotations where GitHub reads them."""
    from httpmark.harness.command import outputs
    from httpmark.harness.gate import github

    gated = outputs.compared(found, inconclusive=words.inconclusive)
    files = {"junit": words.junit_path, "sarif": words.sarif_path, "summary": words.summary_path}
    for name, file in files.items():
        if file is not None:
            outputs.write(file, outputs.render(name, gated))
    if is_github_action():
        for line in github.workflow_commands(gated.found):
            click.echo(line, err=words.as_json)
