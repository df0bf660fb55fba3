"""Two run folders compared by their conformance, and by their speed where both measured it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.command import compare_runs, outputs
from httpmark.harness.gate import findings, pull_request, run_changes
from httpmark.harness.gate.run_changes import Change, Changes, Kind
from httpmark.harness.load import comparison
from httpmark.harness.load.paired_verdicts import Gate
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import HarnessError, NothingSelected, Unusable
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.report import changes_text, comparison_text, failure_examples


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs compared: their conformance, and their speed where both measured one."""

    base: str
    head: str
    run: Run  # that of head
    conformance: Changes
    speed: comparison.Comparison | None

    @property
    def verdict(self) -> Gate:
        """The worse one of conformance and speed."""
        words = {self.speed.verdict} if self.speed is not None else set()
        if self.conformance.is_broken or Gate.FAIL in words:
            return Gate.FAIL
        if self.conformance.is_undecided or Gate.INCONCLUSIVE in words:
            return Gate.INCONCLUSIVE
        return Gate.PASS

    def exit_code(self, *, inconclusive: str) -> int:
        """The exit code (docs/contract.md)."""
        if self.verdict is not Gate.FAIL and self.speed is not None and self.speed.is_unmeasured:
            return Unusable.exit_code
        undecided = 4 if inconclusive == "fail" else 0
        return {Gate.PASS: 0, Gate.FAIL: 1, Gate.INCONCLUSIVE: undecided}[self.verdict]

    def as_json(self) -> dict[str, Any]:
        """The same keys as a comparison of speed has, and ``conformance``."""
        found = self.conformance
        speed = self.speed or comparison.Comparison(
            base=self.base, head=self.head, how="two runs", verdict=self.verdict, lines=(),
            notes=(), differences=(), seed=0,
        )  # fmt: skip
        (failed_before, asked_before), (failed, asked) = found.requirements
        return {
            **msgspec.to_builtins(speed),
            "verdict": self.verdict.value,
            "conformance": {
                **{_key(kind): found.of(kind) for kind in Kind},
                "requirements": {
                    "base": {"failed": failed_before, "asked": asked_before},
                    "head": {"failed": failed, "asked": asked},
                },
                "differs": found.differs,
                "notes": found.notes,
            },
        }

    def lines(self) -> list[str]:
        """The comparison for a terminal."""
        told = changes_text.lines(self.conformance, base=self.base, head=self.head)
        if self.speed is not None:
            told += ["", *comparison_text.lines(self.speed)[:-2]]  # its verdict is part of ours
        return [*told, "", f"verdict: {self.verdict}"]

    def markdown(self) -> str:
        """The comparison for a pull request."""
        told = pull_request.text(self.conformance, base=self.base, head=self.head)
        if self.speed is None:
            return told
        speed = outputs.compared(self.speed, inconclusive="warn")
        return f"{told}\n{outputs.render('summary', speed)}"

    def gated(self, *, inconclusive: str) -> outputs.Gated:
        """The comparison as findings, for the formats that a CI job reads."""
        found = [_finding(change) for change in self.conformance.changes]
        if self.speed is not None:
            found += outputs.compared(self.speed, inconclusive=inconclusive).found
        return outputs.Gated(
            run=msgspec.structs.replace(self.run, servers=()),
            found=tuple(found),
            code=self.exit_code(inconclusive=inconclusive),
        )


def _key(kind: Kind) -> str:
    return kind.name.lower()


_STATUS = {
    Kind.NEWLY_BROKEN: findings.Status.FAILED,
    Kind.STILL_FAILING: findings.Status.EXPECTED,
    Kind.FIRST_ASKED: findings.Status.EXPECTED,
    Kind.UNDECIDED: findings.Status.UNDECIDED,
    Kind.NO_LONGER_ASKED: findings.Status.NOT_APPLICABLE,
    Kind.NEWLY_WARNED: findings.Status.WARNED,
    Kind.NEWLY_MENDED: findings.Status.PASSED,
}


def _finding(change: Change) -> findings.Finding:
    return findings.Finding(
        server=change.server,
        suite=change.suite,
        id=change.id,
        title=change.title,
        level=change.level,
        clause=change.clause,
        status=_STATUS[change.kind],
        message=f"{change.kind.value}: {change.base} in base, {change.head} in head; "
        f"{change.message}",
        reproducers=change.reproducers,
    )


