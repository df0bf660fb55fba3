"""An interruption is one line from the first moment on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from httpmark.harness.tests.shared import child_process, command_process, peers

_BEGUN = "import sys; from httpmark.harness.command.entry import main; print(flush=True); main()"


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("wait_s", [0.0, 0.1, 0.3, 0.8])
def test_an_interruption_at_any_moment_is_one_line(
    tmp_path: Path, number: signal.Signals, wait_s: float
) -> None:
    with peers.peer(peers.mute) as peer:
        process = child_process.start(
            [sys.executable, "-c", _BEGUN, "check", f"127.0.0.1:{peer.port}"],
            cwd=tmp_path, env=command_process.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        with process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(wait_s)
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    last = command_process.last_line(errors)
    assert last.startswith("httpmark: interrupted")
    assert "Traceback" not in errors
    if "results until then are in" in last:
        assert (tmp_path / last.rpartition(" ")[2] / "result.json").is_file()
    else:
        assert "no run folder was written" in last or "before anything was begun" in last


_LOST = """
import os, signal, time
from httpmark.harness.command import cli
set_timer = signal.setitimer
def set_soon(which, seconds):
    signal.setitimer = set_timer
    set_timer(which, SOON_S or seconds)
    time.sleep(2 * SOON_S)
signal.setitimer = set_soon
def late(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.05)
class Late:
    MOMENT = late
def command(**_):
    MAKES
    time.sleep(50)
cli.httpmark = command
cli.main()
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("moment", "makes", "soon_s"),
    [
        ("__del__", "Late()", "0"),
        # It comes again while Python still tells of the first, where no error is let out either.
        ("__del__", "Late()", "0.01"),
        ("__set_name__", "type('Made', (), {'a': Late()})", "0"),
    ],
)
def test_an_interruption_is_not_lost_where_python_lets_no_such_error_out(
    tmp_path: Path, moment: str, makes: str, soon_s: str
) -> None:
    code = _LOST.replace("MOMENT", moment).replace("MAKES", makes).replace("SOON_S", soon_s)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, timeout=40, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 143, done.stderr
    assert done.stderr == "httpmark: interrupted; no run folder was written\n"
