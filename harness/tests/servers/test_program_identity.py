"""Which program a process runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from httpmark.harness.servers import (
    program_identity,
)


@pytest.mark.process
def test_a_program_is_what_its_process_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", os.getcwd())
    words = ["cat", os.path.join(os.getcwd(), "x"), "-"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("it runs\n")
        process.stdin.flush()
        process.stdout.readline()
        found = program_identity.program([process.pid])
        process.communicate()
    assert found is not None
    assert found[0] == ("cat", "~/x", "-")
    path = shutil.which("cat")
    assert path is not None
    assert found[1] == hashlib.sha256(Path(path).read_bytes()).hexdigest()
    assert program_identity.program([process.pid]) is None
