"""The verdicts of a suite from stored exchanges alone, so that a run can be judged again for ever.

What was fired, and by whom, does not matter here: cases are made once more from the catalogue and
what is stored of the target, judged with all attempts at them, and folded into requirements.
"""

from __future__ import annotations

import collections
import contextlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

import msgspec

from httpmark.harness.catalogue import expectation_words
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.catalogue.loading import load as load_catalogue
from httpmark.harness.catalogue.vocabulary import HARDENED
from httpmark.harness.judging import delivery_comparison, judge, scoring
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.response_rules.collector import Collector
from httpmark.harness.model.cases import Case, Facts, Family, Level, Op, Step
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.verdicts import SuiteResult, Tally, Verdict, Word

# Of a large family the first few that fail are asked again (cases.md).
_AGAIN_MAX = 32
_DOUBTED = (Word.FAIL, Word.VOID, Word.UNSTABLE)
_QUICK_STEP = 31
_QUICK_ABOVE = 50_000
# From so many cases on a second process is started to judge a part of them, and where it is there
# already, from so many.
_SECOND_FROM = 20_000
_TWOFOLD_FROM = 1_000
_LOTS = 12
_LOTS_AHEAD = 2
_SECOND = "from httpmark.harness.judging import suite_results; suite_results.judge_for_another()"
# The gate: who does not answer this is dead or misrouted, and would take hours to say no more.
PLAIN = "BASE-01"


class Folded(msgspec.Struct, frozen=True):
    """What the exchanges of one family say, folded."""

    tally: Tally
    first: Verdict | None
    exchanges: int
    answers: Collector


class Fired(msgspec.Struct, kw_only=True):
    """What firing a suite took."""

    wall_seconds: float = 0.0
    probe_cpu_seconds: float = 0.0
    exchanges: int = 0
    # By family, of those that had to be asked nothing again: what judging them said.
    folded: dict[str, Folded] = {}


def size(
    catalogue: Catalogue,
    suites: Iterable[str],
    selected: Callable[[Family], bool],
    *,
    quick: bool,
) -> int:
    """How many cases there are at most to judge."""
    return sum(
        _asked_of(family, quick=quick)
        for suite in suites
        for family in catalogue.of_suite(suite)
        if selected(family)
    )


