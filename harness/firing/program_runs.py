"""The programs of a suite played against one target; what they find is kept as observations."""

from __future__ import annotations

from httpmark.harness.catalogue import vocabulary
from httpmark.harness.catalogue.case_builder import patience_ms
from httpmark.harness.catalogue.catalogue import Planned
from httpmark.harness.catalogue.lookup import has_octets
from httpmark.harness.firing.case_stream import CaseStream
from httpmark.harness.firing.programs import table
from httpmark.harness.firing.programs.stage import Negative, Stage
from httpmark.harness.firing.targets import accepts
from httpmark.harness.judging import judge, quick_look
from httpmark.harness.model.cases import Case, Family, Level
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.verdicts import Verdict, Word

_NEGATIVE_SUITES = ("rfc", "smuggling")
_NEGATIVE_BYTES_MAX = 1 << 16
_NEGATIVE_MS_MAX = 8000
_ALIVE_MS = 2000  # to answer a plain request after a program


def play(stream: CaseStream, chosen: list[Family]) -> None:
    """Play the programs of families.

    :raises ServerDied: the server has ended, and nothing more can be asked.
    """
    target, facts = stream.target, stream.facts
    for family in chosen:
        if family.runner is None or not quick_look.plays(family, quick=stream.quick):
            continue
        if stream.catalogue.inapplicable(family.id, facts):
            continue
        program = table.program(family.runner)
        case = next(stream.catalogue.cases(family.id, facts), None)
        if case is None:
            continue
        found = program(_stage(stream, case))
        if (ending := stream.recovery.ending(target)) is not None:
            stream.recovery.by_program(target, family, ending)
        expected = vocabulary.PROGRAMS[family.runner]
        stream.evidence.observe(
            target.name,
            Verdict(family.id, found.word, expected, found.actual, None, family.level),
        )


def _stage(stream: CaseStream, case: Case) -> Stage:
    target, facts = stream.target, stream.facts
    alive_s = patience_ms(_ALIVE_MS, facts) / 1000
    return Stage(
        case=case,
        facts=facts,
        fire=lambda cases, in_flight: _played(stream, cases, in_flight),
        alive=lambda: accepts(target, deadline_s=alive_s),
        pids=target.pids,
        flood=target.flood,
        trickle=target.trickle,
        read_late=target.read_late,
        negatives=lambda: _negatives(stream),
    )


def _negatives(stream: CaseStream) -> list[Negative]:
    """The designed cases that a server may refuse, without those that are about waiting."""
    catalogue, facts = stream.catalogue, stream.facts
    judging = judge.Judge(facts)
    found: list[Negative] = []
    for suite in _NEGATIVE_SUITES:
        for family in catalogue.of_suite(suite):
            if (
                family.generated
                or family.level is Level.CTRL
                or family.runner is not None
                or not has_octets(catalogue, family.id)
                or catalogue.rules[family.id].complete is not None
                or catalogue.inapplicable(family.id, facts) is not None
            ):
                continue
            one = next(catalogue.planned(family.id, facts))
            expected = one.expectation
            if stream.recovery.is_deadly(one.case):
                continue
            if expected is None or expected.waits or one.case.deadline_ms > _NEGATIVE_MS_MAX:
                continue
            if len(one.case.sent) > _NEGATIVE_BYTES_MAX:
                continue

            def word(exchange: Exchange, one: Planned = one) -> Word:
                return judging.judge(one, exchange).word

            found.append(Negative(family.group, one.case, word))
    return found


def _played(stream: CaseStream, cases: list[Case], in_flight: int) -> list[Exchange]:
    """Play cases into evidence; their exchanges in the order of the cases."""
    target, evidence = stream.target, stream.evidence
    evidence.plan((case.id, case.family) for case in cases)
    found: dict[str, Exchange] = {}
    with target.probe(in_flight=in_flight) as probe:
        for batch in probe.fire(cases):
            evidence.add(target.name, batch)
            stream.fired.exchanges += len(batch)
            found |= {exchange.delivery: exchange for exchange in batch}
    stream.fired.probe_cpu_seconds += probe.cpu_seconds
    return [found[case.delivery] for case in cases]
