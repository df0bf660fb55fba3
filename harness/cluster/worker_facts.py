"""What a worker says of itself. This runs on the worker."""

from __future__ import annotations

import os
import platform
import resource
import time

import msgspec

from httpmark.harness.servers import binaries, machine, open_connections


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The machine of a worker, as far as httpmark needs it."""

    version: str
    python: str
    host: str
    cores: int
    descriptors: int | None  # the hard limit; None: there is none
    ports: int | None  # for connections from one source address to one target; None: unknown
    binaries: tuple[str, ...]  # of our native programs, those that are there


def facts() -> Facts:
    """The facts of this machine."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return Facts(
        version=machine.version(),
        python=platform.python_version(),
        host=platform.node(),
        cores=len(os.sched_getaffinity(0)),
        descriptors=None if hard == resource.RLIM_INFINITY else hard,
        ports=open_connections.connection_room().get("ports"),
        binaries=tuple(name for name in binaries.NAMES if binaries.find(name)),
    )


def clock() -> float:
    """The time of this machine."""
    return time.time()
