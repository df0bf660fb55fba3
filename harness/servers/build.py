"""Building a server that runs as a process; each build is kept in a cache."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.servers import Server

if TYPE_CHECKING:
    pass
from httpmark.harness.servers.needs import ask_version, command_output, executable, process_trouble
from httpmark.harness.servers.running import STOP_DEADLINE_S
from httpmark.harness.servers.start_words import filled

_PACKAGE = Path(__file__).resolve().parents[2]
_SUPERVISOR = Path(__file__).resolve().parent / "supervisor.py"
BUILD_DEADLINE_S = 1800

# Names that never enter a build: leftovers of other builds, and what a wheel does not carry.
_NOT_SOURCE = {"__pycache__", "target", "tests", "build", "node_modules", "server.toml"}

Say = Callable[[str], None]


# --- building ---------------------------------------------------------------------------------


# What prepare made, by runtime and source: a source edited in mid-run changes nothing of the run.
PREPARED: dict[tuple[str, str], str] = {}


def cache_folder() -> Path:
    """Where builds and their logs are kept: ``$XDG_CACHE_HOME/httpmark`` or ``~/.cache/httpmark``.

    :raises HarnessError: neither the variable nor a home folder is known.
    """
    try:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    except RuntimeError as error:
        raise HarnessError(f"no home folder: set XDG_CACHE_HOME ({error})") from error
    return Path(home) / "httpmark"


def _sources(folder: Path, *, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """The files of a folder that a build reads, as (name in the build, path), in a fixed order."""
    for path in sorted(folder.iterdir()):
        if path.name in _NOT_SOURCE or path.name.startswith("."):
            continue
        name = f"{prefix}{path.name}"
        if path.is_dir():
            yield from _sources(path, prefix=f"{name}/")
        elif path.is_file():
            yield name, path


def build_context(server: Server) -> list[tuple[str, Path]]:
    recipe = server.container
    assert recipe is not None
    found = list(_sources(Path(server.source)))
    for word in recipe.context:
        found += _sources(_PACKAGE / word, prefix=f"{word}/")
    return found


def build_digest(files: list[tuple[str, Path]], *words: str) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    for word in words:
        digest.update(f"\0{word}".encode())
    return digest.hexdigest()[:16]


def build_folder(server: Server) -> Path:
    """The cache folder of this build: named after the sources, the commands and the tools."""
    recipe = server.process
    assert recipe is not None
    files = [pair for pair in _sources(Path(server.source)) if not pair[0].startswith("Dockerfile")]
    tools = []
    for need in recipe.needs:
        path = executable(need.command) if need.command else None
        if path is not None and need.at_least is not None:
            tools.append(f"{need.command} {ask_version([path, *need.ask])}")
        if need.pkg_config is not None:
            tools.append(command_output(["pkg-config", "--modversion", need.pkg_config.split()[0]]))
    commands = [shlex.join(words) for words in recipe.build]
    env = [f"{name}={value}" for name, value in sorted(recipe.build_env.items())]
    key = build_digest(files, *commands, *env, *tools)
    return cache_folder() / "build" / f"{server.name}-{key}"


def build_process(server: Server, *, say: Say) -> None:
    trouble = process_trouble(server)
    if trouble:
        raise Unusable(trouble)
    recipe = server.process
    assert recipe is not None
    if not recipe.build:
        return
    final = build_folder(server)
    PREPARED["process", server.source] = str(final)
    if final.is_dir():
        return
    with locked_cache(f"build-{final.name}", say=say):
        if final.is_dir():  # somebody else built it while we waited
            return
        partial = final.with_name(final.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        say(f"building {server.name} (once)")
        started = time.monotonic()
        try:
            with log_file(final.name) as log:
                for words in recipe.build:
                    values = {
                        "build": str(partial), "source": server.source, "python": sys.executable,
                    }  # fmt: skip
                    command = [filled(word, **values) for word in words]
                    _run_build(server, command, log, env=recipe.build_env, made=partial)
            partial.rename(final)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        say(f"built {server.name} in {time.monotonic() - started:.0f} s")


@contextlib.contextmanager
def locked_cache(name: str, *, say: Say) -> Iterator[None]:
    """Hold the cache's lock of that name, so that two runs do not build the same thing at once.

    :raises Unusable: the cache folder cannot be written.
    """
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"waiting for another run that does {name}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise Unusable(
            f"{folder}: {error.strerror or error}: make room, or set XDG_CACHE_HOME"
        ) from error


def log_file(name: str) -> Any:
    folder = cache_folder() / "log"
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / f"{name}.log").open("w", encoding="utf-8")


def _run_build(
    server: Server, words: list[str], log: Any, *, env: dict[str, str], made: Path
) -> None:
    """Run one command of a build; ``made`` is what it makes, gone when the harness is gone."""
    log.write(f"$ {shlex.join(words)}\n")
    log.flush()
    lifeline_read, lifeline = os.pipe()
    status, status_write = os.pipe()
    child: subprocess.Popen[bytes] | None = None
    try:
        child = supervised(
            words, lifeline=lifeline_read, status=status_write, grace_s=0.0, cpus="-",
            scratch=made, cwd=Path(server.source), env=os.environ | env, log=log,
        )  # fmt: skip
        child.wait(timeout=BUILD_DEADLINE_S)
        told = os.read(status, 65536).decode(errors="replace").splitlines()
    except subprocess.TimeoutExpired as error:
        raise Unusable(
            f"its build did not end within {BUILD_DEADLINE_S} s (log: {log.name})"
        ) from error
    finally:
        os.close(lifeline)  # Ctrl-C, too: nothing of the build runs on
        os.close(status)
        if child is not None:
            child.wait(timeout=STOP_DEADLINE_S)
    missing = [line.removeprefix("error ") for line in told if line.startswith("error ")]
    if missing:
        raise Unusable(f"its build cannot be run: {missing[0]}")
    if "exit 0" not in told:
        said = telling_line(Path(log.name).read_text(encoding="utf-8", errors="replace"))
        raise Unusable(f"its build failed: {said} (log: {log.name})")


def supervised(
    words: list[str],
    *,
    lifeline: int,
    status: int,
    grace_s: float,
    cpus: str,
    scratch: Path,
    cwd: Path,
    env: dict[str, str],
    log: IO[Any],
) -> subprocess.Popen[bytes]:
    """Run words under a supervisor, which gets its two ends of the pipes; they are closed here.

    Whoever holds the other end of ``lifeline`` ends it all by closing that, even where Ctrl-C
    comes before this returns.

    :raises Unusable: the supervisor cannot be run.
    """
    try:
        return subprocess.Popen(
            [
                sys.executable, "-I", "-S", str(_SUPERVISOR), str(lifeline), str(status),
                str(grace_s), cpus, str(scratch), *words,
            ],
            cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            pass_fds=(lifeline, status), start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise Unusable(f"{sys.executable} cannot be run: {error.strerror}") from error
    finally:
        os.close(lifeline)
        os.close(status)


def telling_line(text: str) -> str:
    """The last line that tells of an error, else the last line."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    errors = [
        number
        for number, line in enumerate(lines)
        if re.search(r"\berror\b|\bE:|fatal|cannot|failed", line, re.IGNORECASE)
    ]
    if not errors:
        return lines[-1] if lines else "it said nothing"
    # CMake tells where on one line and what on the next.
    last = errors[-1]
    whole = lines[last : last + 2] if lines[last].endswith(":") else lines[last : last + 1]
    return " ".join(whole)
