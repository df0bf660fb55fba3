"""Suites fired at one server of a run, and scored."""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from httpmark.harness.catalogue import catalogue, delivery_modes
from httpmark.harness.command.again_progress import AgainProgress
from httpmark.harness.command.cut_progress import CutProgress
from httpmark.harness.command.run_log import RunLog
from httpmark.harness.command.run_options import Options
from httpmark.harness.command.run_servers import ADDRESS, Entry, Servers
from httpmark.harness.command.suite_groups import Group
from httpmark.harness.firing import conformance, crash_recovery, shrinking, targets
from httpmark.harness.firing.case_stream import Progress
from httpmark.harness.judging import quick_look, second_process, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.score_text import score_text
from httpmark.harness.model.errors import ServerDied
from httpmark.harness.model.verdicts import SuiteResult
from httpmark.harness.servers import cpu_time, memory_use, running
from httpmark.harness.servers.restartable import Restartable


class OutOfTime(Exception):
    """A suite took longer at a server than it may."""


QUICK_WAIT_S = 20.0
"""A quick run waits for no declared timeout that is longer: one case would take minutes."""


def too_long(timeouts: Mapping[str, float | None]) -> list[str]:
    """The declared timeouts that a quick run does not wait for, by name."""
    return sorted(name for name, value in timeouts.items() if value and value > QUICK_WAIT_S)


class Clock:
    """What is left of the time that suites may take at one server."""

    def __init__(self, minutes: float, suites: int) -> None:
        self._end_s = time.monotonic() + minutes * suites * 60
        self.told = f"it took longer than the {minutes:g} minutes of --suite-minutes"

    def watched(self, progress: Progress) -> Progress:
        """Progress that raises :class:`OutOfTime` where there is no time left."""

        def advance(by: int) -> None:
            if time.monotonic() > self._end_s:
                raise OutOfTime
            progress(by)

        return advance


class _Found(msgspec.Struct):
    """What is known of suites that were fired in one go."""

    results: dict[str, SuiteResult] = {}
    cpu_ns: int | None = None
    died: str | None = None


