"""One suite against one running server: controls first, then what they let through.

Firing and scoring are apart: :func:`fire` needs a server, ``scoring`` only what was stored.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from httpmark.harness.catalogue import generators, vocabulary
from httpmark.harness.catalogue.catalogue import Catalogue, Planned
from httpmark.harness.catalogue.lookup import has_octets
from httpmark.harness.firing import delivery_firing, programs
from httpmark.harness.firing.asking import FEW_IN_FLIGHT, PLAIN_S, asked
from httpmark.harness.firing.probe import IN_FLIGHT, Play
from httpmark.harness.firing.targets import Target, accepts, hello
from httpmark.harness.judging import judge, response_rules, scoring, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Case, Facts, Family, Level, Op, Step
from httpmark.harness.model.errors import ServerDied
from httpmark.harness.model.exchanges import RAN_OUT, SILENT, Attempt, Exchange, Outcome
from httpmark.harness.model.verdicts import Verdict, Word
from httpmark.harness.servers import network_counters

# Silence is believed only after a second try: alone, with twice the time.
_CONFIRMED_MAX = 256
_CONFIRM_IN_FLIGHT = 4
_LAST_WORDS_S = 2.0
_CASES_IN_FLIGHT = 256
_LINGERING_MAX = 8
# What fails is asked three times and once alone (cases.md).
_AGAIN_IN_FLIGHT = 16
# Where time ran out among many in flight, load may be why: all of it is asked again, in lots, until
# most of a lot is silent with few in flight, too.
_LATE_LOT = 256
_LARGE_OCTETS = 1 << 16
# A target is prompt where so few of its answers took so long: then silence is its own.
_PROMPT_FROM = 100
_PROMPT_US = 500_000
_PROMPT_BUT = 0.01
# What a quick look leaves for programs, and for judging a case, on a slow machine.
_PROGRAMS_S = 1.6
_JUDGING_S = 85e-6
_NOT_ASKED = "not asked: the time of a quick look was up"
_NOT_AWAITED = "not waited for: the time of a quick look was up"

Progress = Callable[[int], None]


class Hurry(msgspec.Struct, frozen=True):
    """The time of a look that somebody waits for, by ``time.monotonic``."""

    begin: float  # what can wait is begun until then
    wait: float  # what is under way for the first time is broken off then
    end: float  # nothing that can wait is asked any more

    @classmethod
    def from_now(cls) -> Hurry:
        """A look that begins now and takes a little less than ten seconds; what is left of them is
        for judging and for the report."""
        now = time.monotonic()
        return cls(now + 4.4, now + 4.9, now + 6.5)

    def is_up(self, asked: int) -> bool:
        """Whether so many cases are all there is time for: each has to be judged, too."""
        return time.monotonic() > min(self.begin, self.end - _PROGRAMS_S - asked * _JUDGING_S)


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
    hurry: Hurry | None = None,
    second: suite_results.Second | None = None,
    deliveries: Iterable[str] = (),
    cutting: Callable[[int], Progress] = lambda total: lambda by: None,
) -> None:
    """Fire a suite; ``fired`` grows as it goes, so an interrupted call leaves what it knows.

    :param along: suites that are fired in one go with it; ``seed`` is always fired by itself.
    :param hurry: what there is no time for is left void, and says so.
    :param second: helps with judging, started or not; without it one is at hand for this call.
    :param deliveries: modes of ``delivery.MODES`` that its delivery corpus goes out in, too.
    :param cutting: is told how many cuts these are, and gives what is told of each.

    Families whose controls fail are not fired: their counts would mean nothing, and a server that
    never answers would take hours to say so.

    :raises ServerDied: the server went away.
    :raises Unusable: the probe itself could not go on.
    """
    started = time.monotonic()
    try:
        if suite == "seed":
            _fire_seed(catalogue, target, evidence, fired, progress=progress, selected=selected)
            return
        own = suite_results.Second() if second is None else contextlib.nullcontext(second)
        with own as helper:
            suites = (suite, *along)
            helper.start(suite_results.size(catalogue, suites, selected, quick=quick))
            _fire_suites(
                catalogue, suites, target, evidence, fired,
                progress=progress, selected=selected, quick=quick, hurry=hurry, second=helper,
                deliveries=deliveries, cutting=cutting,
            )  # fmt: skip
    finally:
        fired.wall_seconds += time.monotonic() - started
        evidence.flush()


def _fire_suites(
    catalogue: Catalogue,
    suites: tuple[str, ...],
    target: Target,
    evidence: Evidence,
    fired: suite_results.Fired,
    *,
    progress: Progress,
    selected: Callable[[Family], bool],
    quick: bool,
    hurry: Hurry | None,
    second: suite_results.Second,
    deliveries: Iterable[str],
    cutting: Callable[[int], Progress],
) -> None:
    """Ask what only asking can tell, then fire designed cases and generated families, programs, and
    cuts."""
    chosen = [
        family for suite in suites for family in catalogue.of_suite(suite) if selected(family)
    ]
    known = evidence.facts(target.name)
    target = asked(catalogue, (family.id for family in chosen), target, known)
    at_once = known.at_once if known is not None else target.at_once
    if at_once is None and sum(family.count for family in chosen) > _CASES_IN_FLIGHT:
        at_once = _crowd(target)
    target = msgspec.structs.replace(target, at_once=at_once)
    facts = target.facts()
    evidence.set_facts(target.name, facts)
    _fire_cases(
        catalogue, chosen, target, evidence, fired,
        progress=progress, quick=quick, hurry=hurry, second=second,
    )  # fmt: skip
    if _refused(catalogue, facts, evidence, target.name):
        return  # what programs play would only say it again
    _run(catalogue, chosen, target, evidence, fired, hurry=hurry)
    for suite in suites:
        delivery_firing.fire(
            catalogue, suite, facts, evidence, target.name,
            modes=deliveries, chosen=selected, begin=cutting,
            play=_Shooter(catalogue, target, evidence, fired, lambda _: None).play,
        )  # fmt: skip


def _fire_seed(
    catalogue: Catalogue,
    target: Target,
    evidence: Evidence,
    fired: suite_results.Fired,
    *,
    progress: Progress,
    selected: Callable[[Family], bool],
) -> None:
    """The published corpus: it asks for nothing, and keeps what another suite was told."""
    facts = target.facts()
    if evidence.facts(target.name) is None:
        evidence.set_facts(target.name, facts)
    families = [
        family
        for family in catalogue.of_suite("seed")
        if catalogue.inapplicable(family.id, facts) is None and selected(family)
    ]
    # What is asked for is known from evidence alone, though it may be cut short.
    evidence.plan((slug, family.id) for family in families for slug in catalogue.slugs(family.id))
    controls = [family for family in families if family.level is Level.CTRL]
    # The gate of the whole suite goes alone: a server that is mute costs one deadline.
    first = [family for family in controls if "*" in family.gates]
    others = [family for family in controls if "*" not in family.gates]
    shooter = _Shooter(catalogue, target, evidence, fired, progress)
    for batch in (first, others):
        shooter.shoot([family.id for family in batch])
        if "*" in suite_results.failed_gates(catalogue, batch, evidence, target.name):
            return
    blocked = scoring.gated(
        families, suite_results.failed_controls(catalogue, controls, evidence, target.name)
    )
    shooter.shoot([f.id for f in families if f.level is not Level.CTRL and f.id not in blocked])


_Which = tuple[str, str]  # family and case
_Cases = Callable[[Iterable[str]], Iterator[Case]]  # of families
# What to ask again that answered and what was silent, and what drew an announced close that did not
# come.
_Doubtful = tuple[set[_Which], set[_Which], list[_Which]]


class _Shooter:
    """Fires families in one stream through the probe and keeps what comes back."""

    def __init__(
        self,
        catalogue: Catalogue,
        target: Target,
        evidence: Evidence,
        fired: suite_results.Fired,
        progress: Progress,
    ) -> None:
        self.catalogue = catalogue
        self.target = target
        self.evidence = evidence
        self.fired = fired
        self._progress = progress
        self._answered = 0
        self._slow = 0
        self.unfinished: list[Play] = []

    def shoot(self, families: list[str]) -> None:
        """Fire whole families; silence is tried again before it counts."""
        if not families:
            return

        def cases() -> Iterator[Case]:
            for family in families:
                yield from self.catalogue.cases(family, self.target.facts())

        silent = {
            exchange.case: exchange.machine_dropped
            for exchange in self.play(cases(), in_flight=IN_FLIGHT, attempt=Attempt.FIRST)
        }
        # Thousands of honest silences confirm each other; a sample of them is enough.
        believed = [name for name, dropped in silent.items() if not dropped][_CONFIRMED_MAX:]
        again = silent.keys() - set(believed)
        if again:
            patient = (_patient(case) for case in cases() if case.id in again)
            for _ in self.play(patient, in_flight=_CONFIRM_IN_FLIGHT, attempt=Attempt.REPEAT):
                pass

    def play(
        self,
        cases: Iterable[Case],
        *,
        in_flight: int,
        attempt: int,
        end: float | None = None,
        keep: Callable[[Exchange], bool] = lambda exchange: True,
    ) -> Iterator[Exchange]:
        """Play cases into evidence; yields the silent exchanges.

        :param end: as of ``Probe.play``.
        :param keep: whether an exchange goes into evidence.
        :raises ServerDied: connections are refused and the server is gone.
        """
        plays = ((case, attempt) for case in cases)
        return self.play_all(plays, in_flight=in_flight, end=end, keep=keep)

    def play_all(
        self,
        plays: Iterable[Play],
        *,
        in_flight: int,
        end: float | None = None,
        keep: Callable[[Exchange], bool] = lambda exchange: True,
    ) -> Iterator[Exchange]:
        """The same, where each case says which attempt at it this is."""
        before = network_counters.dropped_packets()
        target = self.target
        with target.probe(in_flight=in_flight) as probe:
            try:
                for batch in probe.play(plays, end=end):
                    quiet = [exchange for exchange in batch if exchange.outcome in SILENT]
                    if quiet:
                        self._check_alive(quiet)
                        if network_counters.grown(before, network_counters.dropped_packets()):
                            batch = [_dropped(exchange) for exchange in batch]
                            quiet = [e for e in batch if e.outcome in SILENT]
                    self.evidence.add(target.name, filter(keep, batch))
                    self.fired.exchanges += len(batch)
                    self._answered += sum(e.first_us is not None for e in batch)
                    self._slow += sum((e.first_us or 0) > _PROMPT_US for e in batch)
                    self._progress(sum(exchange.attempt == Attempt.FIRST for exchange in batch))
                    yield from quiet
            finally:
                probe.stop()
        self.fired.probe_cpu_seconds += probe.cpu_seconds
        self.unfinished = probe.unfinished

    def void(self, family: str, why: str) -> None:
        """A family of which there is no word, and why."""
        _void(self.catalogue.families[family], why, self.evidence, self.target.name)

    @property
    def is_prompt(self) -> bool:
        """Whether the target answers so promptly that load cannot be why it is silent."""
        return self._answered >= _PROMPT_FROM and self._slow <= _PROMPT_BUT * self._answered

    def _check_alive(self, quiet: list[Exchange]) -> None:
        refused = any(exchange.outcome is Outcome.REFUSED for exchange in quiet)
        gone = refused and hello(self.target) is None
        reason = self.target.death()
        deadline = time.monotonic() + _LAST_WORDS_S
        while gone and reason is None and time.monotonic() < deadline:
            # A listener closes a moment before its process has ended and can say why.
            time.sleep(0.05)
            reason = self.target.death()
        if reason is not None:
            raise ServerDied(reason)
        if gone:
            raise ServerDied(f"{self.target.place} refuses connections since case {quiet[0].case}")


def _fire_cases(
    catalogue: Catalogue,
    chosen: list[Family],
    target: Target,
    evidence: Evidence,
    fired: suite_results.Fired,
    *,
    progress: Progress,
    quick: bool,
    hurry: Hurry | None,
    second: suite_results.Second,
) -> None:
    """Fire designed cases and generated families, and ask again what is doubtful.

    Nothing is fired at a target that does not accept the plain request.
    """
    facts = target.facts()
    families = []
    for family in chosen:
        if why := catalogue.inapplicable(family.id, facts):
            shown = Verdict(family.id, Word.NOT_APPLICABLE, "", why, None, family.level)
            evidence.observe(target.name, shown)
        elif family.runner is None and has_octets(catalogue, family.id):
            families.append(family.id)

    def cases(names: Iterable[str]) -> Iterator[Case]:
        for name in names:
            step = suite_results.step_of(catalogue.families[name], quick=quick)
            yield from catalogue.cases(name, facts, step=step)

    evidence.plan(
        (slug, name)
        for name in families
        for slug in catalogue.slugs(
            name, step=suite_results.step_of(catalogue.families[name], quick=quick)
        )
    )
    shooter = _Shooter(catalogue, target, evidence, fired, progress)
    gate = [name for name in families if suite_results.PLAIN in catalogue.families[name].refs]
    for attempt in (Attempt.FIRST, Attempt.ALONE):
        patient = map(_patient, cases(gate)) if attempt == Attempt.ALONE else cases(gate)
        for _ in shooter.play(patient, in_flight=1, attempt=attempt):
            pass
        evidence.flush()
        if not _refused(catalogue, facts, evidence, target.name):
            break
    else:
        return
    families = _first(
        shooter, cases, [name for name in families if name not in gate], quick=quick, hurry=hurry
    )
    doubts = functools.partial(
        _doubtful, catalogue, families, facts, evidence, target.name,
        quick=quick, folded=fired.folded, second=second,
    )  # fmt: skip
    whole = set(families)
    late = [
        which for which in evidence.last_with(target.name, SILENT, RAN_OUT) if which[0] in whole
    ]
    if quick:
        _once_more(shooter, cases, late, doubts, end=None if hurry is None else hurry.end)
    else:
        _again(shooter, cases, late, doubts)


def _first(
    shooter: _Shooter,
    cases: _Cases,
    families: list[str],
    *,
    quick: bool,
    hurry: Hurry | None,
) -> list[str]:
    """Ask all there is, and twice what a server may do either way: it does so the same way twice.

    Designed cases go first: some wait for seconds, and the many of a kind fill that time.

    :returns: the families that were asked whole; the others are void, and say so.
    """
    catalogue = shooter.catalogue
    entries = [catalogue.families[name] for name in families]
    designed = [entry.id for entry in entries if not entry.generated]
    # Where time runs out, those that bind nobody and have the most cases are left.
    generated = sorted(
        (entry for entry in entries if entry.generated),
        key=lambda entry: (not entry.level.is_binding, entry.count),
    )
    whole: list[str] = []

    def twice(names: Iterable[str]) -> Iterator[Play]:
        chosen = (name for name in names if catalogue.offers_choice(name))
        return ((case, Attempt.REPEAT) for case in cases(chosen))

    def plays() -> Iterator[Play]:
        number = 0
        large: list[Case] = []
        for case in cases(designed):
            number += 1
            if len(case.sent) > _LARGE_OCTETS:
                large.append(case)
            else:
                yield case, Attempt.FIRST
        yield from twice(designed)
        # A slow server with one thread that reads a hundred thousand chunks answers nobody else.
        for case in large:
            yield case, Attempt.FIRST
        whole.extend(designed)
        for entry in generated:
            for case in cases([entry.id]):
                number += 1
                if hurry is not None and hurry.is_up(number):
                    return
                yield case, Attempt.FIRST
            whole.append(entry.id)
        if not quick:
            yield from twice(entry.id for entry in generated)

    for _ in shooter.play_all(
        plays(), in_flight=_CASES_IN_FLIGHT, end=None if hurry is None else hurry.wait
    ):
        pass
    shooter.evidence.flush()
    cut = {case.family for case, attempt in shooter.unfinished if attempt == Attempt.FIRST}
    for name in families:
        if name not in whole:
            shooter.void(name, _NOT_ASKED)
        elif name in cut:
            shooter.void(name, _NOT_AWAITED)
    return [name for name in whole if name not in cut]


def _again(
    shooter: _Shooter, cases: _Cases, late: list[_Which], doubts: Callable[[], _Doubtful]
) -> None:
    """Ask again, where time ran out, with few in flight; what fails three times and once alone."""
    for begin in range(0, len(late), _LATE_LOT):
        lot = late[begin : begin + _LATE_LOT]
        once_more = _only(cases, lot)
        quiet = sum(
            1 for _ in shooter.play(once_more, in_flight=_AGAIN_IN_FLIGHT, attempt=Attempt.LATE)
        )
        if 2 * quiet > len(lot):
            break
    alone, silent, lingering = doubts()
    for attempt in (Attempt.DOUBTED, Attempt.DOUBTED_AGAIN):
        chosen = _only(cases, alone | silent)
        for _ in shooter.play(chosen, in_flight=_AGAIN_IN_FLIGHT, attempt=attempt):
            pass
    # Whether a close that is announced comes at all is known after ten seconds (RESP-33).
    open_still = lingering[:_LINGERING_MAX]
    chosen = map(_to_the_end, _only(cases, open_still))
    for _ in shooter.play(chosen, in_flight=_AGAIN_IN_FLIGHT, attempt=Attempt.TO_THE_END):
        pass
    # Alone: nothing else is on the server, so load cannot be why. Silent cases share the wait.
    for wanted, in_flight in ((alone, 1), (silent, _AGAIN_IN_FLIGHT)):
        patient = map(_patient, _only(cases, wanted))
        for _ in shooter.play(patient, in_flight=in_flight, attempt=Attempt.ALONE):
            pass


def _once_more(
    shooter: _Shooter,
    cases: _Cases,
    late: list[_Which],
    doubts: Callable[[], _Doubtful],
    *,
    end: float | None,
) -> None:
    """In a quick look, ask once more with few in flight: what fails and decides, and where time ran
    out, unless the target is prompt. The rest is taken by its first word."""
    answered, silent, _ = doubts()
    waited = set() if shooter.is_prompt else silent.union(late)
    for name, _ in answered | waited:
        shooter.fired.folded.pop(name, None)

    def chosen() -> Iterator[Case]:
        yield from _only(cases, answered - waited)
        yield from _only(cases, waited)

    for _ in shooter.play(chosen(), in_flight=_AGAIN_IN_FLIGHT, attempt=Attempt.DOUBTED, end=end):
        pass
    unheard = {(case.family, case.id) for case, _ in shooter.unfinished}
    for name in {name for name, _ in unheard & waited}:
        shooter.void(name, _NOT_AWAITED)


def _void(family: Family, why: str, evidence: Evidence, server: str) -> None:
    evidence.observe(server, Verdict(family.id, Word.VOID, "", why, None, family.level))


_CROWD_MS = 1000
_QUEUE_MS = 300  # a connection that is dropped from a listen queue comes again after a second
_CROWD_ANSWERED_MIN = 0.98
_CROWDS = (_CASES_IN_FLIGHT, _AGAIN_IN_FLIGHT)


def _crowd(target: Target) -> int:
    """How many cases go out at once: fewer where a target does not answer so many plain requests.

    A listen queue of five drops the others, and each comes again a second later: many at once are
    then slower than few, and nearly all of them have to be asked a second time.
    """
    for crowd in _CROWDS:
        for wait_ms in (_QUEUE_MS, _CROWD_MS):
            outcomes = _at_once(target, crowd, generators.patience_ms(wait_ms, target.facts()))
            answered = outcomes.count(Outcome.ANSWERED)
            if answered >= _CROWD_ANSWERED_MIN * crowd:
                return crowd
            hello(target, deadline_s=PLAIN_S)  # once it is done with those nobody waits for
            if Outcome.REFUSED in outcomes and 2 * answered < crowd:
                break  # most were dropped: more patience does not help
    return FEW_IN_FLIGHT


def _at_once(target: Target, crowd: int, wait_ms: int) -> list[Outcome]:
    """What becomes of so many plain requests at once."""
    request = f"GET {target.path} HTTP/1.1\r\n{target.facts().host_lines}\r\n".encode("latin-1")
    steps = (Step(Op.SEND, request), Step(Op.AWAIT, wait_ms=wait_ms))
    cases = (Case(f"crowd-{n}", "crowd", steps, deadline_ms=wait_ms) for n in range(crowd))
    with target.probe(in_flight=crowd) as probe:
        return [exchange.outcome for batch in probe.fire(cases) for exchange in batch]


def _refused(catalogue: Catalogue, facts: Facts, evidence: Evidence, server: str) -> bool:
    """Whether the plain request was fired, in this suite or another one, and not accepted."""
    return any(
        verdict.word not in (Word.PASS, Word.WARN)
        for family in catalogue.families.values()
        if suite_results.PLAIN in family.refs and family.suite != "seed"
        for verdict, _ in suite_results.judged(catalogue, family.id, facts, evidence, server)
    )


def _only(cases: _Cases, wanted: Iterable[_Which]) -> Iterator[Case]:
    """Those cases that are wanted, by family and id."""
    chosen = set(wanted)
    return (
        case
        for case in cases({name: None for name, _ in sorted(chosen)})
        if (case.family, case.id) in chosen
    )


def _run(
    catalogue: Catalogue,
    chosen: list[Family],
    target: Target,
    evidence: Evidence,
    fired: suite_results.Fired,
    *,
    hurry: Hurry | None,
) -> None:
    """Let programs play what one exchange cannot show; what they saw is kept beside it.

    :raises ServerDied: the server went away meanwhile.
    """
    facts = target.facts()
    # Many connections at once: a short listen queue makes seconds of them.
    is_short = target.at_once is not None and target.at_once < _CASES_IN_FLIGHT
    for family in chosen:
        play = programs.RUNNERS.get(family.runner or "")
        if play is None or catalogue.inapplicable(family.id, facts):
            continue
        case = next(catalogue.cases(family.id, facts), None)
        if case is None:
            continue
        can_wait = not family.level.is_binding
        is_slow = is_short and play in programs.BURSTS
        if hurry and can_wait and time.monotonic() > (hurry.begin if is_slow else hurry.end):
            _void(family, _NOT_ASKED, evidence, target.name)
            continue
        stage = programs.Stage(
            case=case,
            facts=facts,
            fire=functools.partial(_played, target, evidence, fired),
            alive=lambda: accepts(target, deadline_s=generators.patience_ms(2000, facts) / 1000),
            pids=target.pids,
            flood=target.flood,
            trickle=target.trickle,
            negatives=functools.partial(_negatives, catalogue, facts),
        )
        found = play(stage)
        if (reason := target.death()) is not None:
            raise ServerDied(reason)
        expected = vocabulary.PROGRAMS[family.runner or ""]
        evidence.observe(
            target.name,
            Verdict(family.id, found.word, expected, found.actual, None, family.level),
        )


_NEGATIVE_SUITES = ("rfc", "smuggling")
_NEGATIVE_OCTETS_MAX = 1 << 16
_NEGATIVE_MS_MAX = 8000


def _negatives(catalogue: Catalogue, facts: Facts) -> list[programs.Negative]:
    """The designed cases that a server may refuse, without those that are about waiting."""
    judging = judge.Judge()
    found: list[programs.Negative] = []
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
            if expected is None or expected.waits or one.case.deadline_ms > _NEGATIVE_MS_MAX:
                continue
            if len(one.case.sent) > _NEGATIVE_OCTETS_MAX:
                continue

            def word(exchange: Exchange, one: Planned = one) -> Word:
                return judging.judge(one, exchange).word

            found.append(programs.Negative(family.group, one.case, word))
    return found


def _played(
    target: Target,
    evidence: Evidence,
    fired: suite_results.Fired,
    cases: list[Case],
    in_flight: int,
) -> list[Exchange]:
    """Play cases into evidence; their exchanges in the order of the cases."""
    evidence.plan((case.id, case.family) for case in cases)
    found: dict[str, Exchange] = {}
    with target.probe(in_flight=in_flight) as probe:
        for batch in probe.fire(cases):
            evidence.add(target.name, batch)
            fired.exchanges += len(batch)
            found |= {exchange.delivery: exchange for exchange in batch}
    fired.probe_cpu_seconds += probe.cpu_seconds
    return [found[case.delivery] for case in cases]


def _doubtful(
    catalogue: Catalogue,
    families: list[str],
    facts: Facts,
    evidence: Evidence,
    server: str,
    *,
    quick: bool,
    folded: dict[str, suite_results.Folded],
    second: suite_results.Second,
) -> _Doubtful:
    """Judge what came, and say what of it is to be asked again.

    :param folded: gets what the families say in which nothing is doubtful.
    """
    alone: set[_Which] = set()
    silent: set[_Which] = set()
    lingering: list[_Which] = []
    judged = suite_results.judged_twofold(
        catalogue, families, facts, evidence, server, quick=quick, second=second
    )
    for name in families:
        found, doubted = judged[name]
        open_still = found.answers.lingering
        lingering += [(name, case) for case in open_still]
        if not doubted and (quick or not open_still):
            folded[name] = found
        for case, late in doubted:
            (silent if late else alone).add((name, case))
    return alone, silent, lingering


def _to_the_end(case: Case) -> Case:
    """The same case with time for a close that was announced to come late."""
    more = response_rules.CLOSE_LATE_US // 1000 + 500
    return msgspec.structs.replace(case, close_ms=more, deadline_ms=case.deadline_ms + more)


def _patient(case: Case) -> Case:
    """The same case with twice the time to answer."""
    replace = msgspec.structs.replace
    steps = tuple(
        replace(step, wait_ms=2 * step.wait_ms) if step.op is Op.AWAIT else step
        for step in case.steps
    )
    return replace(case, steps=steps, deadline_ms=2 * case.deadline_ms)


def _dropped(exchange: Exchange) -> Exchange:
    if exchange.outcome not in SILENT:
        return exchange
    return msgspec.structs.replace(exchange, machine_dropped=True)
