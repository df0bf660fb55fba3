"""One suite against one running server: controls first, then what they let through.

Firing and scoring are apart: :func:`fire` needs a server, :func:`score_suite` only evidence, so a
stored run can be scored again for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from httpmark.harness import judge, resources, score, wire
from httpmark.harness.catalogue import Catalogue
from httpmark.harness.evidence import Evidence
from httpmark.harness.model import (
    Case,
    Exchange,
    Family,
    Level,
    Op,
    Outcome,
    ServerDied,
    SuiteResult,
    Verdict,
    Word,
)
from httpmark.harness.probe import IN_FLIGHT, Probe

# Silence is believed only after a second try: alone, with twice the time.
_CONFIRMED_MAX = 256
_CONFIRM_IN_FLIGHT = 4
_LAST_WORDS_S = 2.0
_SILENT = (Outcome.HUNG, Outcome.REFUSED)

Progress = Callable[[int], None]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the cases are addressed to, and how to tell that it still lives."""

    name: str
    address: str
    port: int
    host: str  # the Host value
    path: str = "/hello"
    capabilities: tuple[str, ...] = ("hello",)
    death: Callable[[], str | None] = lambda: None  # why it is dead; None while it lives


class Fired(msgspec.Struct, kw_only=True):
    """What firing a suite took."""

    wall_seconds: float = 0.0
    probe_cpu_seconds: float = 0.0
    exchanges: int = 0


def hello(target: Target, *, deadline_s: float = 2.0) -> bytes | None:
    """The answer to one plain request; None when no connection could be made."""
    request = f"GET {target.path} HTTP/1.1\r\nHost: {target.host}\r\nConnection: close\r\n\r\n"
    return wire.ask(target.address, target.port, request.encode("latin-1"), deadline_s=deadline_s)


def fire(
    catalogue: Catalogue,
    suite: str,
    target: Target,
    evidence: Evidence,
    fired: Fired,
    *,
    progress: Progress,
    selected: Callable[[Family], bool] = lambda _: True,
) -> None:
    """Fire a suite; ``fired`` grows as it goes, so an interrupted call leaves what it knows.

    Families whose controls fail are not fired: their counts would mean nothing, and a server that
    never answers would take hours to say so.

    :raises ServerDied: the server went away.
    :raises Unusable: the probe itself could not go on.
    """
    started = time.monotonic()
    families = [
        family
        for family in catalogue.of_suite(suite)
        if set(family.needs) <= set(target.capabilities) and selected(family)
    ]
    controls = [family for family in families if family.level is Level.CTRL]
    # The gate of the whole suite goes alone: a server that is mute costs one deadline.
    first = [family for family in controls if "*" in family.gates]
    others = [family for family in controls if "*" not in family.gates]
    shooter = _Shooter(catalogue, target, evidence, fired, progress)
    try:
        for batch in (first, others):
            shooter.shoot([family.id for family in batch])
            if "*" in _failed_gates(catalogue, batch, evidence, target.name):
                return
        blocked = score.gated(families, _failed(catalogue, controls, evidence, target.name))
        shooter.shoot([f.id for f in families if f.level is not Level.CTRL and f.id not in blocked])
    finally:
        fired.wall_seconds += time.monotonic() - started
        evidence.flush()


