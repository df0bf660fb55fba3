"""Process trees, against processes that were started."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from httpmark.harness.servers import (
    proc_files,
)


@pytest.mark.process
def test_the_tree_holds_children_and_grandchildren() -> None:
    script = (
        "import subprocess,sys,time;"
        "p=subprocess.Popen([sys.executable,'-c','import time;time.sleep(30)']);"
        "print(p.pid,flush=True);p.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        try:
            assert proc_files.tree([child.pid]) == sorted([child.pid, grandchild])
        finally:
            os.kill(grandchild, 9)
