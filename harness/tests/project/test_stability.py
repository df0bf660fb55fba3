"""The same server, checked twice on a busy machine, gets the same verdicts."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from httpmark.harness.model.errors import HarnessError
from httpmark.harness.servers import manifests, starting
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.ports import own_port
from httpmark.harness.tests.shared.pytest_rules import required
from httpmark.harness.tests.shared.spinning import spinning

# What each needs besides the commands of this package.
SERVERS = {
    "reference": None, "nginx": "nginx", "python_h11": None, "go_net_http": "go",
    "rust_hyper": "cargo",
}  # fmt: skip
DIFFERENT_MAX = 1 / 1000  # of the verdicts

# By suite and name: the word of a case, the words of a family's requests by their number, and the
# words of a rule on answers (how many answers came is no verdict).
Verdicts = dict[str, Counter[str]]


def verdicts_of(result: Path) -> Verdicts:
    """Every verdict of a check."""
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


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Both processors are shared with programs that never wait."""
    with contextlib.ExitStack() as stack:
        for cpu in sorted(os.sched_getaffinity(0))[:2]:
            stack.enter_context(spinning(cpu))
        yield


def checked(name: str, folder: Path) -> tuple[int, Verdicts]:
    """A quick check of a fresh start of a server."""
    server, port = manifests.server(name), own_port()
    starting.prepare(server, "process", say=lambda line: None)
    folder.mkdir()
    running = starting.start(
        server, "process", address="127.0.0.1", port=port, workers=1, cpus=None,
        run_id=f"stable{os.getpid()}", conformance=True,
    )  # fmt: skip
    try:
        with busy():
            code, _, errors = command(
                "check", f"http://127.0.0.1:{port}/", "--quick", "--out", "r", cwd=folder,
                timeout=280,
            )  # fmt: skip
    finally:
        running.stop()
    assert code in (0, 1), errors
    return code, verdicts_of(folder / "r" / "result.json")


@pytest.mark.nightly
@pytest.mark.process
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_gets_the_same_verdicts_twice_on_a_busy_machine(name: str, tmp_path: Path) -> None:
    try:
        (code, first), (again, second) = (
            checked(name, tmp_path / "first"),
            checked(name, tmp_path / "second"),
        )
    except HarnessError as error:
        if SERVERS[name] in required():
            raise
        pytest.skip(f"{name} is not available: {error}")
    assert first.keys() == second.keys()
    assert len(first) > 500
    different = {key: (first[key], second[key]) for key in first if first[key] != second[key]}
    number = sum((one - other).total() for one, other in different.values())
    assert number <= DIFFERENT_MAX * sum(one.total() for one in first.values()), different
    assert again == code, different
