"""`httpmark list`: what there is."""

from __future__ import annotations

import click
import msgspec

from httpmark.harness.command import options, printing
from httpmark.harness.command.printing import print_json
from httpmark.harness.model.errors import HarnessError


@click.command("list")
@click.argument(
    "what",
    type=click.Choice(["servers", "suites", "cases", "profiles", "coverage", "schema"]),
)
@click.argument("rule", required=False)
@click.option(
    "--of",
    type=click.Choice(["result", "configuration", "baseline"]),
    default="result",
    help="The file that 'list schema' describes.",
)
@options.json_flag
def command(what: str, rule: str | None, of: str, as_json: bool) -> None:
    """List servers, suites, cases, profiles, coverage or a JSON Schema.

    \b
    servers   the servers, and whether they can run here
    suites    the conformance suites
    cases     every case and family of generated cases
    profiles  the load profiles
    coverage  what the cases cover of the grammar; with RULE, each hole of that rule
    schema    the JSON Schema of result.json, httpmark.toml or a baseline
    """
    from httpmark.harness.command import coverage_listing, listing

    if rule is not None and what != "coverage":
        raise HarnessError(f"list {what} {rule}: only 'list coverage' takes a rule; leave it out")
    if what == "schema":
        print_json(_schema(of))
        return
    rows, value = (
        coverage_listing.listing(rule)
        if what == "coverage"
        else listing.listing(what, options.field())
    )
    if as_json:
        print_json(value)
    else:
        for row in rows:
            printing.echo(row)


def _schema(of: str) -> object:
    from httpmark.harness.command import configuration, known_commands
    from httpmark.harness.gate import baseline
    from httpmark.harness.model.run import Run

    if of == "configuration":
        return configuration.schema(known_commands.configurable())
    return msgspec.json.schema({"result": Run, "baseline": baseline.File}[of])
