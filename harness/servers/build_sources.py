"""The files that a build reads, and the name that they give it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from httpmark.harness.model.servers import Server

PACKAGE = Path(__file__).resolve().parents[2]

# Names that never enter a build: leftovers of other builds, and what a wheel does not carry.
_NOT_SOURCE = {"__pycache__", "target", "tests", "build", "node_modules", "server.toml"}


def sources(folder: Path, *, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """The files of a folder that a build reads, as (name in the build, path), in a fixed order."""
    for path in sorted(folder.iterdir()):
        if path.name in _NOT_SOURCE or path.name.startswith("."):
            continue
        name = f"{prefix}{path.name}"
        if path.is_dir():
            yield from sources(path, prefix=f"{name}/")
        elif path.is_file():
            yield name, path


def build_context(server: Server) -> list[tuple[str, Path]]:
    recipe = server.container
    assert recipe is not None
    found = list(sources(Path(server.source)))
    for word in recipe.context:
        found += sources(PACKAGE / word, prefix=f"{word}/")
    return found


def build_digest(files: list[tuple[str, Path]], *words: str) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    for word in words:
        digest.update(f"\0{word}".encode())
    return digest.hexdigest()[:16]
