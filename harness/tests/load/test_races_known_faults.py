"""Faults planted in servers, in the generator and in the machine, found by the command as a user
runs it: the whole way from the socket to the result. One by one: test_engines_known_faults."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from httpmark.harness.servers import manifests
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.spinning import spinning

MANIFEST = """
name = "{name}"
title = "{name}"
language = "Python"
version = "1"
homepage = "https://example.org/"
capabilities = ["hello", "body"]

[process]
start = ["{{python}}", "{{source}}/server.py", "{{address}}", "{{port}}", "{name}"]
"""

STALL_S = 1.0
# It reads both framings of content; its last word says what is wrong with it.
SERVER = """
import email.utils, socket, sys, threading, time
manner = sys.argv[3]
old = email.utils.formatdate(time.time() - 60, usegmt=True)

def request(held):
    # One request off the front: (method, content, the rest); None where it is not whole.
    head, end, rest = held.partition(b"\\r\\n\\r\\n")
    if not end:
        return None
    lines = head.lower().split(b"\\r\\n")
    size = next((int(l[15:]) for l in lines if l.startswith(b"content-length:")), 0)
    if b"transfer-encoding: chunked" in lines:
        if not rest.find(b"0\\r\\n\\r\\n") >= 0:
            return None
        body, _, rest = rest.partition(b"0\\r\\n\\r\\n")
        content = body.split(b"\\r\\n")[1]
    elif len(rest) < size:
        return None
    else:
        content, rest = rest[:size], rest[size:]
    return head.split(b" ")[0], content, rest

def answer(method, content, number):
    content = content or b"Hello World!"
    date = old if manner == "caches" and number > 3 else email.utils.formatdate(usegmt=True)
    length = len(content) + (manner == "lies" and number % 50 == 7)
    head = b"HTTP/1.1 200 OK\\r\\nDate: %s\\r\\nContent-Length: %d\\r\\n\\r\\n"
    return head % (date.encode(), length) + (b"" if method == b"HEAD" else content)

def serve(connection):
    held, number = b"", 0
    try:
        while piece := connection.recv(65536):
            held, ready = held + piece, []
            while (found := request(held)) is not None:
                method, content, held = found
                number += 1
                if manner == "drops" and number == 7:
                    continue
                if manner == "stalls" and number % 100 == 0:
                    time.sleep(STALL_S)
                ready.append((method, answer(method, content, number)))
            if manner == "swaps":
                for i in range(len(ready) - 1):
                    pair = ready[i : i + 2]
                    if {m for m, _ in pair} == {b"GET", b"POST"}:
                        ready[i : i + 2] = reversed(pair)
                        break
            connection.sendall(b"".join(octets for _, octets in ready))
    except OSError:
        pass
    connection.close()

listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=512)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
""".replace("STALL_S", str(STALL_S))


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder for HTTPMARK_IMAGES: a good server, the bad ones, and null as it is."""
    folder = tmp_path / "images"
    for name in ("good", "stalls", "drops", "lies", "swaps", "caches"):
        (folder / name).mkdir(parents=True)
        (folder / name / "server.toml").write_text(MANIFEST.format(name=name))
        (folder / name / "server.py").write_text(SERVER)
    shutil.copytree(manifests.server("null").source, folder / "null")
    return folder


def bench(
    *words: str, cwd: Path, images: Path | None = None
) -> tuple[dict[str, dict[str, Any]], str]:
    """The load of each server as ``httpmark bench`` has it in its result, and what it printed."""
    code, out, errors = command(
        "bench", *words, "--quick", "--runtime", "process", "--seed", "1", "--out", "run",
        cwd=cwd, images=images, timeout=240,
    )  # fmt: skip
    assert code == 0, errors
    stored = json.loads((cwd / "run" / "result.json").read_text())
    return {one["name"]: one["load"][0] for one in stored["servers"] if one["load"]}, out


@pytest.mark.process
def test_wrong_answers_break_every_sample_and_are_told_by_their_name(
    images: Path, tmp_path: Path
) -> None:
    names = ("good", "drops", "lies", "swaps", "caches")
    found, out = bench(*names, "--profile", "mixed", "--rounds", "1", cwd=tmp_path, images=images)
    assert found["good"]["errors"] == {}
    assert found["good"]["bottleneck"] != "broken"
    assert found["good"]["cpu_ns_per_request"]["server"] > 0
    wanted = {"drops": {"timeout", "order"}, "lies": {"framing", "body", "status"},
              "swaps": {"order"}, "caches": {"date"}}  # fmt: skip
    for name, errors in wanted.items():
        load = found[name]
        assert set(load["errors"]) & errors, (name, load["errors"])
        assert load["bottleneck"] == "broken", name
        assert (load["ranked"], load["cost_rank"]) == (False, None)
        assert load["cpu_ns_per_request"]["server"] is None, "a sample with an error is no sample"
        line = next(line for line in out.splitlines() if line.startswith(f"{name} "))
        assert "broken" in line


@pytest.mark.timed
@pytest.mark.process
def test_a_server_that_stalls_one_in_a_hundred_shows_in_its_latency(
    images: Path, tmp_path: Path
) -> None:
    found, out = bench(
        "good", "stalls", "--profile", "open_50", "--rounds", "1",
        cwd=tmp_path, images=images,
    )  # fmt: skip
    stalls, good = found["stalls"]["latency_us"], found["good"]["latency_us"]
    assert found["stalls"]["errors"] == {}
    assert stalls["p99_9"] >= STALL_S * 1e6
    assert good["p99_9"] < STALL_S * 1e6
    assert "LATENCY, open_50" in out


@pytest.mark.timed
@pytest.mark.process
def test_a_generator_that_starves_is_told_and_taken_again(tmp_path: Path) -> None:
    with spinning(max(os.sched_getaffinity(0))):  # where the generator is pinned to
        found, out = bench("null", "--profile", "keepalive", "--rounds", "1", cwd=tmp_path)
    assert found["null"]["bottleneck"] == "starved"
    assert found["null"]["redone"] == 2
    assert not found["null"]["ranked"]
    assert "waited for a CPU" in found["null"]["bottleneck_why"]
    assert "starved" in out


# Each start of it does more work than the last one: what a machine that grows hot does to all.
DRIFTING = """
import pathlib, socket, sys, threading
starts = pathlib.Path("starts")
count = int(starts.read_text()) if starts.exists() else 0
starts.write_text(str(count + 1))
work = int(2000 * 1.1**count)

def serve(connection):
    try:
        while piece := connection.recv(65536):
            for _ in range(piece.count(b"\\r\\n\\r\\n")):
                for _ in range(work):
                    pass
                connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    except OSError:
        pass
    connection.close()

listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=512)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


@pytest.mark.timed
@pytest.mark.process
def test_a_drift_in_a_run_of_a_server_against_itself_is_told(tmp_path: Path) -> None:
    (tmp_path / "drifting.py").write_text(DRIFTING)
    code, out, errors = command(
        "compare", f"{sys.executable} drifting.py {{port}}", "--aa", "2", "--pairs", "4", "--quick",
        "--profile", "keepalive", "--seed", "1", cwd=tmp_path, timeout=240,
    )  # fmt: skip
    assert code in (0, 1), errors
    assert "the machine drifted by" in out
