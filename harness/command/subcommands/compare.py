"""`httpmark compare`: is HEAD worse than BASE?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from httpmark.harness.command import options, printing, progress_display
from httpmark.harness.command.printing import is_github_action, print_json
from httpmark.harness.http.printable import one_line
from httpmark.harness.load import comparison
from httpmark.harness.model import progress, run_folder
from httpmark.harness.model.errors import HarnessError

if TYPE_CHECKING:
    from httpmark.harness.command import compare_checks, outputs


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
    as_markdown: bool


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
@options.load_path
@options.allow_remote("load")
@options.runtime
@options.quick
@options.seed
@options.file("--junit", "junit_path", "Write JUnit XML into this file.")
@options.file("--sarif", "sarif_path", "Write SARIF 2.1.0 into this file.")
@options.file("--summary", "summary_path", "Write a Markdown summary into this file.")
@options.json_flag
@click.option(
    "--markdown",
    "as_markdown",
    is_flag=True,
    help="Print Markdown for a pull request instead of text.",
)
@options.takes(Words)
def command(words: Words) -> None:
    """Decide whether HEAD is worse than BASE.

    BASE and HEAD are two run folders, or two servers that are measured side by side. A run folder
    may be 'latest', the newest one in httpmark-runs. A server is a name of 'httpmark list servers',
    one that you bring as 'httpmark run' takes it, an address, or a command with {port} where its
    port goes. The answer is pass, fail or inconclusive.

    Two checks are compared by what is newly broken, which fails, newly mended, still failing and no
    longer asked. What one of them could not decide is not newly broken. Two runs that also measured
    speed are compared by both; with --profile, by speed alone.

    With --aa, BASE is compared with itself instead of with HEAD. Where answers are not 2xx nothing
    was measured, and the exit code is 3.

    \b
    Examples:
      httpmark compare httpmark-runs/A latest
      httpmark compare httpmark-runs/A latest --markdown > summary.md
      httpmark compare "./base --port {port}" "./head --port {port}" --margin 5
      httpmark compare "old=docker:my-server:1" "new=docker:my-server:2"
      httpmark compare reference --aa 40
    """
    from httpmark.harness.servers import requested_path

    if (words.head is None) != (words.aa is not None):
        raise HarnessError("compare: name BASE and HEAD, or BASE and --aa N")
    if words.as_markdown and (words.as_json or words.aa is not None):
        other = "--json" if words.as_json else "--aa"
        raise HarnessError(f"{other} and --markdown exclude each other: leave one out")
    asked = comparison.Options(
        base=_place(words.base),
        head=_place(words.head or words.base),
        profiles=words.profiles,
        margin=None if words.margin is None else words.margin / 100,
        pairs=words.pairs,
        force=words.force,
        quick=words.quick,
        runtime=words.runtime_name,
        path=None if words.path is None else requested_path.checked(words.path),
        own_path_first=options.is_configured("path"),
        engine=words.engine,
        wrk2=words.wrk2,
        seed=words.seed,
        allow_remote=words.allow_remote,
        field=options.field(),
    )
    _compare(asked, words)


def _place(word: str) -> str:
    """A server as it is named, or a run folder."""
    return str(run_folder.named(Path(word))) if word == run_folder.LATEST else word


def _compare(asked: comparison.Options, words: Words) -> None:
    from httpmark.harness.command import compare_checks, compare_runs
    from httpmark.harness.load import self_comparison

    found: comparison.Comparison | list[comparison.AgainstItself] | compare_checks.Compared
    with progress_display.display() as events:
        if words.aa is not None:
            found = self_comparison.run_against_itself(asked, events, comparisons=words.aa)
        elif all(compare_runs.is_folder(place) for place in (asked.base, asked.head)):
            found = compare_checks.folders(asked)
        else:
            found = compare_runs.measure(asked, events)
    if isinstance(found, compare_checks.Compared):
        _print_checks(found, words)
        raise SystemExit(found.exit_code(inconclusive=words.inconclusive))
    if isinstance(found, comparison.Comparison):
        _write(found, words)
    _print_speed(found, words)
    code = comparison.exit_code(found, inconclusive=words.inconclusive)
    if code > progress.SIGNALLED:
        raise progress.Interrupted(code, "the results until then are above")
    raise SystemExit(code)


def _print_checks(found: compare_checks.Compared, words: Words) -> None:
    _write_gated(found.gated(inconclusive=words.inconclusive), words, found.markdown)
    if words.as_json:
        print_json(found.as_json())
    elif words.as_markdown:
        printing.echo(found.markdown(), nl=False)
    else:
        for line in found.lines():
            printing.echo(one_line(line))


def _print_speed(
    found: comparison.Comparison | list[comparison.AgainstItself], words: Words
) -> None:
    from httpmark.harness.command import outputs
    from httpmark.harness.report import comparison_text

    if words.as_json:
        print_json(found)
    elif words.as_markdown and isinstance(found, comparison.Comparison):
        gated = outputs.compared(found, inconclusive=words.inconclusive)
        printing.echo(outputs.render("summary", gated), nl=False)
    else:
        for line in comparison_text.lines(found):
            printing.echo(one_line(line))


def _write(found: comparison.Comparison, words: Words) -> None:
    from httpmark.harness.command import outputs

    _write_gated(outputs.compared(found, inconclusive=words.inconclusive), words)


def _write_gated(
    gated: outputs.Gated, words: Words, summary: Callable[[], str] | None = None
) -> None:
    """The files that were asked for, and annotations where GitHub reads them.

    :param summary: makes the Markdown; by default it is that of the findings.
    """
    from httpmark.harness.command import outputs
    from httpmark.harness.gate import github

    files = {"junit": words.junit_path, "sarif": words.sarif_path, "summary": words.summary_path}
    for name, file in files.items():
        if file is not None:
            own = summary if name == "summary" else None
            outputs.write(file, own() if own is not None else outputs.render(name, gated))
    if is_github_action():
        for line in github.workflow_commands(gated.found):
            printing.echo(line, err=words.as_json or words.as_markdown)
