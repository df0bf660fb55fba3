"""`httpmark list`: what there is."""

from __future__ import annotations

import click
import msgspec

from httpmark.harness.command import options
from httpmark.harness.command.printing import print_json


@click.command("list")
@click.argument("what", type=click.Choice(["servers", "suites", "cases", "profiles", "schema"]))
@click.option(
    "--of",
    type=click.Choice(["result", "configuration", "baseline"]),
    default="result",
    help="The file that 'list schema' describes.",
)
@options.json_flag
def command(what: str, of: str, as_json: bool) -> None:
    """List servers, suites, cases, profiles or a JSON Schema.

    \b
    servers   the servers, and whether they can run here
    suites    the conformance suites
    cases     every case and family of generated cases
    profiles  the load profiles
    schema    the JSON Schema of result.json, httpmark.toml or a baseline
    """
    from httpmark.harness.command import listing

    if what == "schema":
        print_json(_schema(of))
        return
    rows, value = listing.listing(what)
    if as_json:
        print_json(value)
    else:
        for row in rows:
            click.echo(row)


def _schema(of: str) -> object:
    from httpmark.harness.command import configuration, known_commands
    from httpmark.harness.gate import baseline
    from httpmark.harness.model.run import Run

    if of == "configuration":
        return configuration.schema(known_commands.configurable())
    return msgspec.json.schema({"result": Run, "baseline": baseline.File}[of])
