"""`httpmark replay`: send one case again."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from httpmark.harness.command import options, printing
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.verdicts import Word


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the command, as click names them."""

    case: str
    target: str | None
    serve: str | None
    manifest: Path | None
    path: str | None
    post_path: str | None
    host: str | None
    header: tuple[str, ...]
    cacert: Path | None
    allow_remote: bool
    ruleset: str
    minimise: bool
    cut: str | None


@click.command("replay")
@click.argument("case")
@click.argument("target", required=False)
@options.serve
@options.addressed
@click.option(
    "--minimise",
    is_flag=True,
    help="Find the shortest request that breaks the same rule.",
)
@click.option(
    "--delivery",
    "cut",
    metavar="CUT",
    help="Send the case twice, in one write and in pieces, and compare the answers. CUT is the "
    "word of a finding: two@17 means two pieces, the first of 17 bytes.",
)
@options.takes(Words)
def command(words: Words) -> None:
    """Send one case again and show both sides of the wire.

    CASE is an id of 'httpmark list cases', or one that a report shows. TARGET is
    http://host:port/, https://host:port/, host:port or unix:PATH; 'httpmark check --help' has
    examples. With --serve COMMAND instead of a TARGET, httpmark starts the server and stops it.

    \b
    Exit codes:
      0  the case passes, or only warns
      1  it fails; with --delivery: the answers differ
      2  usage
      3  the server cannot be asked
      4  the case is void or unstable: nobody can tell
      5  the case is not applicable to this server

    Only the case decides; a rule on every answer, as RESP-20, is shown beside it.

    \b
    Examples:
      httpmark replay content-length-plus-sign http://127.0.0.1:8080/
      httpmark replay get-plain unix:server.sock --delivery two@17
      httpmark replay host-missing --serve "./server --port {port}"
    """
    if (words.target is None) is (words.serve is None):
        raise HarnessError("replay: name one of TARGET and --serve COMMAND")
    if words.minimise and words.cut is not None:
        raise HarnessError("--minimise and --delivery exclude each other: leave one out")
    from httpmark.harness.command import check_options, named_target
    from httpmark.harness.firing import replay

    named = check_options.Options(
        target=words.target or words.serve or "",
        serve=words.serve,
        path=words.path,
        post_path=words.post_path,
        host=words.host,
        header=check_options.field_lines(words.header),
        cacert=words.cacert,
        manifest=words.manifest,
        allow_remote=words.allow_remote,
    )
    is_hardened = words.ruleset == "hardened"
    with named_target.started_or_asked(named, say=lambda _: None) as target:
        if words.minimise:
            told = replay.minimised(words.case, target, hardened=is_hardened)
        elif words.cut is not None:
            told = replay.replay_cut(words.case, target, words.cut)
        else:
            told = replay.replay(words.case, target, hardened=is_hardened)
    printing.echo(told.text)
    raise SystemExit(_EXIT_CODES.get(told.word, 0))


# As check has them of one case: a warning passes, and what cannot be told is neither.
_EXIT_CODES = {Word.FAIL: 1, Word.VOID: 4, Word.UNSTABLE: 4, Word.NOT_APPLICABLE: 5}
