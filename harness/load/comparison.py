"""What a comparison of two servers says: its lines, their verdicts, the exit code."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from httpmark.harness.load import paired_verdicts
from httpmark.harness.load.paired_verdicts import Gate, Judged
from httpmark.harness.load.statistics import Drift
from httpmark.harness.model import progress
from httpmark.harness.model.errors import NothingSelected, Unusable
from httpmark.harness.model.load import LoadResult
from httpmark.harness.servers import brought

COST, RATE, MEMORY = "cpu_ns_per_request", "requests_per_second", "bytes_per_connection"
ALIVE = "alive"  # of a server that died before anything was measured
# How much worse head may be. A higher cost is worse; throughput is inverted before it is judged.
MARGINS = {COST: 0.03, RATE: 0.05, MEMORY: 0.02}
# At each look: pairs over those of the first look, and the level of the intervals. The level is
# higher while another look follows, as several looks have several chances of a false alarm.
LOOKS = ((1.0, 0.99), (5 / 3, 0.99), (2.5, 0.95))
PAIRS_MIN = 12
CONFIRMED_LEVEL = 0.95
# With more gated figures the chance of a false alarm that each may have is too small.
GATED_MAX = 5


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared, and how sure the answer must be."""

    base: str
    head: str
    profiles: tuple[str, ...] = ()
    margin: float | None = None  # of the cost; the default is that of MARGINS
    pairs: int = PAIRS_MIN
    force: bool = False
    quick: bool = False
    runtime: str = "auto"
    path: str | None = None
    own_path_first: bool = False  # a path in an address beats `path`, which is of a file
    engine: str = "native"
    wrk2: str | None = None
    seed: int | None = None
    allow_remote: bool = False
    field: brought.Field = msgspec.field(default_factory=brought.Field)  # servers that are known

    @property
    def margins(self) -> dict[str, float]:
        return {**MARGINS, COST: MARGINS[COST] if self.margin is None else self.margin}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one profile: what base and head were, and the verdict."""

    profile: str
    metric: str
    server: str | None
    judged: Judged | None
    verdict: Gate | None  # None: not gated
    why: str
    unmeasured: bool = False  # one of them measured nothing: its answers were not 2xx


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome; ``verdict`` is the worst of all lines that are gated."""

    base: str
    head: str
    how: str  # "side by side" or "two runs"
    verdict: Gate
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    differences: tuple[str, ...]  # of the environments
    seed: int
    signal: int | None = None  # that interrupted it
    paths: dict[str, tuple[str, ...]] = {}  # by profile: what base and head were asked for

    @property
    def is_unmeasured(self) -> bool:
        """Whether a load measured nothing, as its answers were not 2xx."""
        return any(line.unmeasured for line in self.lines)


class AgainstItself(msgspec.Struct, frozen=True, kw_only=True):
    """An A/A run of one profile: what this machine can tell apart."""

    server: str
    profile: str
    comparisons: int  # those that had enough pairs
    wanted: int
    unjudged: int = 0  # those that had too few, as answers were wrong
    redone: int = 0  # samples that got too little CPU and were taken again
    pairs_each: int
    false_alarms: int  # comparisons whose gate failed
    apart: int  # whose interval excluded 1; one in twenty is expected
    deviation: float | None  # of the pairs' log-ratios of cost
    detectable: dict[str, float | None]  # ratio, by number of pairs
    drawn_alarms: int | None  # of DRAWN_GATES gates played over these pairs; None: too few pairs
    drift: Drift | None  # of the cost over the run
    slot: tuple[float, float] | None  # second over first of a pair, 95 % interval
    fit: bool
    why: str
    signal: int | None = None  # that interrupted it


def verdict_of(lines: Sequence[Line]) -> Gate:
    """The worst verdict of the gated lines.

    :raises NothingSelected: nothing is gated.
    """
    found = {line.verdict for line in lines if line.verdict is not None}
    for word in (Gate.FAIL, Gate.INCONCLUSIVE, Gate.PASS):
        if word in found:
            return word
    raise NothingSelected("nothing to compare: the two have no server and profile in common")


def exit_code(found: Comparison | Sequence[AgainstItself], *, inconclusive: str) -> int:
    """The exit code (docs/contract.md); ``inconclusive`` is ``pass``, ``warn`` or ``fail``.

    An A/A run exits with 1 where the machine is unfit, and a comparison with 3 where one side
    measured nothing and no other figure failed.
    """
    parts = [found] if isinstance(found, Comparison) else found
    for part in parts:
        if part.signal is not None:
            return progress.SIGNALLED + part.signal
    if not isinstance(found, Comparison):
        return 0 if all(one.fit for one in found) else 1
    if found.verdict is not Gate.FAIL and found.is_unmeasured:
        return Unusable.exit_code
    if found.verdict is Gate.INCONCLUSIVE:
        return 4 if inconclusive == "fail" else 0
    return 1 if found.verdict is Gate.FAIL else 0


class Ratios(msgspec.Struct, frozen=True):
    """Log-ratios of cost to be judged together with all others of a comparison."""

    server: str
    profile: str
    logs: list[float]


def all_judged(found: Sequence[Line | Ratios], margin: float, seed: int) -> list[Line]:
    """Judge all figures of two runs at once, as they share one chance of a false alarm."""
    worse = {str(at): one.logs for at, one in enumerate(found) if isinstance(one, Ratios)}
    judged = paired_verdicts.judge_pairs(
        worse, dict.fromkeys(worse, margin), level=CONFIRMED_LEVEL, seed=seed
    )
    return [
        one
        if isinstance(one, Line)
        else line_of(
            one.profile, COST, one.server, judged[str(at)], judged[str(at)].verdict,
            judged[str(at)].why,
        )
        for at, one in enumerate(found)
    ]  # fmt: skip


def warn_of_many(lines: Sequence[Line]) -> list[str]:
    """A warning where more figures are gated at once than a gate should have."""
    count = sum(line.judged is not None and line.verdict is not None for line in lines)
    if count <= GATED_MAX:
        return []
    return [
        f"{count} gated figures share one chance of a false alarm, so small changes are seldom "
        f"found: select fewer with --profile, {GATED_MAX} at most"
    ]


def broken_answers(server: str | None, base: LoadResult, head: LoadResult) -> Line | None:
    """A head with wrong answers fails at once, whatever the figures say.

    Not where base had them in every sample, too: then nothing was measured.
    """
    # It asks servers, and a command that is asked for help does not.
    from httpmark.harness.load import refusals

    if nothing := refusals.without_a_sound_sample(base):
        line = line_of(base.profile, COST, server, None, Gate.INCONCLUSIVE, f"base: {nothing}")
        return msgspec.structs.replace(line, unmeasured=True)
    if not head.errors:
        return None
    told = ", ".join(f"{count} {name}" for name, count in sorted(head.errors.items()))
    if base.errors:
        why = f"both had errors under load; head: {told}"
        return line_of(base.profile, COST, server, None, Gate.INCONCLUSIVE, why)
    return line_of(base.profile, COST, server, None, Gate.FAIL, f"errors under load: {told}")


def line_of(
    profile: str,
    metric: str,
    server: str | None,
    judged: Judged | None,
    verdict: Gate | None,
    why: str,
) -> Line:
    return Line(
        profile=profile, metric=metric, server=server, judged=judged, verdict=verdict, why=why
    )


def samples_redone(count: int) -> str:
    return f"{count} samples got too little CPU and were taken again"
