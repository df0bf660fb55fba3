"""Suites fired at one running server: controls first, then everything that they do not rule out.

Firing needs a server. Judging (``judging.suite_results``) needs only what was stored.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.firing import (
    crowd_size,
    delivery_firing,
    doubtful_cases,
    first_pass,
    first_questions,
    program_runs,
    yardstick,
)
from httpmark.harness.firing.case_stream import CASES_IN_FLIGHT, CaseStream, Progress, no_progress
from httpmark.harness.firing.crash_recovery import Recovery
from httpmark.harness.firing.targets import Target
from httpmark.harness.judging import positive_controls, quick_look, second_process, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Family, Level


def fire(
    catalogue: Catalogue,
    suite: str,
    target: Target,
    evidence: Evidence,
    fired: suite_results.Fired,
    *,
    progress: Progress,
    selected: Callable[[Family], bool] = lambda _: True,
    along: tuple[str, ...] = (),
    quick: bool = False,
    second: second_process.SecondProcess | None = None,
    deliveries: Iterable[str] = (),
    whole: bool = False,
    cutting: Callable[[int], Progress] = lambda total: no_progress,
    again: Callable[[int], Progress] = lambda total: no_progress,
    recovery: Recovery | None = None,
) -> None:
    """Fire a suite. ``fired`` grows meanwhile, so an interrupted call keeps what it knows.

    Families whose controls fail are not fired: their counts would mean nothing, and a server that
    never answers would take hours.

    :param along: suites that are fired together with it; ``seed`` is always fired by itself.
    :param second: a second process that helps with judging; None starts one for this call.
    :param whole: ask every case of very large families, too, whatever a sample says.
    :param deliveries: modes of ``delivery_modes.MODES`` for the delivery corpus.
    :param cutting: gets the number of cuts and returns what counts each of them.
    :param again: the same for cases that are asked again, round by round.
    :param recovery: what is done where the server dies, and what it died of so far.
    :raises ServerDied: the server has ended, and nothing more can be asked.
    :raises Unusable: the probe itself could not go on.
    """
    started = time.monotonic()
    recovery = recovery or Recovery(catalogue)
    recovery.meet(target)
    try:
        if suite == "seed":
            facts = evidence.facts(target.name)
            asked = recovery.survived(target, lambda one: yardstick.applied(one, facts), evidence)
            stream = CaseStream(
                catalogue, asked, evidence, fired, progress=progress, recovery=recovery
            )
            _fire_seed(stream, selected)
            return
        suites = (suite, *along)
        own = second_process.SecondProcess() if second is None else contextlib.nullcontext(second)
        with own as helper:
            helper.start(quick_look.size(catalogue, suites, selected, quick=quick))
            chosen = [f for name in suites for f in catalogue.of_suite(name) if selected(f)]
            known = recovery.survived(
                target,
                lambda asked: _asked_first(
                    catalogue, chosen, asked, evidence, has_time=bool(deliveries)
                ),
                evidence,
            )
            stream = CaseStream(
                catalogue, known, evidence, fired,
                progress=progress, again=again, quick=quick, recovery=recovery,
            )  # fmt: skip
            if not _fire_families(stream, chosen, second=helper, whole=whole):
                return
            uncounted = CaseStream(catalogue, known, evidence, fired, recovery=recovery)
            for name in suites:
                delivery_firing.fire(
                    catalogue, name, known.facts(), evidence, known.name,
                    modes=deliveries, chosen=selected, begin=cutting, play=uncounted.play,
                )  # fmt: skip
            recovery.survived(known, lambda asked: None, evidence)  # the last request as well
    finally:
        fired.wall_seconds += time.monotonic() - started
        evidence.flush()


def _asked_first(
    catalogue: Catalogue,
    chosen: list[Family],
    target: Target,
    evidence: Evidence,
    *,
    has_time: bool,
) -> Target:
    """The target with everything that has to be asked before cases are sent."""
    known = evidence.facts(target.name)
    names = (family.id for family in chosen)
    target = first_questions.answered(catalogue, names, target, known, has_time=has_time)
    at_once = known.at_once if known is not None else target.at_once
    if at_once is None and sum(family.count for family in chosen) > CASES_IN_FLIGHT:
        at_once = crowd_size.found(target)
    target = msgspec.structs.replace(target, at_once=at_once)
    evidence.set_facts(target.name, target.facts())
    return target


def _fire_families(
    stream: CaseStream,
    chosen: list[Family],
    *,
    second: second_process.SecondProcess,
    whole: bool,
) -> bool:
    """Fire cases, ask again what is doubtful, and play programs.

    :returns: whether the target takes the plain request; otherwise there is nothing else to ask.
    """
    stream.aftermath.look_before()
    asked = first_pass.fire(stream, chosen, whole=whole)
    if asked is not None:
        doubtful_cases.ask_again(stream, asked, second=second)
    if first_pass.refuses_the_plain_request(stream):
        return False
    program_runs.play(stream, chosen)
    return True


def _fire_seed(stream: CaseStream, selected: Callable[[Family], bool]) -> None:
    """Fire the published corpus. It keeps what another suite was told."""
    catalogue, evidence, server = stream.catalogue, stream.evidence, stream.target.name
    if evidence.facts(server) is None:
        evidence.set_facts(server, stream.facts)
    families = [
        family
        for family in catalogue.of_suite("seed")
        if catalogue.inapplicable(family.id, stream.facts) is None and selected(family)
    ]
    stream.plan(family.id for family in families)
    controls = [family for family in families if family.level is Level.CTRL]
    # The gate of the whole suite goes alone: then a mute server costs one deadline.
    first = [family for family in controls if "*" in family.gates]
    others = [family for family in controls if "*" not in family.gates]
    for batch in (first, others):
        stream.fire_confirmed([family.id for family in batch])
        if "*" in positive_controls.failed_gates(catalogue, batch, evidence, server):
            return
    blocked = positive_controls.gated(
        families, positive_controls.failed_controls(catalogue, controls, evidence, server)
    )
    rest = [f.id for f in families if f.level is not Level.CTRL and f.id not in blocked]
    stream.fire_confirmed(rest)
