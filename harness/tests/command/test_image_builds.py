"""Builds of many servers: each outcome is told, and none stops the rest."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.command import image_builds
from httpmark.harness.command.image_builds import Build, Outcome
from httpmark.harness.model.servers import Need, Server
from httpmark.harness.model.servers import ProcessRecipe as Recipe
from httpmark.harness.tests.shared.command_process import last_line, run
from httpmark.harness.tests.shared.silent_events import SilentEvents
from httpmark.harness.tests.shared.tiny_server import tiny


def named(folder: Path, name: str, script: str, *needs: Need) -> Server:
    """A server that a shell script builds."""
    recipe = Recipe(build=(("sh", "-c", script),), start=("true",), needs=needs)
    return msgspec.structs.replace(tiny(folder, process=recipe), name=name)


@pytest.mark.process
def test_one_that_fails_or_does_not_end_does_not_stop_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "source"
    source.mkdir()
    servers = [
        named(source, "bad", "echo 'error: no'; exit 1"),
        named(source, "endless", "while :; do echo on; sleep 0.1; done"),
        named(source, "lacking", "true", Need(command="no-such-tool", install="get it")),
        named(source, "good", "true"),
        named(source, "good", "true"),
    ]
    found = image_builds.build_all(servers, "process", deadline_s=1.0, events=SilentEvents())
    assert [one.outcome for one in found] == ["failed", "failed", "unavailable", "built", "cached"]
    reasons = [str(one.because).partition(" (log")[0] for one in found]
    assert reasons == [
        "its build failed: error: no",
        "its build did not end within 1 s",
        "process: no-such-tool not found: get it",
        "None",
        "None",
    ]
    assert image_builds.summary(found).startswith("1 built, 1 cached, 2 failed, 1 unavailable; ")
    assert [image_builds.is_bad(one, is_named=False) for one in found] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert image_builds.is_bad(found[2], is_named=True)


def test_a_build_in_a_line() -> None:
    one = Build(name="a", runtime="docker", outcome=Outcome.BUILT, seconds=61.4)
    assert image_builds.line(one) == "a: built in 61 s (docker)"
    lacking = Build(
        name="a", runtime=None, outcome=Outcome.UNAVAILABLE, seconds=0.0, because="no go"
    )
    assert image_builds.line(lacking) == "a: unavailable, because no go"
    assert image_builds.summary([]) == "nothing to build; 0 s"


MANIFEST = """
name = "NAME"
title = "NAME"
language = "C"
version = "1"
homepage = "https://example.org/"
capabilities = ["hello"]
[process]
build = [["sh", "-c", "SCRIPT"]]
start = ["true", "{port}"]
"""


@pytest.mark.process
def test_the_command_tells_every_build_and_fails_for_a_bad_one(tmp_path: Path) -> None:
    for name, script in (("fine", "true"), ("wrong", "exit 3")):
        (tmp_path / "images" / name).mkdir(parents=True)
        text = MANIFEST.replace("NAME", name).replace("SCRIPT", script)
        (tmp_path / "images" / name / "server.toml").write_text(text)

    def build(*words: str) -> tuple[int, str, str]:
        return run(
            "images", "build", "wrong", "fine", "--runtime", "process", *words,
            cwd=tmp_path, images=tmp_path / "images", XDG_CACHE_HOME=str(tmp_path / "cache"),
        )  # fmt: skip

    code, out, errors = build()
    assert code == 3
    assert out.splitlines()[0].startswith("wrong: failed (process), because its build failed: ")
    assert out.splitlines()[1].startswith("fine: built in ")
    assert out.splitlines()[2].startswith("1 built, 1 failed; ")
    assert last_line(errors).startswith("httpmark: wrong: its build failed")
    code, out, _ = build("--json")
    assert code == 3
    assert [one["outcome"] for one in json.loads(out)["builds"]] == ["failed", "cached"]
    code, _, errors = build("--all")
    assert code == 2
    assert last_line(errors) == "httpmark: images build: --all goes without names: leave one out"