def _asked_of(family: Family, *, quick: bool) -> int:
    return -(-family.count // step_of(family, quick=quick))


def step_of(family: Family, *, quick: bool) -> int:
    """Of the largest families every 31st case where ``quick``, but ``seed`` whole (contract.md)."""
    is_thinned = quick and family.suite != "seed" and family.count > _QUICK_ABOVE
    return _QUICK_STEP if is_thinned else 1


Doubts = tuple[Folded, list[tuple[str, bool]]]  # the first doubted cases, and which ran out


def _with_doubts(
    catalogue: Catalogue, family: str, facts: Facts, evidence: Evidence, server: str, *, quick: bool
) -> Doubts:
    doubted: list[tuple[str, bool]] = []

    def look(verdict: Verdict, exchanges: list[Exchange]) -> None:
        # A quick look asks again what decides, alone, and takes the rest by its first word.
        decides = not quick or verdict.level.is_binding
        if decides and verdict.word in _DOUBTED and len(doubted) < _AGAIN_MAX:
            doubted.append((verdict.case, exchanges[-1].ran_out))

    return _fold(catalogue, family, facts, evidence, server, quick=quick, look=look), doubted


class Second:
    """Another process that judges, too: a help, no condition.

    It is started before its time, and has read the catalogue by then.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._owed = 0

    def __enter__(self) -> Second:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def start(self, cases: int) -> None:
        """Start it, where it does not run, so many cases are worth it, and it has a processor."""
        if self._process is None and cases >= _SECOND_FROM and len(os.sched_getaffinity(0)) > 1:
            self._pipe, theirs = Pipe()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _SECOND, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL,
                )  # fmt: skip

    @property
    def free(self) -> bool:
        """Whether it should have another order: one waits while it judges another."""
        return self._pipe is not None and self._owed < _LOTS_AHEAD

    def order(self, order: _Order) -> None:
        """Have families judged."""
        assert self._pipe is not None
        self._owed += 1
        try:
            self._pipe.send(order)
        except OSError:
            self._stop()

    def answers(self, *, wait: bool) -> dict[str, Doubts]:
        """What it has found, of the orders that are done; of all of them where ``wait``."""
        found: dict[str, Doubts] = {}
        while self._pipe is not None and self._owed and (wait or self._pipe.poll()):
            try:
                found |= self._pipe.recv()
                self._owed -= 1
            except (EOFError, OSError):
                self._stop()
        return found

    def _stop(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._pipe = None
        self._owed = 0


_Order = tuple[str, str, list[str], Facts, str, bool]


def judged_twofold(
    catalogue: Catalogue,
    families: list[str],
    facts: Facts,
    evidence: Evidence,
    server: str,
    *,
    quick: bool,
    second: Second,
) -> dict[str, Doubts]:
    """All families judged, on two processors where ``second`` runs and there is much to judge.

    The largest are judged here, one by one, and the second process takes the others in lots as it
    gets done: nobody knows beforehand which are dear. What it does not bring is judged here.
    """
    sizes = {name: _asked_of(catalogue.families[name], quick=quick) for name in families}
    left = collections.deque(sorted(families, key=lambda name: -sizes[name]))
    is_much = sum(sizes.values()) >= _TWOFOLD_FROM
    found: dict[str, Doubts] = {}
    evidence.flush()
    while left:
        while is_much and left and second.free:
            lot = _lot(left, sizes)
            second.order((str(evidence.path), catalogue.version, lot, facts, server, quick))
        if left:
            name = left.popleft()
            found[name] = _with_doubts(catalogue, name, facts, evidence, server, quick=quick)
        found |= second.answers(wait=not left)
    for name in families:
        if name not in found:
            found[name] = _with_doubts(catalogue, name, facts, evidence, server, quick=quick)
    return found


def _lot(left: collections.deque[str], sizes: dict[str, int]) -> list[str]:
    """The smallest families, taken off, of a small part of all that is left."""
    room = sum(sizes[name] for name in left) / _LOTS
    lot = [left.pop()]
    room -= sizes[lot[0]]
    while left and sizes[left[-1]] <= room:
        lot.append(left.pop())
        room -= sizes[lot[-1]]
    return lot


def judge_for_another() -> None:
    """The second process: orders come by the pipe that it is given, and go answered."""
    with Connection(int(sys.argv[1])) as pipe, contextlib.suppress(EOFError):
        known = load_catalogue()
        while True:
            path, version, families, facts, server, quick = pipe.recv()
            found: dict[str, Doubts] = {}
            if known.version == version:
                with Evidence(Path(path)) as evidence:
                    for name in families:
                        found[name] = _with_doubts(
                            known, name, facts, evidence, server, quick=quick
                        )
            pipe.send(found)


def _fold(
    catalogue: Catalogue,
    family: str,
    facts: Facts,
    evidence: Evidence,
    server: str,
    *,
    quick: bool = False,
    hardened: bool = False,
    look: Callable[[Verdict, list[Exchange]], None] = lambda verdict, exchanges: None,
) -> Folded:
    """Judge all exchanges of a family, and what is to be said of every answer.

    :param look: sees each settled verdict and its exchanges.
    """
    answers = Collector(facts)
    first: Verdict | None = None
    number = 0

    def verdicts() -> Iterator[Verdict]:
        nonlocal first, number
        for verdict, exchanges in judged(
            catalogue, family, facts, evidence, server,
            quick=quick, hardened=hardened, answers=answers,
        ):  # fmt: skip
            number += len(exchanges)
            look(verdict, exchanges)
            shown = strict(verdict, catalogue.families[family]) if hardened else verdict
            first = first or shown
            yield shown

    return Folded(scoring.tally(verdicts()), first, number, answers)


def judged(
    catalogue: Catalogue,
    family: str,
    facts: Facts,
    evidence: Evidence,
    server: str,
    *,
    quick: bool = False,
    hardened: bool = False,
    answers: Collector | None = None,
) -> Iterator[tuple[Verdict, list[Exchange]]]:
    """The settled verdict of each case of a family that has exchanges, and the exchanges.

    :param answers: collects what the checks on every answer say of the attempt that counts.
    """
    judging = judge.Judge(hardened=hardened)
    # A stored run does not say whether it was a quick one; how much of a family it planned does.
    quick = quick or evidence.planned(family) < catalogue.families[family].count
    stored = evidence.attempts(server, family=family)
    attempts = next(stored, None)
    step = step_of(catalogue.families[family], quick=quick)
    for one in catalogue.planned(family, facts, step=step):
        if attempts is None:
            return
        if attempts[0].case != one.case.id:
            continue
        verdicts = [judging.judge(one, exchange) for exchange in attempts]
        if answers is not None:
            answers.add(one.case, attempts[-1])
        # Asked once, there is nothing it could have chosen otherwise.
        asked_for = one.expectation if len(attempts) > 1 else None
        has_choice = asked_for is not None and asked_for.offers_choice
        yield judge.settled(verdicts, attempts, has_choice=has_choice), attempts
        attempts = next(stored, None)


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


def failed_controls(
    catalogue: Catalogue, controls: list[Family], evidence: Evidence, server: str
) -> list[str]:
    """The controls that did not pass whole; one that was not fired did not pass."""
    return [
        name
        for name, verdicts in _verdicts(catalogue, controls, evidence, server).items()
        if len(verdicts) < catalogue.families[name].count
        or any(verdict.word is not Word.PASS for verdict in verdicts)
    ]


def failed_gates(
    catalogue: Catalogue, controls: list[Family], evidence: Evidence, server: str
) -> set[str]:
    return {
        gate
        for name in failed_controls(catalogue, controls, evidence, server)
        for gate in catalogue.families[name].gates
    }


def score_suite(
    catalogue: Catalogue,
    suite: str,
    server: str,
    evidence: Evidence,
    fired: Fired | None = None,
    *,
    ruleset: str = "rfc",
) -> SuiteResult:
    """The result of a suite from stored exchanges alone."""
    result = (
        _score_seed(catalogue, server, evidence)
        if suite == "seed"
        else _score_cases(
            catalogue, suite, server, evidence, fired.folded if fired else {}, ruleset=ruleset
        )
    )
    return msgspec.structs.replace(
        result,
        wall_seconds=fired.wall_seconds if fired else 0.0,
        probe_cpu_seconds=fired.probe_cpu_seconds if fired else None,
    )


def _score_cases(
    catalogue: Catalogue,
    suite: str,
    server: str,
    evidence: Evidence,
    folded: dict[str, Folded],
    *,
    ruleset: str,
) -> SuiteResult:
    """Fold designed cases and generated families into requirements.

    :param folded: families that were judged already, by the ruleset ``rfc``.
    """
    facts = evidence.facts(server)
    if facts is None:
        return SuiteResult(score_percent=None, reason="not scored: nothing was fired")
    answers = Collector(facts)
    observed = evidence.observed(server)
    stored = set(evidence.families(server))
    cases: dict[str, Verdict] = {}
    generated: dict[str, Tally] = {}
    tallies: dict[str, Tally] = {}
    families = [
        family for family in catalogue.of_suite(suite) if ruleset != "realistic" or family.realistic
    ]
    requests = 0
    held = _held_back(catalogue, facts, evidence, server)
    for family in families:
        hardened = ruleset == "hardened"
        first: Verdict | None
        known_of = family.id in stored or family.id in observed
        if known_of and family.level is not Level.CTRL and (why := held.get(family.group)):
            first = Verdict(family.id, Word.NOT_APPLICABLE, "", why, None, family.level)
            tallies[family.id] = scoring.tally([first])
        elif family.id in observed:
            first = observed[family.id]
            # Of a family that was not asked the reason is all there is to tell.
            why_void = (first,) if first.word is Word.VOID else ()
            tallies[family.id] = msgspec.structs.replace(scoring.tally([first]), failures=why_void)
            # What a program played is no verdict of its own, yet each answer is an answer.
            for exchange in evidence.exchanges(server, family=family.id, delivery=None):
                answers.add(_as_sent(exchange), exchange)
                requests += 1
        elif family.id in stored:
            one = folded.get(family.id) if not hardened else None
            one = one or _fold(catalogue, family.id, facts, evidence, server, hardened=hardened)
            answers.merge(one.answers)
            requests += one.exchanges
            first = one.first
            tallies[family.id] = one.tally
        else:
            continue  # not asked for
        if family.generated:
            generated[family.id] = tallies[family.id]
        elif first is not None:
            cases[family.id] = first
    for piece, exchange in delivery_comparison.answered(catalogue, suite, facts, evidence, server):
        answers.add_cut(piece, exchange)
    checked = answers.tallies()
    cut = delivery_comparison.compare(catalogue, suite, facts, evidence, server)
    shown = checked | delivery_comparison.tallies(cut)
    rows = scoring.requirements(catalogue.requirements, families, tallies, shown)
    counts = scoring.must(rows)
    reason = _unscored(families, cases)
    levels: dict[Level, Counter[Word]] = {}
    for tally in tallies.values():
        for level, words in tally.words.items():
            levels.setdefault(level, Counter()).update(words)
    return SuiteResult(
        score_percent=None if reason else scoring.percent(counts),
        reason=reason,
        must=counts,
        levels={level: dict(words) for level, words in levels.items()},
        cases=cases,
        generated=generated,
        answers=checked,
        requirements={id: word for id, (_, word, _) in rows.items()},
        ruleset=ruleset,
        deliveries=cut,
        controls=scoring.controls(
            verdict
            for verdict in cases.values()
            if verdict.level is Level.CTRL and verdict.word is not Word.NOT_APPLICABLE
        ),
        requests=requests,
    )


def _as_sent(exchange: Exchange) -> Case:
    """A case that sends what an exchange sent, where nothing else of it is known."""
    return Case(exchange.case, exchange.family, (Step(Op.SEND, exchange.sent),))


def _held_back(
    catalogue: Catalogue, facts: Facts, evidence: Evidence, server: str
) -> dict[str, str]:
    """The catalogue's families that are not judged, and why: a control of theirs fails.

    A server that refuses the good message would be praised for refusing the bad ones.
    """
    return {
        group: f"needs {family.ref}, which is not accepted ({verdict.actual})"
        for family in catalogue.families.values()
        if family.gates and family.suite != "seed"
        for verdict, attempts in judged(catalogue, family.id, facts, evidence, server)
        # A refusal that is permitted, as of chunked by 411, is one all the same.
        if verdict.word in (Word.FAIL, Word.UNSTABLE)
        or (verdict.word is Word.WARN and not judge.taken(attempts[-1]))
        for group in family.gates
    }


def strict(verdict: Verdict, family: Family) -> Verdict:
    """In the ruleset ``hardened``: what is merely permitted fails where framing is at stake."""
    if verdict.word is Word.WARN and (family.framing or family.group in HARDENED):
        return msgspec.structs.replace(verdict, word=Word.FAIL)
    return verdict


def _unscored(families: list[Family], cases: dict[str, Verdict]) -> str | None:
    """Why there is no score: the plain request is not answered, or nothing was fired."""
    if not cases:
        return "not scored: nothing was fired"
    for family in families:
        plain = cases.get(family.id) if PLAIN in family.refs else None
        if plain is not None and plain.word not in (Word.PASS, Word.WARN):
            came = expectation_words.came(plain.actual)
            return f"not scored: a plain request is not accepted ({came})"
    return None


def _score_seed(catalogue: Catalogue, server: str, evidence: Evidence) -> SuiteResult:
    families = [family for family in catalogue.of_suite("seed") if evidence.planned(family.id)]
    controls = [family for family in families if family.level is Level.CTRL]
    stored = set(evidence.families(server))
    failed = failed_controls(catalogue, controls, evidence, server)
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
        counts[family.id] = scoring.seed_family(exchanges)
        published = catalogue.published.get(server, {}).get(family.id)
        if published is not None and len(exchanges) == family.count:
            compared = True
            found = scoring.difference(family.id, published, scoring.detections(exchanges))
            if found is not None:
                differences.append(found)
    result = scoring.seed_suite(families, counts, verdicts, scoring.gated(families, failed))
    return msgspec.structs.replace(
        result,
        published=("differs" if differences else "exact") if compared else None,
        differences=tuple(differences),
    )
