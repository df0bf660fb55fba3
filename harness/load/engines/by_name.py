"""The load generators by name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
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
    """Which generator made the load: its name, the version that it prints, its SHA-256."""
    path = binaries.find("load") if isinstance(engine, Native) else None
    if isinstance(engine, Foreign):
        path = engine.executable
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else None
    return {"name": engine.name, "version": engine.version() or None, "sha256": digest}


_KINDS: dict[str, Callable[[], Engine]] = {kind.name: kind for kind in (Native, Wrk, Wrk2, H2load)}
NAMES = tuple(_KINDS)


def engine(name: str, *, wrk2: str | None = None) -> Engine:
    """An engine by name.

    :param wrk2: the path of the binary that the user brings.
    :raises HarnessError: no engine has that name, or the path is for another engine than wrk2.
    :raises Unusable: it is not installed.
    """
    if name not in _KINDS:
        raise HarnessError(f"no engine is called {name!r}: use one of {', '.join(NAMES)}")
    if wrk2 is not None and name != Wrk2.name:
        raise HarnessError(f"--wrk2 goes with --engine wrk2 only, and --engine is {name}")
    return Wrk2(wrk2) if name == Wrk2.name else _KINDS[name]()
