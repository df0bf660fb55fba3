"""Suites at the servers of a run: each has its time, and one server never stops the others."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.command import run_options, run_servers, run_session, run_suites
from httpmark.harness.command.run_log import RunLog
from httpmark.harness.model.servers import Conformance
from httpmark.harness.servers import brought, manifests
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.silent_events import SilentEvents


def sleepy(connection: socket.socket) -> None:
    while peers.head(connection):
        time.sleep(0.05)
        connection.sendall(peers.OK)


def test_a_quick_run_waits_for_no_long_timeout(tmp_path: Path) -> None:
    timeouts = {"idle_s": 75.0, "head_s": 5.0, "content_s": 0.0, "write_s": None}
    assert run_suites.too_long(timeouts) == ["idle_s"]
    server = msgspec.structs.replace(
        manifests.server("nginx"), timeouts=timeouts,
        conformance=Conformance(timeouts={"head_s": 60.0}),
    )  # fmt: skip
    entry = run_servers.Entry(server=server, path=None)
    one: Any = SimpleNamespace(now=SimpleNamespace(port=1), death=lambda: None)
    for quick, known in ((True, {"content_s", "write_s"}), (False, set(timeouts))):
        options = run_options.Options(suites=("rfc",), profiles=(), quick=quick)
        log = RunLog(SilentEvents(), tmp_path)
        servers: Any = None
        suites = run_suites.Suites(loading.load(), options, servers, log)
        assert set(suites.target(entry, one).timeouts) == known
        told = [note for note in log.notes if "so what needs head_s, idle_s is not asked" in note]
        assert len(told) == quick


@pytest.mark.process
def test_a_suite_that_takes_too_long_ends_and_the_others_go_on(tmp_path: Path) -> None:
    with peers.peer(sleepy) as slow, peers.peer(peers.naive) as other:
        field = brought.Field()
        words = [
            brought.read(f"{name}=http://127.0.0.1:{peer.port}/", tmp_path)
            for name, peer in (("slow", slow), ("other", other))
        ]
        options = run_options.Options(
            suites=("rfc", "smuggling"), profiles=(), quick=True, seed=1, out=tmp_path / "r",
            servers=tuple(field.take(word) for word in words if word), field=field,
            suite_minutes=0.1,
        )  # fmt: skip
        run = run_session.Runner(options, SilentEvents()).run()
    first, second = run.servers
    why = "it took longer than the 0.1 minutes of --suite-minutes"
    for suite in first.compliance.suites.values():
        assert suite.score_percent is None
        assert suite.reason == f"not scored: {why}"
        assert suite.wall_seconds > 1.5 * 0.1 * 60, "two that go together have the time of both"
    assert first.died is None
    assert f"rfc and smuggling at slow ended early: {why}" in run.notes
    assert set(second.compliance.suites) == {"rfc", "smuggling"}
    assert all(suite.requests for suite in second.compliance.suites.values())
    # They were fired in one go, so that their cases wait at the same time.
    assert len({suite.wall_seconds for suite in second.compliance.suites.values()}) == 1
