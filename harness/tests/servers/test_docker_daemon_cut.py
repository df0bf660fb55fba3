"""The Docker daemon goes away in the middle of a run: one line, and what is left goes later.

The daemon of the machine is not touched: a relay stands in front of its socket, and is cut.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from httpmark.harness.model import run_folder
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import containers, docker_daemon
from httpmark.harness.tests.shared import command_process, kill_laws
from httpmark.harness.tests.shared.ports import is_listening, own_port, wait_listening

_DAEMON = "/var/run/docker.sock"
_ENDS_S = 120.0


class Relay:
    """A Unix socket that leads to the daemon's, until it is cut."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ends: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(_DAEMON)
                self._ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(one, other), daemon=True).start()

    def cut(self) -> None:
        """Close it and all that goes through it, as a daemon that is killed does."""
        self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._ends:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _pump(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := one.recv(1 << 16):
            other.sendall(piece)
        other.shutdown(socket.SHUT_WR)


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    made = Relay(tmp_path / "docker.sock")
    yield made
    made.cut()


@pytest.mark.needs("docker")
@pytest.mark.parametrize("after_s", [0.0, 2.0], ids=["at its start", "in its suite"])
def test_a_daemon_that_goes_away_is_said_and_nothing_stays(
    tmp_path: Path, contained: Server, relay: Relay, after_s: float
) -> None:
    port = own_port()
    words = (
        "run", "--runtime", "docker", "--suite", "smuggling", "--server", contained.name, "--out",
        "r", "--port", str(port),
    )  # fmt: skip
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with command_process.start(
        *words, cwd=tmp_path, TMPDIR=str(scratch), DOCKER_HOST=f"unix://{relay.path}"
    ) as process:
        wait_listening(port, until=True, seconds=60)
        time.sleep(after_s)
        relay.cut()
        out, errors = process.communicate(timeout=_ENDS_S)
    assert not any(trace in out + errors for trace in kill_laws.TRACES), errors
    lines = [one for one in errors.splitlines() if one.startswith("httpmark: ")]
    result = json.loads((tmp_path / "r" / run_folder.RESULT).read_text())
    [server] = result["servers"]
    assert not list(scratch.iterdir())
    assert f"container httpmark-{result['id']}-{contained.name} could not be removed" in errors
    if process.returncode == 3:
        [line] = lines
        assert "no Docker daemon answers" in line
    else:  # the server lives on without the daemon, and is not to blame
        assert server["died"] is None
        assert process.returncode == 0, errors
        assert not lines
        assert server["compliance"]["suites"]["smuggling"]["score_percent"] is not None
    # Nobody could remove the container meanwhile: the next run does.
    docker_daemon.docker_client.cache_clear()
    removed = containers.sweep()
    assert [name for name in removed if name == f"httpmark-{result['id']}-{contained.name}"]
    assert not is_listening(port)
