"""Everything that a target is asked for the first time, in one stream."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from httpmark.harness.catalogue.lookup import has_octets
from httpmark.harness.firing import failing_samples
from httpmark.harness.firing.case_stream import CASES_IN_FLIGHT, CaseStream, exhaust, patient
from httpmark.harness.firing.probe_frames import Play
from httpmark.harness.judging import family_results, suite_results
from httpmark.harness.model.cases import Case, Family
from httpmark.harness.model.exchanges import Attempt
from httpmark.harness.model.verdicts import Verdict, Word

# A slow server with one thread that reads a hundred thousand chunks answers nobody else. Designed
# cases that are larger than this go after the others.
_LARGE_BYTES = 1 << 16


def fire(stream: CaseStream, chosen: list[Family], *, whole: bool = False) -> list[str] | None:
    """Fire the designed cases and the generated families.

    :param whole: ask every case, whatever a sample says.
    :returns: the families that were asked. None if the target does not accept the plain request:
        then nothing else is fired.
    """
    families = _applicable(stream, chosen)
    gate = [
        name for name in families if suite_results.PLAIN in stream.catalogue.families[name].refs
    ]
    rest = [name for name in families if name not in gate]
    stream.plan(gate)
    is_taken = _takes_the_plain_request(stream, gate)
    if is_taken and not whole and not stream.quick:
        failing_samples.thin(stream, rest)
    stream.plan(rest)
    if not is_taken:
        return None
    exhaust(stream.play_all(_plays(stream, rest), in_flight=CASES_IN_FLIGHT))
    stream.evidence.flush()
    return rest


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


def _plays(stream: CaseStream, families: list[str]) -> Iterator[Play]:
    """What is played, in order.

    Designed cases go first: some wait for seconds, and the many cases of generated families fill
    that time. Where a server may accept or refuse, it is asked twice: it has to do the same twice.
    """
    known = stream.catalogue.families
    designed = [name for name in families if not known[name].generated]
    generated = [name for name in families if known[name].generated]
    large: list[Case] = []
    for case in stream.cases(designed):
        if len(case.sent) > _LARGE_BYTES:
            large.append(case)
        else:
            yield case, Attempt.FIRST
    yield from _twice(stream, designed)
    for case in itertools.chain(large, stream.cases(generated)):
        yield case, Attempt.FIRST
    if not stream.quick:
        yield from _twice(stream, generated)


def _twice(stream: CaseStream, families: Iterable[str]) -> Iterator[Play]:
    chosen = (name for name in families if stream.catalogue.offers_choice(name))
    return ((case, Attempt.REPEAT) for case in stream.cases(chosen))
