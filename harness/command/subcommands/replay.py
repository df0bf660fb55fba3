"""`httpmark replay`: send one case again."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from httpmark.harness.command import options
from httpmark.harness.model.errors import HarnessError


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the command, as click names them."""

    case: str
    target: str
    manifest: Path | None
    path: str | None
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

    CASE is an id of 'httpmark list cases', or one that a report shows. TARGET is an address, as
    http://127.0.0.1:8080/.

    \b
    Example:
      httpmark replay content-length-plus-sign http://127.0.0.1:8080/
    """
    if words.minimise and words.cut is not None:
        raise HarnessError("--minimise and --delivery exclude each other: leave one out")
    from httpmark.harness.command import check_options, named_target
    from httpmark.harness.firing import replay

    asked = named_target.asked(
        check_options.Options(
            target=words.target,
            path=words.path,
            host=words.host,
            header=check_options.field_lines(words.header),
            cacert=words.cacert,
            manifest=words.manifest,
            allow_remote=words.allow_remote,
        )
    )
    is_hardened = words.ruleset == "hardened"
    if words.minimise:
        click.echo(replay.minimised(words.case, asked, hardened=is_hardened))
    elif words.cut is not None:
        click.echo(replay.replay_cut(words.case, asked, words.cut))
    else:
        click.echo(replay.replay(words.case, asked, hardened=is_hardened))
