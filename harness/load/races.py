"""A plan to samples: a fresh server for each sample, in blocks that hold every server once.

A *sample* is one window against a freshly started server. A *block* holds one sample of every
server in random order, the null server among them. So a machine that slows down slows all servers
alike, and each sample has a sample of the null server near it (docs/method.md).
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Generator, Iterator, Sequence

import msgspec

from httpmark.harness.load import sampling, windows
from httpmark.harness.load.contestants import Contestant
from httpmark.harness.load.engines.launch import Engine
from httpmark.harness.load.engines.native import Native
from httpmark.harness.load.folding import fold
from httpmark.harness.load.sampling import Taken, Window
from httpmark.harness.load.windows import NotLoaded, Taker
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import (
    LoadMode,
    LoadPlan,
    LoadResult,
    LoadSample,
)
from httpmark.harness.model.memory import Memory

REDOS_MAX = 2
# After so many samples in a row that starved at every attempt, no more are taken again.
FUTILE_MAX = 3
# Errors that a lack of CPU can cause; all others are the server's.
_OF_TIME = frozenset(("connect", "timeout"))


def null_cannot(plan: LoadPlan) -> str | None:
    """Why the null server cannot serve a plan; None where it can."""
    if any(request.chunked or request.method == "HEAD" for request in plan.requests):
        return "it supports neither HEAD nor chunked content"
    return None


class Race:
    """All samples of one profile over several servers; :meth:`results` works at any time."""

    def __init__(
        self,
        plan: LoadPlan,
        engine: Engine,
        contestants: Sequence[Contestant],
        *,
        rounds: int,
        duration_s: float,
        seed: int,
        one_rate: bool = False,
        take: Taker = windows.taken_here,
    ) -> None:
        """:param one_rate: where the rate is a share of capacity, all servers get that of the
        slowest one. With rates of their own, the error of one search for the capacity would be
        in all samples of a server."""
        self.plan = plan
        self._take = take
        self.one_rate = one_rate
        self.engine = engine
        self.contestants = list(contestants)
        self.rounds = rounds
        self.duration_s = duration_s
        self.seed = seed
        if isinstance(engine, Native):
            engine.seed = seed
        self.samples: dict[str, list[LoadSample]] = {c.name: [] for c in contestants}
        self.memory: dict[str, list[Memory]] = {c.name: [] for c in contestants}
        self.redone: dict[str, int] = {c.name: 0 for c in contestants}
        self.died: dict[str, str] = {}
        self.failed: dict[str, str] = {}  # it lives, but could not be loaded: why
        # Of those: the statuses that came instead of a 2xx.
        self.refused: dict[str, dict[str, int]] = {}
        self.scaled: str | None = None
        self.blocks = 0
        self._order = random.Random(f"{seed}/{plan.name}")
        self._rates: dict[str, float] = {}
        self._doubts: dict[str, str] = {}  # why a server's rate may be too low
        self._futile = 0

    @property
    def steps(self) -> int:
        """How many times :meth:`run` yields when nobody dies."""
        finding = self.plan.rate_of_capacity is not None
        return (self.rounds + finding) * len(self.contestants)

    def run(self) -> Iterator[tuple[str, int]]:
        """Take the samples; yields (server, round) after each, so that a caller shows progress.

        A second call takes as many blocks again.
        """
        if self.plan.rate_of_capacity is not None and not self._rates:
            yield from self._find_rates(self.plan.rate_of_capacity)
        for _ in range(self.rounds):
            self.blocks += 1
            block = self.blocks
            names = [c for c in self.contestants if c.name not in self.died | self.failed]
            if all(c.is_null for c in names) and not all(c.is_null for c in self.contestants):
                return  # null is a yardstick, and there is nothing to hold against it
            self._order.shuffle(names)
            taken: list[tuple[str, Window]] = []
            for position, contestant in enumerate(names):
                window = yield from self._turn(contestant, block, position)
                if window is not None:
                    taken.append((contestant.name, window))
            judged = sampling.judged_block(self.plan, [window for _, window in taken])
            for (name, _), sample in zip(taken, judged, strict=True):
                self.samples[name].append(sample)

    def _turn(
        self, contestant: Contestant, block: int, position: int
    ) -> Generator[tuple[str, int], None, Window | None]:
        """One contestant's window of a block; None where it died or could not be loaded."""
        redone = self.redone[contestant.name]
        started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        rate = self._rates.get(contestant.name, self.plan.rate)
        plan = msgspec.structs.replace(self.plan, rate=rate)
        found = self._sample(contestant, plan, self.engine)
        yield contestant.name, block
        if found is None:
            return None
        return Window(
            taken=found,
            block=block,
            order=position,
            started=started,
            redo=self.redone[contestant.name] > redone,
            is_null=contestant.is_null,
            runs_already=contestant.runs_already,
        )

    def _find_rates(self, share: float) -> Iterator[tuple[str, int]]:
        """Measure once what each server reaches in a closed loop; the open loop offers a share."""
        closed = msgspec.structs.replace(
            self.plan, mode=LoadMode.CLOSED, rate_of_capacity=None, rate=None
        )
        for contestant in self.contestants:
            name, found = contestant.name, self._sample(contestant, closed, Native())
            if found is not None and (wrong := found.measured.errors):
                self.failed[name] = (
                    f"its capacity could not be measured: {sampling.errors_told(wrong)}"
                )
            elif found is not None and found.measured.requests and found.measured.seconds:
                self._rates[name] = share * found.measured.requests / found.measured.seconds
                if doubt := sampling.capacity_doubt(found.measured, found.machine):
                    self._doubts[name] = doubt
            elif found is not None:
                self.failed[name] = "its capacity could not be measured: nothing was answered"
            yield name, 0
        judged = [self._rates[c.name] for c in self.contestants
                  if c.name in self._rates and not c.is_null]  # fmt: skip
        if self.one_rate and judged:
            self._rates = dict.fromkeys(self._rates, min(judged))

    def _sample(self, contestant: Contestant, plan: LoadPlan, engine: Engine) -> Taken | None:
        """One window; one that starved is taken again, at most :data:`REDOS_MAX` times.

        The last one counts, starved or not. A window with wrong answers is not taken again: a lack
        of CPU causes none but late Dates, which are excused there. After :data:`FUTILE_MAX` samples
        in a row that starved to the end, each is taken once until one does not starve.
        """
        found: Taken | None = None
        for attempt in range(1 + (REDOS_MAX if self._futile < FUTILE_MAX else 0)):
            if attempt:
                self.redone[contestant.name] += 1
            try:
                found = self._window(contestant, plan, engine)
            except Unusable as error:
                self.died[contestant.name] = str(error)
                return None
            if found is None:
                return None
            if found.measured.broken is not None:  # whoever took it has tried again
                return found
            if not sampling.starved(found.measured, found.machine):
                self._futile = 0
                return found
            if found.measured.errors.keys() - _OF_TIME:
                return found
        self._futile += 1
        return found

    def _window(self, contestant: Contestant, plan: LoadPlan, engine: Engine) -> Taken | None:
        """Start a server and measure one window; None where it lives and could not be loaded.

        :raises Unusable: the server did not start, or died.
        """
        try:
            found = self._take(contestant, plan, engine, self.duration_s)
        except NotLoaded as error:
            self.failed[contestant.name] = str(error)
            if error.statuses:
                self.refused[contestant.name] = error.statuses
            return None
        self.redone[contestant.name] += found.redone
        if found.memory is not None:
            held = found.measured.established or 0
            self.memory[contestant.name].append(
                msgspec.structs.replace(found.memory, connections_held=held)
            )
        return found

    def results(self) -> dict[str, LoadResult]:
        """Every server's samples folded, with ranks of cost where intervals separate."""
        null = next((c.name for c in self.contestants if c.is_null), None)
        return {
            one.name: msgspec.structs.replace(
                self._folded(one.name, null),
                refused=self.refused.get(one.name, {}),
                path=None if self.plan.requests else one.path or self.plan.path,
            )
            for one in self.contestants
            if self.samples[one.name] or one.name in self.died | self.failed
        }

    def _folded(self, name: str, null: str | None) -> LoadResult:
        return fold(
            self.plan,
            self.engine.name,
            self.samples[name],
            null_samples=self.samples[null] if null and null != name else [],
            redone=self.redone[name],
            seed=self.seed,
            died=self.died.get(name) or self.failed.get(name),
            scaled=self.scaled,
            doubt=self._doubts.get(name),
        )
