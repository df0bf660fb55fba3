"""What can be done with a stored run: draw its report, judge it again, rank its costs."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from httpmark.harness.catalogue import catalogue, loading
from httpmark.harness.command import killed_runs
from httpmark.harness.gate import conclusion, findings
from httpmark.harness.judging import suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.load import ranking
from httpmark.harness.model.errors import not_written
from httpmark.harness.model.load import LoadResult
from httpmark.harness.model.progress import undisturbed
from httpmark.harness.model.run import Conclusion, Run, ServerResult
from httpmark.harness.model.run_folder import EVIDENCE, REPORT, RESULT, read
from httpmark.harness.model.verdicts import Compliance, SuiteResult
from httpmark.harness.report import html_page


def draw(path: Path, run: Run, *, out: Path | None = None) -> Path:
    """Draw the report of a run folder from what is stored in it.

    :raises Unusable: the page could not be written.
    """
    target = out or path / REPORT
    stored = path / EVIDENCE
    with contextlib.ExitStack() as stack:
        evidence = stack.enter_context(Evidence(stored, masked=True)) if stored.is_file() else None
        page = html_page.render(run, evidence)
    try:
        with undisturbed():
            target.write_text(page, "utf-8")
    except OSError as error:
        raise not_written(target, error) from None
    return target


def rejudge(path: Path, *, from_evidence: bool = False) -> Run:
    """Judge a stored run again, with the catalogue as it is now.

    Of a run that was killed, all that its evidence holds is judged, with or without a result.

    :param from_evidence: look at no result, even where there is one.
    :raises HarnessError: the folder holds no run or no evidence.
    :raises Unusable: one of them is damaged.
    """
    known = loading.load()
    has_result = (path / RESULT).exists() or not (path / EVIDENCE).is_file()
    run = read(path) if has_result and not from_evidence else None
    with Evidence(path / EVIDENCE) as evidence:
        evidence.must_be_whole()
        if run is None or run.finished is None:
            run = killed_runs.completed(
                run or killed_runs.without_result(path, known), evidence, known
            )
        judged = []
        for entry in run.servers:
            suites = {
                suite: _rejudged(known, suite, entry, evidence) for suite in entry.compliance.suites
            }
            judged.append(msgspec.structs.replace(entry, compliance=Compliance(suites)))
    made = ranked(
        msgspec.structs.replace(
            run, servers=tuple(judged), catalogue_version=known.version, conclusion=None
        )
    )
    return msgspec.structs.replace(made, conclusion=_concluded(made, run.conclusion, known))


def _concluded(
    run: Run, before: Conclusion | None, known: catalogue.Catalogue
) -> Conclusion | None:
    """What the gate makes of a check that is judged again; a baseline excuses what it excused."""
    if before is None:
        return None
    found = findings.findings(run, families=known.families)
    found = conclusion.as_concluded(found, before)
    return conclusion.conclusion(run, found, conclusion.exit_code(run, found))


def _rejudged(
    known: catalogue.Catalogue, suite: str, entry: ServerResult, evidence: Evidence
) -> SuiteResult:
    """One suite again, by its ruleset. A server that died in it still has no score."""
    before = entry.compliance.suites[suite]
    scored = msgspec.structs.replace(
        suite_results.score_suite(
            known, suite, entry.name, evidence, ruleset=before.ruleset or "rfc"
        ),
        wall_seconds=before.wall_seconds,
        probe_cpu_seconds=before.probe_cpu_seconds,
        server_cpu_seconds=before.server_cpu_seconds,
    )
    if entry.died and before.reason == f"not scored: {entry.died}":
        return msgspec.structs.replace(scored, score_percent=None, reason=before.reason)
    return scored


def ranked(run: Run) -> Run:
    """Rank servers by cost per profile: only those without a failed MUST, by disjoint intervals."""
    excluded = {}
    for entry in run.servers:
        if entry.control:
            excluded[entry.name] = "a control: measured, not ranked"
        suites = entry.compliance.suites
        if failed := sum((scored.must or {}).get("failed", 0) for scored in suites.values()):
            musts = "MUST" if failed == 1 else "MUSTs"
            excluded[entry.name] = f"not ranked: {failed} {musts} failed"
        for suite, scored in suites.items():
            controls = scored.controls
            # In the published corpus, only the controls show that a server works. Other suites may
            # have no controls.
            wanted = scored.must is None
            if controls is None or controls.failed or (wanted and not controls.passed):
                excluded[entry.name] = f"not ranked: positive controls of {suite} not passed"
        if entry.crashes:
            excluded[entry.name] = "not ranked: it died or hung of a request"
        if entry.died:
            excluded[entry.name] = "not ranked: it died"
    by_key: dict[tuple[str, str], dict[str, LoadResult]] = {}
    for entry in run.servers:
        for result in entry.load:
            by_key.setdefault((result.profile, result.engine), {})[entry.name] = result
    ranked = {
        key: ranking.with_ranks(results, excluded=excluded) for key, results in by_key.items()
    }
    return msgspec.structs.replace(
        run,
        servers=tuple(
            msgspec.structs.replace(
                entry,
                load=tuple(ranked[r.profile, r.engine][entry.name] for r in entry.load),
            )
            for entry in run.servers
        ),
    )
