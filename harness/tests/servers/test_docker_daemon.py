"""The Docker daemon: what is said where none answers."""

from __future__ import annotations

import gc
import os
import socket
import time
import warnings
from pathlib import Path

import pytest

from httpmark.harness.servers import (
    docker_daemon,
)

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def test_what_a_daemon_is_like_is_told_or_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_daemon, "docker_trouble", lambda: "no daemon")
    assert docker_daemon.docker_facts() is None
    monkeypatch.setattr(docker_daemon, "docker_trouble", lambda: None)

    class Client:
        def info(self) -> dict[str, object]:
            return {
                "ServerVersion": "20.10", "Driver": "overlay2", "CgroupVersion": "1",
                "RuncCommit": {"ID": "1.1.5"}, "SecurityOptions": ["b", "a"], "Name": "a-host",
            }  # fmt: skip

    monkeypatch.setattr(docker_daemon, "docker_client", Client)
    facts = docker_daemon.docker_facts()
    assert facts is not None
    assert (facts["version"], facts["runc"], facts["security"]) == ("20.10", "1.1.5", ["a", "b"])
    assert facts["containerd"] is None
    assert "a-host" not in str(facts), "host names stay at home"


def test_a_daemon_that_is_dead_behind_its_socket_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dead.sock").touch()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/dead.sock")
    docker_daemon.docker_client.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ResourceWarning
        )  # docker-py drops a socket it could not use
        trouble = docker_daemon.docker_trouble()
        gc.collect()
    assert trouble is not None
    assert trouble.startswith("no Docker daemon answers at")
    assert "\n" not in trouble


def test_a_daemon_that_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mute.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    docker_daemon.docker_client.cache_clear()
    monkeypatch.setattr(docker_daemon, "_DOCKER_PING_S", 0.2)
    with socket.socket(socket.AF_UNIX) as mute, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        mute.bind(str(path))
        mute.listen()
        began = time.monotonic()
        trouble = docker_daemon.docker_trouble()
        gc.collect()
    assert trouble is not None
    assert trouble.startswith(f"no Docker daemon answers at unix://{path}")
    assert time.monotonic() - began < 5


def test_a_socket_without_permission_says_which_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locked.sock").touch()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/locked.sock")
    monkeypatch.setattr(os, "access", lambda *words: False)  # root may do everything
    trouble = docker_daemon.docker_trouble()
    assert trouble is not None
    assert trouble.startswith(f"no permission for {tmp_path}/locked.sock: sudo usermod -aG ")
    assert trouble.endswith("then log in again")
