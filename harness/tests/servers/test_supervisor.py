"""The supervisor: a server lives as long as its harness and no longer."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from httpmark.harness.servers import (
    running,
    sockets,
)
from httpmark.harness.tests.shared.tiny_server import (
    GONE_DEADLINE_S,
    helper,
    lives,
    start,
    tiny,
    until,
)

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.mark.process
def test_a_server_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started: list[running.Running] = []
    thread = threading.Thread(target=lambda: started.append(start(tiny(tmp_path))))
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert started[0].alive()
    started[0].stop()


@pytest.mark.process
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_dies_with_its_harness(tmp_path: Path, how: signal.Signals) -> None:
    child, pids, port = helper(tmp_path, tiny(tmp_path), how="process")
    assert len(pids) == 2
    assert all(map(lives, pids))
    child.send_signal(how)
    child.wait(timeout=GONE_DEADLINE_S)
    assert until(lambda: not any(map(lives, pids)))
    assert until(lambda: not sockets.port_taken("127.0.0.1", port))


@pytest.mark.process
def test_a_server_whose_supervisor_is_killed_can_still_be_stopped(tmp_path: Path) -> None:
    one = start(tiny(tmp_path), workers=3)
    pids = one.pids()
    parent = int(Path(f"/proc/{min(pids)}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)
    assert until(lambda: not one.alive())
    assert "supervisor was killed" in one.exit_reason()
    assert until(lambda: not lives(min(pids)))  # the kernel sees to the first process
    one.stop()
    assert until(lambda: not any(map(lives, pids)))
