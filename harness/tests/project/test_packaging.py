"""`pip install .` into an empty environment gives a command that works outside the checkout.

What installs it is the GitHub action's own step, as of the checkout that an action runs from.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from httpmark.harness.tests.shared.ports import own_port
from httpmark.harness.tests.shared.repository import ACTION, ROOT, tracked

INSTALL = next(step["run"] for step in ACTION["runs"]["steps"] if step["id"] == "install")


@pytest.mark.nightly
@pytest.mark.process
@pytest.mark.timeout(900)
def test_a_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for path in tracked():
        copy = checkout / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    output = tmp_path / "output"
    installed = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", INSTALL],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=800,
        env={
            **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            "VERSION": "source", "GITHUB_ACTION_PATH": str(checkout),
            "RUNNER_TEMP": str(tmp_path / "runner temp"), "GITHUB_OUTPUT": str(output),
        },
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr[-2000:]
    # The action ends by asking for the version, which comes before the engines it was built with.
    version, engines = installed.stdout.splitlines()[-2:]
    assert version.startswith("httpmark, version "), installed.stdout
    assert engines.startswith("engines of httpmark-server: epoll"), installed.stdout
    # Whatever is found now comes from the wheel.
    shutil.rmtree(checkout)
    command = Path(output.read_text().strip().removeprefix("command="))
    place = command.parent.parent
    assert place.parent == tmp_path / "runner temp"
    wheels = list((place / "wheels").iterdir())
    assert [wheel.name.split("-")[2:4] for wheel in wheels] == [["py3", "none"]], wheels

    def run(*words: str) -> str:
        done = subprocess.run(
            [command, *words], cwd=tmp_path, capture_output=True, text=True, check=False,
            timeout=200, env={"PATH": "/usr/bin:/bin:/usr/sbin", "HOME": str(tmp_path), "CI": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    listed = json.loads(run("list", "servers", "--json"))["servers"]
    available = {server["name"]: server["available"]["process"] for server in listed}
    assert available["reference"] is True
    assert available["null"] is True
    run(
        "run", "--quick", "--runtime", "process", "--suite", "seed", "--server", "reference",
        "--out", "r", "--port", str(own_port()),
    )  # fmt: skip
    result = json.loads((tmp_path / "r" / "result.json").read_text("utf-8"))
    assert result["servers"][0]["compliance"]["suites"]["seed"]["score_percent"] == 100.0
    assert (tmp_path / "r" / "report.html").stat().st_size > 10_000
    packages = place / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    assert not (packages / "harness").exists()
    assert not list(packages.glob("httpmark/**/tests")), "tests travel in the wheel"
