"""The suites of one server, fired on a worker by the command itself. All here runs on the worker.

The task starts ``httpmark run`` as a program of its own, under a supervisor: it ends when the
worker ends, whatever ended that. A task that is not wanted any more is interrupted, and so is the
program.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from httpmark.harness.cluster import carried_files
from httpmark.harness.cluster.worker_task import WorkerTask
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.servers import machine
from httpmark.harness.servers.supervision import Command, supervised

_POLL_S = 0.2
_GRACE_S = 60.0  # between asking the program to end and killing it
_RUN = "run"
_OUTPUT = "output.txt"
_STOPPED: set[str] = set()
"""The runs that are not wanted any more, by their ids."""


class OtherVersion(HarnessError):
    """A worker that came later, with another version of httpmark."""

    exit_code = 3

    @property
    def worker(self) -> str:
        """Its address."""
        return str(self.args[1])

    def __str__(self) -> str:
        return str(self.args[0])


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to fire at one server."""

    run: str  # the id of the whole run
    version: str  # of httpmark, at the caller
    server: str
    words: tuple[str, ...]  # of ``httpmark run``, without --out


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run folder waits to be brought back."""

    worker: str  # its address
    host: str
    folder: str
    files: tuple[carried_files.Listed, ...]


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a task tells while it goes on."""

    server: str
    worker: str
    line: str | None  # None: it begins


def topic(run: str) -> str:
    """Where the tasks of a run tell how far they are."""
    return f"httpmark-{run}"


def stop(run: str) -> None:
    """Interrupt what this worker does for a run; what there is by then is handed over."""
    _STOPPED.add(run)


def remove(folder: str) -> None:
    """Remove a run folder that was brought back."""
    shutil.rmtree(Path(folder).parent, ignore_errors=True)


def carry_out(order: Order) -> Done | None:
    """Fire the suites; None where the run was stopped before there was anything to keep.

    :raises OtherVersion: this worker has another version than the caller.
    :raises Unusable: the program left no result.
    """
    if order.run in _STOPPED:
        return None
    task = WorkerTask(topic(order.run))
    if (own := machine.version()) != order.version:
        raise OtherVersion(
            f"httpmark at the worker {task.address} is {own}, and {order.version} here",
            task.address,
        )

    def say(line: str | None) -> None:
        said = Said(server=order.server, worker=task.address, line=line)
        task.say(msgspec.to_builtins(said))

    def wanted() -> bool:
        return order.run not in _STOPPED and task.is_wanted

    say(None)
    scratch = Path(tempfile.mkdtemp(prefix="httpmark-suites-", dir=task.folder))
    how = _run(order, scratch, say, wanted)
    folder = scratch / _RUN
    if not (folder / run_folder.RESULT).is_file():
        last = next((line for line in reversed(_lines(scratch / _OUTPUT)) if line.strip()), how)
        shutil.rmtree(scratch, ignore_errors=True)
        if not wanted():  # interrupted before there was anything to keep
            return None
        raise Unusable(last.removeprefix("httpmark: "))
    return Done(
        worker=task.address, host=os.uname().nodename, folder=str(folder),
        files=carried_files.listed(folder),
    )  # fmt: skip


def _run(
    order: Order, scratch: Path, say: Callable[[str | None], None], wanted: Callable[[], bool]
) -> str:
    """Run the command to its end, and hand on what it says.

    :returns: how it ended.
    """
    command = Path(sysconfig.get_path("scripts"), "httpmark")
    lifeline_read, lifeline = os.pipe()
    status, status_write = os.pipe()
    os.set_blocking(status, False)
    words = [sys.executable, str(command), "run", *order.words, "--out", str(scratch / _RUN)]
    told = b""
    try:
        with (scratch / _OUTPUT).open("wb") as log:
            child = supervised(
                Command(
                    [*words, "--json"], cwd=scratch, env=os.environ | {"CI": "true"},
                    scratch=scratch, grace_s=_GRACE_S,
                ),
                lifeline=lifeline_read, status=status_write, log=log,
            )  # fmt: skip
        output = _Output(scratch / _OUTPUT)
        asked = False
        while child.poll() is None:
            if not asked and not wanted():
                child.terminate()
                asked = True
            for line in output.new():
                say(line)
            time.sleep(_POLL_S)
        with contextlib.suppress(BlockingIOError):
            told = os.read(status, 4096)
        if child.returncode:
            _end_group(child.pid)
    finally:
        os.close(lifeline)
        os.close(status)
    return (told.decode(errors="replace").splitlines() or ["it did not start"])[-1]


def _end_group(pid: int) -> None:
    """A supervisor that was killed itself has left its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


class _Output:
    """The lines of progress that a program has written since they were last asked for."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._at = 0
        self._ended = False

    def new(self) -> list[str]:
        if self._ended:
            return []
        with self._file.open("rb") as stream:
            stream.seek(self._at)
            held = stream.read()
        whole, newline, _ = held.rpartition(b"\n")
        self._at += len(whole) + len(newline)
        lines = whole.decode(errors="replace").splitlines()
        if "{" in lines:  # the result, as JSON
            self._ended = True
            lines = lines[: lines.index("{")]
        return lines


def _lines(file: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return file.read_text("utf-8", errors="replace").splitlines()
    return []
