"""The result of a check whose cases got given verdicts, folded as after a real one."""

from __future__ import annotations

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.gate import findings
from httpmark.harness.gate.findings import Finding
from httpmark.harness.judging import family_tally, requirement_verdicts
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import Compliance, SuiteResult, Verdict, Word
from httpmark.harness.tests.shared.made_findings import run_of

Said = tuple[Word, str]
"""A verdict's word, and what came."""

PASSED: Said = (Word.PASS, "400; closed")
ACCEPTED: Said = (Word.FAIL, "200; the next request gets 200")
SILENT: Said = (Word.VOID, "silence until the deadline")


def suite_of_cases(said: dict[str, Said], *, expected: str = "R400") -> SuiteResult:
    """One suite of designed cases, by their ids."""
    known = loading.load()
    cases = {
        id: Verdict(id, word, expected, actual, None, known.families[id].level)
        for id, (word, actual) in said.items()
    }
    tallies = {id: family_tally.tally([verdict]) for id, verdict in cases.items()}
    families = [known.families[id] for id in cases]
    rows = requirement_verdicts.requirements(known.requirements, families, tallies, {})
    counts = requirement_verdicts.must(rows)
    return SuiteResult(
        score_percent=requirement_verdicts.percent(counts),
        must=counts,
        cases=cases,
        requirements={id: word for id, (_, word, _) in rows.items()},
    )


def check_of(*suites: dict[str, Said], **changes: object) -> tuple[Run, tuple[Finding, ...]]:
    """A run of one server, and its findings: the suites are called rfc, smuggling, ..."""
    names = ("rfc", "smuggling", "resilience")
    made = {name: suite_of_cases(one) for name, one in zip(names, suites, strict=False)}
    run = run_of("reference", compliance=Compliance(made), title="127.0.0.1:8080")
    run = msgspec.structs.replace(run, notes=(), **changes)
    return run, findings.findings(run, families=loading.load().families)
