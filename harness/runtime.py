"""Servers, built, started, watched and stopped: as local processes or as containers.

The only importer of docker. Nothing started here outlives the harness: a process is kept by
supervisor.py, which ends it when the harness is gone; a container is removed at stop, and one that
a killed harness left behind is removed by :func:`sweep`.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import getpass
import hashlib
import importlib.util
import io
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from httpmark.harness import binaries, planted, wire
from httpmark.harness.model import (
    ContainerRecipe,
    HarnessError,
    Need,
    ProcessRecipe,
    Server,
    Tls,
    Unusable,
)

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

RUNTIMES = ("docker", "process")

_PACKAGE = Path(__file__).resolve().parent.parent
_SUPERVISOR = Path(__file__).resolve().parent / "supervisor.py"
_LABEL = "httpmark"
_BASE_PUBLIC = "debian:trixie-slim"
_BASE_MADE = "httpmark/base:trixie"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SUITE = "trixie"
_CA_FOLDER = Path("/usr/local/share/ca-certificates")
_IN_CONTAINER = "/httpmark"  # what {scratch} is in a container

_STOP_GRACE_S = 3.0  # between SIGTERM and SIGKILL
_STOP_DEADLINE_S = _STOP_GRACE_S + 7.0  # until a stop must have ended everything
_PORT_FREE_DEADLINE_S = 5.0
_READY_ASK_S = 1.0  # one readiness request
_READY_PAUSE_S = 0.01
_VERSION_DEADLINE_S = 10.0
_BUILD_DEADLINE_S = 1800
_DOCKER_ASK_S = 60  # one call of the daemon; builds have the deadline above
_DOCKER_PING_S = 5
_LOG_TAIL_LINES = 20
_LOG_TAIL_BYTES = 64 * 1024

# Names that never enter a build: leftovers of other builds, and what a wheel does not carry.
_NOT_SOURCE = {"__pycache__", "target", "tests", "build", "node_modules", "server.toml"}
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY")
_REGISTRY_VARIABLE = re.compile(
    r"GO(PROXY|FLAGS|SUMDB|NOSUMDB|NOSUMCHECK|PRIVATE|NOPROXY|INSECURE|AUTH)"
    r"|CARGO_(REGISTR|SOURCE|HTTP|NET).*|PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST)"
)
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")

Say = Callable[[str], None]


class Running(Protocol):
    """A server that answers; whoever holds one must :meth:`stop` it."""

    server: Server
    runtime: str
    address: str
    port: int
    cgroup: str | None  # the folder of its memory controller, where it has one of its own
    version: str | None  # as the server itself tells it
    image_digest: str | None

    def pids(self) -> list[int]:
        """The server's whole process tree that lives now, as pids of this machine."""

    def trees(self) -> list[int]:
        """Processes below which all is that the server ever starts, whatever it lets go of."""

    def alive(self) -> bool:
        """Whether its first process still runs."""

    def exit_reason(self) -> str:
        """How it ended (exit code or signal) and its last log line."""

    def log_tail(self, lines: int = _LOG_TAIL_LINES) -> str:
        """The last lines it wrote."""

    def stop(self) -> None:
        """SIGTERM, after 3 s SIGKILL, to the whole tree; waits until the port is free."""


# --- which runtime ----------------------------------------------------------------------------


def choose(word: str) -> str:
    """The runtime that ``auto``, ``docker`` or ``process`` stands for on this machine.

    :raises HarnessError: no such word.
    :raises Unusable: docker is asked for and no daemon can be used.
    """
    if word == "auto":
        return "process" if docker_trouble() else "docker"
    if word not in RUNTIMES:
        raise HarnessError(f"no runtime is called {word!r}: use auto, docker or process")
    if word == "docker" and (trouble := docker_trouble()):
        raise Unusable(trouble)
    return word


def for_server(server: Server, word: str) -> str:
    """The runtime for ``server`` under ``word``.

    ``auto`` is docker where a daemon answers, and a process for a server that only so is here
    (a program the user brought).

    :raises HarnessError: no such word.
    :raises Unusable: the server cannot run that way here; says why, and the mend.
    """
    first = choose(word)
    reasons = []
    for runtime in (first, "process") if word == "auto" and first == "docker" else (first,):
        available = availability(server, runtime)
        if available is True:
            return runtime
        reasons.append(f"{runtime}: {available}")
    raise Unusable("; ".join(reasons))


def availability(server: Server, runtime: str) -> bool | str:
    """True, or in one line why ``server`` cannot run that way here, with the command that mends it.

    :raises HarnessError: no such runtime.
    """
    if runtime == "process":
        return _process_trouble(server) or True
    if runtime == "docker":
        return docker_trouble() or _image_trouble(server) or True
    raise HarnessError(f"no runtime is called {runtime!r}: use docker or process")


def listed(server: Server) -> dict[str, Any]:
    """One entry of ``list servers --json``."""
    return {
        "name": server.name,
        "title": server.title,
        "language": server.language,
        "version": server.version,
        "capabilities": list(server.capabilities),
        "control": server.control,
        "available": {name: availability(server, name) for name in RUNTIMES},
        "binary": binary(server),
    }


