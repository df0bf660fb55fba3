"""`httpmark run`: start servers, test and load them, score them."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from httpmark.harness.command import options
from httpmark.harness.command.server_word import ServerWord
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.servers import brought


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the command, as click names them."""

    suites: tuple[str, ...]
    profiles: tuple[str, ...]
    names: tuple[str | brought.Brought, ...]
    all_servers: bool
    allow_remote: bool
    runtime_name: str
    quick: bool
    full: bool
    out: Path | None
    port: int | None
    seed: int | None
    as_json: bool


@click.command("run")
@options.configured
@click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="NAME",
    help="Use this conformance suite. Repeatable. 'httpmark list suites' shows the names.",
)
@options.profile
@click.option(
    "--server",
    "names",
    multiple=True,
    metavar="NAME[=HOW]",
    type=ServerWord(),
    help="Use this server. Repeatable. 'httpmark list servers' shows the names. Bring one of your "
    "own as NAME=docker:TAG, NAME=PROGRAM or NAME=http://HOST:PORT/; after TAG and PROGRAM go the "
    "words of its start, with {address}, {port}, {endpoint} and {workers} in them.  "
    "[default: the servers without 'by_default = false' in their server.toml]",
)
@click.option("--all", "all_servers", is_flag=True, help="Use all servers.")
@options.allow_remote("test")
@options.runtime
@click.option(
    "--quick",
    is_flag=True,
    help="Send a sample of the largest case families, and measure fewer rounds with shorter "
    "windows.",
)
@click.option("--full", is_flag=True, help="Use every suite, and send each case in every delivery.")
@options.out
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="The port that servers listen on, on 127.0.0.1.  [default: a free port]",
)
@options.seed
@options.json_flag
@options.takes(Words)
def command(words: Words) -> None:
    """Start servers, test and load them, and score them.

    Writes a run folder with the result, all evidence and a report, and prints the scoreboard.
    Without --suite and --profile, the default suites and profiles are used; with only one of the
    two, nothing of the other kind.

    The exit code does not depend on scores. It is 3 if a server that you named could not be used.

    \b
    Examples:
      httpmark run --quick --server reference --server go_net_http
      httpmark run --suite seed --runtime docker
      httpmark run --suite seed --server "mine=./my-server --port {port} --threads {workers}"
      httpmark run --server kourier=docker:kourier-bench:kourier
    """
    from httpmark.harness.catalogue import loading
    from httpmark.harness.command import carrying_out, run_options

    if words.names and words.all_servers and not options.is_configured("names"):
        raise HarnessError("--server and --all exclude each other: leave one out")
    quick = options.is_quick(words.quick, words.full)
    suites, profiles = words.suites, words.profiles
    if not suites and not profiles:
        known = loading.load()
        suites = known.default_suites(quick=quick, full=words.full, only_one=False)
        profiles = known.default_plans
    field = options.field()
    names = tuple(field.take(word, allow_remote=words.allow_remote) for word in words.names)
    asked = run_options.Options(
        suites=suites,
        profiles=profiles,
        servers=() if words.all_servers else names,
        all_servers=words.all_servers,
        field=field,
        allow_remote=words.allow_remote,
        runtime=words.runtime_name,
        quick=quick,
        full=words.full and not quick,
        out=words.out,
        port=words.port,
        seed=words.seed,
    )
    carrying_out.carry_out(asked, as_json=words.as_json)
