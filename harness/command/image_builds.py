"""Builds of many servers: one that fails or does not end does not stop the rest."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Sequence

import msgspec

from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.progress import Events
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import starting

TASK = "builds"


class Outcome(enum.StrEnum):
    """How a build went."""

    BUILT = "built"
    CACHED = "cached"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """One build, as ``--json`` tells it."""

    name: str
    runtime: str | None
    outcome: Outcome
    seconds: float
    because: str | None = None


def build_all(
    servers: Sequence[Server], runtime_word: str, *, deadline_s: float, events: Events,
    clock: Callable[[], float] = time.monotonic,
) -> list[Build]:  # fmt: skip
    """Build each of these servers in turn.

    :param deadline_s: how long one build may take.
    """
    events.task(TASK, len(servers))
    builds = []
    for server in servers:
        began = clock()
        runtime, outcome, because = _build(server, runtime_word, deadline_s, events.say)
        took = round(clock() - began, 1)
        builds.append(
            Build(
                name=server.name, runtime=runtime, outcome=outcome, seconds=took, because=because
            )
        )  # fmt: skip
        events.say(line(builds[-1]))
        events.advance(TASK, 1)
    events.done(TASK, summary(builds))
    return builds


def _build(
    server: Server, runtime_word: str, deadline_s: float, say: Callable[[str], None]
) -> tuple[str | None, Outcome, str | None]:
    """The runtime that was built for, how that went, and why if it failed."""
    runtime, outcome = None, Outcome.UNAVAILABLE
    try:
        runtime = starting.for_server(server, runtime_word)
        outcome = Outcome.FAILED
        if starting.is_prepared(server, runtime):
            return runtime, Outcome.CACHED, None
        starting.prepare(server, runtime, say=say, deadline_s=deadline_s)
    except Unusable as error:
        return runtime, outcome, str(error)
    return runtime, Outcome.BUILT, None


def line(build: Build) -> str:
    """One build in a line."""
    because = f", because {build.because}" if build.because else ""
    took = f" in {build.seconds:.0f} s" if build.outcome is Outcome.BUILT else ""
    how = f" ({build.runtime})" if build.runtime else ""
    return f"{build.name}: {build.outcome}{took}{how}{because}"


def summary(builds: Sequence[Build]) -> str:
    """How many of each outcome, and the seconds of all."""
    counts = {kind: sum(build.outcome is kind for build in builds) for kind in Outcome}
    told = [f"{count} {kind}" for kind, count in counts.items() if count]
    took = sum(build.seconds for build in builds)
    return f"{', '.join(told) or 'nothing to build'}; {took:.0f} s"


def is_bad(build: Build, *, is_named: bool) -> bool:
    """Whether the command fails for it: what cannot be had counts only where it was named."""
    return build.outcome is Outcome.FAILED or (is_named and build.outcome is Outcome.UNAVAILABLE)
