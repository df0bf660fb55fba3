"""docs/manifest.md: its examples are taken, and name all that a manifest can declare."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from httpmark.harness.model.servers import CAPABILITIES, LIMITS, TIMEOUTS
from httpmark.harness.servers import manifests, static_files
from httpmark.harness.tests.shared.repository import ROOT

PAGE = (ROOT / "docs" / "manifest.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_declare_every_capability_limit_and_timeout(tmp_path: Path) -> None:
    capabilities, limits, timeouts = set[str](), set[str](), set[str]()
    for number, text in enumerate(blocks("toml")):
        file = tmp_path / f"{number}.toml"
        file.write_text(text, "utf-8")
        one = manifests.declared(file)
        capabilities.update(one.capabilities)
        limits.update(one.limits)
        timeouts.update(one.timeouts)
    assert set(CAPABILITIES) - capabilities == {"tls"}  # the address says it
    assert limits == set(LIMITS)
    assert timeouts == set(TIMEOUTS)


def seen(above: Path) -> dict[str, object]:
    """What a server would serve: contents, links, and the dates that stay the same."""
    found: dict[str, object] = {}
    for path in sorted(above.rglob("*")):
        name = str(path.relative_to(above))
        if path.is_symlink():
            found[name] = path.readlink()
        elif path.is_file():
            date = path.stat().st_mtime
            is_ahead = name.endswith("future.html")
            is_secret = not name.startswith(static_files.FOLDER)
            found[name] = path.read_text(), None if is_ahead or is_secret else int(date)
    return found


@pytest.mark.process
def test_the_files_planted_by_hand_are_those_that_httpmark_plants(tmp_path: Path) -> None:
    [script] = [text for text in blocks("sh") if "mkdir" in text]
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, check=True)
    planted = tmp_path / "planted"
    planted.mkdir()
    static_files.plant(planted)
    assert seen(tmp_path / "files") == seen(planted)
