"""The result of a run that was killed before it wrote one: made of what its evidence holds."""

from __future__ import annotations

import datetime
import secrets
from pathlib import Path

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.run import SCHEMA_VERSION, Run, ServerResult
from httpmark.harness.model.run_folder import EVIDENCE
from httpmark.harness.model.verdicts import Compliance, SuiteResult
from httpmark.harness.servers import machine

_NOTE = "the run was killed; this result was made of its evidence, and the rest was not asked"
_UNKNOWN = "the run was killed before it was written"


def without_result(path: Path, known: Catalogue) -> Run:
    """A run that wrote no result: what its evidence does not say is not known."""
    changed = datetime.datetime.fromtimestamp((path / EVIDENCE).stat().st_mtime, datetime.UTC)
    return Run(
        schema_version=SCHEMA_VERSION,
        catalogue_version=known.version,
        harness_version=machine.version(),
        id=secrets.token_hex(3),
        started=changed.strftime("%Y-%m-%dT%H:%M:%SZ"),
        finished=None,
        interrupted=True,
        quick=False,
        seed=0,
        suites=(),
        profiles=(),
        environment={},
        servers=(),
    )


def completed(run: Run, evidence: Evidence, known: Catalogue) -> Run:
    """A run with each server and suite that its evidence has exchanges of, yet to be judged."""
    entries = {entry.name: entry for entry in run.servers}
    for name in evidence.servers():
        entry = entries.get(name) or _unknown(name)
        suites = dict.fromkeys(
            known.families[family].suite
            for family in evidence.families(name)
            if family in known.families
        )
        found = {suite: SuiteResult(score_percent=None, reason=_UNKNOWN) for suite in suites}
        entries[name] = msgspec.structs.replace(
            entry, compliance=Compliance(found | dict(entry.compliance.suites))
        )
    judged = [suite for entry in entries.values() for suite in entry.compliance.suites]
    return msgspec.structs.replace(
        run,
        interrupted=True,
        suites=tuple(dict.fromkeys((*run.suites, *judged))),
        servers=tuple(entries.values()),
        notes=tuple(dict.fromkeys((*run.notes, _NOTE))),
    )


def _unknown(name: str) -> ServerResult:
    """A server of which only its name is known."""
    return ServerResult(
        name=name,
        title=name,
        language="",
        version=None,
        version_reason=_UNKNOWN,
        runtime=None,
        memory_reason=_UNKNOWN,
    )