class Suites:
    """Fires suites at the servers of a run; what is found goes into their entries."""

    def __init__(
        self, known: catalogue.Catalogue, options: Options, servers: Servers, log: RunLog
    ) -> None:
        self._known = known
        self._options = options
        self._servers = servers
        self._log = log

    def fire(
        self,
        entry: Entry,
        group: Group,
        evidence: Evidence,
        second: second_process.SecondProcess,
    ) -> None:
        """Start a server, fire suites at it in one go and score them. A server that dies has no
        score."""
        name, quick = entry.server.name, self._options.quick
        task = f"{', '.join(group)}: {name}"
        fired, cuts = suite_results.Fired(), CutProgress(self._log.events, task)
        again = AgainProgress(self._log.events, task)
        total = quick_look.size(self._known, group, lambda _: True, quick=quick)
        self._log.events.task(task, total)
        found = _Found()
        recovery = crash_recovery.Recovery(self._known, quick=quick)
        clock = Clock(self._options.suite_minutes, len(group))
        try:
            with self._servers.up_for_suites(entry) as one:
                target = self.target(entry, one)
                before = cpu_time.cpu_ns(one.now.pids())
                try:
                    conformance.fire(
                        self._known, group[0], target, evidence, fired,
                        along=group[1:],
                        progress=clock.watched(lambda by: self._log.events.advance(task, by)),
                        quick=quick,
                        second=second,
                        deliveries=delivery_modes.MODES if self._options.full else (),
                        whole=self._options.full,
                        cutting=lambda total: clock.watched(cuts.begin(total)),
                        again=lambda total: clock.watched(again.begin(total)),
                        recovery=recovery,
                    )  # fmt: skip
                    again.done()
                    if fired.thinned:
                        self._log.note(f"{name}: {quick_look.thinned(fired.thinned)}")
                finally:
                    after = cpu_time.cpu_ns(one.now.pids())
                    is_one = one.starts == 1  # CPU time of an earlier process is lost
                    if is_one and before is not None and after is not None:
                        found.cpu_ns = after - before
                    _remember_memory(entry, one.now)
                for suite in group:
                    found.results[suite] = self._scored(suite, name, evidence, fired)
                if not quick:
                    self._shrink(found.results, target, evidence, recovery)
        except ServerDied as error:
            found.died = entry.died = str(error)
            self._log.say(f"{name}: {error}")
        except OutOfTime:
            found.died = clock.told
            self._log.note(f"{' and '.join(group)} at {name} ended early: {found.died}")
        finally:
            entry.crashes.extend(recovery.crashes)
            for suite in group:
                result = found.results.get(suite) or self._scored(suite, name, evidence, fired)
                entry.suites[suite] = _of_entry(result, found.died, found.cpu_ns)
        for suite in group:
            cuts.done(entry.suites[suite].deliveries)
        self._log.done(task, _in_words({suite: entry.suites[suite] for suite in group}))

    def _scored(
        self, suite: str, name: str, evidence: Evidence, fired: suite_results.Fired
    ) -> SuiteResult:
        return suite_results.score_suite(self._known, suite, name, evidence, fired)

    def _shrink(
        self,
        results: Mapping[str, SuiteResult],
        target: targets.Target,
        evidence: Evidence,
        recovery: crash_recovery.Recovery,
    ) -> None:
        """Make failing requests shorter. The suites are judged and measured: what the server does
        now changes nothing."""
        for result in results.values():
            shrinking.of_suite(self._known, result, target, evidence, seconds=shrinking.BUDGET_S)
        recovery.survived(target, lambda asked: None, evidence)

    def target(self, entry: Entry, one: Restartable) -> targets.Target:
        """What suites are fired at: a server that runs, with what its manifest says of it."""
        server, running = entry.server, entry.target
        timeouts = server.timeouts | server.conformance.timeouts
        if self._options.quick and (long := too_long(timeouts)):
            timeouts = {name: value for name, value in timeouts.items() if name not in long}
            self._log.note(
                f"{server.name}: a quick run waits for no timeout above {QUICK_WAIT_S:g} s, so "
                f"what needs {', '.join(long)} is not asked"
            )
        return targets.Target(
            name=server.name,
            address=running.address if running else ADDRESS,
            port=one.now.port,
            host=running.host if running else f"{ADDRESS}:{one.now.port}",
            path=(entry.path if running else None) or server.ready_path,
            post_path=None if server.get_only else "",
            tls=running is not None and running.tls_port is not None,
            capabilities=server.capabilities,
            limits=server.limits | server.conformance.limits,
            timeouts=timeouts,
            answers_1_0_as_1_0=server.answers_1_0_as_1_0,
            death=one.death,
            server=one if running is None else None,
        )


def _remember_memory(entry: Entry, one: running.Running) -> None:
    found = memory_use.memory(one.pids(), cgroup=one.cgroup)
    if found is not None:
        entry.memory.append(found)


def _of_entry(result: SuiteResult, died: str | None, cpu_ns: int | None) -> SuiteResult:
    """A suite's result with the CPU time it took; without a score, if the server died."""
    return msgspec.structs.replace(
        result,
        server_cpu_seconds=cpu_ns / 1e9 if cpu_ns is not None else None,
        reason=f"not scored: {died}" if died else result.reason,
        score_percent=None if died else result.score_percent,
    )


def _in_words(results: Mapping[str, SuiteResult]) -> str:
    """The scores of suites that were fired in one go, and how long they took."""
    scored = [
        (f"{suite} " if len(results) > 1 else "")
        + (
            scored.reason or "not scored"
            if scored.score_percent is None
            else f"{score_text(scored.score_percent)} %"
        )
        for suite, scored in results.items()
    ]
    seconds = max(one.wall_seconds for one in results.values())
    return f"{'; '.join(scored)}, in {seconds:.1f} s"
