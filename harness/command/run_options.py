"""What a run is asked to do."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from httpmark.harness.model.run import Asked
from httpmark.harness.servers import brought, running_target


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is asked to do; the words of ``run`` and ``bench``."""

    suites: tuple[str, ...]
    profiles: tuple[str, ...]
    servers: tuple[str, ...] = ()  # none named: those that a run uses by default
    all_servers: bool = False  # none named: really all that are known
    field: brought.Field = msgspec.field(default_factory=brought.Field)  # those that are known
    runtime: str = "auto"
    quick: bool = False
    full: bool = False  # every delivery, too
    out: Path | None = None
    allow_remote: bool = False
    targets: tuple[running_target.RunningTarget, ...] = ()  # servers that run already
    base: str | None = None  # the server or target that the others are paired with
    engine: str = "native"
    wrk2: str | None = None  # the binary of that engine, which the user brings
    path: str | None = None  # what load requests, instead of the profiles' paths
    rounds: int | None = None
    seed: int | None = None
    port: int | None = None
    suite_minutes: float = math.inf  # the most that one suite may take at one server
    asked: Asked | None = None  # what of it who carries the run on must know
    cluster: str | None = None  # where the workers are that do it; None: here
    generators: int | None = None  # of a load on a cluster; None: all; 0: as many as it takes
    resume: Path | None = None  # the folder of the run that is carried on
