"""Images of servers: what goes into a build, and what is said where one fails."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

import pytest

from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.servers import ContainerRecipe, Server
from httpmark.harness.servers import (
    docker_images,
    starting,
)
from httpmark.harness.tests.shared.tiny_server import tiny

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def test_a_build_gets_what_the_machine_needs_and_its_name_does_not_depend_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\n")
    server = tiny(tmp_path, container=ContainerRecipe(dockerfile="Dockerfile"))
    monkeypatch.setattr(docker_images, "_CA_FOLDER", tmp_path / "none")
    bare = docker_images.image_tag(server)
    authorities = tmp_path / "authorities"
    authorities.mkdir()
    (authorities / "own.crt").write_text("certificate")
    (authorities / "note.txt").write_text("no certificate")
    monkeypatch.setattr(docker_images, "_CA_FOLDER", authorities)
    monkeypatch.setenv("GOPROXY", "it's mine")
    monkeypatch.setenv("CARGO_HTTP_MULTIPLEXING", "false")
    monkeypatch.setenv("GOPATH", "/not/for/builds")
    shutil.rmtree(tmp_path / "scratch")  # the source is all of this folder
    try:
        with tarfile.open(fileobj=io.BytesIO(docker_images._context_archive(server))) as tar:
            names = tar.getnames()
            env = tar.extractfile("host/env")
            assert env is not None
            lines = env.read().decode().splitlines()
    finally:
        (tmp_path / "scratch").mkdir()
    assert "host/ca/own.crt" in names
    assert "host/ca/note.txt" not in names
    assert "Dockerfile" in names
    quoted = "'it'" + '"\'"' + "'s mine'"
    assert f"export GOPROXY={quoted}" in lines
    assert "export CARGO_HTTP_MULTIPLEXING=false" in lines
    assert not any("GOPATH" in line for line in lines)
    shutil.rmtree(authorities)
    assert docker_images.image_tag(server) == bare


@pytest.mark.process
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, r"mmdebstrap, which could make it, is not found: apt-get install mmdebstrap"),
        ("echo 'W: GPG error: NO_PUBKEY 6ED0E7B82643E131'; exit 1", r"does not know trixie's key"),
        ("echo 'E: no room'; exit 1", r"mmdebstrap: E: no room \(log: "),
    ],
)
def test_a_base_that_cannot_be_made_says_why(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, reason: str
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    if script is not None:
        (programs / "mmdebstrap").write_text(f"#!/bin/sh\n{script}\n")
        (programs / "mmdebstrap").chmod(0o755)
        monkeypatch.setattr(
            docker_images, "_KEYRING", programs / "mmdebstrap"
        )  # anything that exists
    monkeypatch.setattr(shutil, "which", lambda name: script and str(programs / name))
    monkeypatch.setattr(docker_images, "_has_image", lambda tag: False)
    with pytest.raises(Unusable, match=reason):
        docker_images._make_base(say=lambda line: None)


def test_an_image_that_the_user_has_not_brought_is_told(tmp_path: Path) -> None:
    server = tiny(tmp_path, container=ContainerRecipe(image="httpmark-test/no-such-image"))
    reason = starting.availability(server, "docker")
    assert isinstance(reason, str)
    assert "no image httpmark-test/no-such-image: docker tag" in reason or "Docker" in reason


@pytest.mark.needs("docker")
def test_an_image_is_built_once(contained: Server) -> None:
    said: list[str] = []
    starting.prepare(contained, "docker", say=said.append)
    assert said == []


@pytest.mark.needs("docker")
def test_a_dockerfile_that_fails_says_its_error(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "Dockerfile").write_text(
        "ARG BASE\nFROM ${BASE}\nRUN echo 'error: no teeth' && exit 3\n"
    )
    server = tiny(tmp_path, container=ContainerRecipe(dockerfile="Dockerfile"))
    with pytest.raises(Unusable, match=r"its image cannot be built: error: no teeth \(log: "):
        starting.prepare(server, "docker", say=lambda line: None)
