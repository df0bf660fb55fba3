"""`pip install .` into an empty environment gives a command that works outside the checkout."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from .test_house import ROOT, tracked
from .test_manners import own_port


@pytest.mark.timeout(900)
def test_a_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for path in tracked():
        copy = checkout / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    installed = subprocess.run(
        [python, "-m", "pip", "install", "-q", "."],
        cwd=checkout, capture_output=True, text=True, check=False, timeout=800,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr[-2000:]
    # Whatever is found now comes from the wheel.
    shutil.rmtree(checkout)
    command = tmp_path / "venv" / "bin" / "httpmark"

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
    packages = tmp_path / "venv" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    assert not (packages / "harness").exists()
    assert not list(packages.glob("httpmark/**/tests")), "tests travel in the wheel"
