"""What a comparison of two servers says: its lines, their verdicts, the exit code."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from httpmark.harness.load import statistics
from httpmark.harness.load.statistics import Drift, Gate, Judged
from httpmark.harness.model import progress
from httpmark.harness.model.errors import NothingSelected
from httpmark.harness.model.load import LoadResult

COST, RATE, MEMORY = "cpu_ns_per_request", "requests_per_second", "bytes_per_connection"
ALIVE = "alive"  # of a server that died before there was anything else to compare
# Higher is worse for costs; throughput is turned round before it is judged.
MARGINS = {COST: 0.03, RATE: 0.05, MEMORY: 0.02}
# Pairs at each look, over those of the first, and the level of its intervals: wider while there
# is another look, as stopping at the first good one would bring false alarms back.
LOOKS = ((1.0, 0.99), (5 / 3, 0.99), (2.5, 0.95))
PAIRS_MIN = 12
CONFIRMED_LEVEL = 0.95
# load.md 4.4: more gated figures than these leave too little chance for each.
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
    engine: str = "native"
    wrk2: str | None = None
    seed: int | None = None
    allow_remote: bool = False

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
    signal: int | None = None  # that interrupted it: what was measured until then


class AgainstItself(msgspec.Struct, frozen=True, kw_only=True):
    """An A/A run of one profile: what this machine can tell apart."""

    server: str
    profile: str
    comparisons: int  # those that had pairs enough to say anything
    wanted: int
    unjudged: int = 0  # those that had not, as answers were wrong
    redone: int = 0  # samples that starved and were taken again
    pairs_each: int
    false_alarms: int  # comparisons whose gate failed, of one server with itself
    apart: int  # whose interval excluded 1; a twentieth is to be expected
    deviation: float | None  # of the pairs' log-ratios of cost
    detectable: dict[str, float | None]  # ratio, by number of pairs
    drawn_alarms: int | None  # of DRAWN_GATES gates played over these pairs; None: too few pairs
    drift: Drift | None  # of the cost over the run
    slot: tuple[float, float] | None  # second over first of a pair, 95 % interval
    fit: bool
    why: str
    signal: int | None = None  # that interrupted it: whole comparisons until then


def verdict_of(lines: Sequence[Line]) -> Gate:
    """The worst verdict of what is gated.

    :raises NothingSelected: nothing is gated.
    """
    found = {line.verdict for line in lines if line.verdict is not None}
    for word in (Gate.FAIL, Gate.INCONCLUSIVE, Gate.PASS):
        if word in found:
            return word
    raise NothingSelected("nothing to compare: the two have no server and profile in common")


def exit_code(found: Comparison | Sequence[AgainstItself], *, inconclusive: str) -> int:
    """The contract's exit code; ``inconclusive`` is ``pass``, ``warn`` or ``fail``.

    An A/A run is a gate of its own: 1 where the machine is unfit.
    """
    parts = [found] if isinstance(found, Comparison) else found
    for part in parts:
        if part.signal is not None:
            return progress.SIGNALLED + part.signal
    if not isinstance(found, Comparison):
        return 0 if all(one.fit for one in found) else 1
    if found.verdict is Gate.INCONCLUSIVE:
        return 4 if inconclusive == "fail" else 0
    return 1 if found.verdict is Gate.FAIL else 0


class Ratios(msgspec.Struct, frozen=True):
    """Log-ratios of cost that are to be judged, together with all others of a comparison."""

    server: str
    profile: str
    logs: list[float]


def all_judged(found: Sequence[Line | Ratios], margin: float, seed: int) -> list[Line]:
    """One judgement over all figures of two runs: they share one chance of a false alarm."""
    worse = {str(at): one.logs for at, one in enumerate(found) if isinstance(one, Ratios)}
    judged = statistics.judge_pairs(
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
    """A word of warning where more is gated at once than a gate can bear (load.md 4.4)."""
    count = sum(line.judged is not None and line.verdict is not None for line in lines)
    if count <= GATED_MAX:
        return []
    return [
        f"{count} gated figures share one chance of a false alarm, so small changes seldom show: "
        f"name fewer with --profile; {GATED_MAX} are a good gate"
    ]


def broken_answers(server: str | None, base: LoadResult, head: LoadResult) -> Line | None:
    """Wrong answers are no matter of statistics: a head that has them fails at once."""
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
    return f"{count} samples starved and were taken again"
