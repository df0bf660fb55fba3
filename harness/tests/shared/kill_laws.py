"""A command that is killed at some moment, and the laws that hold afterwards.

It ends in time and says so in one line; nothing it started and no temporary file is left; what it
had stored can be read.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from httpmark.harness.model import digests, run_folder
from httpmark.harness.model.run import Run
from httpmark.harness.servers import proc_files
from httpmark.harness.tests.shared import child_process, command_process

ENDS_S = 30.0  # from SIGINT or SIGTERM to the end: the result is scored and drawn meanwhile
GONE_S = 10.0  # from the end of the command to that of all it started
_BEGINS_S = 60.0
_FOLLOWS_S = 180.0  # the longest that a command afterwards may take
_LOOK_S = 0.02
_MARK = "HTTPMARK_KILLED_AS"  # a variable that every process of one command has
TRACES = ("Traceback", "Exception ignored", "internal error", "Segmentation fault")
RUN_FILES = {
    run_folder.RESULT, run_folder.EVIDENCE, run_folder.REPORT, run_folder.LOG, digests.NAME,
}  # fmt: skip
RUN, FOUND = "r", "found"
"""The folders, below the one a command runs in, that a run and the finds of a search go to."""

# A first line when the program begins: until then it is Python itself that is killed.
BEGIN = (
    sys.executable,
    "-c",
    "import sys; from httpmark.harness.command.entry import main; print(flush=True); main()",
)
SIGNALS = {
    "SIGKILL": signal.SIGKILL, "SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM,
    "Ctrl-C": signal.SIGINT,
}  # fmt: skip
"""How a command is killed. Ctrl-C is SIGINT for its whole process group, as a terminal sends it."""


class Task(NamedTuple):
    """A command that may be killed."""

    name: str
    words: tuple[str, ...]  # of the process; it prints a line when it begins
    ended: str  # what it prints only where it came to its end
    codes: tuple[int, ...] = (0,)  # of a command that is not killed


class Kill(NamedTuple):
    """When a command is killed, and how."""

    way: str  # a key of SIGNALS; empty: it is let run to its end
    after_s: float  # since it began


class Killed(NamedTuple):
    """What came of a command."""

    code: int
    seconds: float
    is_late: bool  # it had ended before it was to be killed
    broken: list[str]  # a line for each law that does not hold


class _Stored(NamedTuple):
    """What can be read of a run."""

    exchanges: int
    suites: frozenset[tuple[str, str]]
    loads: int


def exchanges(folder: Path) -> int:
    """How many exchanges another process can read in a run folder."""
    file = folder / run_folder.EVIDENCE
    if not file.is_file():
        return 0
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as base:
            found = int(base.execute("SELECT count(*) FROM exchange").fetchone()[0])
    except sqlite3.Error:
        return 0  # it is being made
    base.close()
    return found


def _result(folder: Path) -> Run | None:
    file = folder / run_folder.RESULT
    return msgspec.json.decode(file.read_bytes(), type=Run) if file.exists() else None


def _has_begun(folder: Path) -> bool:
    """Whether a result was written of a run that has not ended."""
    run = _result(folder)
    return run is not None and (run.finished is None or run.interrupted)


def _stored(folder: Path) -> _Stored:
    if (run := _result(folder)) is None:
        return _Stored(exchanges(folder), frozenset(), 0)
    suites = {(one.name, suite) for one in run.servers for suite in one.compliance.suites}
    loads = sum(len(one.load) for one in run.servers)
    return _Stored(exchanges(folder), frozenset(suites), loads)


def _alive(mark: str) -> list[int]:
    """The processes that have a mark in their environment and have not ended.

    While a program is loaded into a process, its environment cannot be read: it counts, too.
    """
    found = []
    for pid in proc_files.process_ids():
        # Asked first: it may be loaded by the time that its environment is read.
        is_loading = _is_loading(pid)
        try:
            with proc_files.opened(pid, "environ") as told:
                is_marked = f"{_MARK}={mark}".encode() in told.read().split(b"\0")
        except OSError:
            continue  # the process has ended, or is somebody else's
        if is_marked or is_loading:
            found.append(pid)
    return found


def _is_loading(pid: int) -> bool:
    """Whether a process has memory and no command line: execve lets its parent go on first."""
    words = proc_files.text_if_there(pid, "cmdline")
    memory = proc_files.text_if_there(pid, "statm")  # 0 pages: of the kernel, or it has ended
    return words == "" and memory is not None and not memory.startswith("0 ")


def _shown(pid: int) -> str:
    told = proc_files.text_if_there(pid, "cmdline") or ""
    return " ".join(told.replace("\0", " ").split())[:120] or f"process {pid}"


class _Scene:
    """A command in a folder of its own, with its own folder for temporary files."""

    def __init__(self, task: Task, folder: Path) -> None:
        self.task, self.cwd, self.scratch = task, folder / "here", folder / "tmp"
        for one in (self.cwd, self.scratch):
            one.mkdir(parents=True)
        self.out, self.errors = folder / "stdout", folder / "stderr"
        self.mark = secrets.token_hex(8)
        self.broken: list[str] = []
        self.run = self.cwd / RUN
        self.before = _Stored(0, frozenset(), 0)

    def environment(self, **more: str) -> dict[str, str]:
        own = {"TMPDIR": str(self.scratch), "HTTPMARK_FOUND": str(self.cwd / FOUND)}
        return command_process.environment(None, **own, **more)

    def start(self) -> subprocess.Popen[str]:
        """Start the command; this returns when it has begun."""
        with self.out.open("w") as out, self.errors.open("w") as errors:
            process = child_process.start(
                self.task.words, cwd=self.cwd, env=self.environment(**{_MARK: self.mark}),
                stdin=subprocess.DEVNULL, stdout=out, stderr=errors, process_group=0,
            )  # fmt: skip
        end = time.monotonic() + _BEGINS_S
        while not self.out.stat().st_size and process.poll() is None and time.monotonic() < end:
            time.sleep(_LOOK_S / 4)
        return process

    def follow(self, *words: str) -> tuple[int, str]:
        """A command of a user afterwards: its exit code, and all that it printed."""
        done = subprocess.run(
            [*command_process.COMMAND, *words], cwd=self.cwd, env=self.environment(),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_FOLLOWS_S,
            check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        if any(trace in said for trace in TRACES):
            self.broken.append(f"a trace of 'httpmark {' '.join(words)}': {said[-300:]!r}")
        return done.returncode, said

    def must(self, code: int, *words: str) -> None:
        """Law: a command of a user afterwards has this exit code."""
        got, said = self.follow(*words)
        if got != code:
            last = command_process.last_line(said) if said.strip() else "it said nothing"
            self.broken.append(f"'httpmark {' '.join(words)}' exits with {got}: {last}")

    def left(self, place: Path) -> list[str]:
        return sorted(str(one.relative_to(place)) for one in place.rglob("*"))

    def text(self) -> str:
        return self.out.read_text(errors="replace")

    def complaints(self) -> list[str]:
        return self.errors.read_text(errors="replace").splitlines()


def killed(task: Task, kill: Kill, folder: Path, *, resumes: bool = False) -> Killed:
    """Start a command, kill it, and look at what is left. The folder is made, and is the caller's.

    :param resumes: carry a run on that was interrupted or killed, to its end.
    """
    scene = _Scene(task, folder)
    process = scene.start()
    try:
        is_late, seconds = _ended(scene, process, kill)
    finally:
        process.kill()  # where this program itself is told to end
        process.wait()
    by_force = kill.way == "SIGKILL" and not is_late
    can_go_on = _has_begun(scene.run)
    _hold_words(scene, process.returncode, kill.way, is_late=is_late)
    _hold_nothing_left(scene, by_force=by_force)
    _hold_stored(scene, by_force=by_force)
    if resumes and can_go_on:
        scene.must(0, "run", "--resume", RUN)
    _hold_files(scene)
    return Killed(process.returncode, seconds, is_late, scene.broken)


def _ended(scene: _Scene, process: subprocess.Popen[str], kill: Kill) -> tuple[bool, float]:
    """Kill the command and wait for its end: whether that came before, and how long it took since
    the kill, or since the command began where nothing kills it."""
    began = time.monotonic()
    is_late = _sent(scene, process, kill)
    if kill.way:
        began = time.monotonic()
    patience_s = ENDS_S if kill.way and not is_late else _FOLLOWS_S
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        scene.broken.append(f"it runs {patience_s:.0f} s later")
    return is_late, time.monotonic() - began


def _sent(scene: _Scene, process: subprocess.Popen[str], kill: Kill) -> bool:
    """Wait for the moment and kill; whether the command had ended by then."""
    if not kill.way:
        return False
    try:
        process.wait(kill.after_s)
        return True
    except subprocess.TimeoutExpired:
        scene.before = _stored(scene.run)
    if kill.way == "Ctrl-C":
        os.killpg(process.pid, SIGNALS[kill.way])
    else:
        process.send_signal(SIGNALS[kill.way])
    return False


def _hold_words(scene: _Scene, code: int, way: str, *, is_late: bool) -> None:
    """Law: the documented exit code, no trace, and one line that says what was kept."""
    said, complaints = scene.text(), scene.complaints()
    broken = scene.broken
    all_said = said + "\n".join(complaints)
    if any(trace in all_said for trace in TRACES):
        broken.append(f"a trace: {all_said[-400:]!r}")
    if (scene.cwd / "httpmark-error.txt").exists():
        broken.append("a trace in httpmark-error.txt")
    if code == -signal.SIGKILL and way == "SIGKILL":
        return
    if scene.task.ended in said and code in scene.task.codes:
        return  # the signal came when all was done
    if not way or is_late:
        broken.append(f"exit code {code}, and nobody killed it: {complaints[-1:]}")
        return
    if code != 128 + SIGNALS[way]:
        broken.append(f"exit code {code} after {way}: {complaints[-1:]}")
        return
    lines = [line for line in complaints if line.startswith("httpmark: ")]
    if len(lines) != 1 or not lines[0].startswith("httpmark: interrupted"):
        broken.append(f"not one line that says what was kept: {lines}")
        return
    named = re.search(r" are in (.+)$", lines[0])
    if named is not None and not (scene.cwd / named[1]).is_dir():
        broken.append(f"the folder that it names does not exist: {lines[0]}")
    if "no run folder was written" in lines[0] and scene.run.exists():
        broken.append(f"a run folder with {scene.left(scene.run)}, and it says: {lines[0]}")


def _hold_nothing_left(scene: _Scene, *, by_force: bool) -> None:
    """Law: no process is left, and no temporary file; after SIGKILL, after the next start."""
    end = time.monotonic() + GONE_S
    while (alive := _alive(scene.mark)) and time.monotonic() < end:
        time.sleep(_LOOK_S)
    for pid in alive:
        scene.broken.append(f"a process is left after {GONE_S:.0f} s: {_shown(pid)}")
        os.kill(pid, signal.SIGKILL)
    if not by_force and (left := scene.left(scene.scratch)):
        scene.broken.append(f"temporary files are left: {left[:5]}")
    scene.must(0, "list", "suites")
    if by_force and (left := scene.left(scene.scratch)):
        scene.broken.append(f"temporary files are left after the next start: {left[:5]}")


def _hold_stored(scene: _Scene, *, by_force: bool) -> None:
    """Law: what had been stored when the command was killed can be read."""
    for found in re.findall(r"saved as (\S+\.toml)$", scene.text(), re.MULTILINE):
        if not (scene.cwd / found).is_file():
            scene.broken.append(f"{found} was said to be saved, and is not there")
    if not scene.run.exists():
        return
    has_result = (scene.run / run_folder.RESULT).exists()
    has_evidence = (scene.run / run_folder.EVIDENCE).is_file()
    if has_evidence:
        scene.must(0, "judge", RUN)
    else:
        scene.must(0 if has_result else 2, "report", RUN)
    if not by_force and not has_result:
        scene.broken.append(f"a run folder without a result: {scene.left(scene.run)}")
    after = _stored(scene.run)
    if after.exchanges < scene.before.exchanges:
        scene.broken.append(f"{scene.before.exchanges} exchanges were stored: {after.exchanges}")
    if not after.suites >= scene.before.suites or after.loads < scene.before.loads:
        scene.broken.append(f"stored were {scene.before}, and are {after}")


def _hold_files(scene: _Scene) -> None:
    """Law: nothing lies about where the command ran, but what it is to write there."""
    strange = [name for name in scene.left(scene.cwd) if not _is_known(name)]
    if strange:
        scene.broken.append(f"files are left: {strange[:5]}")


def _is_known(name: str) -> bool:
    place, _, file = name.partition("/")
    if place == RUN:
        return not file or file in RUN_FILES
    return place == FOUND and (not file or file.endswith(".toml"))


def clear(folder: Path) -> None:
    """Remove what a kill left to be looked at."""
    shutil.rmtree(folder, ignore_errors=True)


def told(broken: Sequence[str]) -> str:
    return "; ".join(" ".join(line.split()) for line in broken)
