"""`httpmark published`: the published comparisons again, theirs and ours side by side."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from httpmark.harness.command import options, printing
from httpmark.harness.command.run_argument import RunFolder
from httpmark.harness.command.server_word import ServerWord
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.servers import brought


def _comparisons() -> tuple[str, ...]:
    from httpmark.harness.report import published_tables

    return (*published_tables.PROFILES, published_tables.COMPLIANCE)


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the command, as click names them."""

    only: tuple[str, ...]
    names: tuple[str | brought.Brought, ...]
    runtime_name: str
    quick: bool
    out: Path | None
    seed: int | None
    folder: Path | None
    as_json: bool


@click.command("published")
@options.configured
@click.option(
    "--only",
    multiple=True,
    type=options.ChoiceOf(_comparisons),
    help="Make this comparison alone. Repeatable.  [default: all but echo]",
)
@click.option(
    "--server",
    "names",
    multiple=True,
    metavar="NAME[=HOW]",
    type=ServerWord(),
    help="Use this server, as 'httpmark run' takes it. Repeatable.  [default: the reference, and "
    "the servers of the published tables that can be had here]",
)
@options.runtime
@options.quick
@options.out
@options.seed
@click.option(
    "--run",
    "folder",
    metavar="RUN",
    type=RunFolder(),
    help="Measure nothing, and show what this run has of the published tables.",
)
@options.json_flag
@options.takes(Words)
def command(words: Words) -> None:
    """Make the published comparisons again, beside theirs.

    Plaintext with pipelined requests, TLS, memory of many connections, and compliance, with the
    published parameters, scaled to this machine. Under each table stands what differs in method.

    \b
    Examples:
      httpmark published --quick
      httpmark published --only compliance --server go_net_http
      httpmark published --server kourier=docker:kourier-bench:kourier
      httpmark published --run latest
    """
    from httpmark.harness.catalogue import loading
    from httpmark.harness.command import published_run
    from httpmark.harness.command.printing import print_json
    from httpmark.harness.model import run_folder
    from httpmark.harness.report import published_tables

    if words.folder is not None:
        if words.only or words.names:
            raise HarnessError("--run shows a run that is there: leave out --only and --server")
        run = run_folder.read(words.folder)
    else:
        field = options.field()
        run = published_run.made(
            words.only or published_tables.DEFAULT,
            names=tuple(field.take(word) for word in words.names),
            field=field,
            runtime=words.runtime_name,
            quick=words.quick,
            out=words.out,
            seed=words.seed,
        )
    known = loading.load()
    if not (tables := published_tables.comparisons(run, known)):
        raise HarnessError("this run has nothing of the published tables: it needs their profiles")
    if words.as_json:
        print_json({"run": run.id, "comparisons": tables})
    else:
        for line in published_tables.lines(run, known):
            printing.echo(line)
