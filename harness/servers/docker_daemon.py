"""The Docker daemon: whether it answers, and talking to it."""

from __future__ import annotations

import contextlib
import functools
import getpass
import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from httpmark.harness.model.errors import Unusable

if TYPE_CHECKING:
    from docker import DockerClient
LABEL = "httpmark"
_DOCKER_ASK_S = 60  # one call of the daemon; a build has a deadline of its own
_DOCKER_PING_S = 5


def docker_trouble() -> str | None:
    """None when a Docker daemon answers, else in one line why not, and the mend."""
    host = os.environ.get("DOCKER_HOST", "")
    if not host or host.startswith("unix://"):
        path = host.removeprefix("unix://") or "/var/run/docker.sock"
        if not os.path.exists(path):
            have = shutil.which("dockerd")
            mend = "systemctl start docker" if have else "apt-get install docker.io"
            return f"no Docker daemon answers at {path}: {mend}"
        if not os.access(path, os.R_OK | os.W_OK):
            return _no_permission(path)
    try:
        client = docker_client()
        client.api.timeout = _DOCKER_PING_S
        try:
            client.ping()
        finally:
            client.api.timeout = _DOCKER_ASK_S
    except docker_errors() as error:
        return _daemon_trouble(error, host or "/var/run/docker.sock")
    return None


def docker_facts() -> dict[str, Any] | None:
    """What of the daemon decides a container's figures; None where none answers."""
    if docker_trouble() is not None:
        return None
    try:
        with talking_to_daemon("the daemon does not tell of itself") as client:
            told = client.info()
    except Unusable:
        return None
    return {
        "version": told.get("ServerVersion"),
        "containerd": (told.get("ContainerdCommit") or {}).get("ID"),
        "runc": (told.get("RuncCommit") or {}).get("ID"),
        "runtime": told.get("DefaultRuntime"),
        "storage_driver": told.get("Driver"),
        "cgroup_driver": told.get("CgroupDriver"),
        "cgroup_version": told.get("CgroupVersion"),
        "security": sorted(told.get("SecurityOptions") or []),
    }


def _no_permission(path: str) -> str:
    import grp

    try:
        group = grp.getgrgid(os.stat(path).st_gid).gr_name
    except (OSError, KeyError):
        group = "docker"
    return (
        f"no permission for {path}: sudo usermod -aG {group} {getpass.getuser()}, then log in again"
    )


def _daemon_trouble(error: BaseException, where: str) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, PermissionError) or "PermissionError" in str(cause):
            return _no_permission(where.removeprefix("unix://"))
        cause = cause.__cause__ or cause.__context__
    return f"no Docker daemon answers at {where}: systemctl start docker ({first_line(error)})"


def first_line(error: BaseException) -> str:
    explained = getattr(error, "explanation", None)
    return " ".join(str(explained or error).split())[:300]


@functools.cache
def docker_client() -> DockerClient:
    """The client of the daemon, made when first needed: importing docker takes a while."""
    import docker

    # Making it asks the daemon for its version.
    return docker.from_env(timeout=_DOCKER_PING_S)


def docker_errors() -> tuple[type[BaseException], ...]:
    """What a call of the daemon may raise: its own errors, and those of the transport."""
    from docker.errors import DockerException
    from urllib3.exceptions import HTTPError  # of an answer that is read piece by piece

    return (DockerException, HTTPError, OSError)


@contextlib.contextmanager
def talking_to_daemon(what: str) -> Iterator[DockerClient]:
    """Talk to the daemon; whatever goes wrong is one line that begins with ``what``.

    :raises Unusable: no daemon answers, or it refuses.
    """
    try:
        yield docker_client()
    except docker_errors() as error:
        raise Unusable(f"{what}: {_told(error)}") from error


def _told(error: BaseException) -> str:
    """What went wrong; where the daemon itself went away, that."""
    from requests.exceptions import ConnectionError as Unreachable

    if isinstance(error, Unreachable | ConnectionError):
        return _daemon_trouble(error, os.environ.get("DOCKER_HOST") or "/var/run/docker.sock")
    return first_line(error)
