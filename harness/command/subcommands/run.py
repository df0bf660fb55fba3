"""`httpmark run`: start servers, test and load them, score them."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from httpmark.harness.command import options
from httpmark.harness.command.run_argument import RunFolder
from httpmark.harness.command.server_word import ServerWord
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.run import Asked, NamedServer
from httpmark.harness.servers import brought

_SUITE_MINUTES = 60.0


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
    suite_minutes: float
    seed: int | None
    cluster: str | None
    as_json: bool
    resume: Path | None


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
@click.option(
    "--full",
    is_flag=True,
    help="Use every suite and all of the largest families, in every delivery.",
)
@options.out
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="The port that servers listen on, on 127.0.0.1.  [default: a free port]",
)
@click.option(
    "--suite-minutes",
    type=options.Number(min=0, min_open=True),
    default=_SUITE_MINUTES,
    help="The longest that one suite may take at one server; two that are fired together, twice as "
    "long. What is not asked by then is left out, and the suite has no score.",
)
@options.seed
@options.cluster()
@options.json_flag
@click.option(
    "--resume",
    metavar="RUN",
    type=RunFolder(),
    help="Carry on a run that was interrupted, as it was asked. What it has done stays.",
)
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
      httpmark run --all --full --out everything
      httpmark run --resume everything
      httpmark run --all --suite rfc --cluster tcp://scheduler:8786
    """
    from httpmark.harness.catalogue import loading
    from httpmark.harness.command import carrying_out, resumption, run_options

    if words.resume is not None:
        _refuse_beside_resume()
        again = resumption.options(words.resume)
        again = msgspec.structs.replace(again, cluster=words.cluster)
        carrying_out.carry_out(again, as_json=words.as_json)
        return
    if words.names and words.all_servers and not options.is_configured("names"):
        raise HarnessError("--server and --all exclude each other: leave one out")
    quick = options.is_quick(words.quick, words.full)
    suites, profiles = words.suites, words.profiles
    if not suites and not profiles:
        known = loading.load()
        suites = known.default_suites(quick=quick, full=words.full, only_one=False)
        # Workers fire suites; load is measured on one machine.
        profiles = () if words.cluster is not None else known.default_plans
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
        suite_minutes=words.suite_minutes,
        seed=words.seed,
        cluster=words.cluster,
        asked=_asked(words, quick=quick),
    )
    carrying_out.carry_out(asked, as_json=words.as_json)


def _asked(words: Words, *, quick: bool) -> Asked:
    """What ``--resume`` needs to know of this call."""
    configured = options.configuration_file()
    return Asked(
        servers=tuple(
            NamedServer(str(word), str(Path.cwd() if isinstance(word, str) else word.folder))
            for word in (() if words.all_servers else words.names)
        ),
        all_servers=words.all_servers,
        full=words.full and not quick,
        runtime=words.runtime_name,
        port=words.port,
        suite_minutes=words.suite_minutes,
        allow_remote=words.allow_remote,
        configuration=None if configured is None else str(configured.resolve()),
    )


def _refuse_beside_resume() -> None:
    """Options of the command line that say what to do: the run that is carried on says it.

    :raises HarnessError: there is one.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name not in ("resume", "as_json", "cluster"):
            raise HarnessError(
                f"--resume and {parameter.opts[0]} exclude each other: the run is carried on as it "
                "was asked"
            )
