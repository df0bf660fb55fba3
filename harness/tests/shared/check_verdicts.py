"""Every verdict of one check of a server, to compare it with those of another."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from httpmark.harness.servers import manifests, starting
from httpmark.harness.tests.shared import applications
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.ports import own_port
from httpmark.harness.tests.shared.spinning import spinning

# By suite and name: the word of a case, the words of a family's requests by their number, and the
# words of a rule on answers (how many answers came is no verdict).
Verdicts = dict[str, Counter[str]]


class Checked(NamedTuple):
    """One check: its exit code, how long it took, and its verdicts."""

    code: int
    seconds: float
    verdicts: Verdicts


def verdicts_of(result: Path) -> Verdicts:
    """Every verdict of a check, from its result.json."""
    [server] = json.loads(result.read_text("utf-8"))["servers"]
    found: Verdicts = {}
    for suite, said in server["compliance"]["suites"].items():
        for name, one in said["cases"].items():
            found[f"{suite}/{name}"] = Counter([one["word"]])
        for name, one in said["generated"].items():
            counts = Counter[str]()
            for words in one["words"].values():
                counts.update(words)
            found[f"{suite}/{name}"] = counts
        for name, one in said["answers"].items():
            found[f"{suite}/{name}"] = Counter(
                {w for words in one["words"].values() for w in words}
            )
    return found


def different(one: Verdicts, other: Verdicts) -> dict[str, int]:
    """How many verdicts of each name differ, where some do."""
    names = one.keys() | other.keys()
    found = {}
    for name in names:
        here, there = one.get(name, Counter()), other.get(name, Counter())
        number = max((here - there).total(), (there - here).total())
        if number:
            found[name] = number
    return found


def total(verdicts: Verdicts) -> int:
    return sum(counts.total() for counts in verdicts.values())


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Both processors are shared with programs that never wait."""
    with contextlib.ExitStack() as stack:
        for cpu in sorted(os.sched_getaffinity(0))[:2]:
            stack.enter_context(spinning(cpu))
        yield


@contextlib.contextmanager
def _listening(name: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """A fresh start of a server of ``images/``, or else of an application of the tests: its port,
    and the paths that a check is told.

    :raises HarnessError: it cannot be used here.
    """
    if name in applications.names():
        application = applications.read(name)
        paths = ("--path", application.path, "--post-path", application.post_path)
        with applications.listening(name) as port:
            yield port, paths
        return
    server, port = manifests.server(name), own_port()
    starting.prepare(server, "process", say=lambda line: None)
    running = starting.start(
        server, "process", address="127.0.0.1", port=port, workers=1, cpus=None,
        run_id=f"stable{os.getpid()}", conformance=True,
    )  # fmt: skip
    try:
        yield port, ()
    finally:
        running.stop()


def checked(name: str, folder: Path, *options: str, is_busy: bool = True) -> Checked:
    """A check of a fresh start of a server, in a new folder.

    :param options: of ``httpmark check``, such as ``--quick``.
    :raises HarnessError: the server cannot be used here.
    """
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        port, paths = stack.enter_context(_listening(name))
        if is_busy:
            stack.enter_context(busy())
        began = time.monotonic()
        code, _, errors = command(
            "check", f"http://127.0.0.1:{port}/", *paths, *options, "--out", "r", cwd=folder,
            timeout=1800,
        )  # fmt: skip
        seconds = time.monotonic() - began
    assert code in (0, 1), errors
    return Checked(code, seconds, verdicts_of(folder / "r" / "result.json"))