def binary(server: Server) -> str | None:
    """The path of the server's executable where it is a file that exists now."""
    recipe = server.process
    if recipe is None or recipe.binary is None:
        return None
    if "{build}" not in recipe.binary:
        return _executable(recipe.binary)
    if _process_trouble(server):
        return None
    path = recipe.binary.replace("{build}", str(_build_folder(server)))
    return path if os.access(path, os.X_OK) else None


def _executable(word: str) -> str | None:
    """A program by name: ours may lie beside this Python instead of on PATH."""
    if word.startswith("httpmark-"):
        return binaries.find(word.removeprefix("httpmark-"))
    # nginx lies in /usr/sbin, which is not on everybody's PATH.
    path = os.environ.get("PATH", os.defpath)
    return shutil.which(word, path=f"{path}{os.pathsep}/usr/local/sbin{os.pathsep}/usr/sbin")


def _process_trouble(server: Server) -> str | None:
    if server.process is None:
        return "cannot run as a process: its server.toml has no [process]"
    for need in server.process.needs:
        if trouble := _need_trouble(need):
            return f"{trouble}: {need.install}"
    return None


def _need_trouble(need: Need) -> str | None:
    if need.command is not None:
        path = _executable(need.command)
        if path is None:
            return f"{need.command} not found"
        if need.at_least is not None:
            found = _ask_version([path, *need.ask])
            if found is None:
                return f"{need.command} does not tell its version"
            if _numbers(found) < _numbers(need.at_least):
                return f"{need.command} {found} is older than {need.at_least}"
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
            found = _ask_version([tool, "--modversion", module])
            return f"{need.pkg_config} not found" + (f" ({module} is {found})" if found else "")
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


_asked: dict[tuple[str, ...], str | None] = {}


def _ask_version(words: list[str]) -> str | None:
    """The version a program tells when asked with ``words``; asked once in a run."""
    key = tuple(words)
    if key not in _asked:
        _asked[key] = _version_in(_output(words))
    return _asked[key]


def _version_in(text: str) -> str | None:
    found = _VERSION.search(text)
    return found[0] if found else None


def _quiet(words: list[str]) -> subprocess.CompletedProcess[str] | None:
    """Run a short question; None when it could not be run or did not answer in time."""
    try:
        return subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=_VERSION_DEADLINE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None


def _output(words: list[str]) -> str:
    asked = _quiet(words)
    return asked.stdout if asked is not None and asked.returncode == 0 else ""


# --- building ---------------------------------------------------------------------------------


# What prepare made, by runtime and source: a source edited in mid-run changes nothing of the run.
_prepared: dict[tuple[str, str], str] = {}


def prepare(server: Server, runtime: str, *, say: Say) -> None:
    """Build what a start needs; a second time it is there already. ``say`` gets progress lines.

    :raises Unusable: something is missing or the build failed: its last line, and where the log is.
    """
    if runtime == "process":
        _build_process(server, say=say)
    elif runtime == "docker":
        _build_image(server, say=say)
    else:
        raise HarnessError(f"no runtime is called {runtime!r}: use docker or process")


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


def _context(server: Server) -> list[tuple[str, Path]]:
    recipe = server.container
    assert recipe is not None
    found = list(_sources(Path(server.source)))
    for word in recipe.context:
        found += _sources(_PACKAGE / word, prefix=f"{word}/")
    return found


def _digest(files: list[tuple[str, Path]], *words: str) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    for word in words:
        digest.update(f"\0{word}".encode())
    return digest.hexdigest()[:16]


def _build_folder(server: Server) -> Path:
    """The cache folder of this build: named after the sources, the commands and the tools."""
    recipe = server.process
    assert recipe is not None
    files = [pair for pair in _sources(Path(server.source)) if not pair[0].startswith("Dockerfile")]
    tools = []
    for need in recipe.needs:
        path = _executable(need.command) if need.command else None
        if path is not None and need.at_least is not None:
            tools.append(f"{need.command} {_ask_version([path, *need.ask])}")
        if need.pkg_config is not None:
            tools.append(_output(["pkg-config", "--modversion", need.pkg_config.split()[0]]))
    commands = [shlex.join(words) for words in recipe.build]
    env = [f"{name}={value}" for name, value in sorted(recipe.build_env.items())]
    key = _digest(files, *commands, *env, *tools)
    return cache_folder() / "build" / f"{server.name}-{key}"


