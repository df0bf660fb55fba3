"""Servers as reverse proxies: which can be one here, and one started in front of an origin."""

from __future__ import annotations

import msgspec

from httpmark.harness.http.address import endpoint
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.servers import ProcessRecipe, Server
from httpmark.harness.servers import needs, starting
from httpmark.harness.servers.build_cache import Say
from httpmark.harness.servers.running import Running
from httpmark.harness.servers.start_words import filled


def as_proxy(server: Server, origin_host: str, origin_port: int) -> Server:
    """The same server, to be started as a reverse proxy in front of an origin.

    :raises Unusable: its manifest does not say how.
    """
    recipe, process = server.proxy, server.process
    if recipe is None or process is None:
        raise Unusable(server.trouble or "its server.toml has no [proxy]")
    known = {
        "origin": endpoint(origin_host, origin_port),
        "origin_host": origin_host,
        "origin_port": str(origin_port),
    }
    started = ProcessRecipe(
        start=tuple(filled(word, **known) for word in recipe.start),
        files={name: filled(text, **known) for name, text in recipe.files.items()},
        context=process.context, build=process.build, build_env=process.build_env,
        needs=process.needs, env=process.env, binary=process.binary, version=process.version,
    )  # fmt: skip
    return msgspec.structs.replace(
        server, process=started, container=None, proxy=None, capabilities=("hello",)
    )


def trouble(server: Server) -> str | None:
    """Why a server cannot be a reverse proxy here, with the command that mends it."""
    try:
        return needs.process_trouble(as_proxy(server, "127.0.0.1", 1))
    except Unusable as error:
        return str(error)


def start(
    server: Server, *, origin: tuple[str, int], address: str, port: int, run_id: str, say: Say
) -> Running:
    """Start a server as a reverse proxy, and wait until the origin answers through it.

    :raises Unusable: something is missing, or nothing comes through it.
    """
    if why := trouble(server):
        raise Unusable(why)
    # What is built is built once, for the server as its manifest has it.
    starting.prepare(server, "process", say=say)
    return starting.start(
        as_proxy(server, *origin), "process",
        address=address, port=port, workers=1, cpus=None, run_id=run_id,
    )  # fmt: skip
