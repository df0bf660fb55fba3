"""A reference server with a change in it: built, and judged by the suites."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import manifests, starting
from httpmark.harness.tests.shared.ports import own_port
from httpmark.harness.tests.shared.repository import ROOT

SERVER = "httpmark-server"
MANIFEST = ROOT / "images" / "reference" / "server.toml"
SUITES = ("rfc", "smuggling")
BUILD_S = 600
QUICK_S = 240
FULL_S = 900
WRITE_S = 30
# Each function by itself, and those that this server never calls left out: a change of one of them
# makes the same binary, and nobody has to look at it.
SECTIONS = "-O1 -ffunction-sections -fdata-sections"
LEAVE_OUT_UNUSED = "-Wl,--gc-sections"


@dataclass(frozen=True)
class Judgement:
    """What the suites said of one server."""

    failed: frozenset[str]
    """Ids of cases, families and response rules, each with its suite, that have a failure."""
    worse_than_pass: frozenset[str]
    """Also those that have a warning or were undecided."""
    end: str = ""
    """How it ended early: the server died, or could not be tested. Empty when it did not."""
    died: bool = False
    """Its process ended, which no busy machine does to it."""
    cut_short: bool = False
    """It took too long; what is here was found by then, and not asked again."""
    seconds: float = 0.0


@dataclass
class Bench:
    """A copy of the server's sources, its build, and the programs that look at it."""

    folder: Path
    stopped: threading.Event
    """Set when what runs is to end now."""
    flags: str = SECTIONS
    """What it is compiled with."""
    unchanged: str = field(default="", init=False)
    """The hash of the binary without a change."""

    @property
    def sources(self) -> Path:
        return self.folder / "reference_server"

    @property
    def binary(self) -> Path:
        return self.folder / "build" / SERVER

    def prepare(self) -> None:
        """Copy the sources, configure and build them as they are."""
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.sources, ignore_errors=True)
        # Not with the times of the files: what is left of an earlier build would look newer.
        shutil.copytree(
            ROOT / "reference_server", self.sources, ignore=shutil.ignore_patterns("build"),
            copy_function=shutil.copyfile,
        )  # fmt: skip
        launcher = shutil.which("ccache")
        words = [
            "cmake", "-S", str(self.sources), "-B", str(self.folder / "build"), "-G", "Ninja",
            "-DCMAKE_BUILD_TYPE=Mutant", f"-DCMAKE_CXX_FLAGS={self.flags}",
            f"-DCMAKE_EXE_LINKER_FLAGS={LEAVE_OUT_UNUSED}", "-DHTTPMARK_SERVER_TESTS=OFF",
            "-DHTTPMARK_SERVER_STATIC=OFF",
        ]  # fmt: skip
        if launcher:
            words.append(f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}")
        subprocess.run(words, check=True, capture_output=True, timeout=BUILD_S)
        if not self.build() and not self.stopped.is_set():
            raise RuntimeError(
                f"the server does not build without a change: {self.folder}/build.log"
            )
        self.unchanged = self.hash() if self.binary.exists() else ""

    def build(self) -> bool:
        words = ["cmake", "--build", str(self.folder / "build"), "--target", SERVER, "-j", "1"]
        return run_bounded(words, BUILD_S, self.folder / "build.log", self.stopped) == 0

    def hash(self) -> str:
        return hashlib.sha256(self.binary.read_bytes()).hexdigest()

    def judge(
        self, *, quick: bool, only: Sequence[str] = (), seconds: float | None = None
    ) -> Judgement | None:
        """What the suites say of the server that was built; none when it is not known.

        It is started here and not by httpmark, which would start it again where it dies, and look
        for the request: that it died is enough.

        :param only: the cases and families that are asked, with their controls.
        :param seconds: how long it may take, when that is less than it may take at most.
        """
        port = own_port()
        try:
            running = starting.start(
                server_of(self.binary), "process", address="127.0.0.1", port=port, workers=1,
                cpus=None, run_id=f"mutant{port}", conformance=True,
            )  # fmt: skip
        except Unusable as error:
            return Judgement(frozenset(), frozenset(), f"not tested: {error}")
        begin = time.monotonic()
        try:
            seen = self._checked(port, quick=quick, only=only, seconds=seconds)
            if seen is None:
                return None
            if not running.alive():
                seen = dataclasses.replace(seen, end=running.exit_reason(), died=True)
            return dataclasses.replace(seen, seconds=time.monotonic() - begin)
        finally:
            running.stop()

    def _checked(
        self, port: int, *, quick: bool, only: Sequence[str], seconds: float | None
    ) -> Judgement | None:
        result = self.folder / "result.json"
        result.unlink(missing_ok=True)
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        words = [
            str(Path(sys.executable).with_name("httpmark")), "check",
            f"http://127.0.0.1:{port}/hello", "--manifest", str(MANIFEST),
            "--json", str(result), "--out", str(self.folder / "run"),
            *(word for suite in SUITES for word in ("--suite", suite)),
        ]  # fmt: skip
        words += ["--quick"] if quick else []
        words += [word for name in only for word in ("--case", name)]
        log = self.folder / "check.log"
        most = QUICK_S if quick else FULL_S
        code = run_bounded(words, min(seconds or most, most), log, self.stopped)
        if result.exists() and not self.stopped.is_set():
            seen = judgement(json.loads(result.read_text("utf-8")))
            return dataclasses.replace(seen, cut_short=code is None)
        if code is None:
            return None
        # It never answered as a server does.
        return Judgement(frozenset(), frozenset(), f"not tested: {last_line(log)}")


def server_of(binary: Path) -> Server:
    """The reference server of its manifest, as another binary."""
    server = manifests.declared(MANIFEST)
    recipe = server.process
    assert recipe is not None
    start = (str(binary), *recipe.start[1:])
    return msgspec.structs.replace(
        server, process=msgspec.structs.replace(recipe, start=start, binary=str(binary))
    )


def last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def run_bounded(
    words: Sequence[str], seconds: float, log: Path, stopped: threading.Event
) -> int | None:
    """The exit code; none when it took longer or was stopped, with all that it started."""
    due = time.monotonic() + seconds
    with log.open("wb") as out:
        child = subprocess.Popen(words, stdout=out, stderr=out, start_new_session=True)
        while child.poll() is None and time.monotonic() < due and not stopped.wait(0.1):
            pass
        if child.poll() is not None:
            return child.returncode
        # httpmark writes what it knows when it is interrupted.
        for sign in (signal.SIGINT, signal.SIGKILL):
            os.killpg(child.pid, sign)
            try:
                child.wait(timeout=WRITE_S)
                break
            except subprocess.TimeoutExpired:
                continue
        return None


def judgement(result: dict[str, Any]) -> Judgement:
    """What stands in a result of `httpmark check`."""
    (server,) = result["servers"]
    words: dict[str, set[str]] = {}
    for suite, found in ((server["compliance"] or {}).get("suites") or {}).items():
        for name, case in found["cases"].items():
            words.setdefault(f"{suite}/{name}", set()).add(case["word"])
        for group in ("generated", "answers"):
            for name, row in found[group].items():
                for counts in row["words"].values():
                    seen = {word for word, count in counts.items() if count}
                    words.setdefault(f"{suite}/{name}", set()).update(seen)
    end = server["died"] or server["unavailable"] or ""
    assert "probe cannot go on" not in end, end  # the harness is at fault, not the server
    return Judgement(
        frozenset(name for name, seen in words.items() if "fail" in seen),
        frozenset(name for name, seen in words.items() if seen - {"pass", "not_applicable"}),
        end,
    )
