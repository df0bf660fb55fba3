"""Orders of suites for a cluster: made, taken back, and looked for on this machine."""

from __future__ import annotations

import time
from pathlib import Path

from httpmark.harness.cluster.spreading import Found
from httpmark.harness.cluster.suite_tasks import Order
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model import run_folder
from httpmark.harness.servers import machine, proc_files

WORDS = ("--runtime", "process", "--quick", "--seed", "1", "--suite")


def order(run: str, server: str = "null", suite: str = "smuggling") -> Order:
    words = ("--server", server, *WORDS, suite)
    return Order(run=run, version=machine.version(), server=server, words=words)


class Taken:
    """What came back, looked at while it is there."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.interrupted: list[bool] = []
        self.exchanges: list[int] = []

    def __call__(self, found: Found) -> None:
        self.found.append(found)
        if found.folder is not None:
            self.interrupted.append(run_folder.read(found.folder).interrupted)
            with Evidence(found.folder / run_folder.EVIDENCE) as evidence:
                self.exchanges.append(sum(1 for _ in evidence.exchanges(found.server)))


def left_running() -> list[str]:
    """The programs that workers started and that still run."""
    found = []
    for pid in proc_files.process_ids():
        try:
            line = proc_files.text(pid, "cmdline").replace("\0", " ")
        except OSError:
            continue
        if "httpmark-suites-" in line:
            found.append(line)
    return found


def wait_until_something_is_fired(before: list[str]) -> None:
    end = time.monotonic() + 60
    while not any(
        Path(line.rpartition("--out ")[2].split()[0], run_folder.EVIDENCE).exists()
        for line in set(left_running()) - set(before)
        if "--out " in line
    ):
        assert time.monotonic() < end, left_running()
        time.sleep(0.1)


def wait_until_nothing_runs(before: list[str]) -> None:
    end = time.monotonic() + 60
    while set(left_running()) - set(before):
        assert time.monotonic() < end, left_running()
        time.sleep(0.1)
