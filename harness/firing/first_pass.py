"""Everything that a target is asked for the first time, in one stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from httpmark.harness.catalogue.lookup import has_octets
from httpmark.harness.firing.case_stream import CASES_IN_FLIGHT, CaseStream, exhaust, patient
from httpmark.harness.firing.probe_frames import Play
from httpmark.harness.firing.time_budget import NOT_ASKED, NOT_AWAITED, TimeBudget
from httpmark.harness.judging import family_results, suite_results
from httpmark.harness.model.cases import Case, Family
from httpmark.harness.model.exchanges import Attempt
from httpmark.harness.model.verdicts import Verdict, Word

# A slow server with one thread that reads a hundred thousand chunks answers nobody else. Designed
# cases that are larger than this go after the others.
_LARGE_BYTES = 1 << 16


def fire(stream: CaseStream, chosen: list[Family], budget: TimeBudget | None) -> list[str] | None:
    """Fire the designed cases and the generated families.

    :returns: the families that were asked whole; the others are void, and say why. None if the
        target does not accept the plain request: then nothing else is fired.
    """
    families = _applicable(stream, chosen)
    stream.plan(families)
    gate = [
        name for name in families if suite_results.PLAIN in stream.catalogue.families[name].refs
    ]
    if not _takes_the_plain_request(stream, gate):
        return None
    asked = _FirstPass(stream, [name for name in families if name not in gate], budget)
    end = None if budget is None else budget.wait
    exhaust(stream.play_all(asked.plays(), in_flight=CASES_IN_FLIGHT, end=end))
    stream.evidence.flush()
    return asked.settled()


def refuses_the_plain_request(stream: CaseStream) -> bool:
    """Whether the plain request was fired, in this suite or another one, and not accepted."""
    return any(
        one.verdict.word not in (Word.PASS, Word.WARN)
        for family in stream.catalogue.families.values()
        if suite_results.PLAIN in family.refs and family.suite != "seed"
        for one in family_results.judged(stream.stored, family.id)
    )


def _applicable(stream: CaseStream, chosen: list[Family]) -> list[str]:
    """The families that bytes are sent for; why others do not apply is noted."""
    families = []
    for family in chosen:
        if why := stream.catalogue.inapplicable(family.id, stream.facts):
            shown = Verdict(family.id, Word.NOT_APPLICABLE, "", why, None, family.level)
            stream.evidence.observe(stream.target.name, shown)
        elif family.runner is None and has_octets(stream.catalogue, family.id):
            families.append(family.id)
    return families


def _takes_the_plain_request(stream: CaseStream, gate: list[str]) -> bool:
    """Ask the plain request alone, and if it fails once more with patience."""
    for attempt in (Attempt.FIRST, Attempt.ALONE):
        cases = stream.cases(gate)
        asked = map(patient, cases) if attempt == Attempt.ALONE else cases
        exhaust(stream.play(asked, in_flight=1, attempt=attempt))
        stream.evidence.flush()
        if not refuses_the_plain_request(stream):
            return True
    return False


class _FirstPass:
    """The plays of a first pass, in order, and which families were asked whole.

    Designed cases go first: some wait for seconds, and the many cases of generated families fill
    that time. Where a server may accept or refuse, it is asked twice: it has to do the same twice.
    """

    def __init__(self, stream: CaseStream, families: list[str], budget: TimeBudget | None) -> None:
        entries = [stream.catalogue.families[name] for name in families]
        self._stream = stream
        self._families = families
        self._budget = budget
        self._designed = [entry.id for entry in entries if not entry.generated]
        # If time runs out, the largest families that do not bind are left.
        self._generated = [
            entry.id
            for entry in sorted(
                (entry for entry in entries if entry.generated),
                key=lambda entry: (not entry.level.is_binding, entry.count),
            )
        ]
        self._whole: list[str] = []

    def plays(self) -> Iterator[Play]:
        """What is played, in order."""
        number = 0
        large: list[Case] = []
        for case in self._stream.cases(self._designed):
            number += 1
            if len(case.sent) > _LARGE_BYTES:
                large.append(case)
            else:
                yield case, Attempt.FIRST
        yield from self._twice(self._designed)
        for case in large:
            yield case, Attempt.FIRST
        self._whole.extend(self._designed)
        for family in self._generated:
            for case in self._stream.cases([family]):
                number += 1
                if self._budget is not None and self._budget.is_up(number):
                    return
                yield case, Attempt.FIRST
            self._whole.append(family)
        if not self._stream.quick:
            yield from self._twice(self._generated)

    def _twice(self, families: Iterable[str]) -> Iterator[Play]:
        chosen = (name for name in families if self._stream.catalogue.offers_choice(name))
        return ((case, Attempt.REPEAT) for case in self._stream.cases(chosen))

    def settled(self) -> list[str]:
        """The families that were asked whole; the others become void."""
        stream = self._stream
        cut = {case.family for case, attempt in stream.unfinished if attempt == Attempt.FIRST}
        for name in self._families:
            if name not in self._whole:
                stream.void(stream.catalogue.families[name], NOT_ASKED)
            elif name in cut:
                stream.void(stream.catalogue.families[name], NOT_AWAITED)
        return [name for name in self._whole if name not in cut]
