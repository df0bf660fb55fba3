"""Builds of servers: once for each state of the sources, and ended with the harness."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.servers import ProcessRecipe as Recipe
from httpmark.harness.servers import (
    starting,
)
from httpmark.harness.tests.shared import child_process
from httpmark.harness.tests.shared.tiny_server import (
    GONE_DEADLINE_S,
    lives,
    start,
    tiny,
    until,
    with_package,
)

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.mark.process
def test_a_build_runs_once_for_each_state_of_the_sources(tmp_path: Path, cache: Path) -> None:
    said: list[str] = []
    recipe = Recipe(
        build=(("cp", "{source}/part", "{build}/part"),), start=("true",), binary="{build}/part"
    )
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "part").write_text("#!/bin/sh\n")
    (folder / "part").chmod(0o755)
    server = tiny(folder, process=recipe)
    assert starting.binary(server) is None
    for _ in range(2):
        starting.prepare(server, "process", say=said.append)
    assert len([line for line in said if line.startswith("building tiny")]) == 1
    first = starting.binary(server)
    assert first is not None
    assert Path(first).is_relative_to(cache)
    (folder / "part").write_text("#!/bin/sh\nexit\n")
    starting.prepare(server, "process", say=said.append)
    assert len([line for line in said if line.startswith("building tiny")]) == 2
    assert starting.binary(server) not in (None, first)


@pytest.mark.process
def test_a_source_edited_in_mid_run_changes_nothing_of_the_run(tmp_path: Path, cache: Path) -> None:
    recipe = Recipe(
        build=(("cp", "{source}/server.py", "{build}/"),),
        start=("{python}", "-S", "{build}/server.py", "{address}", "{port}", "{workers}"),
    )
    server = tiny(tmp_path, process=recipe)
    starting.prepare(server, "process", say=lambda line: None)
    (tmp_path / "server.py").write_text("not even Python")
    assert start(server).alive()


@pytest.mark.process
def test_a_failed_build_says_the_error_and_keeps_the_log(tmp_path: Path, cache: Path) -> None:
    script = "echo all fine; echo 'x.c:1: error: no ; here'; echo stopping; exit 3"
    server = tiny(tmp_path, process=Recipe(build=(("sh", "-c", script),), start=("true",)))
    with pytest.raises(Unusable, match=r"build failed: x\.c:1: error: no ; here \(log: ") as told:
        starting.prepare(server, "process", say=lambda line: None)
    log = Path(str(told.value).partition("(log: ")[2].rstrip(")"))
    assert log.read_text().endswith("stopping\n")
    assert list((cache / "build").iterdir()) == []


BUILDER = """
import sys
from pathlib import Path
import msgspec
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import starting
server = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Server)
starting.prepare(server, "process", say=lambda line: print(line, flush=True))
"""


@pytest.mark.process
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_build_ends_with_its_harness_and_leaves_nothing(
    tmp_path: Path, cache: Path, how: signal.Signals
) -> None:
    script = f"echo $$ > {tmp_path}/pid; sleep 60; true"
    server = tiny(tmp_path, process=Recipe(build=(("sh", "-c", script),), start=("true",)))
    (tmp_path / "server.json").write_bytes(msgspec.json.encode(server))
    with child_process.start(
        [sys.executable, "-c", BUILDER, str(tmp_path / "server.json")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=with_package(),
    ) as child:  # fmt: skip
        noted = tmp_path / "pid"
        assert until(lambda: noted.exists() and noted.read_text().strip())
        child.send_signal(how)
        child.wait(timeout=GONE_DEADLINE_S)
    assert until(lambda: not lives(int(noted.read_text())))
    assert until(lambda: not list((cache / "build").iterdir()))
