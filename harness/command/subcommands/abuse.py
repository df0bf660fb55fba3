"""`httpmark abuse`: does a server serve honest clients while others abuse it?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from httpmark.harness.command import options, printing, progress_display
from httpmark.harness.command.printing import print_json
from httpmark.harness.command.server_word import ServerWord
from httpmark.harness.model import progress
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.servers import brought

if TYPE_CHECKING:
    from httpmark.harness.command import abuse_run


def _scenarios() -> Iterable[str]:
    from httpmark.harness.load import abuse_scenarios

    return abuse_scenarios.BY_NAME


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the command, as click names them."""

    names: tuple[str | brought.Brought, ...]
    serve: str | None
    scenarios: tuple[str, ...]
    clients: int
    rate: float
    fail_over: float | None
    path: str | None
    allow_remote: bool
    runtime_name: str
    quick: bool
    page: Path | None
    as_json: bool


@click.command("abuse")
@click.argument("names", nargs=-1, metavar="TARGET|SERVER...", type=ServerWord())
@options.configured
@options.serve
@click.option(
    "--scenario",
    "scenarios",
    type=options.ChoiceOf(_scenarios),
    multiple=True,
    help="Abuse in this way. Repeatable.  [default: all]",
)
@click.option(
    "--clients",
    type=click.IntRange(1, 1000),
    default=10,
    help="Number of honest connections. A server that serves few at a time needs fewer.",
)
@click.option(
    "--rate", type=options.Number(1, 10_000), default=200.0, help="Honest requests a second."
)
@click.option(
    "--fail-over",
    type=options.Number(1, 1e6),
    metavar="RATIO",
    help="Exit with 1 if a server starves its honest clients, or their p99 is more than RATIO "
    "times the quiet one.  [default: only a server that dies or falls silent fails]",
)
@options.load_path
@options.allow_remote("abuse")
@options.runtime
@click.option("--quick", is_flag=True, help="Abuse for 2.5 s instead of 9 s in each scenario.")
@options.file("--page", "page", "Write the tables into this file, as Markdown.")
@options.json_flag
@options.takes(Words)
def command(words: Words) -> None:
    """Abuse servers, and see whether honest clients are still served.

    WARNING: this is an attack. It can make a server unusable, and the machine that it runs on. Use
    it only against a server that is yours or that you may test, and never against one that somebody
    needs. Without --allow-remote it goes to this machine only.

    In each scenario clients misbehave: slow heads, bodies and readers, chunks of one byte, chunk
    extensions, 100,000 fields, floods of connections and of TLS handshakes, WebSocket messages that
    never end. Beside them honest clients ask at a low fixed rate. Shown are the p99 of the honest,
    quiet and meanwhile, what they lost, what the server held in memory, and whether it answers
    again afterwards.

    A SERVER is a name of 'httpmark list servers', or one that you bring as 'httpmark run' takes it;
    it is started with one worker, and again where it died. A TARGET is the address of a server that
    runs already, as http://127.0.0.1:8080/.

    \b
    Exit codes:
      0  every server answers again after each scenario
      1  one died or fell silent, or more than --fail-over allows
      2  usage
      3  a server cannot be used
      4  some abuse never came, as this machine had no time for it

    \b
    Examples:
      httpmark abuse reference nginx go_net_http --page abuse.md
      httpmark abuse http://127.0.0.1:8080/ --quick
      httpmark abuse --serve "./server --port {port}" --scenario slow-heads --fail-over 10
    """
    from httpmark.harness.command import abuse_run, painting
    from httpmark.harness.report import abuse_text

    asked = _asked(words)
    with progress_display.display() as events:
        session = abuse_run.Session(asked, events)
        try:
            session.run()
        except progress.Interrupted as stop:
            raise progress.Interrupted(stop.code, "the results until then are printed") from None
        finally:
            report = session.report()
            if words.as_json:
                print_json(report)
            elif report.servers:
                printing.echo("\n".join(abuse_text.lines(report, painting.columns())))
            if words.page is not None:
                _write(abuse_text.markdown(report), words.page)
    unusable = [one for one in report.servers if one.unavailable is not None]
    if unusable:
        raise Unusable(f"{unusable[0].name}: {unusable[0].unavailable}")
    if abuse_run.is_failed(report, words.fail_over):
        raise SystemExit(1)
    if abuse_run.is_undecided(report):
        raise SystemExit(4)


def _asked(words: Words) -> abuse_run.Options:
    """What is to be done.

    :raises HarnessError: a word is wrong.
    """
    from httpmark.harness.command import abuse_run, named_target
    from httpmark.harness.servers import requested_path, running_target

    if not words.names and words.serve is None:
        raise HarnessError("abuse: name a TARGET or a SERVER, or --serve COMMAND")
    if words.page is not None and not words.page.absolute().parent.is_dir():
        raise HarnessError(f"{words.page}: the folder for it is not there: make it first")
    field = options.field()
    targets, servers = [], []
    for word in dict.fromkeys(words.names):
        target = None
        if isinstance(word, str):
            target = running_target.parse(word, allow_remote=words.allow_remote)
        if target is None:
            server = field.server(field.take(word, allow_remote=words.allow_remote))
            if not server.url:
                servers.append(server)
                continue
            target = running_target.of_server(server, allow_remote=words.allow_remote)
        targets.append(target)
    if words.serve is not None:
        servers.append(named_target.served(words.serve, None))
    timing = abuse_run.QUICK if words.quick else abuse_run.FULL
    return abuse_run.Options(
        servers=tuple(servers),
        targets=tuple(targets),
        scenarios=tuple(dict.fromkeys(words.scenarios)),
        path=None if words.path is None else requested_path.checked(words.path),
        runtime=words.runtime_name,
        asked=msgspec.structs.replace(timing, clients=words.clients, rate=words.rate),
        quick=words.quick,
    )


def _write(text: str, page: Path) -> None:
    try:
        page.write_text(text, "utf-8")
    except OSError as error:
        raise HarnessError(f"{page}: {error.strerror}") from None
