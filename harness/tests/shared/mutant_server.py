"""A reference server with a change in it: built, and judged by the suites."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from httpmark.harness.tests.shared.repository import ROOT

SERVER = "httpmark-server"
MANIFEST = ROOT / "images" / "reference" / "server.toml"
SUITES = ("rfc", "smuggling")
BUILD_S = 600
QUICK_S = 240
FULL_S = 900


@dataclass(frozen=True)
class Judgement:
    """What the suites said of one server."""

    failed: frozenset[str]
    """Ids of cases, families and response rules, each with its suite, that have a failure."""
    worse_than_pass: frozenset[str]
    """Also those that have a warning or were undecided."""
    end: str = ""
    """How it ended early: the server died, or could not be tested. Empty when it did not."""


@dataclass
class Bench:
    """A copy of the server's sources, its build, and the programs that look at it."""

    folder: Path
    stopped: threading.Event
    """Set when what runs is to end now."""
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
        shutil.copytree(
            ROOT / "reference_server", self.sources, ignore=shutil.ignore_patterns("build")
        )
        launcher = shutil.which("ccache")
        words = [
            "cmake", "-S", str(self.sources), "-B", str(self.folder / "build"), "-G", "Ninja",
            "-DCMAKE_BUILD_TYPE=Mutant", "-DCMAKE_CXX_FLAGS=-O1", "-DHTTPMARK_SERVER_TESTS=OFF",
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

    def judge(self, *, quick: bool) -> Judgement | None:
        """What the suites say of the server that was built; none when they take too long."""
        result = self.folder / "result.json"
        result.unlink(missing_ok=True)
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        words = [
            str(Path(sys.executable).with_name("httpmark")), "check",
            "--serve", serve_words(self.binary), "--manifest", str(MANIFEST),
            "--json", str(result), "--out", str(self.folder / "run"),
            *(word for suite in SUITES for word in ("--suite", suite)),
        ]  # fmt: skip
        if quick:
            words.append("--quick")
        log = self.folder / "check.log"
        if run_bounded(words, QUICK_S if quick else FULL_S, log, self.stopped) is None:
            return None
        if not result.exists():
            # It never answered as a server does.
            return Judgement(frozenset(), frozenset(), f"not tested: {last_line(log)}")
        return judgement(json.loads(result.read_text("utf-8")))


def serve_words(binary: Path) -> str:
    """The command line of the manifest, with its declared limits, for another binary."""
    process = tomllib.loads(MANIFEST.read_text("utf-8"))["process"]
    words = [str(binary), *process["start"][1:], *process["conformance"]]
    known = {"{address}": "127.0.0.1", "{workers}": "1"}
    return " ".join(
        word if word == "{port}" else shlex.quote(known.get(word, word)) for word in words
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
        # httpmark stops its server when it is interrupted.
        for sign in (signal.SIGINT, signal.SIGKILL):
            os.killpg(child.pid, sign)
            try:
                child.wait(timeout=10)
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
