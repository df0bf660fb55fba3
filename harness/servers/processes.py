"""A server as a process of this machine, behind a supervisor."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.servers import Server, Tls
from httpmark.harness.servers import proc_files, running, scratch_folders, static_files
from httpmark.harness.servers.build import build_folder
from httpmark.harness.servers.build_cache import PREPARED
from httpmark.harness.servers.build_sources import PACKAGE
from httpmark.harness.servers.memory_guard import MemoryGuard
from httpmark.harness.servers.needs import ask_version, executable, no_recipe
from httpmark.harness.servers.running import LOG_TAIL_LINES, RUNNING, last_line, wait_port_free
from httpmark.harness.servers.start_words import (
    filled,
    placeholder_values,
    start_files,
    start_words,
    tls_values,
)
from httpmark.harness.servers.supervision import Command, supervised

_LOG_TAIL_BYTES = 64 * 1024


def signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(number).name}"
    return f"killed by signal {number}"


def _as_a_shell_tells(code: int) -> str:
    """The signal that an exit code of more than 128 stands for, if a shell ran the server."""
    with contextlib.suppress(ValueError):
        if code > 128:
            return f" ({signal.Signals(code - 128).name}, as a shell tells it)"
    return ""


def _cpus(text: str) -> frozenset[int]:
    """The processors that ``0,2-3`` names."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


class ProcessServer:
    """A server as a process of this machine, behind a supervisor."""

    runtime = "process"
    cgroup: str | None = None
    image_digest: str | None = None

    def __init__(self, server: Server, *, address: str, port: int) -> None:
        self.server = server
        self.address = address
        self.port = port
        self.tls_port: int | None = None
        self.version: str | None = None
        self._scratch: Path | None = None
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._lifeline: int | None = None
        self._status: int | None = None
        self._told = b""
        self._tail = ""
        self._guard: MemoryGuard | None = None

    def begin(self, *, workers: int, cpus: str | None, tls: Tls | None, conformance: bool) -> None:
        recipe = self.server.process
        if recipe is None:
            raise Unusable(no_recipe(self.server, "process"))
        try:
            self._scratch = scratch_folders.make(self.server.name)
            self._scratch.chmod(0o755)  # a server that drops its rights must still get in
            values = placeholder_values(self.address, self.port, workers, str(self._scratch))
            values |= {"source": self.server.source, "python": sys.executable}
            values |= {"package": str(PACKAGE)}
            if recipe.build:
                values["build"] = PREPARED.of(self.server, "process") or str(
                    build_folder(self.server)
                )
            if tls is not None:
                self.tls_port = tls.port
                values |= tls_values(self.address, tls, tls.cert, tls.key)
            for name, text in start_files(
                recipe, tls=tls is not None, conformance=conformance
            ).items():
                (self._scratch / name).write_text(filled(text, **values), encoding="utf-8")
            if "static" in self.server.capabilities:
                static_files.plant(self._scratch)
            log = (self._scratch / "server.log").open("wb")
        except OSError as error:
            raise Unusable(
                f"no scratch folder: {error}: make room in {tempfile.gettempdir()}"
            ) from error
        words = [
            filled(word, **values)
            for word in start_words(recipe, tls=tls is not None, conformance=conformance)
        ]
        words[0] = executable(words[0]) or words[0]
        env = os.environ | {name: filled(text, **values) for name, text in recipe.env.items()}
        lifeline_read, self._lifeline = os.pipe()
        self._status, status_write = os.pipe()
        os.set_blocking(self._status, False)
        with log:
            command = Command(
                words,
                cwd=self._scratch,
                env=env,
                scratch=self._scratch,
                grace_s=running.STOP_GRACE_S,
                cpus=_cpus(cpus) if cpus else frozenset(),
            )
            self._supervisor = supervised(
                command, lifeline=lifeline_read, status=status_write, log=log
            )
        self._guard = MemoryGuard(self.pids)
        if recipe.version:
            asked = [filled(word, **values) for word in recipe.version]
            asked[0] = executable(asked[0]) or asked[0]
            self.version = ask_version(asked)

    def ready(self) -> None:
        """It answers: nothing more to learn."""

    def pids(self) -> list[int]:
        return proc_files.descendants(self._supervisor.pid) if self._supervisor is not None else []

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
        ends = [line for line in lines if not line.startswith(("pid ", "left "))]
        return ends[-1] if ends else None

    def _server_pid(self) -> int | None:
        first, _, number = self._told.decode(errors="replace").partition("\n")[0].partition(" ")
        return int(number) if first == "pid" else None

    def alive(self) -> bool:
        # The supervisor first: a word it wrote before its end is in the pipe by now.
        ended = self._supervisor is None or self._supervisor.poll() is not None
        return self._ending() is None and not ended

    def ending(self) -> str:
        told = self._ending() or ""
        lines = self._told.decode(errors="replace").splitlines()
        errors = [line.removeprefix("error ") for line in lines if line.startswith("error ")]
        word, _, number = told.partition(" ")
        if errors:
            return f"cannot be run: {errors[0]}"
        if self._guard is not None and self._guard.told:
            return self._guard.told
        if word == "exit":
            return f"exit code {number}{_as_a_shell_tells(int(number))}"
        if word == "signal":
            return signal_name(int(number))
        return "still runs" if self.alive() else "its supervisor was killed"

    def left_behind(self) -> int:
        """How many of its processes outlived its first one, when it was stopped."""
        self._ending()
        lines = self._told.decode(errors="replace").splitlines()
        return sum(int(line.removeprefix("left ")) for line in lines if line.startswith("left "))

    def exit_reason(self) -> str:
        how = self.ending()
        last = last_line(self.log_tail())
        return f"{how}: {last}" if last and not how.startswith("cannot be run") else how

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        if self._scratch is not None:
            with contextlib.suppress(OSError), (self._scratch / "server.log").open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - _LOG_TAIL_BYTES))
                self._tail = log.read().decode(errors="replace")
        return "\n".join(self._tail.splitlines()[-lines:])

    def stop(self) -> None:
        self.log_tail()
        if self._guard is not None:
            self._guard.stop()
        if self._supervisor is not None:
            # Closing the lifeline would do as well, but then the supervisor thinks us dead.
            with contextlib.suppress(ProcessLookupError):
                self._supervisor.terminate()
            try:
                self._supervisor.wait(timeout=running.STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                self._supervisor.kill()
                self._supervisor.wait(timeout=running.STOP_DEADLINE_S)
            self._ending()
            if self._supervisor.returncode != 0 and (pid := self._server_pid()):
                # Somebody killed the supervisor: the server's process group is what can be left.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
            wait_port_free(self.address, self.port)
        for descriptor in (self._lifeline, self._status):
            if descriptor is not None:
                os.close(descriptor)
        self._lifeline = self._status = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        RUNNING.remove(self)
