"""The repository that the tests stand in: its root and the files that belong to it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
ACTION: Any = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
"""The GitHub action, as its file says it."""


def tracked(*patterns: str) -> list[Path]:
    """The files that git tracks, and new ones that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout.decode()  # fmt: skip
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]
