"""Starting servers as local processes or as containers: which of the two, built, until it answers.

Nothing started here outlives the harness. A process has a supervisor (supervisor.py) that ends it
when the harness is gone. A container is removed at its stop; one that a killed harness left is
removed by :func:`containers.sweep` at the next run.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from typing import Any

from httpmark.harness.http.address import endpoint
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.servers import Server, Tls
from httpmark.harness.servers import (
    docker_daemon,
    docker_images,
    kept_builds,
    open_connections,
    running_target,
    sockets,
)
from httpmark.harness.servers.build import BUILD_DEADLINE_S, build_folder, build_process, is_built
from httpmark.harness.servers.build_cache import PREPARED, Say
from httpmark.harness.servers.containers import ContainerServer
from httpmark.harness.servers.needs import executable, process_trouble
from httpmark.harness.servers.processes import ProcessServer
from httpmark.harness.servers.running import READY_PAUSE_S, RUNNING, Running, last_line

RUNTIMES = ("docker", "process")
ADDRESS = "address"  # the runtime of a server that runs already: it is neither started nor stopped
_READY_ASK_S = 1.0  # one readiness request
_STRANGER_S = 5.0  # so long after the first answer a server may find that its port was taken


def choose(word: str) -> str:
    """The runtime that ``auto``, ``docker`` or ``process`` stands for on this machine.

    :raises HarnessError: no such word.
    :raises Unusable: docker is asked for and no daemon can be used.
    """
    if word == "auto":
        return "process" if docker_daemon.docker_trouble() else "docker"
    if word not in RUNTIMES:
        raise HarnessError(f"no runtime is called {word!r}: use auto, docker or process")
    if word == "docker" and (trouble := docker_daemon.docker_trouble()):
        raise Unusable(trouble)
    return word


def for_server(server: Server, word: str) -> str:
    """The runtime for ``server`` under ``word``.

    ``auto`` is docker where a daemon answers; a server that can only run as a process here (a
    program that the user brought) is then a process.

    :raises HarnessError: no such word.
    :raises Unusable: the server cannot run that way here; says why, and the mend.
    """
    first = choose(word)
    if server.trouble:
        raise Unusable(server.trouble)
    reasons = []
    for runtime in RUNTIMES if word == "auto" else (first,):
        available = availability(server, runtime)
        if available is True:
            return runtime
        reasons.append(f"{runtime}: {available}")
    raise Unusable("; ".join(reasons))


def availability(server: Server, runtime: str) -> bool | str:
    """True, or in one line why ``server`` cannot run that way here, with the command that mends it.

    :raises HarnessError: no such runtime.
    """
    if runtime == "process":
        return process_trouble(server) or True
    if runtime == "docker":
        if server.container is None:  # whatever the daemon does
            return docker_images.image_trouble(server) or True
        return docker_daemon.docker_trouble() or docker_images.image_trouble(server) or True
    if runtime == ADDRESS:
        return _address_trouble(server) or True
    raise HarnessError(f"no runtime is called {runtime!r}: use docker or process")


def _address_trouble(server: Server) -> str | None:
    """Why a server that should run already cannot be used; one elsewhere is not asked unbidden."""
    try:
        target = running_target.of_server(server, allow_remote=False)
    except HarnessError as error:
        return f"not asked: {error}"
    return None if target.alive() else target.exit_reason()


def listed(server: Server) -> dict[str, Any]:
    """One entry of ``list servers --json``."""
    return {
        "name": server.name,
        "title": server.title,
        "language": server.language,
        "version": server.version,
        "capabilities": [*server.capabilities, *(["proxy"] if server.proxy else [])],
        "engine": server.engine or server.name,
        "workers": server.workers or None,
        "by_default": server.by_default,
        "tried": server.tried,
        "control": server.control,
        "available": {
            name: availability(server, name)
            for name in (*RUNTIMES, *((ADDRESS,) if server.url else ()))
        },
        "binary": binary(server),
    }


def binary(server: Server) -> str | None:
    """The path of the server's executable where it is a file that exists now."""
    recipe = server.process
    if recipe is None or recipe.binary is None:
        return None
    if "{build}" not in recipe.binary:
        return executable(recipe.binary)
    if process_trouble(server):
        return None
    path = recipe.binary.replace("{build}", str(build_folder(server)))
    return path if os.access(path, os.X_OK) else None


def is_prepared(server: Server, runtime: str) -> bool:
    """Whether a server that is available that way has been built."""
    return is_built(server) if runtime == "process" else docker_images.is_image_built(server)


def prepare(
    server: Server, runtime: str, *, say: Say, deadline_s: float = BUILD_DEADLINE_S
) -> None:
    """Build what a start needs; a second time it is there already. ``say`` gets progress lines.

    :param deadline_s: how long the build may take.
    :raises Unusable: something is missing or the build failed: its last line, and where the log is.
    """
    if runtime not in RUNTIMES:
        raise HarnessError(f"no runtime is called {runtime!r}: use docker or process")
    build = build_process if runtime == "process" else docker_images.build_image
    if build(server, say=say, deadline_s=deadline_s):
        kept_builds.hold_bound(PREPARED.names(), say=say)


