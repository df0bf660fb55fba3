"""Rules that hold for every test, as a pytest plugin (pyproject.toml loads it with ``-p``).

- ``@pytest.mark.needs("docker")`` skips a test where the machine lacks something. Where
  HTTPMARK_REQUIRE lists it, the test fails instead.
- A test that starts a process is marked ``process``, by ``@pytest.mark.process`` or because it uses
  a fixture that is marked with :func:`starts_process`. One that does so unmarked fails: ``make
  check`` runs what is not marked, and stays quick by this rule.
- ``@pytest.mark.first`` is for a test that takes a minute: it begins before the others, so that the
  workers of xdist have something to do until the end.
- What was asked again (``asking_again``) and what was skipped is told at the end.
- HTTPMARK_ALONE_MAX says that those which failed beside others are run again alone, and how many
  that may be. Which of them pass now is told: a busy machine disturbs them; they are to be mended.
"""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from httpmark.harness.tests.shared.asking_again import asked_again

_Fixture = TypeVar("_Fixture", bound=Callable[..., Any])

# Audit events of CPython by which a process comes into being.
_STARTS = frozenset(("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"))
# The fixture that takes minutes and is made once for all workers.
_SHARED = "finished"
_SHARED_TIMEOUT_S = 1500
# Reading the repository is no process under test.
_ALLOWED = frozenset(("git",))


def starts_process(fixture: _Fixture) -> _Fixture:
    """Say of a fixture function, below ``@pytest.fixture``, that it starts a process."""
    fixture.starts_process = True  # type: ignore[attr-defined]
    return fixture


# What a test's network is made of, tried in a namespace that is gone at once.
_NETWORK = (
    "unshare", "--net", "sh", "-ec",
    "test -w /run; ip link add br0 type bridge; ip link add one0 type veth; "
    "ip tuntap add mode tap name tap0; "
    "tc qdisc add dev one0 root tbf rate 1mbit burst 4kb limit 9000",
)  # fmt: skip

# A file system of a test's own, in a namespace that is gone at once.
_SMALL_DISK = ("unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", "/mnt")


@functools.cache
def machine_has(name: str) -> bool:
    """Whether this machine offers a requirement; "docker" means a daemon that answers, "netns"
    that network namespaces can be made and joined, "small disk" that a file system can be mounted.
    """
    if name == "docker":
        if shutil.which("docker") is None:
            return False
        with _guard.lifted():
            asked = subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False)
        return asked.returncode == 0
    if name == "small disk":
        with _guard.lifted():
            made = subprocess.run(_SMALL_DISK, capture_output=True, timeout=20, check=False)
        return made.returncode == 0
    if name == "netns":
        with _guard.lifted():
            made = subprocess.run(_NETWORK, capture_output=True, timeout=20, check=False)
        return made.returncode == 0
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin") is not None


def required() -> set[str]:
    """What HTTPMARK_REQUIRE lists: a missing one fails instead of being skipped."""
    return {word for word in os.environ.get("HTTPMARK_REQUIRE", "").split(",") if word}


class _Guard:
    """Refuses processes while a test runs that is not marked ``process``."""

    def __init__(self) -> None:
        self.closed_for: str | None = None
        self.pid = os.getpid()

    def lifted(self) -> _Lifted:
        return _Lifted(self)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.closed_for is None or event not in _STARTS or os.getpid() != self.pid:
            return
        words = arguments[1] if event == "subprocess.Popen" else None
        first = words[0] if isinstance(words, list | tuple) and words else words or ""
        if Path(os.fsdecode(first)).name in _ALLOWED:
            return
        raise AssertionError(
            f"{self.closed_for} starts a process ({event} {first}): mark it with "
            "@pytest.mark.process, or its fixture with @starts_process"
        )


class _Lifted:
    """Lets processes start for a while."""

    def __init__(self, guard: _Guard) -> None:
        self.guard = guard

    def __enter__(self) -> None:
        self.before, self.guard.closed_for = self.guard.closed_for, None

    def __exit__(self, *_: object) -> None:
        self.guard.closed_for = self.before


_guard = _Guard()


def pytest_configure(config: pytest.Config) -> None:
    _guard.pid = os.getpid()
    sys.addaudithook(_guard.audit)
    import hypothesis

    # On a busy machine one example takes what ten take on a quiet one; that is no fault.
    hypothesis.settings.register_profile("each change", deadline=None)
    hypothesis.settings.register_profile("nightly", max_examples=2000, deadline=None)
    hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "each change")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, object, object]:
    for item in items:
        info = getattr(item, "_fixtureinfo", None)
        if item.get_closest_marker("needs"):
            item.add_marker(pytest.mark.process)
        if info is not None and any(
            getattr(getattr(one, "func", None), "starts_process", False)
            for definitions in info.name2fixturedefs.values()
            for one in definitions
        ):
            item.add_marker(pytest.mark.process)
        if _SHARED in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(_SHARED_TIMEOUT_S))
    result = yield  # now those are left that are asked for
    items[:] = ordered(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
    return result


def ordered(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """What takes long at the front of each worker's part: with ``--dist worksteal`` each gets the
    next part of the list, and whoever is done takes over the end of another's.

    One worker makes what many share while the others have all else to do, and nobody waits.
    """
    shared = [item for item in items if _SHARED in getattr(item, "fixturenames", ())]
    long = [item for item in items if item.get_closest_marker("first") and item not in shared]
    heads = [shared] + [long[number :: workers - 1] for number in range(workers - 1)]
    if workers == 1:
        heads = [shared + long]
    begun = set(shared + long)
    rest = iter([item for item in items if item not in begun])
    ordered: list[pytest.Item] = []
    for number, head in enumerate(heads):
        size = (len(items) - len(ordered)) // (workers - number)
        ordered += [*head, *itertools.islice(rest, max(0, size - len(head)))]
    return ordered + list(rest)


def _alone_max() -> int | None:
    """How many tests may be run again alone; None: this is no such run."""
    most = os.environ.get("HTTPMARK_ALONE_MAX")
    return None if most is None else int(most)


def pytest_collection_finish(session: pytest.Session) -> None:
    most = _alone_max()
    if most is not None and len(session.items) > most:
        raise pytest.UsageError(
            f"{len(session.items)} tests failed; no more than {most} are run again alone"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            if machine_has(name):
                continue
            if name in required():
                pytest.fail(f"HTTPMARK_REQUIRE lists {name}, and this machine lacks it")
            pytest.skip(f"{name} is not on this machine")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _guard.closed_for = None if item.get_closest_marker("process") else item.nodeid
    try:
        return (yield)
    finally:
        _guard.closed_for = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "teardown":
        # With the report, as it reaches the process that prints, also from a worker of xdist.
        report.user_properties += [("asked again", line) for line in asked_again.taken()]
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What was asked again; what was skipped is told by pytest itself (-rs)."""
    told = [
        f"{report.nodeid}: {line}"
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, line in getattr(report, "user_properties", ())
        if name == "asked again"
    ]
    if told:
        terminalreporter.section(f"asked again: {len(told)}")
        for line in told:
            terminalreporter.write_line(line)
    passed = terminalreporter.stats.get("passed", ())
    if _alone_max() is not None and passed:
        terminalreporter.section(f"failed beside others, and passed alone: {len(passed)}")
        for report in passed:
            terminalreporter.write_line(report.nodeid)
