"""What tests of servers share: scratch folders that are empty at the end, a cache, an image."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from httpmark.harness.model.servers import Server
from httpmark.harness.servers import (
    manifests,
    starting,
)
from httpmark.harness.tests.shared.tiny_server import until


@pytest.fixture
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every server is stopped and every scratch folder gone when the test ends."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setenv("TMPDIR", str(scratch))
    yield
    starting.stop_all()
    assert until(lambda: not list(scratch.iterdir()))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of builds of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "httpmark"


@pytest.fixture(scope="module")
def contained() -> Server:
    """A server whose image builds in seconds, built."""
    server = manifests.server("nginx")
    starting.prepare(server, "docker", say=lambda line: None)
    return server
