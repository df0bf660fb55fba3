"""The entry point: unsupported systems, and completion in the shells that the FAQ names."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from httpmark.harness.command import cli
from httpmark.harness.tests.shared.command_process import environment
from httpmark.harness.tests.shared.repository import ROOT

FAQ = (ROOT / "docs" / "faq.md").read_text("utf-8")
SUPPORTED = "use a Linux machine, a container or WSL 2"


@pytest.mark.parametrize("system", ["darwin", "win32", "freebsd14"])
def test_an_unsupported_system_gets_one_line_at_the_start(
    system: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    said = capsys.readouterr()
    assert stop.value.code == 3
    assert said.out == ""
    assert said.err == f"httpmark: it runs on Linux only, and this is {system}; {SUPPORTED}\n"


@pytest.mark.process
def test_an_unsupported_system_gets_one_line_from_make(tmp_path: Path) -> None:
    (tmp_path / "uname").write_text("#!/bin/sh\necho Darwin\n")
    (tmp_path / "uname").chmod(0o755)
    done = subprocess.run(
        ["make", "--no-print-directory", "needs"], cwd=ROOT, capture_output=True, text=True,
        timeout=60, check=False,
        # Not as a part of the make that runs the tests.
        env=environment(PATH=f"{tmp_path}:/usr/bin:/bin", MAKEFLAGS="", MAKELEVEL="0"),
    )  # fmt: skip
    assert done.returncode != 0
    assert done.stdout == ""
    first, *others = done.stderr.splitlines()
    assert first == f"httpmark: it runs on Linux only, and this is Darwin; {SUPPORTED}"
    assert all(re.match(r"make(\[\d+\])?:", line) for line in others)


@pytest.mark.process
def test_an_unsupported_system_gets_one_line_from_cmake(tmp_path: Path) -> None:
    """Before anything is looked for or compiled."""
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}:/usr/bin")
    assert cmake is not None, "make setup installs it"
    done = subprocess.run(
        [cmake, "-S", ROOT, "-B", tmp_path / "build", "-DCMAKE_SYSTEM_NAME=Darwin"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert f"httpmark runs on Linux only; {SUPPORTED}" in done.stderr
    assert "compiler" not in done.stdout + done.stderr


def completed(*words: str) -> list[str]:
    """What bash offers where the last of these words stands before the cursor."""
    done = subprocess.run(
        [sys.executable, "-c", "from httpmark.harness.command.cli import main; main()"],
        capture_output=True, text=True, timeout=60, check=False,
        env=environment(
            _HTTPMARK_COMPLETE="bash_complete", COMP_WORDS=" ".join(("httpmark", *words)),
            COMP_CWORD=str(len(words)),
        ),
    )  # fmt: skip
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.process
def test_the_shells_of_the_faq_complete_commands_options_and_words() -> None:
    shells = re.findall(r"_HTTPMARK_COMPLETE=(\w+)_source httpmark", FAQ)
    assert shells == ["bash", "zsh", "fish"]
    assert completed("comp") == ["compare"]
    assert "--baseline" in completed("check", "--ba")
    assert {"rfc", "hardened"} <= set(completed("check", "--ruleset", ""))
    lines = re.findall(r"^(.*_HTTPMARK_COMPLETE=bash_source httpmark.*?)\s+#", FAQ, re.MULTILINE)
    done = subprocess.run(
        ["bash", "--norc", "-e", "-c",
         f"httpmark() {{ {sys.executable} -c "
         "'from httpmark.harness.command.cli import main; main()'; }\n"
         f"{lines[0]}\ncomplete -p httpmark"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "-F _httpmark_completion httpmark" in done.stdout
