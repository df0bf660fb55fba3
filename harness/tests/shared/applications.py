"""The ordinary applications of ``harness/tests/applications``: what each needs, how it is built and
started, and the list of requirements that its server is known to fail (``golden/applications``).

Each is a folder, written as the quick start of its framework writes it. What it installs is pinned
by version and kept below ``build/applications``.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from _pytest.mark import ParameterSet

from httpmark.harness.model.servers import Need, ProcessRecipe, Server
from httpmark.harness.servers.build_sources import build_digest, sources
from httpmark.harness.servers.needs import process_trouble
from httpmark.harness.servers.start_words import filled
from httpmark.harness.tests.shared.ports import own_port
from httpmark.harness.tests.shared.pytest_rules import required
from httpmark.harness.tests.shared.repository import ROOT

FOLDER = ROOT / "harness" / "tests" / "applications"
GOLDEN = ROOT / "harness" / "tests" / "golden" / "applications"
BUILDS = ROOT / "build" / "applications"
_BUILD_S = 600
_START_S = 30  # a Java source is compiled at each start
_STOP_S = 20


class Application(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``application.toml``: an application, and the server that it runs on."""

    title: str
    server: str  # the program that speaks HTTP, which is what is judged
    start: tuple[str, ...]  # with {port} where its port goes; {build}, {source}, {python}
    build: tuple[tuple[str, ...], ...] = ()  # run once in the folder; what it makes goes to {build}
    needs: tuple[Need, ...] = ()
    path: str = "/"  # GET is answered there
    post_path: str = "/notes"  # POST is answered there; GET of it is another matter
    is_nightly: bool = False  # its build takes minutes
    reads_content: bool = True  # the server does; else each application does it by itself


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A requirement that a server is known to fail, and why nothing of it is the application's."""

    requirement: str
    clause: str  # what the requirement rests on, or the part of it that is broken
    case: str  # one that shows it
    why: str  # one sentence
    only_post: bool = False  # it shows only where a path that takes POST is named


def faults(name: str, *, post: bool) -> list[Fault]:
    """What the server of an application is known to fail, with and without a path for POST."""
    text = (GOLDEN / f"{name}.toml").read_text("utf-8")
    listed = msgspec.toml.decode(text, type=dict[str, list[Fault]]).get("fault", [])
    return [one for one in listed if post or not one.only_post]


def names() -> list[str]:
    """Every application there is."""
    return sorted(path.parent.name for path in FOLDER.glob("*/application.toml"))


def each() -> list[ParameterSet]:
    """Every application as a parameter of a test; those that take minutes to build are nightly."""
    return [
        pytest.param(name, marks=[pytest.mark.nightly] * read(name).is_nightly) for name in names()
    ]


def forms() -> list[ParameterSet]:
    """Every application, with GET alone and with its path that takes POST. Where the application
    itself has to find the end of the content, its server is not judged by that."""
    return [
        pytest.param(
            name, post, marks=[pytest.mark.nightly] * read(name).is_nightly,
            id=f"{name}-{'with-post' if post else 'get-only'}",
        )
        for name in names()
        for post in (False, True)
        if read(name).reads_content or not post
    ]  # fmt: skip


@functools.cache
def read(name: str) -> Application:
    """The application of that name."""
    text = (FOLDER / name / "application.toml").read_text("utf-8")
    return msgspec.toml.decode(text, type=Application)


def require(name: str) -> None:
    """Skip the test where the machine lacks what the application needs, and say what; fail it
    where HTTPMARK_REQUIRE lists that."""
    application = read(name)
    recipe = ProcessRecipe(start=application.start, needs=application.needs)
    trouble = process_trouble(
        Server(
            name=name, title=application.title, language="", version="", homepage="",
            capabilities=("hello",), process=recipe,
        )
    )  # fmt: skip
    if trouble is None:
        return
    if required() & {need.command for need in application.needs}:
        pytest.fail(f"HTTPMARK_REQUIRE lists what {name} needs: {trouble}")
    pytest.skip(f"{name}: {trouble}")


def command(name: str) -> str:
    """The command line that starts the application, with ``{port}``; builds it where it must.

    The build's folder is named after the sources and the commands, so an edit makes another one.
    """
    application = read(name)
    words = [shlex.join(one) for one in application.build]
    files = [pair for pair in sources(FOLDER / name) if application.build]
    digest = build_digest(files, sys.version, *words)
    values = {
        "build": str(BUILDS / f"{name}-{digest}"),
        "source": str(FOLDER / name),
        "python": sys.executable,
    }
    if application.build:
        _build(application, values)
    return shlex.join(filled(word, **values) for word in application.start)


def _build(application: Application, values: dict[str, str]) -> None:
    final = Path(values["build"])
    BUILDS.mkdir(parents=True, exist_ok=True)
    with (BUILDS / f"{final.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may build it now
        done = final / ".built"
        if done.exists():
            return
        shutil.rmtree(final, ignore_errors=True)
        final.mkdir()
        for words in application.build:
            _run([filled(word, **values) for word in words], Path(values["source"]))
        done.touch()


def _run(words: list[str], folder: Path) -> None:
    asked = subprocess.run(
        words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", timeout=_BUILD_S, check=False,
        env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )  # fmt: skip
    assert asked.returncode == 0, f"{shlex.join(words)}: {asked.stdout[-2000:]}"


@contextlib.contextmanager
def listening(name: str) -> Iterator[int]:
    """The application, started, as the port it listens on."""
    port = own_port()
    words = [filled(word, port=str(port)) for word in shlex.split(command(name))]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_answering(port)
        yield port
    finally:
        process.terminate()
        process.wait(_STOP_S)


def _wait_answering(port: int) -> None:
    """Wait until a connection is taken: Java listens for IPv6 and IPv4 on one socket."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port} within {_START_S} s")
