"""One check of one target: suites are fired and scored, and the result is written."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

import msgspec

from httpmark.harness.catalogue import delivery_modes, loading
from httpmark.harness.catalogue.vocabulary import FORWARDING
from httpmark.harness.command import named_target, rerun, stored_runs, suite_groups
from httpmark.harness.command.again_progress import AgainProgress
from httpmark.harness.command.check_options import Options
from httpmark.harness.command.cut_progress import CutProgress
from httpmark.harness.firing import conformance, crash_recovery, shrinking, targets
from httpmark.harness.http import address, masking
from httpmark.harness.judging import quick_look, second_process, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.score_text import score_text
from httpmark.harness.model import progress, run_folder
from httpmark.harness.model.cases import Family
from httpmark.harness.model.errors import (
    HarnessError,
    NoRoom,
    NothingSelected,
    ServerDied,
    Unusable,
)
from httpmark.harness.model.progress import undisturbed
from httpmark.harness.model.run import SCHEMA_VERSION, Conclusion, Run, ServerResult
from httpmark.harness.model.verdicts import Compliance, SuiteResult
from httpmark.harness.servers import machine, manifests, sockets
from httpmark.harness.servers.restartable import Restartable

_NO_FORWARDING = (
    "a check cannot ask the suite 'forwarding' of a target: what reaches the origin is seen only "
    "behind a proxy that httpmark starts; use 'httpmark run --suite forwarding --server NAME'"
)


class _Progress(msgspec.Struct):
    """How far a check has come; all of it goes into the result, whatever stops the check."""

    started: str
    target: str  # its name
    advice: str  # what to add, if the plain request is not accepted
    suites: dict[str, SuiteResult] = {}
    thinned: dict[str, int] = {}  # suite_results.Fired.thinned
    died: str | None = None
    interrupted: bool = True  # until the end is reached


class Checker:
    """Checks one target; ``last`` is the result as far as it came."""

    def __init__(self, options: Options, events: progress.Events) -> None:
        self.options = options
        self.events = events
        self.catalogue = loading.load()
        for suite in options.suites:
            if suite == FORWARDING:
                raise HarnessError(_NO_FORWARDING)
            self.catalogue.suite(suite)
        if not options.suites:
            raise NothingSelected("nothing selected: name a suite")
        self.manifest = manifests.declared(options.manifest) if options.manifest else None
        wanted = options.cases
        if options.rerun is not None:
            _need_fields(options.rerun, options.header)
            wanted = (*wanted, *rerun.failures(options.rerun, self.catalogue))
        if options.ruleset == "realistic" and not wanted:
            wanted = ("realistic",)  # nothing else is judged by it
        chosen = self.catalogue.select(wanted, options.exclude)
        self.selected = self.catalogue.with_controls(chosen)
        suites = {self.catalogue.families[name].suite for name in chosen}
        self.suites = tuple(suite for suite in options.suites if suite in suites)
        if not self.suites:
            raise NothingSelected("nothing selected: these suites have no such case")
        self.server = named_target.served(options.serve, self.manifest) if options.serve else None
        if self.server is None:
            self.address = address.read(options.target, allow_remote=options.allow_remote)
        else:
            port = sockets.free_port()
            self.address = address.loopback(port)
        named_target.path_of(options, self.address)  # before anything is started
        self.recovery = crash_recovery.Recovery(self.catalogue, quick=options.quick)
        self.last: Run | None = None
        self.folder = run_folder.folder(options.out)

    def check(self) -> Run:
        """Fire all suites at the target.

        A target that dies or hangs of a request is a result like any other.

        :raises Unusable: nothing answers there; ``last`` holds what is known.
        """
        with run_folder.held(self.folder):
            return self._check_served()

    def _check_served(self) -> Run:
        served = self.server
        if served is None:
            return self._check(None)
        running = named_target.started(served, self.address, say=self.events.say)
        try:
            return self._check(running)
        finally:
            running.stop()

    def _check(self, server: Restartable | None) -> Run:
        with second_process.SecondProcess() as second:
            # It gets ready while the target is asked what it can do, which is mostly waiting.
            second.start(self._size(self.suites))
            so_far = _Progress(run_folder.now(), "target", "")
            try:
                target = named_target.asked_at(
                    self.options, self.address, self.manifest,
                    server=server, survived=self.recovery.survived,
                )  # fmt: skip
            except ServerDied as error:
                so_far.died = masking.text(str(error))
                return self._written(so_far)
            so_far.advice = named_target.advice(target)
            try:
                for group in suite_groups.groups(self.suites):
                    self._fire(group, target, so_far, second)
                if not self.options.quick:
                    self._shrink(target, so_far.suites)
                so_far.interrupted = False
            except ServerDied as error:
                so_far.died = masking.text(str(error))
            finally:
                last = self._written(so_far)
            return last

    def _written(self, so_far: _Progress) -> Run:
        """The result as far as it came, written into the run folder."""
        with undisturbed():
            self.last = self._result(so_far)
            run_folder.write(self.last, self.folder)
            return self.last

    def _fire(
        self,
        group: tuple[str, ...],
        target: targets.Target,
        so_far: _Progress,
        second: second_process.SecondProcess,
    ) -> None:
        """Fire some suites in one go, and score them."""
        fired = suite_results.Fired()
        task = f"{', '.join(group)}: {self.options.target}"
        cuts, again = CutProgress(self.events, task), AgainProgress(self.events, task)
        file = self.folder / run_folder.EVIDENCE
        with Evidence(file, create=not so_far.suites) as evidence:
            self.events.task(task, self._size(group))
            try:
                conformance.fire(
                    self.catalogue,
                    group[0],
                    target,
                    evidence,
                    fired,
                    along=group[1:],
                    progress=lambda by: self.events.advance(task, by),
                    selected=self._is_selected,
                    quick=self.options.quick,
                    second=second,
                    deliveries=delivery_modes.MODES if self.options.full else (),
                    # Who names cases wants them all.
                    whole=self.options.full or bool(self.options.cases),
                    cutting=cuts.begin,
                    again=again.begin,
                    recovery=self.recovery,
                )
            except ServerDied as error:
                so_far.died = masking.text(str(error))
                raise
            except NoRoom:
                raise
            except Unusable as error:
                so_far.died = masking.text(str(error))
                raise Unusable(f"{self.options.target} {error}") from None
            finally:
                so_far.thinned |= fired.thinned
                for suite in group:
                    so_far.suites[suite] = self._scored(suite, so_far, evidence, fired)
        for suite in group:
            cuts.done(so_far.suites[suite].deliveries)
        again.done()
        self.events.done(task, _scores({suite: so_far.suites[suite] for suite in group}))

    def _scored(
        self, suite: str, so_far: _Progress, evidence: Evidence, fired: suite_results.Fired
    ) -> SuiteResult:
        """The score of a suite; if it has none, the reason with what to do."""
        scored = suite_results.score_suite(
            self.catalogue, suite, so_far.target, evidence, fired, ruleset=self.options.ruleset
        )
        if so_far.died:
            return msgspec.structs.replace(
                scored, score_percent=None, reason=f"not scored: {so_far.died}"
            )
        if so_far.advice and scored.reason:
            return msgspec.structs.replace(scored, reason=f"{scored.reason}: {so_far.advice}")
        return scored

    def _result(self, so_far: _Progress) -> Run:
        server = ServerResult(
            name=so_far.target,
            title=self.options.target,
            language="",
            version=None,
            version_reason="a target is not asked for its version",
            runtime="address",
            died=so_far.died,
            crashes=tuple(self.recovery.crashes),
            compliance=Compliance(so_far.suites),
            memory_reason="the processes of a target are not known",
            again=self.options.again,
        )
        return Run(
            schema_version=SCHEMA_VERSION,
            catalogue_version=self.catalogue.version,
            harness_version=machine.version(),
            id=secrets.token_hex(3),
            started=so_far.started,
            finished=run_folder.now(),
            interrupted=so_far.interrupted and so_far.died is None,
            quick=self.options.quick,
            seed=0,
            suites=self.suites,
            profiles=(),
            environment=machine.capture(),
            servers=(server,),
            notes=self._left_out(so_far),
        )

    def _left_out(self, so_far: _Progress) -> tuple[str, ...]:
        """What is not asked, in one line."""
        if not self.options.quick:
            return (quick_look.thinned(so_far.thinned),) if so_far.thinned else ()
        requests, programs = quick_look.left_out(self.catalogue, self.suites, self._is_selected)
        counted = [
            f"{number:,} {what}{'' if number == 1 else 's'}"
            for number, what in ((requests, "generated request"), (programs, "program"))
            if number
        ]
        told = f"--quick leaves out {' and '.join(counted)}; a check without it asks them, too"
        return (told,) if counted else ()

    def _is_selected(self, family: Family) -> bool:
        return family.id in self.selected

    def _size(self, suites: tuple[str, ...]) -> int:
        """How many cases of these suites are sent."""
        return quick_look.size(self.catalogue, suites, self._is_selected, quick=self.options.quick)

    def _shrink(self, target: targets.Target, suites: dict[str, SuiteResult]) -> None:
        """Make the failing requests shorter. This comes last, so that a target that does not
        survive it has its verdicts."""
        end = time.monotonic() + shrinking.BUDGET_S
        with Evidence(self.folder / run_folder.EVIDENCE) as evidence:
            for suite in suites.values():
                shrinking.of_suite(
                    self.catalogue, suite, target, evidence, seconds=end - time.monotonic()
                )
            self.recovery.survived(target, lambda asked: None, evidence)

    def conclude(self, conclusion: Conclusion) -> Run:
        """Keep what the gate makes of the result beside it, and draw the page."""
        assert self.last is not None, "nothing was checked"
        self.last = msgspec.structs.replace(self.last, conclusion=conclusion)
        run_folder.write(self.last, self.folder)
        stored_runs.draw(self.folder, run_folder.read(self.folder))
        return self.last


def _need_fields(path: Path, header: tuple[str, ...]) -> None:
    """See to it that the secrets of an earlier run are given again: it holds only their names.

    :raises HarnessError: one is not.
    """
    given = {line.partition(":")[0].lower() for line in header}
    for name in rerun.masked_fields(path):
        if name.lower() not in given:
            raise HarnessError(
                f"{path}: this run was made with the field {name}, and its value is not stored: "
                f"give it again, as --header '{name}: VALUE'"
            )


def _scores(suites: dict[str, SuiteResult]) -> str:
    """The scores of suites that were fired together, in one line."""
    return "; ".join(
        (f"{suite} " if len(suites) > 1 else "") + (scored.reason or score_in_words(scored))
        for suite, scored in suites.items()
    )


def score_in_words(scored: SuiteResult) -> str:
    """A suite's score, and of how many requirements."""
    must = scored.must
    if scored.score_percent is None:
        idle = (must or {}).get("not_applicable", 0)
        return f"none of {idle} requirements applies" if idle else "no requirement was asked"
    if must is None:
        return f"{score_text(scored.score_percent)} %"
    asked = sum(must.get(word, 0) for word in ("passed", "failed", "warned", "void", "unstable"))
    return (
        f"{score_text(scored.score_percent)} % of {asked} requirements; "
        f"{must.get('not_applicable', 0)} more do not apply"
    )
