"""One suite fired at one server of a run, and scored."""

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
from httpmark.harness.firing import conformance, crash_recovery, shrinking, targets
from httpmark.harness.firing.case_stream import Progress
from httpmark.harness.judging import quick_look, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.score_text import score_text
from httpmark.harness.model.errors import ServerDied
from httpmark.harness.model.verdicts import SuiteResult
from httpmark.harness.servers import cpu_time, memory_use, running
from httpmark.harness.servers.restartable import Restartable


class _OutOfTime(Exception):
    """A suite took longer at a server than it may."""


QUICK_WAIT_S = 20.0
"""A quick run waits for no declared timeout that is longer: one case would take minutes."""


def too_long(timeouts: Mapping[str, float | None]) -> list[str]:
    """The declared timeouts that a quick run does not wait for, by name."""
    return sorted(name for name, value in timeouts.items() if value and value > QUICK_WAIT_S)


class _Clock:
    """What is left of the time that a suite may take at one server."""

    def __init__(self, minutes: float) -> None:
        self._end_s = time.monotonic() + minutes * 60
        self.told = f"it took longer than the {minutes:g} minutes of --suite-minutes"

    def watched(self, progress: Progress) -> Progress:
        """Progress that raises :class:`_OutOfTime` where there is no time left."""

        def advance(by: int) -> None:
            if time.monotonic() > self._end_s:
                raise _OutOfTime
            progress(by)

        return advance


class Suites:
    """Fires suites at the servers of a run; what is found goes into their entries."""

    def __init__(
        self, known: catalogue.Catalogue, options: Options, servers: Servers, log: RunLog
    ) -> None:
        self._known = known
        self._options = options
        self._servers = servers
        self._log = log

    def fire(self, entry: Entry, suite: str, evidence: Evidence) -> None:
        """Start a server, fire a suite at it and score it. A server that dies has no score."""
        name = entry.server.name
        task = f"{suite}: {name}"
        fired, cuts = suite_results.Fired(), CutProgress(self._log.events, task)
        total = quick_look.size(self._known, (suite,), lambda _: True, quick=self._options.quick)
        self._log.events.task(task, total)
        cpu_ns: int | None = None
        result: SuiteResult | None = None
        died: str | None = None
        recovery = crash_recovery.Recovery(self._known, quick=self._options.quick)
        clock = _Clock(self._options.suite_minutes)
        try:
            with self._servers.up_for_suites(entry) as one:
                target = self.target(entry, one)
                before = cpu_time.cpu_ns(one.now.pids())
                try:
                    self._fire(suite, target, evidence, fired, cuts, recovery, clock)
                finally:
                    after = cpu_time.cpu_ns(one.now.pids())
                    is_one = one.starts == 1  # CPU time of an earlier process is lost
                    if is_one and before is not None and after is not None:
                        cpu_ns = after - before
                    _remember_memory(entry, one.now)
                result = suite_results.score_suite(self._known, suite, name, evidence, fired)
                if not self._options.quick:
                    # The suite is judged and measured: what the server does now changes nothing.
                    shrinking.of_suite(
                        self._known, result, target, evidence, seconds=shrinking.BUDGET_S
                    )
                    recovery.survived(target, lambda asked: None, evidence)
        except ServerDied as error:
            died = entry.died = str(error)
            self._log.say(f"{name}: {error}")
        except _OutOfTime:
            died = clock.told
            self._log.note(f"{suite} at {name} was ended: {died}")
        finally:
            entry.crashes.extend(recovery.crashes)
            if result is None:
                result = suite_results.score_suite(self._known, suite, name, evidence, fired)
            entry.suites[suite] = _of_entry(result, died, cpu_ns)
        cuts.done(entry.suites[suite].deliveries)
        self._log.done(task, _in_words(entry.suites[suite]))

    def _fire(
        self,
        suite: str,
        target: targets.Target,
        evidence: Evidence,
        fired: suite_results.Fired,
        cuts: CutProgress,
        recovery: crash_recovery.Recovery,
        clock: _Clock,
    ) -> None:
        task = f"{suite}: {target.name}"
        again = AgainProgress(self._log.events, task)
        conformance.fire(
            self._known,
            suite,
            target,
            evidence,
            fired,
            progress=clock.watched(lambda by: self._log.events.advance(task, by)),
            quick=self._options.quick,
            deliveries=delivery_modes.MODES if self._options.full else (),
            cutting=lambda total: clock.watched(cuts.begin(total)),
            again=lambda total: clock.watched(again.begin(total)),
            recovery=recovery,
        )
        again.done()

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


def _in_words(scored: SuiteResult) -> str:
    if scored.score_percent is None:
        return scored.reason or "not scored"
    return f"{score_text(scored.score_percent)} % in {scored.wall_seconds:.1f} s"
