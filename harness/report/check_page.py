"""What the page of a check begins with: the verdict, what fails, what is open, the target."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.gate import conclusion, crashes, findings, verdict_sentences
from httpmark.harness.gate.broken_requirements import Group, Summary, summaries
from httpmark.harness.judging.exchange_reader import ExchangeReader
from httpmark.harness.model.run import Run
from httpmark.harness.report.target_facts import facts_told
from httpmark.harness.report.verdict_text import scores, section


class CheckPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the template draws; the words are those of the terminal."""

    sentences: tuple[str, ...]
    summary: Summary
    sections: tuple[tuple[str, tuple[Group, ...]], ...]  # what fails the gate, under headings
    expected: tuple[Group, ...]  # broken as the baseline lists it
    open: tuple[str, ...]  # undecided and not applicable, a line each
    scores: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


def check_page(run: Run, known: Catalogue, evidence: ExchangeReader | None) -> CheckPage | None:
    """The check that a run is, from the run alone; None where it gates nothing."""
    if run.conclusion is None:
        return None
    found = conclusion.as_concluded(findings.findings(run, families=known.families), run.conclusion)
    made = summaries(run, found, known)
    if len(made) != 1:
        return None
    [one] = made
    facts = evidence.facts(one.server) if evidence is not None else None
    return CheckPage(
        sentences=run.conclusion.sentences or (run.conclusion.headline,),
        summary=one,
        # Crashes have a section of their own, above these.
        sections=_sections([group for group in one.failing if not crashes.is_crash(group.id)]),
        expected=tuple(group for group in one.broken if group.expected),
        open=tuple(
            filter(None, (verdict_sentences.undecided(one), verdict_sentences.not_applicable(one)))
        ),
        scores=tuple(scores(run, one.server)),
        facts=facts_told(facts) if facts is not None else (),
    )


def _sections(groups: Sequence[Group]) -> tuple[tuple[str, tuple[Group, ...]], ...]:
    made: dict[str, list[Group]] = {}
    for group in groups:
        made.setdefault(section(group), []).append(group)
    return tuple((title, tuple(own)) for title, own in made.items())
