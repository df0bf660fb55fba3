"""A folder of servers that holds the made proxy, with one of its bugs or none."""

from __future__ import annotations

from pathlib import Path

_MANIFEST = """
name = "made"
title = "Made"
language = "Python"
version = "1"
homepage = "https://example.org/"
capabilities = ["hello"]

[process]
start = ["{{python}}", "{{source}}/none.py", "{{port}}"]

[proxy]
start = [
  "{{python}}", "-m", "httpmark.harness.tests.shared.made_proxy", "--address", "{{address}}",
  "--port", "{{port}}", "--origin", "{{origin}}", {bug}
]
"""


def made(folder: Path, bug: str = "") -> Path:
    """A folder of servers with the made proxy."""
    (folder / "made").mkdir(parents=True)
    words = f'"--bug", "{bug}"' if bug else ""
    (folder / "made" / "server.toml").write_text(_MANIFEST.format(bug=words))
    return folder
