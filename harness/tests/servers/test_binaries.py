"""The four executables are found, and a missing one is said with its mend."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from httpmark.harness.model.errors import Unusable
from httpmark.harness.servers import binaries


@pytest.mark.process
@pytest.mark.parametrize("name", binaries.NAMES)
def test_each_is_there_and_tells_its_options(name: str) -> None:
    path = binaries.need(name)
    asked = subprocess.run([path, "--help"], capture_output=True, text=True, check=False, timeout=5)
    assert asked.returncode == 0
    assert "--" in asked.stdout


@pytest.mark.process
@pytest.mark.parametrize("name", ["server", "load", "null"])
def test_each_refuses_an_unknown_option_in_one_line(name: str) -> None:
    asked = subprocess.run(
        [binaries.need(name), "--nonsense", *(["http://127.0.0.1:1/"] if name == "load" else [])],
        capture_output=True, text=True, check=False, timeout=5,
    )  # fmt: skip
    assert asked.returncode == 2
    assert len(asked.stderr.strip().splitlines()) == 1
    assert "--nonsense" in asked.stderr


def test_one_that_is_nowhere_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "httpmark")])
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    assert binaries.find("server") is None
    with pytest.raises(Unusable, match="make setup"):
        binaries.need("server")
    (tmp_path / "httpmark-server").write_text("")
    assert binaries.find("server") is None, "a file that cannot be run is none"
    os.chmod(tmp_path / "httpmark-server", 0o755)
    assert binaries.find("server") == str(tmp_path / "httpmark-server")
