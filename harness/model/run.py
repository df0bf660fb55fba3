"""The result of a run: what `result.json` holds."""

from __future__ import annotations

from typing import Any

import msgspec

from httpmark.harness.model.crashes import Crash
from httpmark.harness.model.forwarding import FrontEnd, Terms
from httpmark.harness.model.load import LoadResult, PairedRatio
from httpmark.harness.model.memory import Memory
from httpmark.harness.model.verdicts import Compliance

SCHEMA_VERSION = "1.0"


# --- the result of a run ----------------------------------------------------------------------


class ServerResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one run knows of one server. ``unavailable`` and ``died`` are said, not hidden."""

    name: str
    title: str
    language: str
    version: str | None
    version_reason: str | None = None
    runtime: str | None
    image_digest: str | None = None
    command: tuple[str, ...] | None = None  # how it was started under load, else for the suites
    binary_sha256: str | None = None  # of its first process
    # What its container may use, as its cgroup says; None of a process, which has our own limits.
    container_limits: dict[str, str] | None = None
    control: bool = False
    engine: str = ""  # the server whose HTTP parser it shares; empty: its own
    unavailable: str | None = None
    died: str | None = None  # and was not started again: the rest was not asked
    crashes: tuple[Crash, ...] = ()  # each is a finding
    compliance: Compliance = Compliance()
    forwarding: FrontEnd | None = None  # what it does as a reverse proxy
    forwarding_reason: str | None = None  # why that is not known, where it was asked
    load: tuple[LoadResult, ...] = ()
    memory: Memory | None = None
    memory_reason: str | None = None
    # How ``httpmark check`` is asked the same of it: the target, or --serve and its command, and
    # the options that say what is sent and where. Values of field lines are masked.
    again: tuple[str, ...] = ()


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate made of a run, in words for people."""

    exit_code: int
    headline: str  # the first sentence
    counts: str  # of cases
    sentences: tuple[str, ...] = ()  # the verdict as one would quote it; the first is the headline
    expected: tuple[str, ...] = ()  # ids of cases and checks that fail as the baseline lists them


class NamedServer(msgspec.Struct, frozen=True):
    """A server as the user named it, ``NAME`` or ``NAME=HOW``."""

    word: str
    folder: str  # where a relative path in it begins


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What ``httpmark run`` was asked, beside the suites and profiles: so it can be carried on."""

    servers: tuple[NamedServer, ...]  # none: those that a run uses by default, or all
    all_servers: bool
    full: bool
    runtime: str
    port: int | None
    suite_minutes: float
    allow_remote: bool
    configuration: str | None  # the path of the configuration file


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has done to the end."""

    suites: tuple[tuple[str, str], ...] = ()  # a suite and the name of a server, each
    profiles: tuple[str, ...] = ()  # each on all servers


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """``result.json``: the truth for scores and samples."""

    schema_version: str
    catalogue_version: str
    harness_version: str
    id: str
    started: str  # UTC, ISO 8601
    finished: str | None
    interrupted: bool
    quick: bool
    seed: int
    suites: tuple[str, ...]
    profiles: tuple[str, ...]
    environment: dict[str, Any]
    servers: tuple[ServerResult, ...]
    notes: tuple[str, ...] = ()
    forwarding: Terms | None = None  # of the servers' ``forwarding``
    paired: tuple[PairedRatio, ...] = ()
    conclusion: Conclusion | None = None  # of the gate of ``check``; None where nothing gates
    asked: Asked | None = None  # of ``run``; None of a check and of a bench
    completed: Completed = Completed()
