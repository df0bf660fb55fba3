"""`httpmark bench`: measure servers under load, side by side."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from httpmark.harness.command import options
from httpmark.harness.command.server_word import ServerWord
from httpmark.harness.servers import brought


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the command, as click names them."""

    names: tuple[str | brought.Brought, ...]
    profiles: tuple[str, ...]
    rounds: int | None
    engine: str
    wrk2: str | None
    path: str | None
    allow_remote: bool
    runtime_name: str
    quick: bool
    out: Path | None
    seed: int | None
    cluster: str | None
    generators: int | None
    as_json: bool


@click.command("bench")
@click.argument("names", nargs=-1, required=True, metavar="TARGET|SERVER...", type=ServerWord())
@options.configured
@options.profile
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    help="Number of samples of each server.  [default: that of the profile]",
)
@options.engine
@options.wrk2
@options.load_path
@options.allow_remote("load")
@options.runtime
@options.quick
@options.out
@options.seed
@options.cluster()
@options.generators
@options.json_flag
@options.takes(Words)
def command(words: Words) -> None:
    """Measure servers under load, side by side.

    The samples of all servers are interleaved. Each server is compared in pairs with the first one
    that is named.

    A SERVER is a name of 'httpmark list servers', or one that you bring as 'httpmark run' takes it;
    it is restarted for every sample. A TARGET is the address of a server that runs already, as
    http://127.0.0.1:8080/; it is not restarted.

    Every answer must be a 2xx. A load of other answers measures nothing, and the exit code is 3.

    With --cluster several workers of a Dask cluster make the load, and another one runs the server.

    \b
    Examples:
      httpmark bench reference null rust_hyper --profile pipelined
      httpmark bench http://127.0.0.1:8080/ reference --quick
      httpmark bench http://127.0.0.1:8080/ --path /health
      httpmark bench reference "mine=./my-server --port {port} --threads {workers}"
      httpmark bench reference --cluster local:3 --generators auto
    """
    from httpmark.harness.command import carrying_out, run_options
    from httpmark.harness.servers import requested_path, running_target

    path = None if words.path is None else requested_path.checked(words.path)
    field = options.field()
    found = {
        str(word): running_target.parse(word, allow_remote=words.allow_remote)
        if isinstance(word, str)
        else None
        for word in words.names
    }
    names = {
        str(word): field.take(word, allow_remote=words.allow_remote)
        for word in words.names
        if found[str(word)] is None
    }
    for target in found.values():
        if target is not None and not (target.path and options.is_configured("path")):
            target.path = path or target.path
    asked = run_options.Options(
        suites=(),
        profiles=words.profiles or _default_profiles(words),
        servers=tuple(names.values()),
        field=field,
        allow_remote=words.allow_remote,
        targets=tuple(target for target in found.values() if target is not None),
        base=names.get(str(words.names[0]), str(words.names[0])),
        wrk2=words.wrk2,
        path=path,
        runtime=words.runtime_name,
        quick=words.quick,
        out=words.out,
        engine=words.engine,
        rounds=words.rounds,
        seed=words.seed,
        cluster=words.cluster,
        generators=words.generators,
    )
    carrying_out.carry_out(asked, as_json=words.as_json)


def _default_profiles(words: Words) -> tuple[str, ...]:
    """Those of a bench that names none; a cluster measures no memory."""
    from httpmark.harness.catalogue import loading
    from httpmark.harness.load import memory_ladder

    known = loading.load()
    return tuple(
        name
        for name in known.default_plans
        if words.cluster is None or known.plan(name).mode not in memory_ladder.MODES
    )
