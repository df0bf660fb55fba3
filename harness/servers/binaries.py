"""Where the four executables of this package are."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from httpmark.harness.model.errors import Unusable

NAMES = ("server", "load", "probe", "null")


def find(name: str) -> str | None:
    """The path of ``httpmark-<name>``: in this Python's scripts, beside the command, on PATH."""
    executable = f"httpmark-{name}"
    for folder in (sysconfig.get_path("scripts"), os.path.dirname(os.path.abspath(sys.argv[0]))):
        candidate = Path(folder) / executable
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    return shutil.which(executable)


def need(name: str) -> str:
    """The same, where the run cannot go on without.

    :raises Unusable: there is none.
    """
    path = find(name)
    if path is None:
        raise Unusable(f"httpmark-{name} is not installed: run `make setup` or `pip install .`")
    return path
