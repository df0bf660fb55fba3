"""Which lines of the reference server the suites never execute: no case notices a change there."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from httpmark.harness.tests.shared.mutant_server import Bench

COUNTING = "-O0 --coverage -fprofile-update=atomic"
READ_S = 120
Lines = Mapping[str, frozenset[int]]
"""Numbers of lines, by the path of a source in reference_server/."""


def unreached(folder: Path, known_as: str, stopped: threading.Event) -> Lines:
    """The lines that have code and that a whole look at the server never executes.

    None where gcov is lacking: then every change is looked at in full.

    :param folder: where the server that counts is built, and what it counted is kept.
    :param known_as: the sources and the cases; what was counted with others is counted again.
    """
    kept = folder / "unreached.json"
    if kept.exists():
        stored = json.loads(kept.read_text("utf-8"))
        if stored["of"] == known_as:
            return {file: frozenset(lines) for file, lines in stored["lines"].items()}
    if shutil.which("gcov") is None:
        return {}
    bench = Bench(folder, stopped, flags=COUNTING)
    bench.prepare()
    for old in folder.rglob("*.gcda"):
        old.unlink()
    if bench.judge(quick=False) is None:
        return {}
    found = lines_never_executed(counted(folder / "build"), bench.sources)
    rows = {file: sorted(lines) for file, lines in found.items()}
    kept.write_text(json.dumps({"of": known_as, "lines": rows}), "utf-8")
    return found


def counted(build: Path) -> list[dict[str, Any]]:
    """What gcov tells of each object file whose code ran."""
    files = sorted(str(path.relative_to(build)) for path in build.rglob("*.gcda"))
    told = subprocess.run(
        ["gcov", "--json-format", "--stdout", *files],
        cwd=build, check=True, capture_output=True, timeout=READ_S,
    )  # fmt: skip
    return [json.loads(line) for line in told.stdout.splitlines() if line.strip()]


def lines_never_executed(told: Iterable[Mapping[str, Any]], sources: Path) -> Lines:
    """A line of a header or of a template is there several times: once executed is enough."""
    executed: dict[str, dict[int, bool]] = {}
    for unit in told:
        for file in unit["files"]:
            path = Path(file["file"])
            if not path.is_relative_to(sources):
                continue
            lines = executed.setdefault(str(path.relative_to(sources)), {})
            for line in file["lines"]:
                number = line["line_number"]
                lines[number] = lines.get(number, False) or line["count"] > 0
    return {
        file: frozenset(number for number, ran in lines.items() if not ran)
        for file, lines in executed.items()
    }
