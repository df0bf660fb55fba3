"""Hosts in network namespaces of their own, joined by a bridge: a network that a test makes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from httpmark.harness.tests.shared import child_process

HEAD = "10.77.0.1"
"""The address of the namespace with the bridge, where scheduler and caller are."""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=20, capture_output=True, text=True)


class Host(str):
    """The name of a namespace."""

    address: str
    link: str  # the end of its wire at the bridge


class Lan:
    """A bridge in the namespace ``head``, and hosts at it."""

    def __init__(self, folder: Path) -> None:
        """:param folder: for the output of what is started."""
        self._folder = folder
        self._mark = f"hm{os.getpid()}"
        self._made: list[str] = []
        self._running: list[subprocess.Popen[str]] = []
        self.head = self._namespace("head", HEAD)
        _ip("-n", self.head, "link", "add", "lan", "type", "bridge")
        self._up(self.head, "lan", HEAD)

    def _namespace(self, name: str, address: str) -> Host:
        made = Host(f"{self._mark}{name}")
        made.address, made.link = address, name
        _ip("netns", "add", made)
        self._made.append(made)
        _ip("-n", made, "link", "set", "lo", "up")
        return made

    def _up(self, host: str, device: str, address: str) -> None:
        _ip("-n", host, "address", "add", f"{address}/24", "dev", device)
        _ip("-n", host, "link", "set", device, "up")

    def _joined(self, host: Host, device: str) -> Host:
        """Plug the far end of a wire into the bridge."""
        self._up(host, device, host.address)
        _ip("-n", self.head, "link", "set", host.link, "master", "lan", "up")
        # Dask asks how the world is reached to know its own address.
        _ip("-n", host, "route", "add", "default", "via", HEAD)
        return host

    def host(self, name: str, *, delay_s: float = 0.0, loss: float = 0.0) -> Host:
        """A host at the bridge.

        :param delay_s: of its wire, one way.
        :param loss: the share of frames that its wire loses, each way.
        """
        made = self._namespace(name, f"10.77.0.{len(self._made) + 1}")
        if not delay_s and not loss:
            _ip("-n", made, "link", "add", "net0", "type", "veth", "peer", "name", name, "netns",
                self.head)  # fmt: skip
            return self._joined(made, "net0")
        _ip("-n", made, "tuntap", "add", "mode", "tap", "name", "net0")
        _ip("-n", self.head, "tuntap", "add", "mode", "tap", "name", name)
        self._start(
            "wire", [
                sys.executable, "-m", "httpmark.harness.tests.shared.slow_wire", str(delay_s),
                str(loss), f"{made}:net0", f"{self.head}:{name}",
            ],
        )  # fmt: skip
        return self._joined(made, "net0")

    def limit(self, host: Host, rate: str, *, queue_bytes: int) -> None:
        """Let a host send so much at most; what its queue does not hold is lost."""
        subprocess.run(
            ["tc", "-n", host, "qdisc", "add", "dev", "net0", "root", "tbf", "rate", rate, "burst",
             "4kb", "limit", str(queue_bytes)],
            check=True, timeout=20,
        )  # fmt: skip

    def cut(self, host: Host) -> None:
        """Lose all frames from and to a host."""
        _ip("-n", self.head, "link", "set", host.link, "down")

    def mend(self, host: Host) -> None:
        _ip("-n", self.head, "link", "set", host.link, "up")

    @staticmethod
    def words(host: Host, *words: str) -> list[str]:
        """The command that runs a program on a host, in place of itself."""
        return ["nsenter", f"--net=/run/netns/{host}", *words]

    def start(self, host: Host, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start a program on a host; it ends with the network at the latest."""
        return self._start(f"{host}-{len(self._running)}", self.words(host, *words), **options)

    def _start(self, name: str, words: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        with (self._folder / f"{name}.log").open("w") as log:
            made = child_process.start(
                words, **{"stdout": log, "stderr": log, "cwd": self._folder, **options}
            )
        self._running.append(made)
        return made

    def processes(self, host: Host) -> list[int]:
        """What runs on a host."""
        told = subprocess.run(
            ["ip", "netns", "pids", host], check=True, timeout=20, capture_output=True, text=True
        )
        return [int(word) for word in told.stdout.split()]

    def stop(self) -> None:
        for one in reversed(self._running):
            one.terminate()
        end = time.monotonic() + 30
        for one in self._running:
            try:
                one.wait(timeout=max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait(timeout=20)
        for name in reversed(self._made):
            _ip("netns", "delete", name)