def _build_process(server: Server, *, say: Say) -> None:
    trouble = _process_trouble(server)
    if trouble:
        raise Unusable(trouble)
    recipe = server.process
    assert recipe is not None
    if not recipe.build:
        return
    final = _build_folder(server)
    _prepared["process", server.source] = str(final)
    if final.is_dir():
        return
    with _cache(f"build-{final.name}", say=say):
        if final.is_dir():  # somebody else built it while we waited
            return
        partial = final.with_name(final.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        say(f"building {server.name} (once)")
        started = time.monotonic()
        try:
            with _log_file(final.name) as log:
                for words in recipe.build:
                    filled = [
                        _fill(word, build=str(partial), source=server.source, python=sys.executable)
                        for word in words
                    ]
                    _run_build(server, filled, log, env=recipe.build_env, made=partial)
            partial.rename(final)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        say(f"built {server.name} in {time.monotonic() - started:.0f} s")


@contextlib.contextmanager
def _cache(name: str, *, say: Say) -> Iterator[None]:
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


def _log_file(name: str) -> Any:
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
        child = _supervise(
            words, lifeline=lifeline_read, status=status_write, grace_s=0.0, cpus="-",
            scratch=made, cwd=Path(server.source), env=os.environ | env, log=log,
        )  # fmt: skip
        child.wait(timeout=_BUILD_DEADLINE_S)
        told = os.read(status, 65536).decode(errors="replace").splitlines()
    except subprocess.TimeoutExpired as error:
        raise Unusable(
            f"its build did not end within {_BUILD_DEADLINE_S} s (log: {log.name})"
        ) from error
    finally:
        os.close(lifeline)  # Ctrl-C, too: nothing of the build runs on
        os.close(status)
        if child is not None:
            child.wait(timeout=_STOP_DEADLINE_S)
    missing = [line.removeprefix("error ") for line in told if line.startswith("error ")]
    if missing:
        raise Unusable(f"its build cannot be run: {missing[0]}")
    if "exit 0" not in told:
        said = _meaningful(Path(log.name).read_text(encoding="utf-8", errors="replace"))
        raise Unusable(f"its build failed: {said} (log: {log.name})")


def _supervise(
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


def _meaningful(text: str) -> str:
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


def _fill(word: str, **values: str) -> str:
    """Put values in place of ``{name}``; other braces, as configuration has them, stay."""
    return re.sub(r"\{([a-z_]+)\}", lambda match: values.get(match[1], match[0]), word)


# --- starting and stopping --------------------------------------------------------------------

_running: list[_Process | _Container] = []


def start(
    server: Server,
    runtime: str,
    *,
    address: str,
    port: int,
    workers: int,
    cpus: str | None,
    run_id: str,
    tls: Tls | None = None,
    conformance: bool = False,
) -> Running:
    """Start a prepared server and wait until it answers.

    ``cpus`` is a list such as ``0`` or ``0,2-3``; None pins nothing. With ``tls`` it serves the
    same on a second port; with ``conformance`` it gets what its manifest adds for suites.

    :raises HarnessError: no such runtime, or TLS of a server that has none.
    :raises Unusable: the port is taken, it did not start, died, or does not answer in time.
    """
    if tls is not None and "tls" not in server.capabilities:
        raise HarnessError(f"{server.name} has no TLS: leave it out, or ask it without")
    for wanted in [port, *([tls.port] if tls else [])]:
        try:
            taken = wire.port_taken(address, wanted)
        except OSError as error:
            raise Unusable(f"{address} cannot be listened on: {error.strerror}") from error
        if taken:
            raise Unusable(
                f"port {wanted} on {address} is taken: stop what listens there, or name another"
            )
    one: _Process | _Container
    if runtime == "process":
        one = _Process(server, address=address, port=port)
    elif runtime == "docker":
        one = _Container(
            server, address=address, port=port, name=f"httpmark-{run_id}-{server.name}"
        )
    else:
        raise HarnessError(f"no runtime is called {runtime!r}: use docker or process")
    _running.append(one)
    try:
        one.begin(workers=workers, cpus=cpus, tls=tls, conformance=conformance)
        _wait_ready(one, tls)
        one.ready()
    except BaseException:  # Ctrl-C as well: nothing half started may stay
        one.stop()
        raise
    return one


def stop_all() -> None:
    """Stop every server this process started; harmless when there is none."""
    while _running:
        _running[-1].stop()


atexit.register(stop_all)


def _wait_ready(one: _Process | _Container, tls: Tls | None) -> None:
    server = one.server
    host = f"[{one.address}]" if ":" in one.address else one.address
    request = (
        f"GET {server.ready_path} HTTP/1.1\r\nHost: {host}:{one.port}\r\nConnection: close\r\n\r\n"
    ).encode()
    end = time.monotonic() + server.ready_timeout_s
    answer: bytes | None = None
    while time.monotonic() < end:
        if not one.alive():
            raise Unusable(f"died at start: {one.exit_reason()}")
        with contextlib.suppress(OSError):
            answer = wire.ask(one.address, one.port, request, deadline_s=_READY_ASK_S)
        if answer is not None and answer.startswith(b"HTTP/1."):
            if not one.alive():  # then something else answered
                raise Unusable(f"died at start: {one.exit_reason()}")
            if tls is None or wire.port_taken(one.address, tls.port):
                return
        time.sleep(_READY_PAUSE_S)
    how = f"does not answer GET {server.ready_path}"
    if answer is None:
        how = "listens on no port"
    elif answer.startswith(b"HTTP/1.") and tls is not None:
        how = f"listens on no TLS port {tls.port}"
    tail = _last_line(one.log_tail())
    raise Unusable(
        f"{how}: waited {server.ready_timeout_s:g} s" + (f"; it last said: {tail}" if tail else "")
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _wait_port_free(address: str, port: int) -> None:
    end = time.monotonic() + _PORT_FREE_DEADLINE_S
    with contextlib.suppress(OSError):
        while wire.port_taken(address, port) and time.monotonic() < end:
            time.sleep(_READY_PAUSE_S)


def _values(address: str, port: int, workers: int, scratch: str) -> dict[str, str]:
    host = f"[{address}]" if ":" in address else address
    return {
        "address": address,
        "port": str(port),
        "endpoint": f"{host}:{port}",
        "workers": str(workers),
        "scratch": scratch,
        "static": f"{scratch}/{planted.FOLDER}",
    }


def _files(
    recipe: ProcessRecipe | ContainerRecipe, *, tls: bool, conformance: bool
) -> dict[str, str]:
    """The files of one start."""
    return (
        recipe.files
        | (recipe.tls_files if tls else {})
        | (recipe.conformance_files if conformance else {})
    )


def _start_words(
    recipe: ProcessRecipe | ContainerRecipe, *, tls: bool, conformance: bool
) -> tuple[str, ...]:
    """The command of one start."""
    return (
        *recipe.start,
        *(recipe.tls if tls else ()),
        *(recipe.conformance if conformance else ()),
    )


def _tls_values(address: str, tls: Tls, cert: str, key: str) -> dict[str, str]:
    endpoint = f"[{address}]:{tls.port}" if ":" in address else f"{address}:{tls.port}"
    return {
        "tls_port": str(tls.port), "tls_endpoint": endpoint, "tls_cert": cert, "tls_key": key,
    }  # fmt: skip


def _parents() -> dict[int, list[int]]:
    """The children of every process."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                stat = Path(entry.path, "stat").read_bytes()
                children.setdefault(int(stat.rpartition(b")")[2].split()[1]), []).append(
                    int(entry.name)
                )
    return children


def _descendants(root: int) -> list[int]:
    children = _parents()
    found: list[int] = []
    queue = list(children.get(root, ()))
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue += children.get(pid, ())
    return sorted(found)


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(number).name}"
    return f"killed by signal {number}"


def _cpus(text: str) -> set[int]:
    """``0,2-3`` as numbers."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


class _Process:
    """A server as a process of this machine, behind a supervisor."""

    runtime = "process"
    cgroup: str | None = None
    image_digest: str | None = None

    def __init__(self, server: Server, *, address: str, port: int) -> None:
        self.server = server
        self.address = address
        self.port = port
        self.version: str | None = None
        self._scratch: Path | None = None
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._lifeline: int | None = None
        self._status: int | None = None
        self._told = b""
        self._tail = ""

    def begin(self, *, workers: int, cpus: str | None, tls: Tls | None, conformance: bool) -> None:
        recipe = self.server.process
        if recipe is None:
            raise Unusable("cannot run as a process: its server.toml has no [process]")
        try:
            self._scratch = Path(tempfile.mkdtemp(prefix=f"httpmark-{self.server.name}-"))
            self._scratch.chmod(0o755)  # a server that drops its rights must still get in
            values = _values(self.address, self.port, workers, str(self._scratch))
            values |= {"source": self.server.source, "python": sys.executable}
            if recipe.build:
                values["build"] = _prepared.get(("process", self.server.source)) or str(
                    _build_folder(self.server)
                )
            if tls is not None:
                values |= _tls_values(self.address, tls, tls.cert, tls.key)
            for name, text in _files(recipe, tls=tls is not None, conformance=conformance).items():
                (self._scratch / name).write_text(_fill(text, **values), encoding="utf-8")
            if "static" in self.server.capabilities:
                planted.plant(self._scratch)
            log = (self._scratch / "server.log").open("wb")
        except OSError as error:
            raise Unusable(
                f"no scratch folder: {error}: make room in {tempfile.gettempdir()}"
            ) from error
        words = [
            _fill(word, **values)
            for word in _start_words(recipe, tls=tls is not None, conformance=conformance)
        ]
        words[0] = _executable(words[0]) or words[0]
        env = os.environ | {name: _fill(text, **values) for name, text in recipe.env.items()}
        pinned = ",".join(map(str, sorted(_cpus(cpus)))) if cpus else "-"
        lifeline_read, self._lifeline = os.pipe()
        self._status, status_write = os.pipe()
        os.set_blocking(self._status, False)
        with log:
            self._supervisor = _supervise(
                words, lifeline=lifeline_read, status=status_write, grace_s=_STOP_GRACE_S,
                cpus=pinned, scratch=self._scratch, cwd=self._scratch, env=env, log=log,
            )  # fmt: skip
        if recipe.version:
            asked = [_fill(word, **values) for word in recipe.version]
            asked[0] = _executable(asked[0]) or asked[0]
            self.version = _ask_version(asked)

    def ready(self) -> None:
        """It answers: nothing more to learn."""

    def pids(self) -> list[int]:
        return _descendants(self._supervisor.pid) if self._supervisor is not None else []

    def trees(self) -> list[int]:
        # What loses its parent becomes a child of the supervisor, and it waits for it.
        return [self._supervisor.pid] if self._supervisor is not None else []

    def _ending(self) -> str | None:
        """What the supervisor told of the server's end."""
        if self._status is not None:
            with contextlib.suppress(BlockingIOError):
                while piece := os.read(self._status, 4096):
                    self._told += piece
        lines = self._told.decode(errors="replace").splitlines()
        return next((line for line in reversed(lines) if not line.startswith("pid ")), None)

    def _server_pid(self) -> int | None:
        first, _, number = self._told.decode(errors="replace").partition("\n")[0].partition(" ")
        return int(number) if first == "pid" else None

    def alive(self) -> bool:
        # The supervisor first: a word it wrote before its end is in the pipe by now.
        ended = self._supervisor is None or self._supervisor.poll() is not None
        return self._ending() is None and not ended

    def exit_reason(self) -> str:
        told = self._ending() or ""
        lines = self._told.decode(errors="replace").splitlines()
        errors = [line.removeprefix("error ") for line in lines if line.startswith("error ")]
        word, _, number = told.partition(" ")
        if errors:
            return f"cannot be run: {errors[0]}"
        if word == "exit":
            how = f"exit code {number}"
        elif word == "signal":
            how = _signal_name(int(number))
        else:
            how = "still runs" if self.alive() else "its supervisor was killed"
        last = _last_line(self.log_tail())
        return f"{how}: {last}" if last else how

    def log_tail(self, lines: int = _LOG_TAIL_LINES) -> str:
        if self._scratch is not None:
            with contextlib.suppress(OSError), (self._scratch / "server.log").open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - _LOG_TAIL_BYTES))
                self._tail = log.read().decode(errors="replace")
        return "\n".join(self._tail.splitlines()[-lines:])

    def stop(self) -> None:
        self.log_tail()
        if self._supervisor is not None:
            # Closing the lifeline would do as well, but then the supervisor thinks us dead.
            with contextlib.suppress(ProcessLookupError):
                self._supervisor.terminate()
            try:
                self._supervisor.wait(timeout=_STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                self._supervisor.kill()
                self._supervisor.wait(timeout=_STOP_DEADLINE_S)
            self._ending()
            if self._supervisor.returncode != 0 and (pid := self._server_pid()):
                # Somebody killed the supervisor: the server's process group is what can be left.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
            _wait_port_free(self.address, self.port)
        for descriptor in (self._lifeline, self._status):
            if descriptor is not None:
                os.close(descriptor)
        self._lifeline = self._status = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        if self in _running:
            _running.remove(self)


# --- containers -------------------------------------------------------------------------------

_client: DockerClient | None = None


def docker_trouble() -> str | None:
    """None when a Docker daemon answers, else in one line why not, and the mend."""
    host = os.environ.get("DOCKER_HOST", "")
    if not host or host.startswith("unix://"):
        path = host.removeprefix("unix://") or "/var/run/docker.sock"
        if not os.path.exists(path):
            have = shutil.which("dockerd")
            mend = "systemctl start docker" if have else "apt-get install docker.io"
            return f"no Docker daemon answers at {path}: {mend}"
        if not os.access(path, os.R_OK | os.W_OK):
            return _no_permission(path)
    try:
        client = _docker()
        client.api.timeout = _DOCKER_PING_S
        try:
            client.ping()
        finally:
            client.api.timeout = _DOCKER_ASK_S
    except _docker_errors() as error:
        return _daemon_trouble(error, host or "/var/run/docker.sock")
    return None


def docker_facts() -> dict[str, Any] | None:
    """What of the daemon decides a container's figures; None where none answers (load.md 4.8)."""
    if docker_trouble() is not None:
        return None
    try:
        with _daemon("the daemon does not tell of itself") as client:
            told = client.info()
    except Unusable:
        return None
    return {
        "version": told.get("ServerVersion"),
        "containerd": (told.get("ContainerdCommit") or {}).get("ID"),
        "runc": (told.get("RuncCommit") or {}).get("ID"),
        "runtime": told.get("DefaultRuntime"),
        "storage_driver": told.get("Driver"),
        "cgroup_driver": told.get("CgroupDriver"),
        "cgroup_version": told.get("CgroupVersion"),
        "security": sorted(told.get("SecurityOptions") or []),
    }


def _no_permission(path: str) -> str:
    import grp

    try:
        group = grp.getgrgid(os.stat(path).st_gid).gr_name
    except (OSError, KeyError):
        group = "docker"
    return (
        f"no permission for {path}: sudo usermod -aG {group} {getpass.getuser()}, then log in again"
    )


def _daemon_trouble(error: BaseException, where: str) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, PermissionError) or "PermissionError" in str(cause):
            return _no_permission(where.removeprefix("unix://"))
        cause = cause.__cause__ or cause.__context__
    return f"no Docker daemon answers at {where}: systemctl start docker ({_one_line(error)})"


def _one_line(error: BaseException) -> str:
    explained = getattr(error, "explanation", None)
    return " ".join(str(explained or error).split())[:300]


def _docker() -> DockerClient:
    """The client of the daemon, made when first needed: importing docker takes a while."""
    global _client
    if _client is None:
        import docker

        # Making it asks the daemon for its version.
        _client = docker.from_env(timeout=_DOCKER_PING_S)
    return _client


def _docker_errors() -> tuple[type[BaseException], ...]:
    """What a call of the daemon may raise: its own errors, and those of the transport."""
    from docker.errors import DockerException

    return (DockerException, OSError)


@contextlib.contextmanager
def _daemon(what: str) -> Iterator[DockerClient]:
    """Talk to the daemon; whatever goes wrong is one line that begins with ``what``.

    :raises Unusable: no daemon answers, or it refuses.
    """
    try:
        yield _docker()
    except _docker_errors() as error:
        raise Unusable(f"{what}: {_one_line(error)}") from error


def _image_trouble(server: Server) -> str | None:
    recipe = server.container
    if recipe is None:
        return "cannot run as a container: its server.toml has no [container]"
    if recipe.image is None:
        return None
    from docker.errors import ImageNotFound

    try:
        with _daemon("images cannot be listed") as client:
            client.images.get(recipe.image)
    except Unusable as error:
        if isinstance(error.__cause__, ImageNotFound):
            return f"no image {recipe.image}: docker tag YOUR-IMAGE {recipe.image}"
        return str(error)
    return None


def _tag(server: Server) -> str:
    recipe = server.container
    assert recipe is not None
    if recipe.image is not None:
        return recipe.image
    return f"httpmark/{server.name}:{_digest(_context(server))}"


def _build_image(server: Server, *, say: Say) -> None:
    if trouble := docker_trouble() or _image_trouble(server):
        raise Unusable(trouble)
    recipe = server.container
    assert recipe is not None
    tag = _tag(server)
    _prepared["docker", server.source] = tag
    if recipe.dockerfile is None or _has_image(tag):
        return
    with _cache(f"image-{server.name}", say=say):
        base = _base(say=say)
        say(f"building image {tag} (once)")
        started = time.monotonic()
        context = _context_archive(server)
        with _log_file(tag.rpartition("/")[2].replace(":", "-")) as log:
            _docker_build(server, recipe.dockerfile, context, tag, base, log, say=say)
        say(f"built image {tag} in {time.monotonic() - started:.0f} s")


def _docker_build(
    server: Server, dockerfile: str, context: bytes, tag: str, base: str, log: Any, *, say: Say
) -> None:
    with _daemon("its image cannot be built") as client:
        told = client.api.build(
            fileobj=io.BytesIO(context), custom_context=True, dockerfile=dockerfile, tag=tag,
            buildargs={"BASE": base} | _proxies(), labels={_LABEL: "1"}, network_mode="host",
            rm=True, forcerm=True, decode=True, timeout=_BUILD_DEADLINE_S,
        )  # fmt: skip
        for event in told:
            text = event.get("stream") or event.get("error") or ""
            log.write(text)
            if text.startswith("Step "):
                say(f"{server.name}: {text.strip()}")
            if "error" in event:
                log.flush()
                lines = Path(log.name).read_text(encoding="utf-8", errors="replace")
                said = _meaningful(lines.replace(event["error"], "")) or event["error"]
                raise Unusable(f"its image cannot be built: {said} (log: {log.name})")


def _has_image(tag: str) -> bool:
    from docker.errors import ImageNotFound

    with _daemon(f"image {tag}") as client:
        try:
            client.images.get(tag)
        except ImageNotFound:
            return False
    return True


def _proxies() -> dict[str, str]:
    """The proxies of the environment, which a build may use without saying so."""
    names = [*_PROXIES, *(name.lower() for name in _PROXIES)]
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _context_archive(server: Server) -> bytes:
    """The build context: the sources, and under ``host/`` what this machine needs to reach out.

    ``host/ca/*.crt`` are its extra CA certificates and ``host/env`` its registry variables. Neither
    is part of the image's name, and the last stage of a Dockerfile takes neither.
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, path in _context(server):
            _add(tar, name, path.read_bytes(), mode=0o755 if os.access(path, os.X_OK) else 0o644)
        for path in sorted(_CA_FOLDER.glob("*.crt")) if _CA_FOLDER.is_dir() else []:
            _add(tar, f"host/ca/{path.name}", path.read_bytes())
        lines = [
            f"export {name}={shlex.quote(value)}\n"
            for name, value in sorted(os.environ.items())
            if _REGISTRY_VARIABLE.fullmatch(name)
        ]
        _add(tar, "host/env", "".join(lines).encode())
    return archive.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, *, mode: int = 0o644) -> None:
    # No times and no owner: the daemon's build cache goes by them.
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = mode
    tar.addfile(entry, io.BytesIO(content))


def _base(*, say: Say) -> str:
    """The Debian image to build from: here already, from a registry, or made here.

    :raises Unusable: none of the three.
    """
    for tag in (_BASE_PUBLIC, _BASE_MADE):
        if _has_image(tag):
            return tag
    from docker.errors import DockerException

    say(f"fetching {_BASE_PUBLIC}")
    try:
        _docker().images.pull(_BASE_PUBLIC)
        return _BASE_PUBLIC
    except (DockerException, OSError) as error:
        say(f"no registry gives {_BASE_PUBLIC} ({_one_line(error)})")
    _make_base(say=say)
    return _BASE_MADE


def _make_base(*, say: Say) -> None:
    with _cache("image-base", say=say):
        if _has_image(_BASE_MADE):
            return
        tool = shutil.which("mmdebstrap")
        if tool is None:
            raise Unusable(
                f"no registry gives {_BASE_PUBLIC}, and mmdebstrap, which could make it, is not "
                "found: apt-get install mmdebstrap"
            )
        if not _KEYRING.exists():
            raise Unusable(f"{_KEYRING} not found: apt-get install debian-archive-keyring")
        say(f"making {_BASE_MADE} with mmdebstrap (once)")
        with tempfile.TemporaryDirectory(prefix="httpmark-base-") as folder:
            archive = Path(folder) / "base.tar"
            words = [
                tool, "--variant=minbase", f"--keyring={_KEYRING}", _SUITE, str(archive),
            ]  # fmt: skip
            made = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", timeout=_BUILD_DEADLINE_S, check=False,
            )  # fmt: skip
            with _log_file("base") as log:
                log.write(made.stdout)
            if "NO_PUBKEY" in made.stdout:
                raise Unusable(
                    f"{_KEYRING} does not know trixie's key: apt-get install --only-upgrade "
                    "debian-archive-keyring"
                )
            if made.returncode != 0:
                raise Unusable(f"mmdebstrap: {_meaningful(made.stdout)} (log: {log.name})")
            repository, _, tag = _BASE_MADE.partition(":")
            with _daemon("the base image cannot be imported") as client, archive.open("rb") as file:
                # As pieces: docker-py announces chunks, and sends a file without making any.
                client.api.import_image_from_stream(
                    iter(lambda: file.read(1 << 20), b""),
                    repository=repository,
                    tag=tag,
                    changes=[f"LABEL {_LABEL}=1"],
                )
        if not _has_image(_BASE_MADE):
            raise Unusable(f"{_BASE_MADE} was imported and is not there: see the daemon's log")


def _start_time(pid: int) -> int | None:
    """When a process began, in ticks since boot: with the pid it names one process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return int(stat.rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None


def _boot() -> str:
    """This boot and this pid namespace: within them a pid and its start time name one process."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return ""


def _labels() -> dict[str, str]:
    pid = os.getpid()
    return {
        _LABEL: "1",
        f"{_LABEL}.owner": f"{pid}-{_start_time(pid)}",
        f"{_LABEL}.boot": _boot(),
    }


def _owner_lives(labels: dict[str, str]) -> bool:
    pid, _, started = labels.get(f"{_LABEL}.owner", "").partition("-")
    boot, _, namespace = labels.get(f"{_LABEL}.boot", "").partition(" ")
    our_boot, _, our_namespace = _boot().partition(" ")
    if boot != our_boot:
        return False
    if namespace != our_namespace:
        return True  # its pids mean nothing to us: leave it alone
    return pid.isdigit() and str(_start_time(int(pid))) == started


def sweep() -> list[str]:
    """Remove the containers of harnesses that are dead; their names. Never those of a living one.

    Without a usable daemon there is nothing to remove.
    """
    if docker_trouble():
        return []
    removed: list[str] = []
    with contextlib.suppress(Unusable), _daemon("containers cannot be listed") as client:
        for one in client.api.containers(all=True, filters={"label": f"{_LABEL}.owner"}):
            if not _owner_lives(one["Labels"]):
                client.api.remove_container(one["Id"], force=True, v=True)
                removed.append(one["Names"][0].removeprefix("/"))
    return removed


_versions: dict[str, str | None] = {}


class _Container:
    """A server as a container on the host's network."""

    runtime = "docker"

    def __init__(self, server: Server, *, address: str, port: int, name: str) -> None:
        self.server = server
        self.address = address
        self.port = port
        self.name = name
        self.cgroup: str | None = None
        self.version: str | None = None
        self.image_digest: str | None = None
        self._container: Container | None = None
        self._pid = 0
        self._begun = False
        self._ended = ""
        self._tail = ""
        self._asked: tuple[str, ...] = ()

    def begin(self, *, workers: int, cpus: str | None, tls: Tls | None, conformance: bool) -> None:
        from docker.types import Ulimit

        recipe = self.server.container
        if recipe is None:
            raise Unusable("cannot run as a container: its server.toml has no [container]")
        values = _values(self.address, self.port, workers, _IN_CONTAINER)
        texts = _files(recipe, tls=tls is not None, conformance=conformance)
        if tls is not None:
            given = {"tls_cert": tls.cert, "tls_key": tls.key}
            inside = {name: f"{_IN_CONTAINER}/{name}.pem" for name in given}
            values |= _tls_values(self.address, tls, inside["tls_cert"], inside["tls_key"])
        texts = {name: _fill(text, **values) for name, text in texts.items()}
        if tls is not None:
            try:
                texts |= {f"{name}.pem": Path(path).read_text() for name, path in given.items()}
            except OSError as error:
                raise Unusable(f"{error.filename}: {error.strerror}") from error
        words = [
            _fill(word, **values)
            for word in _start_words(recipe, tls=tls is not None, conformance=conformance)
        ]
        self._asked = tuple(_fill(word, **values) for word in recipe.version)
        # The machine's hard limit, never above: a daemon without the right to raise it refuses.
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with _daemon("its container cannot be started") as client:
            self._begun = True
            self._container = client.containers.create(
                _prepared.get(("docker", self.server.source)) or _tag(self.server),
                command=words[1:] or None,
                entrypoint=words[:1] or None,
                name=self.name,
                labels=_labels(),
                environment={name: _fill(text, **values) for name, text in recipe.env.items()},
                network_mode="host",
                cpuset_cpus=cpus,
                ulimits=[Ulimit(name="nofile", soft=files, hard=files)] if files > 0 else None,
            )
            if "static" in self.server.capabilities:
                self._container.put_archive("/", _scratch_archive(texts, with_static=True))
            elif texts:
                self._container.put_archive("/", _scratch_archive(texts))
            self._container.start()
            self._container.reload()
            self._pid = int(self._container.attrs["State"]["Pid"])
            image = self._container.image
            self.image_digest = image.id if image is not None else None
            self.cgroup = _memory_cgroup(self._pid)

    def ready(self) -> None:
        """Ask the server in its container for its version, once per image."""
        assert self._container is not None
        key = self.image_digest or self.name
        if self._asked and key not in _versions:
            with _daemon("its version cannot be asked") as _:
                code, told = self._container.exec_run(list(self._asked))
            text = told.decode(errors="replace") if isinstance(told, bytes) else ""
            _versions[key] = _version_in(text) if code == 0 else None
        self.version = _versions.get(key)

    def _state(self) -> dict[str, Any]:
        if self._container is None:
            return {}
        with contextlib.suppress(Unusable), _daemon("its state cannot be asked"):
            self._container.reload()
            return dict(self._container.attrs["State"])
        return {}

    def pids(self) -> list[int]:
        if not self._pid or not self.alive():
            return []
        return sorted([self._pid, *_descendants(self._pid)])

    def trees(self) -> list[int]:
        # The first process of a container inherits what loses its parent (pid_namespaces(7)).
        return [self._pid] if self._pid and self.alive() else []

    def alive(self) -> bool:
        return bool(self._state().get("Running"))

    def exit_reason(self) -> str:
        if self._ended:
            return self._ended
        state = self._state()
        if state.get("Running"):
            return "still runs"
        code = state.get("ExitCode")
        if state.get("OOMKilled"):
            how = "killed: out of memory"
        elif state.get("Error"):
            how = " ".join(str(state["Error"]).split())
        elif code is None:
            how = "its container is gone"
        else:
            # A container tells a signal as 128 and its number.
            how = _signal_name(code - 128) if code > 128 else f"exit code {code}"
        last = _last_line(self.log_tail())
        return f"{how}: {last}" if last else how

    def log_tail(self, lines: int = _LOG_TAIL_LINES) -> str:
        if self._container is not None:
            with contextlib.suppress(Unusable), _daemon("its log cannot be read"):
                log: bytes = self._container.logs(stream=False, tail=_LOG_TAIL_LINES)
                self._tail = log.decode(errors="replace")
        return "\n".join(self._tail.splitlines()[-lines:])

    def stop(self) -> None:
        from docker.errors import NotFound

        if self._begun:
            # By name: Ctrl-C may have come before the daemon told us what it made.
            with contextlib.suppress(*_docker_errors()):
                client = _docker()
                try:
                    self.log_tail()
                    # The first process of a container never gets a SIGTERM that it does not catch.
                    grace_s = _STOP_GRACE_S if _catches(self._pid, signal.SIGTERM) else 0
                    client.api.stop(self.name, timeout=int(grace_s))
                    self._ended = self.exit_reason()
                    client.api.remove_container(self.name, force=True, v=True)
                except NotFound:
                    pass
            _wait_port_free(self.address, self.port)
            self._begun = False
            self._container = None
        if self in _running:
            _running.remove(self)


def _catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal; True where that cannot be known."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (number - 1) & 1)
    except (OSError, StopIteration, ValueError):
        return True


def _scratch_archive(files: dict[str, str], *, with_static: bool = False) -> bytes:
    """The scratch folder of a container, for whatever user its image names."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        folder = tarfile.TarInfo(_IN_CONTAINER.removeprefix("/"))
        folder.type = tarfile.DIRTYPE
        folder.mode = 0o777
        tar.addfile(folder)
        for name, text in files.items():
            _add(tar, f"{folder.name}/{name}", text.encode())
        if with_static:
            with tempfile.TemporaryDirectory(prefix="httpmark-static-") as made:
                planted.plant(Path(made))
                for entry in sorted(Path(made).iterdir()):
                    tar.add(entry, f"{folder.name}/{entry.name}", filter=_of_root)
    return archive.getvalue()


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def _memory_cgroup(pid: int) -> str | None:
    """The folder of a process's memory controller, where this machine shows one."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, place = line.split(":", 2)
            root = "/sys/fs/cgroup" + ("/memory" if controllers else "")
            wanted = not controllers or "memory" in controllers.split(",")
            if wanted and place != "/" and os.path.isdir(root + place):
                return root + place
    return None