def folders(options: comparison.Options) -> Compared | comparison.Comparison:
    """Compare two run folders by all that both hold; with profiles named, by their speed alone.

    :raises HarnessError: only speed can be compared, and their environments differ.
    :raises NothingSelected: the two have nothing in common.
    """
    base, head = (run_folder.read(Path(folder)) for folder in (options.base, options.head))
    pairs = {} if options.profiles else _pairs(base, head)
    measured = all(_measured(run) for run in (base, head))
    if not pairs and (measured or not base.suites or not head.suites):
        return compare_runs.folders(options)
    if not pairs:
        raise NothingSelected("nothing to compare: the two runs have no server in common")
    speed, note = None, []
    if measured:
        try:
            speed = compare_runs.folders(options)
        except NothingSelected:
            pass  # other servers or other loads
        except HarnessError as error:
            note = [f"speed is not compared: {error}"]
    changes = run_changes.changes(
        _side(options.base, base),
        _side(options.head, head),
        pairs=pairs,
        differs=tuple(_differences(base, head, pairs)),
        notes=(*_notes(base, head, pairs), *note),
    )
    return Compared(
        base=options.base, head=options.head, run=head, conformance=changes, speed=speed
    )


def _side(folder: str, run: Run) -> run_changes.Side:
    rulesets = {suite.ruleset for one in run.servers for suite in one.compliance.suites.values()}
    gate = findings.Gate(ruleset="seed" if "seed" in rulesets else "rfc")
    found = findings.findings(run, gate=gate, families=loading.load().families)
    return run_changes.Side(run, failure_examples.of_run(found, Path(folder), run))


def _judged(run: Run) -> dict[str, ServerResult]:
    """The servers whose conformance a run looked at."""
    return {
        server.name: server
        for server in run.servers
        if run.suites and not server.control
    }  # fmt: skip


def _pairs(base: Run, head: Run) -> dict[str, str]:
    """The servers that both runs judged: head's names, with those of base."""
    before, now = _judged(base), _judged(head)
    same = {name: name for name in now if name in before}
    if not same and len(before) == len(now) == 1:
        return {next(iter(now)): next(iter(before))}
    return same


def _measured(run: Run) -> bool:
    return any(server.load or server.memory is not None for server in run.servers)


def _differences(base: Run, head: Run, pairs: dict[str, str]) -> Iterator[str]:
    """Why a verdict may have changed though the server did not."""
    if base.catalogue_version != head.catalogue_version:
        yield (
            f"the catalogues ({base.catalogue_version} and {head.catalogue_version}): a verdict "
            "may have changed because its case did; judge base again with httpmark judge RUN"
        )
    before, now = _judged(base), _judged(head)
    for name, was_called in pairs.items():
        one, other = before[was_called], now[name]
        suites = one.compliance.suites
        for suite, result in other.compliance.suites.items():
            if suite in suites and suites[suite].ruleset != result.ruleset:
                yield f"the rulesets of {suite} ({suites[suite].ruleset} and {result.ruleset})"
        if name != was_called:
            yield f"the names of the servers ({was_called} and {name})"
        if one.again and other.again and (was := _asked(one)) != (is_ := _asked(other)):
            yield f"the options of the checks ({was or 'none'} and {is_ or 'none'})"


def _asked(server: ServerResult) -> str:
    """How a server was asked, without where it stood; a ruleset is told of its suites."""
    words = server.again[2:] if server.again[0] == "--serve" else server.again[1:]
    kept = list(words)
    if "--ruleset" in kept:
        at = kept.index("--ruleset")
        del kept[at : at + 2]
    return " ".join(kept)


def _notes(base: Run, head: Run, pairs: dict[str, str]) -> Iterator[str]:
    if base.quick != head.quick:
        quick, other = ("base", "head") if base.quick else ("head", "base")
        yield f"{quick} was a quick look and {other} was not: only what both asked is compared"
    for name, run in (("base", base), ("head", head)):
        if run.interrupted:
            yield f"{name} was interrupted: only what it judged is compared"
    for name in _judged(base).keys() - set(pairs.values()):
        yield f"{name} is only in base: it is not compared"
    for name in _judged(head).keys() - set(pairs):
        yield f"{name} is only in head: it is not compared"