class _Shooter:
    """Fires families in one stream through the probe and keeps what comes back."""

    def __init__(
        self,
        catalogue: Catalogue,
        target: Target,
        evidence: Evidence,
        fired: Fired,
        progress: Progress,
    ) -> None:
        self._catalogue = catalogue
        self._target = target
        self._evidence = evidence
        self._fired = fired
        self._progress = progress

    def shoot(self, families: list[str]) -> None:
        """Fire whole families; silence is tried again before it counts."""
        if not families:
            return

        def cases() -> Iterator[Case]:
            for family in families:
                yield from self._catalogue.cases(
                    family, path=self._target.path, host=self._target.host
                )

        self._evidence.plan((case.id, case.family) for case in cases())
        silent = {
            exchange.case: exchange.machine_dropped
            for exchange in self._play(cases(), in_flight=IN_FLIGHT, attempt=1)
        }
        # Thousands of honest silences confirm each other; a sample of them is enough.
        believed = [name for name, dropped in silent.items() if not dropped][_CONFIRMED_MAX:]
        again = silent.keys() - set(believed)
        if again:
            patient = (_patient(case) for case in cases() if case.id in again)
            for _ in self._play(patient, in_flight=_CONFIRM_IN_FLIGHT, attempt=2):
                pass

    def _play(self, cases: Iterable[Case], *, in_flight: int, attempt: int) -> Iterator[Exchange]:
        """Play cases into evidence; yields the silent exchanges.

        :raises ServerDied: connections are refused and the server is gone.
        """
        before = resources.dropped_packets()
        target = self._target
        with Probe(target.address, target.port, in_flight=in_flight) as probe:
            try:
                for batch in probe.fire(cases, attempt=attempt):
                    quiet = [exchange for exchange in batch if exchange.outcome in _SILENT]
                    if quiet:
                        self._check_alive(quiet)
                        if resources.grown(before, resources.dropped_packets()):
                            batch = [_dropped(exchange) for exchange in batch]
                            quiet = [e for e in batch if e.outcome in _SILENT]
                    self._evidence.add(target.name, batch)
                    self._fired.exchanges += len(batch)
                    if attempt == 1:
                        self._progress(len(batch))
                    yield from quiet
            finally:
                probe.stop()
        self._fired.probe_cpu_seconds += probe.cpu_seconds

    def _check_alive(self, quiet: list[Exchange]) -> None:
        refused = any(exchange.outcome is Outcome.REFUSED for exchange in quiet)
        gone = refused and hello(self._target) is None
        reason = self._target.death()
        deadline = time.monotonic() + _LAST_WORDS_S
        while gone and reason is None and time.monotonic() < deadline:
            # A listener closes a moment before its process has ended and can say why.
            time.sleep(0.05)
            reason = self._target.death()
        if reason is not None:
            raise ServerDied(reason)
        if gone:
            raise ServerDied(
                f"{self._target.address}:{self._target.port} refuses connections since "
                f"case {quiet[0].case}"
            )


def _patient(case: Case) -> Case:
    """The same case with twice the time to answer."""
    replace = msgspec.structs.replace
    steps = tuple(
        replace(step, wait_ms=2 * step.wait_ms) if step.op is Op.AWAIT else step
        for step in case.steps
    )
    return replace(case, steps=steps, deadline_ms=2 * case.deadline_ms)


def _dropped(exchange: Exchange) -> Exchange:
    if exchange.outcome not in _SILENT:
        return exchange
    return msgspec.structs.replace(exchange, machine_dropped=True)


def _verdicts(
    catalogue: Catalogue, families: Iterable[Family], evidence: Evidence, server: str
) -> dict[str, list[Verdict]]:
    return {
        family.id: [
            judge.judge(family, exchange)
            for exchange in evidence.exchanges(server, family=family.id)
        ]
        for family in families
    }


def _failed(
    catalogue: Catalogue, controls: list[Family], evidence: Evidence, server: str
) -> list[str]:
    """The controls that did not pass whole; one that was not fired did not pass."""
    return [
        name
        for name, verdicts in _verdicts(catalogue, controls, evidence, server).items()
        if len(verdicts) < catalogue.families[name].count
        or any(verdict.word is not Word.PASS for verdict in verdicts)
    ]


def _failed_gates(
    catalogue: Catalogue, controls: list[Family], evidence: Evidence, server: str
) -> set[str]:
    return {
        gate
        for name in _failed(catalogue, controls, evidence, server)
        for gate in catalogue.families[name].gates
    }


def score_suite(
    catalogue: Catalogue, suite: str, server: str, evidence: Evidence, fired: Fired | None = None
) -> SuiteResult:
    """The result of a suite from stored exchanges alone."""
    families = catalogue.of_suite(suite)
    controls = [family for family in families if family.level is Level.CTRL]
    stored = set(evidence.families(server))
    failed = _failed(catalogue, controls, evidence, server)
    verdicts = [
        verdict
        for judged in _verdicts(catalogue, controls, evidence, server).values()
        for verdict in judged
    ]
    counts = {}
    differences = []
    compared = False
    for family in families:
        if family.level is Level.CTRL or family.id not in stored:
            continue
        exchanges = list(evidence.exchanges(server, family=family.id))
        counts[family.id] = score.seed_family(exchanges)
        published = catalogue.published.get(server, {}).get(family.id)
        if published is not None and len(exchanges) == family.count:
            compared = True
            found = score.difference(family.id, published, score.detections(exchanges))
            if found is not None:
                differences.append(found)
    result = score.seed_suite(families, counts, verdicts, score.gated(families, failed))
    return msgspec.structs.replace(
        result,
        published=("differs" if differences else "exact") if compared else None,
        differences=tuple(differences),
        wall_seconds=fired.wall_seconds if fired else 0.0,
        probe_cpu_seconds=fired.probe_cpu_seconds if fired else None,
    )
