"""`httpmark replay`: send one case again."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from httpmark.harness.command import options
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.verdicts import Word


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the command, as click names them."""

    case: str
    target: str
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
@click.argument("target")
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
    examples.

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
    """
    if words.minimise and words.cut is not None:
        raise HarnessError("--minimise and --delivery exclude each other: leave one out")
    from httpmark.harness.command import check_options, named_target
    from httpmark.harness.firing import replay

    asked = named_target.asked(
        check_options.Options(
            target=words.target,
            path=words.path,
            post_path=words.post_path,
            host=words.host,
            header=check_options.field_lines(words.header),
            cacert=words.cacert,
            manifest=words.manifest,
            allow_remote=words.allow_remote,
        )
    )
    is_hardened = words.ruleset == "hardened"
    if words.minimise:
        told = replay.minimised(words.case, asked, hardened=is_hardened)
    elif words.cut is not None:
        told = replay.replay_cut(words.case, asked, words.cut)
    else:
        told = replay.replay(words.case, asked, hardened=is_hardened)
    click.echo(told.text)
    raise SystemExit(_EXIT_CODES.get(told.word, 0))


# As check has them of one case: a warning passes, and what cannot be told is neither.
_EXIT_CODES = {Word.FAIL: 1, Word.VOID: 4, Word.UNSTABLE: 4, Word.NOT_APPLICABLE: 5}
