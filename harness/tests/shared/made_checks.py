"""Two checks of one server made by hand, for the tests of what is compared between them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.gate import findings
from httpmark.harness.gate.run_changes import Changes, Side, changes
from httpmark.harness.model import run_folder
from httpmark.harness.model.cases import Level
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.model.verdicts import Compliance, SuiteResult, Tally, Verdict, Word

CASE, OTHER, FAMILY = "host-missing", "host-twice-equal", "host_port"


def suite(
    cases: Mapping[str, Word] | None = None,
    families: Mapping[str, Mapping[Word, int]] | None = None,
    **given: object,
) -> SuiteResult:
    """A suite in which each case got this verdict, and each family these."""
    verdicts = {
        id: Verdict(id, word, "R400", "400" if word is Word.PASS else "200", None, Level.MUST)
        for id, word in (cases or {}).items()
    }
    generated = {
        id: Tally(words={Level.MUST: dict(words)}) for id, words in (families or {}).items()
    }
    failed = sum(one.word is Word.FAIL for one in verdicts.values())
    counts = {"passed": len(verdicts) - failed, "failed": failed}
    made = SuiteResult(
        score_percent=50.0, cases=verdicts, generated=generated, ruleset="rfc",
        must=counts if verdicts or generated else None,
    )  # fmt: skip
    return msgspec.structs.replace(made, **given)


def check(one: SuiteResult | None = None, /, name: str = "target", **server: object) -> Run:
    """A check of one server, with this result of the suite ``rfc``."""
    result = ServerResult(
        name=name, title=name, language="", version=None, runtime="address",
        compliance=Compliance({"rfc": one} if one is not None else {}),
        again=("http://127.0.0.1:8080/",),
    )  # fmt: skip
    return Run(
        schema_version="1.0", catalogue_version="c", harness_version="0", id="x",
        started="2026-11-21T04:00:00Z", finished="then", interrupted=False, quick=False, seed=0,
        suites=("rfc",), profiles=(), environment={},
        servers=(msgspec.structs.replace(result, **server),),
    )  # fmt: skip


def of_words(base: Word | None, head: Word | None) -> Changes:
    """What changed where one case got these verdicts; None where it was not asked."""
    runs = [check(suite({} if word is None else {CASE: word})) for word in (base, head)]
    return changed(*runs)


def changed(base: Run, head: Run, **given: object) -> Changes:
    """What changed between two checks of one server."""
    sides = [
        Side(run, findings.findings(run, families=loading.load().families)) for run in (base, head)
    ]
    names = [run.servers[0].name for run in (base, head)]
    return changes(*sides, pairs={names[1]: names[0]}, **given)  # type: ignore[arg-type]


def stored(folder: Path, run: Run) -> str:
    """The same as a run folder."""
    folder.mkdir(parents=True)
    run_folder.write(run, folder)
    return str(folder)
