"""Builds on the disk: what goes, what stays, and who says when it was used."""

from __future__ import annotations

import os
import time
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest

from httpmark.harness.command import build_pruning
from httpmark.harness.servers import kept_builds
from httpmark.harness.servers.build_cache import Prepared, last_used
from httpmark.harness.servers.kept_builds import KeptBuild, superfluous
from httpmark.harness.servers.manifests import server

GIB = 1 << 30
NOW = 100 * 86400.0


def build(name: str, gib: float, days: float) -> KeptBuild:
    return KeptBuild(kind="process", name=name, bytes=int(gib * GIB), used=NOW - days * 86400)


def test_what_was_not_used_for_long_goes_and_then_the_oldest_until_the_rest_fits() -> None:
    builds = [build("old", 1, 40), build("older", 3, 20), build("new", 2, 1), build("now", 2, 0)]
    assert superfluous(builds, days=30, gib=100, now=NOW) == builds[:1]
    assert superfluous(builds, days=30, gib=4, now=NOW) == builds[:2]
    assert superfluous(builds, days=30, gib=4, now=NOW, needed=["older"]) == [
        builds[0], builds[2], builds[3],
    ]  # fmt: skip
    assert superfluous(builds, days=90, gib=100, now=NOW) == []


_BUILDS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 90)), max_size=12).map(
    lambda drawn: sorted(
        (build(f"b{at}", gib, days) for at, (gib, days) in enumerate(drawn)),
        key=lambda one: one.used,
    )
)


@hypothesis.given(_BUILDS, st.integers(0, 40), st.integers(0, 90), st.sets(st.integers(0, 11)))
def test_the_rest_fits_and_what_is_needed_stays(
    builds: list[KeptBuild], gib: int, days: int, needed: set[int]
) -> None:
    names = {f"b{at}" for at in needed}
    gone = superfluous(builds, days=days, gib=gib, now=NOW, needed=names)
    left = [one for one in builds if one not in gone]
    assert not names & {one.name for one in gone}
    assert sum(one.bytes for one in left) <= gib * GIB or {one.name for one in left} <= names
    assert all(one.name in names for one in left if NOW - one.used > days * 86400)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kept_builds, "docker_trouble", lambda: "none is asked here")
    for name, days in (("first-1", 50), ("second-2", 10), ("third-3.partial", 99)):
        folder = tmp_path / "httpmark" / "build" / name
        folder.mkdir(parents=True)
        (folder / "program").write_bytes(b"x" * 3000)
        past = time.time() - days * 86400
        os.utime(folder, (past, past))
    return tmp_path / "httpmark"


def test_builds_are_removed_by_age_and_told(cache: Path) -> None:
    tried = build_pruning.prune(days=30, gib=1, now=time.time(), dry_run=True)
    assert [one.name for one in tried.removed] == ["first-1"]
    assert (cache / "build" / "first-1").is_dir()
    done = build_pruning.prune(days=30, gib=1, now=time.time(), dry_run=False)
    assert not (cache / "build" / "first-1").exists()
    assert (cache / "build" / "second-2").is_dir()
    assert (cache / "build" / "third-3.partial").is_dir()  # somebody builds it
    assert list(build_pruning.lines(done)) == [
        "removed first-1 (0 MiB, used 50 days ago)",
        "removed 1 build of 0 MiB; 1 build of 0 MiB left",
    ]


def test_a_build_that_is_used_is_young_again(cache: Path) -> None:
    used = Prepared()
    used.keep(server("null"), "process", str(cache / "build" / "first-1"))
    used.keep(server("null"), "docker", "httpmark/null:0123")
    assert used.names() == ["first-1", "httpmark/null:0123"]
    assert time.time() - (last_used("first-1") or 0) < 60
    assert time.time() - (last_used("httpmark/null:0123") or 0) < 60
    assert last_used("second-2") is None
    assert [one.name for one in kept_builds.kept()] == ["second-2", "first-1"]


def test_the_bound_is_kept_when_something_is_built(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPMARK_CACHE_GIB", str(4000 / GIB))
    said: list[str] = []
    kept_builds.hold_bound(["second-2"], say=said.append)
    assert not (cache / "build" / "first-1").exists()
    assert (cache / "build" / "second-2").is_dir()
    assert len(said) == 1
    assert said[0].startswith("removed first-1: builds may take")
    monkeypatch.setenv("HTTPMARK_CACHE_GIB", "much")
    assert kept_builds.bound_gib() == kept_builds.GIB


@pytest.mark.needs("docker")
def test_images_of_ours_are_found_with_their_size() -> None:
    from httpmark.harness.servers import starting

    null = server("null")
    starting.prepare(null, "docker", say=lambda line: None)
    found = [one for one in kept_builds.kept() if one.name.startswith("httpmark/null:")]
    assert found
    assert all(one.kind == "docker" and one.bytes > 1 << 20 for one in found)
    assert max(one.used for one in found) > time.time() - 600
