"""A start that somebody else chooses: told, waited for, and called off."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import msgspec
import pytest

from httpmark.harness.load.engines import native
from httpmark.harness.load.engines.launch import Target
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadMode, LoadPlan
from httpmark.harness.tests.shared import native_server
from httpmark.harness.tests.shared.pytest_rules import starts_process

PLAN = LoadPlan(name="p", title="t", why="w", connections=6, depth=1, duration_s=0.2, warmup_s=0.1)


@pytest.fixture(scope="module")
@starts_process
def target() -> Iterator[Target]:
    with native_server.listening("null") as url:
        yield Target("127.0.0.1", int(url.rstrip("/").rpartition(":")[2]))


class Chosen:
    """A start so long after all connections are open."""

    def __init__(self, after_s: float) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.after_s = after_s
        self.told: list[int] = []
        self.start_ns = 0

    def __call__(self, pid: int) -> None:
        try:
            line = self.ours.recv(64)
        except BlockingIOError:
            return
        if line:
            self.told.append(int(line))
            self.start_ns = time.time_ns() + round(self.after_s * 1e9)
            self.ours.sendall(b"%d\n" % self.start_ns)

    def start(self) -> native.Start:
        return native.Start(fd=self.theirs.fileno(), look=self, phase=0, wait_s=5)

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


@pytest.mark.parametrize("mode", [LoadMode.CLOSED, LoadMode.OPEN])
def test_it_tells_its_connections_and_begins_when_it_is_told_to(
    target: Target, mode: LoadMode
) -> None:
    plan = msgspec.structs.replace(PLAN, mode=mode, rate=200.0 if mode is LoadMode.OPEN else None)
    chosen = Chosen(0.3)
    report = native.Native().report(
        plan, target, duration_s=0.2, cpus=None, start=chosen.start()
    )  # fmt: skip
    chosen.close()
    assert chosen.told == [6]
    assert time.time_ns() >= chosen.start_ns + 0.3e9
    assert report["start_late_us"] >= 0
    assert report["requests"] > 0


def test_a_start_that_has_passed_is_told_to_be_late(target: Target) -> None:
    chosen = Chosen(-2)
    report = native.Native().report(PLAN, target, duration_s=0.2, cpus=None, start=chosen.start())
    chosen.close()
    assert report["start_late_us"] > 2e6


def test_without_anybody_who_says_when_it_begins_at_once(target: Target) -> None:
    assert native.Native().report(PLAN, target, duration_s=0.2, cpus=None)["start_late_us"] is None


def test_what_is_called_off_ends(target: Target) -> None:
    chosen = Chosen(0)

    def call_off(pid: int) -> None:
        chosen.ours.close()

    gone = native.Start(fd=chosen.theirs.fileno(), look=call_off, phase=0, wait_s=5)
    with pytest.raises(Unusable, match=r"nobody said when to begin|cannot be written to"):
        native.Native().report(PLAN, target, duration_s=0.2, cpus=None, start=gone)
    chosen.theirs.close()
