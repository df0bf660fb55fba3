"""What a server needs on this machine to run as a process, and whether it is installed."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from httpmark.harness.model.servers import Need, Server
from httpmark.harness.servers import binaries
from httpmark.harness.servers.start_words import filled

_VERSION_DEADLINE_S = 10.0
REGISTRY_VARIABLE = re.compile(
    r"GO(PROXY|FLAGS|SUMDB|NOSUMDB|NOSUMCHECK|PRIVATE|NOPROXY|INSECURE|AUTH)"
    r"|CARGO_(REGISTR|SOURCE|HTTP|NET).*|PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST)"
)
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")


def executable(word: str) -> str | None:
    """A program by name: ours may lie beside this Python instead of on PATH."""
    if word.startswith("httpmark-"):
        return binaries.find(word.removeprefix("httpmark-"))
    # nginx lies in /usr/sbin, which is not on everybody's PATH.
    path = os.environ.get("PATH", os.defpath)
    return shutil.which(word, path=f"{path}{os.pathsep}/usr/local/sbin{os.pathsep}/usr/sbin")


def process_trouble(server: Server) -> str | None:
    """Why a server cannot run as a process here, with the command that mends it; None if it can."""
    if server.trouble or server.process is None:
        return server.trouble or no_recipe(server, "process")
    for need in server.process.needs:
        if trouble := _need_trouble(need):
            return f"{trouble}: {need.install}"
    for word in (server.process.start[0], server.process.binary):
        if word is not None and (trouble := _program_trouble(word, server.source)):
            return trouble
    return None


def no_recipe(server: Server, key: str) -> str:
    """Why a server cannot be started in a way that nobody said how to."""
    way = {"process": "a process", "container": "a container"}[key]
    if server.url:
        return f"it runs already, at {server.url}, and is not started as {way}"
    return f"cannot run as {way}: its server.toml has no [{key}]"


def _program_trouble(word: str, source: str) -> str | None:
    """Why the program that a start names cannot be run; None if it can, or is built first."""
    word = filled(word, source=source, python=sys.executable)
    if "{" in word:
        return None
    found = executable(word)
    if found is not None and (os.path.isabs(word) or "/" not in word):
        return None
    if "/" not in word:
        return f"{word} not found: put a program of that name on PATH, or name its file"
    if not os.path.isabs(word):
        return f"{word} depends on the folder: write the whole path, or {{source}}/{word}"
    if os.path.isfile(word):
        return f"{word} is not executable: chmod +x {word}"
    return f"{word} is no program: name one that is there"


def _need_trouble(need: Need) -> str | None:
    if need.command is not None:
        path = executable(need.command)
        if path is None:
            return f"{need.command} not found"
        if need.at_least is not None:
            found = ask_version([path, *need.ask])
            asked_for = " ".join([need.command, *need.ask]).removesuffix(" --version")
            if found is None:
                return f"{asked_for} tells no version"
            if _numbers(found) < _numbers(need.at_least):
                return f"{asked_for} {found} is older than {need.at_least}"
    if need.file is not None and not Path(need.file).exists():
        return f"{need.file} not found"
    if need.python is not None and importlib.util.find_spec(need.python) is None:
        return f"the Python module {need.python} not found"
    if need.pkg_config is not None:
        tool = shutil.which("pkg-config")
        module = need.pkg_config.split()[0]
        if tool is None:
            return f"pkg-config not found, so {module} cannot be looked for"
        asked = _quiet([tool, "--exists", need.pkg_config])
        if asked is None or asked.returncode != 0:
            found = ask_version([tool, "--modversion", module])
            return f"{need.pkg_config} not found" + (f" ({module} is {found})" if found else "")
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def ask_version(words: list[str]) -> str | None:
    """The version that a program prints when run with ``words``; it is run once."""
    return _version_of(tuple(words))


@functools.cache
def _version_of(words: tuple[str, ...]) -> str | None:
    return version_in(command_output(list(words)))


def version_in(text: str) -> str | None:
    found = _VERSION.search(text)
    return found[0] if found else None


def _quiet(words: list[str]) -> subprocess.CompletedProcess[str] | None:
    """Run a command that ends soon; None when it could not be run or did not end in time."""
    try:
        return subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=_VERSION_DEADLINE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None


def command_output(words: list[str]) -> str:
    asked = _quiet(words)
    return asked.stdout if asked is not None and asked.returncode == 0 else ""