def start(
    server: Server,
    runtime: str,
    *,
    address: str,
    port: int,
    workers: int,
    cpus: str | None,
    run_id: str,
    tls: Tls | None = None,
    conformance: bool = False,
) -> Running:
    """Start a prepared server and wait until it answers.

    A server that listens on one port alone does so, whatever ``port`` is.
    ``cpus`` is a list such as ``0`` or ``0,2-3``; None pins nothing. With ``tls`` it serves the
    same on a second port; with ``conformance`` it gets what its manifest adds for suites.

    :raises HarnessError: no such runtime, or TLS of a server that has none.
    :raises Unusable: the port is taken, it did not start, died, or does not answer in time.
    """
    if tls is not None and "tls" not in server.capabilities:
        raise HarnessError(f"{server.name} has no TLS: leave it out, or ask it without")
    if (own := own_port(server, runtime)) is not None:
        port = own
        _wait_while_kept(address, port)
    for wanted in [port, *([tls.port] if tls else [])]:
        try:
            trouble = port_trouble(address, wanted)
        except OSError as error:
            raise Unusable(f"{address} cannot be listened on: {error.strerror}") from error
        if trouble:
            raise Unusable(trouble)
    one: ProcessServer | ContainerServer
    if runtime == "process":
        one = ProcessServer(server, address=address, port=port)
    elif runtime == "docker":
        one = ContainerServer(
            server, address=address, port=port, name=f"httpmark-{run_id}-{server.name}"
        )
    else:
        raise HarnessError(f"no runtime is called {runtime!r}: use docker or process")
    RUNNING.add(one)
    try:
        one.begin(workers=workers, cpus=cpus, tls=tls, conformance=conformance)
        _wait_ready(one, tls)
        one.ready()
    except BaseException:  # Ctrl-C as well: nothing half started may stay
        one.stop()
        raise
    return one


def own_port(server: Server, runtime: str) -> int | None:
    """The one port that a server listens on; None where it listens on any that it is told."""
    recipe = {"process": server.process, "docker": server.container}.get(runtime)
    return recipe.port if recipe is not None else None


def _wait_while_kept(address: str, port: int) -> None:
    """Wait while closed connections alone keep a port: a server that takes no other has to."""
    end = time.monotonic() + open_connections.KEPT_S
    with contextlib.suppress(OSError):
        while (
            port_trouble(address, port)
            and open_connections.is_only_waiting(port)
            and time.monotonic() < end
        ):
            time.sleep(READY_PAUSE_S)


def port_trouble(address: str, port: int) -> str | None:
    """Why a server cannot listen on a port, and what to do; None where it can.

    :raises OSError: nobody can listen on that address.
    """
    if not sockets.port_taken(address, port):
        return None
    if not open_connections.is_only_waiting(port):
        return f"port {port} on {address} is taken: stop what listens there, or name another"
    if sockets.port_left_by_sharer(address, port):
        return None
    return (
        f"port {port} on {address} is kept by closed connections (TIME_WAIT), and nobody listens "
        "there: wait a minute, or name another"
    )


def stop_all() -> None:
    """Stop every server this process started; harmless when there is none."""
    RUNNING.stop_all()


atexit.register(stop_all)


def _wait_ready(one: ProcessServer | ContainerServer, tls: Tls | None) -> None:
    server = one.server
    host = endpoint(one.address, one.port)
    request = (
        f"GET {server.ready_path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    ).encode()
    end = time.monotonic() + server.ready_timeout_s
    patience_end: float | None = None
    answer: bytes | None = None
    while time.monotonic() < end:
        if not one.alive():
            raise Unusable(f"died at start: {one.exit_reason()}")
        with contextlib.suppress(OSError):
            answer = sockets.ask(one.address, one.port, request, deadline_s=_READY_ASK_S)
        if answer is not None and answer.startswith(b"HTTP/1."):
            if not one.alive():  # then something else answered
                raise Unusable(f"died at start: {one.exit_reason()}")
            if patience_end is None:
                now = time.monotonic()
                patience_end = min(now + _STRANGER_S, (now + end) / 2)
            answers = _answers_itself(one, patient=time.monotonic() < patience_end)
            if answers and (tls is None or sockets.port_taken(one.address, tls.port)):
                return
        time.sleep(READY_PAUSE_S)
    how = f"does not answer GET {server.ready_path}"
    if answer is None:
        how = "listens on no port"
    elif answer.startswith(b"HTTP/1.") and tls is not None:
        how = f"listens on no TLS port {tls.port}"
    tail = last_line(one.log_tail())
    raise Unusable(
        f"{how}: waited {server.ready_timeout_s:g} s" + (f"; it last said: {tail}" if tail else "")
    )


def _answers_itself(one: ProcessServer | ContainerServer, *, patient: bool) -> bool:
    """Whether an answer came from the server, as far as the listening processes show it.

    Another program may have taken the port since it was found free: then the server dies soon, and
    what answers until then is not its work. Where it lives on all the same (a command may have its
    server started by somebody else), patience ends, and who listens is believed.

    :raises Unusable: the server and another program both listen there.
    """
    listening = open_connections.listeners(one.port, one.address)
    own = set(one.pids())
    strangers = [pid for pid in listening if pid not in own]
    if strangers and not patient and own & set(listening):
        raise Unusable(
            f"port {one.port} is shared with another program (process {strangers[0]}): "
            "stop it, or name another port"
        )
    return not strangers or not patient
