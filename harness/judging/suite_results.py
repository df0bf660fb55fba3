"""The verdicts of a suite from stored exchanges alone, so that a run can be judged again.

What was fired, and by whom, does not matter here: cases are made once more from the catalogue and
what is stored of the target, judged with all attempts at them, and folded into requirements.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from httpmark.harness.catalogue import expectation_words
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.judging import (
    delivery_comparison,
    family_tally,
    judge,
    positive_controls,
    requirement_verdicts,
)
from httpmark.harness.judging.evidence import Evidence, is_beside
from httpmark.harness.judging.family_results import (
    Folded,
    StoredServer,
    completed,
    fold,
    judged,
)
from httpmark.harness.judging.published_score import score_seed
from httpmark.harness.judging.response_rules.collector import Collector
from httpmark.harness.model.cases import Case, Family, Level, Op, Step
from httpmark.harness.model.exchanges import Doubt, Exchange
from httpmark.harness.model.verdicts import SuiteResult, Tally, Verdict, Word

# The gate: a server that does not answer this is down, or the address is wrong. Asking it the rest
# would take hours and show no more.
PLAIN = "BASE-01"


class Fired(msgspec.Struct, kw_only=True):
    """What firing a suite took."""

    wall_seconds: float = 0.0
    probe_cpu_seconds: float = 0.0
    exchanges: int = 0
    # By family: what its cases say that were not asked again.
    folded: dict[str, Folded] = {}
    # By family: how many of its cases are left out, because many of a sample failed already.
    thinned: dict[str, int] = {}


def score_suite(
    catalogue: Catalogue,
    suite: str,
    server: str,
    evidence: Evidence,
    fired: Fired | None = None,
    *,
    ruleset: str = "rfc",
) -> SuiteResult:
    """The result of a suite from stored exchanges alone.

    :param fired: what firing took and judged already; None where it is judged later.
    """
    facts = evidence.facts(server)
    if suite == "seed":
        result = score_seed(catalogue, server, evidence)
    elif facts is None:
        result = SuiteResult(score_percent=None, reason="not scored: nothing was fired")
    else:
        stored = StoredServer(catalogue, facts, evidence, server)
        folded = fired.folded if fired else {}
        result = _score_cases(stored, suite, folded, ruleset=ruleset)
    return msgspec.structs.replace(
        result,
        wall_seconds=fired.wall_seconds if fired else 0.0,
        probe_cpu_seconds=fired.probe_cpu_seconds if fired else None,
    )


class _Outcomes:
    """What is known of the families of a suite, one after the other."""

    def __init__(self, stored: StoredServer) -> None:
        self._stored = stored
        self.answers = Collector(stored.facts)
        self.cases: dict[str, Verdict] = {}
        self.generated: dict[str, Tally] = {}
        self.tallies: dict[str, Tally] = {}
        self.requests = 0
        self.asked_again: Counter[Doubt] = Counter()

    def _add(self, family: Family, first: Verdict | None, tally: Tally) -> None:
        self.tallies[family.id] = tally
        if family.generated:
            self.generated[family.id] = tally
        elif first is not None:
            self.cases[family.id] = first

    def hold_back(self, family: Family, why: str) -> None:
        """A family that is not judged, because a control of it fails."""
        first = Verdict(family.id, Word.NOT_APPLICABLE, "", why, None, family.level)
        self._add(family, first, family_tally.tally([first]))

    def add_observed(self, family: Family, seen: Verdict) -> None:
        """A family with an observation of a runner, which no single exchange shows."""
        # For a family that was not asked, there is only the reason.
        why_void = (seen,) if seen.word is Word.VOID else ()
        tally = msgspec.structs.replace(family_tally.tally([seen]), failures=why_void)
        self._add(family, seen, tally)
        # A program's exchanges have no verdicts of their own, but the answers must keep the rules.
        stored = self._stored
        for exchange in stored.evidence.exchanges(stored.name, family=family.id, delivery=None):
            if is_beside(exchange.delivery):
                continue
            self.answers.add(_as_sent(exchange), exchange)
            self.requests += 1

    def add(self, family: Family, folded: Folded) -> None:
        """A family that was judged by its exchanges."""
        self.answers.merge(folded.answers)
        self.requests += folded.exchanges
        self.asked_again.update(folded.asked_again)
        self._add(family, folded.first, folded.count.tally())

    def levels(self) -> dict[Level, dict[Word, int]]:
        """Cases by level and verdict."""
        levels: dict[Level, Counter[Word]] = {}
        for tally in self.tallies.values():
            for level, words in tally.words.items():
                levels.setdefault(level, Counter()).update(words)
        return family_tally.in_order(levels)


def _outcomes(
    stored: StoredServer, families: list[Family], folded: dict[str, Folded], *, hardened: bool
) -> _Outcomes:
    found = _Outcomes(stored)
    observed = stored.evidence.observed(stored.name)
    fired = set(stored.evidence.families(stored.name))
    held = _held_back(stored)
    for family in families:
        if family.id not in fired and family.id not in observed:
            continue  # not asked for
        group = held.get(family.group) if family.level is not Level.CTRL else None
        if why := held.get(family.id) or group:
            found.hold_back(family, why)
        elif family.id in observed:
            found.add_observed(family, observed[family.id])
        else:
            known = folded.get(family.id) if not hardened else None
            if known is None:
                known = fold(stored, family.id, hardened=hardened)
            found.add(family, completed(stored, family.id, known))
    return found


def _score_cases(
    stored: StoredServer, suite: str, folded: dict[str, Folded], *, ruleset: str
) -> SuiteResult:
    """Fold designed cases and generated families into requirements.

    :param folded: families that were judged already, by the ruleset ``rfc``.
    """
    catalogue = stored.catalogue
    families = [
        family for family in catalogue.of_suite(suite) if ruleset != "realistic" or family.realistic
    ]
    found = _outcomes(stored, families, folded, hardened=ruleset == "hardened")
    where = catalogue, suite, stored.facts, stored.evidence, stored.name
    for piece, exchange in delivery_comparison.answered(*where):
        found.answers.add_cut(piece, exchange)
    deliveries = delivery_comparison.compare(*where)
    answers = found.answers.tallies()
    shown = answers | delivery_comparison.tallies(deliveries)
    rows = requirement_verdicts.requirements(catalogue.requirements, families, found.tallies, shown)
    counts = requirement_verdicts.must(rows)
    reason = _unscored(families, found)
    return SuiteResult(
        score_percent=None if reason else requirement_verdicts.percent(counts),
        reason=reason,
        must=counts,
        levels=found.levels(),
        cases=found.cases,
        generated=found.generated,
        answers=answers,
        requirements={id: word for id, (_, word, _) in rows.items()},
        ruleset=ruleset,
        deliveries=deliveries,
        controls=positive_controls.controls(
            verdict
            for verdict in found.cases.values()
            if verdict.level is Level.CTRL and verdict.word is not Word.NOT_APPLICABLE
        ),
        requests=found.requests,
        asked_again={one: found.asked_again[one] for one in Doubt if one in found.asked_again},
    )


def _as_sent(exchange: Exchange) -> Case:
    """A case that sends what an exchange sent, where nothing else of it is known."""
    return Case(exchange.case, exchange.family, (Step(Op.SEND, exchange.sent),))


def _held_back(stored: StoredServer) -> dict[str, str]:
    """The families that are not judged because one of their controls fails, and why.

    A server that refuses the good message would be praised for refusing the bad ones. Of a case
    that a control names itself the same fault would be counted twice.
    """
    held = {}
    for family in stored.catalogue.families.values():
        if not family.gates or family.suite == "seed":
            continue
        for one in judged(stored, family.id):
            fails = one.verdict.word in (Word.FAIL, Word.UNSTABLE)
            # A permitted refusal (such as 411 to chunked content) is still a refusal. A case that
            # is named itself says what it permits.
            refused = one.verdict.word is Word.WARN and not judge.taken(
                one.exchanges[-1], stored.facts
            )
            why = f"needs {family.ref}, which is not accepted ({one.verdict.actual})"
            for gated in family.gates:
                if fails or (refused and gated not in stored.catalogue.families):
                    held[gated] = why
    return held


def _unscored(families: list[Family], found: _Outcomes) -> str | None:
    """Why there is no score: the plain request is not answered, or nothing was fired."""
    if not found.tallies:
        return "not scored: nothing was fired"
    for family in families:
        plain = found.cases.get(family.id) if PLAIN in family.refs else None
        if plain is not None and plain.word not in (Word.PASS, Word.WARN):
            came = expectation_words.came(plain.actual)
            return f"not scored: a plain request is not accepted ({came})"
    return None
