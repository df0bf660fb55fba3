"""The load generators by name."""

from __future__ import annotations

import hashlib
from pathlib import Path

from httpmark.harness.load.engines.foreign import Foreign
from httpmark.harness.load.engines.h2load import H2load
from httpmark.harness.load.engines.launch import Engine
from httpmark.harness.load.engines.native import Native
from httpmark.harness.load.engines.wrk import Wrk
from httpmark.harness.load.engines.wrk2 import Wrk2
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.servers import binaries


def identity(engine: Engine) -> dict[str, str | None]:
    """Which generator laid the load on: its name, its own word of its version, its SHA-256."""
    path = binaries.find("load") if isinstance(engine, Native) else None
    if isinstance(engine, Foreign):
        path = engine.executable
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else None
    return {"name": engine.name, "version": engine.version() or None, "sha256": digest}


NAMES = ("native", "wrk", "wrk2", "h2load")


def engine(name: str, *, wrk2: str | None = None) -> Engine:
    """An engine by name.

    :param wrk2: the path of the binary that the user brings.
    :raises HarnessError: a path for another engine, or none for wrk2.
    :raises Unusable: it is not installed.
    """
    if wrk2 is not None and name != "wrk2":
        raise HarnessError("--wrk2 names a binary for --engine wrk2, and another engine is chosen")
    if name == "wrk2":
        return Wrk2(wrk2)
    kinds: dict[str, type[Wrk] | type[H2load]] = {"wrk": Wrk, "h2load": H2load}
    return kinds[name]() if name in kinds else Native()
