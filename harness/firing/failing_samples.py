"""Very large families of which a sample fails already: a part of them says as much as the whole.

A server that serves malformed percent pairs serves thousands of them. That it does is known after a
few, and a server that answers slowly would be asked the others for most of a minute. Nothing can
be missed: a family that is thinned here fails already, and its level is not binding.
"""

from __future__ import annotations

from collections.abc import Iterable

from httpmark.harness.firing.case_stream import CASES_IN_FLIGHT, CaseStream, exhaust
from httpmark.harness.judging import judge, quick_look
from httpmark.harness.model.cases import Family
from httpmark.harness.model.exchanges import Attempt, Exchange
from httpmark.harness.model.verdicts import Word

# Of 62,016 percent pairs 127. It is odd, so that both bytes of a pair take many values.
_SAMPLE_STEP = 489
# Where fewer fail, what fails may be a hole that the whole family shows the shape of.
_FAILING_PART = 16


def thin(stream: CaseStream, families: Iterable[str]) -> None:
    """Ask a sample of each very large family that does not bind. Where a sixteenth of it or more
    fails, the stream asks only a part of the family.

    What the sample says is not kept: the part is asked like any other family.
    """
    known = stream.catalogue.families
    stream.thin(name for name in families if _is_large(known[name]) and _fails(stream, name))


def _is_large(family: Family) -> bool:
    return quick_look.is_very_large(family) and not family.level.is_binding


def _fails(stream: CaseStream, family: str) -> bool:
    """Whether a sixteenth or more of a sample of a family fails."""
    facts = stream.stored.facts
    sample = {
        one.case.id: one for one in stream.catalogue.planned(family, facts, step=_SAMPLE_STEP)
    }
    came: list[Exchange] = []

    def held(exchange: Exchange) -> bool:
        came.append(exchange)
        return False

    cases = (one.case for one in sample.values())
    exhaust(stream.play(cases, in_flight=CASES_IN_FLIGHT, attempt=Attempt.FIRST, keep=held))
    judging = judge.Judge(facts)
    words = [judging.judge(sample[one.case], one).word for one in came]
    return words.count(Word.FAIL) * _FAILING_PART >= len(sample)
