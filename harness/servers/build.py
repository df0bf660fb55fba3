"""Building a server that runs as a process; each build is kept in a cache."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.servers import Server
from httpmark.harness.servers.build_cache import PREPARED, Say, cache_folder, locked_cache, log_file
from httpmark.harness.servers.build_sources import PACKAGE, build_digest, sources
from httpmark.harness.servers.needs import ask_version, command_output, executable, process_trouble
from httpmark.harness.servers.running import STOP_DEADLINE_S
from httpmark.harness.servers.start_words import filled
from httpmark.harness.servers.supervision import Command, supervised

BUILD_DEADLINE_S = 1800


def build_folder(server: Server) -> Path:
    """The cache folder of this build: named after the sources, the commands and the tools."""
    recipe = server.process
    assert recipe is not None
    files = [pair for pair in sources(Path(server.source)) if not pair[0].startswith("Dockerfile")]
    for word in recipe.context:
        files += sources(PACKAGE / word, prefix=f"{word}/")
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


def is_built(server: Server) -> bool:
    """Whether nothing is left to build for a start as a process; what it needs is installed."""
    assert server.process is not None
    return not server.process.build or build_folder(server).is_dir()


def build_process(server: Server, *, say: Say, deadline_s: float = BUILD_DEADLINE_S) -> bool:
    """:param deadline_s: how long all commands of the build may take together.
    :returns: whether there was something to build.
    """
    trouble = process_trouble(server)
    if trouble:
        raise Unusable(trouble)
    recipe = server.process
    assert recipe is not None
    if not recipe.build:
        return False
    final = build_folder(server)
    PREPARED.keep(server, "process", str(final))
    if final.is_dir():
        return False
    with locked_cache(f"build-{final.name}", say=say):
        if final.is_dir():  # somebody else built it while we waited
            return False
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
                        "package": str(PACKAGE),
                    }  # fmt: skip
                    command = [filled(word, **values) for word in words]
                    left_s = deadline_s - (time.monotonic() - started)
                    try:
                        _run_build(
                            server, command, log, env=recipe.build_env, made=partial, left_s=left_s
                        )
                    except subprocess.TimeoutExpired as error:
                        why = f"its build did not end within {deadline_s:g} s"
                        raise Unusable(f"{why} (log: {log.name})") from error
            partial.rename(final)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        say(f"built {server.name} in {time.monotonic() - started:.0f} s")
    return True


def _run_build(
    server: Server, words: list[str], log: Any, *, env: dict[str, str], made: Path, left_s: float
) -> None:
    """Run one command of a build; ``made`` is what it makes, gone when the harness is gone.

    :raises subprocess.TimeoutExpired: it did not end in the time that is left.
    """
    log.write(f"$ {shlex.join(words)}\n")
    log.flush()
    lifeline_read, lifeline = os.pipe()
    status, status_write = os.pipe()
    child: subprocess.Popen[bytes] | None = None
    try:
        command = Command(words, cwd=Path(server.source), env=os.environ | env, scratch=made)
        child = supervised(command, lifeline=lifeline_read, status=status_write, log=log)
        child.wait(timeout=max(left_s, 0.0))
        told = os.read(status, 65536).decode(errors="replace").splitlines()
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
