"""`httpmark images`: the container images of servers."""

from __future__ import annotations

import click


@click.group("images")
def command() -> None:
    """Build the container images of servers."""


@command.command("build")
@click.argument("names", nargs=-1, metavar="[SERVER]...")
def build(names: tuple[str, ...]) -> None:
    """Build the images of these servers, or of all.

    A SERVER is a name of 'httpmark list servers'.
    """
    from httpmark.harness.http.printable import one_line
    from httpmark.harness.servers import manifests, starting

    chosen = [manifests.server(name) for name in names]
    if not chosen:
        chosen = [s for s in manifests.servers() if s.container and s.container.dockerfile]
    for server in chosen:
        starting.prepare(server, "docker", say=lambda line: click.echo(one_line(line), err=True))
        click.echo(f"{server.name}: built")
