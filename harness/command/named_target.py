"""A target as the command line names it: where it is, and what it can do."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
from collections.abc import Callable, Iterator

import msgspec

from httpmark.harness.command.check_options import Options
from httpmark.harness.firing import discovery, targets
from httpmark.harness.http import address, response_reader
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.servers import ProcessRecipe, Server
from httpmark.harness.servers import manifests, requested_path, sockets, starting
from httpmark.harness.servers.restartable import Restartable

Capabilities = tuple[str, ...]
Survived = Callable[[targets.Target, Callable[[targets.Target], Capabilities]], Capabilities]


def has_own_path(target: str) -> bool:
    """Whether a target's URL names the path to request.

    :raises HarnessError: it is not a target.
    """
    return requested_path.of_address(address.read(target, allow_remote=True)) is not None


def path_of(options: Options, where: address.Address) -> str:
    """The path to request.

    :raises HarnessError: a request line cannot hold it.
    """
    if options.post_path is not None:
        requested_path.checked(options.post_path)
    if options.path is not None:
        return requested_path.checked(options.path)
    return requested_path.checked(requested_path.of_address(where) or requested_path.FIRST)


def _finds_path(options: Options, where: address.Address) -> bool:
    """Whether nobody named a path, so that one may be found by asking."""
    return options.path is None and requested_path.of_address(where) is None


def asked(options: Options) -> targets.Target:
    """The target that the options name, with what it can do.

    :raises HarnessError: no address, another machine without ``--allow-remote``, or no manifest.
    :raises Unusable: nothing answers there.
    """
    declared = manifests.declared(options.manifest) if options.manifest else None
    where = address.read(options.target, allow_remote=options.allow_remote)
    return asked_at(options, where, declared)


@contextlib.contextmanager
def started_or_asked(options: Options, *, say: Callable[[str], None]) -> Iterator[targets.Target]:
    """The target that the options name; with ``--serve`` it is started for so long.

    :raises HarnessError: as :func:`asked`; or the command of ``--serve`` is none.
    :raises Unusable: it does not start, or nothing answers there.
    """
    if options.serve is None:
        yield asked(options)
        return
    declared = manifests.declared(options.manifest) if options.manifest else None
    where = address.loopback(sockets.free_port())
    path_of(options, where)  # before anything is started
    running = started(served(options.serve, declared), where, say=say)
    try:
        yield asked_at(options, where, declared, server=running)
    finally:
        running.stop()


def started(server: Server, where: address.Address, *, say: Callable[[str], None]) -> Restartable:
    """The server of ``--serve``, when it answers.

    :raises Unusable: it does not.
    """
    starting.prepare(server, "process", say=say)
    return Restartable(
        lambda: starting.start(
            server, "process", address=where.address, port=where.port, workers=1, cpus=None,
            run_id=secrets.token_hex(3), conformance=True,
        )
    )  # fmt: skip


def asked_at(
    options: Options,
    where: address.Address,
    declared: Server | None,
    *,
    server: Restartable | None = None,
    survived: Survived = lambda target, question: question(target),
) -> targets.Target:
    """The target at an address. What it can do is declared, else found out by asking.

    :param server: its process, where it was started here.
    :param survived: asks, and sees to it that the server lives after it.
    :raises Unusable: nothing answers there.
    """
    target = _addressed(options, where, server)
    answer = targets.hello(target)
    if answer is None:
        raise Unusable(f"{options.target}: nothing answers there: is the server running?")
    if why := discovery.without_end(target, answer):
        raise Unusable(f"{options.target}: {why}: name a path with a short answer, with --path")
    # The first answer of all may take its time. A server that is silent twice can do nothing.
    is_mute = not answer and not targets.hello(target)
    status = response_reader.final_status(answer)
    if not is_mute and _finds_path(options, where) and not requested_path.accepts(status):
        root = msgspec.structs.replace(target, path=requested_path.ROOT)
        target = root if targets.accepts(root) else target
    said = declared.capabilities if declared is not None else ()
    capabilities = said or (("hello",) if is_mute else survived(target, discovery.capabilities))
    if declared is None:
        return msgspec.structs.replace(target, capabilities=capabilities)
    is_get_only = declared.get_only and not options.post_path
    return msgspec.structs.replace(
        target,
        capabilities=capabilities,
        post_path=None if is_get_only else target.post_path,
        limits=declared.limits | declared.conformance.limits,
        timeouts=declared.timeouts | declared.conformance.timeouts,
        answers_1_0_as_1_0=declared.answers_1_0_as_1_0,
    )


def _addressed(
    options: Options, where: address.Address, server: Restartable | None
) -> targets.Target:
    """A target of which nothing but its address is known."""
    path = path_of(options, where)
    found = where.address if where.unix else sockets.resolved(where.address, where.port)
    if found is None:
        raise Unusable(
            f"{options.target}: the name {where.name} has no address: is it spelled right?"
        )
    return targets.Target(
        name="target",
        address=found,
        port=where.port,
        host=options.host or where.host,
        path=path,
        post_path=options.post_path or "",
        unix=where.unix,
        tls=where.tls,
        tls_name=where.name if where.tls else None,
        ca_file=str(options.cacert) if options.cacert else None,
        jobs=options.jobs,
        header=options.header,
        death=server.death if server is not None else lambda: None,
        server=server,
    )


def served(command: str, manifest: Server | None) -> Server:
    """The server that ``--serve`` names, as a process of its own.

    :raises HarnessError: the command is empty, or has no ``{port}``.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise HarnessError(f"--serve: {command!r}: {error}: check the quotes") from None
    if not words or not any("{port}" in word or "{endpoint}" in word for word in words):
        raise HarnessError(
            f"--serve: {command!r} has no {{port}}; write './server --port {{port}}'"
        )
    # It runs in the caller's folder, so that ./server is found there.
    recipe = ProcessRecipe(start=("env", "-C", os.getcwd(), *words))
    if manifest is not None:
        return msgspec.structs.replace(manifest, process=recipe)
    return Server(
        name="target",
        title=command,
        language="",
        version="",
        homepage="",
        capabilities=("hello",),
        process=recipe,
    )


def advice(target: targets.Target) -> str:
    """What to add if the plain request is not accepted; empty if it is."""
    if targets.accepts(target):
        return ""
    if targets.accepts(msgspec.structs.replace(target, path="/")):
        return f"GET {target.path} is not accepted, GET / is: add --path /"
    return (
        f"GET {target.path} is not accepted: name a path that is, as --path /health, or what the "
        "server asks for with --host or --header"
    )
