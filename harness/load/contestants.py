"""The servers of a race, and how each is started afresh for one sample."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from httpmark.harness.load.placing import Placement
from httpmark.harness.model.load import (
    LoadPlan,
)


class Started(Protocol):
    """A server that answers."""

    @property
    def address(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def tls_port(self) -> int | None: ...

    @property
    def cgroup(self) -> str | None: ...

    def pids(self) -> list[int]: ...

    def trees(self) -> list[int]: ...

    def alive(self) -> bool: ...

    def exit_reason(self) -> str: ...


class Contestant(msgspec.Struct, frozen=True):
    """A server in the race, and how to start it afresh for one sample."""

    name: str
    start: Callable[[LoadPlan, Placement], AbstractContextManager[Started]]
    is_null: bool = False
    path: str | None = None  # instead of the plan's
    runs_already: bool = False  # it is not started for a sample, and its processors are its own
