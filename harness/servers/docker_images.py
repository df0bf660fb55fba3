"""Container images of servers: the base, the build, and what is missing."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import scratch_folders
from httpmark.harness.servers.build import BUILD_DEADLINE_S, telling_line
from httpmark.harness.servers.build_cache import PREPARED, Say, locked_cache, log_file
from httpmark.harness.servers.build_sources import build_context, build_digest
from httpmark.harness.servers.docker_daemon import (
    LABEL,
    docker_client,
    docker_trouble,
    first_line,
    talking_to_daemon,
)
from httpmark.harness.servers.needs import REGISTRY_VARIABLE, no_recipe

_BASE_PUBLIC = "debian:trixie-slim"
_BASE_MADE = "httpmark/base:trixie"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SUITE = "trixie"
_CA_FOLDER = Path("/usr/local/share/ca-certificates")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY")


def image_trouble(server: Server) -> str | None:
    recipe = server.container
    if server.trouble or recipe is None:
        return server.trouble or no_recipe(server, "container")
    if recipe.image is None:
        return None
    from docker.errors import ImageNotFound

    try:
        with talking_to_daemon("images cannot be listed") as client:
            client.images.get(recipe.image)
    except Unusable as error:
        if isinstance(error.__cause__, ImageNotFound):
            return (
                f"no image {recipe.image}: docker tag YOUR-IMAGE {recipe.image}, or name yours: "
                f"--server {server.name}=docker:YOUR-IMAGE"
            )
        return str(error)
    return None


def image_tag(server: Server) -> str:
    recipe = server.container
    assert recipe is not None
    if recipe.image is not None:
        return recipe.image
    return f"httpmark/{server.name}:{build_digest(build_context(server))}"


def is_image_built(server: Server) -> bool:
    """Whether nothing is left to build for a start as a container; a daemon answers."""
    assert server.container is not None
    return server.container.dockerfile is None or _has_image(image_tag(server))


def build_image(server: Server, *, say: Say, deadline_s: float = BUILD_DEADLINE_S) -> bool:
    """:param deadline_s: how long the build may take, once its base image is there.
    :returns: whether there was something to build.
    """
    if trouble := docker_trouble() or image_trouble(server):
        raise Unusable(trouble)
    recipe = server.container
    assert recipe is not None
    tag = image_tag(server)
    PREPARED.keep(server, "docker", tag)
    if recipe.dockerfile is None or _has_image(tag):
        return False
    with locked_cache(f"image-{server.name}", say=say):
        base = _base(say=say)
        say(f"building image {tag} (once)")
        started = time.monotonic()
        context = _context_archive(server)
        with log_file(tag.rpartition("/")[2].replace(":", "-")) as log:
            build = _Build(recipe.dockerfile, context, tag, base, deadline_s)
            _docker_build(server, build, log, say=say)
        say(f"built image {tag} in {time.monotonic() - started:.0f} s")
    return True


class _Build(NamedTuple):
    dockerfile: str
    context: bytes
    tag: str
    base: str
    deadline_s: float


def _docker_build(server: Server, build: _Build, log: Any, *, say: Say) -> None:
    from urllib3.exceptions import ReadTimeoutError

    end = time.monotonic() + build.deadline_s
    too_long = f"its build did not end within {build.deadline_s:g} s (log: {log.name})"
    with talking_to_daemon("its image cannot be built") as client:
        told = client.api.build(
            fileobj=io.BytesIO(build.context), custom_context=True, dockerfile=build.dockerfile,
            tag=build.tag, buildargs={"BASE": build.base} | _proxies(), labels={LABEL: "1"},
            network_mode="host", rm=True, forcerm=True, decode=True,
            timeout=max(1, int(build.deadline_s)),
        )  # fmt: skip
        try:
            for event in told:
                if time.monotonic() > end:
                    told.close()  # the daemon ends the build when nobody listens to it
                    raise Unusable(too_long)
                text = event.get("stream") or event.get("error") or ""
                log.write(text)
                if text.startswith("Step "):
                    say(f"{server.name}: {text.strip()}")
                if "error" in event:
                    raise Unusable(_why_failed(event["error"], log))
        except ReadTimeoutError as error:  # a step that says nothing
            raise Unusable(too_long) from error


def _why_failed(told: str, log: Any) -> str:
    """The line of a build's log that says most of why it failed."""
    log.flush()
    lines = Path(log.name).read_text(encoding="utf-8", errors="replace")
    said = telling_line(lines.replace(told, "")) or told
    return f"its image cannot be built: {said} (log: {log.name})"


def _has_image(tag: str) -> bool:
    from docker.errors import ImageNotFound

    with talking_to_daemon(f"image {tag}") as client:
        try:
            client.images.get(tag)
        except ImageNotFound:
            return False
    return True


def _proxies() -> dict[str, str]:
    """The proxies of the environment, which a build may use without saying so."""
    names = [*_PROXIES, *(name.lower() for name in _PROXIES)]
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _context_archive(server: Server) -> bytes:
    """The build context: the sources, and under ``host/`` what this machine needs to reach out.

    ``host/ca/*.crt`` are its extra CA certificates and ``host/env`` its registry variables. Neither
    is part of the image's name, and the last stage of a Dockerfile takes neither.
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, path in build_context(server):
            add_to_archive(
                tar, name, path.read_bytes(), mode=0o755 if os.access(path, os.X_OK) else 0o644
            )
        for path in sorted(_CA_FOLDER.glob("*.crt")) if _CA_FOLDER.is_dir() else []:
            add_to_archive(tar, f"host/ca/{path.name}", path.read_bytes())
        lines = [
            f"export {name}={shlex.quote(value)}\n"
            for name, value in sorted(os.environ.items())
            if REGISTRY_VARIABLE.fullmatch(name)
        ]
        add_to_archive(tar, "host/env", "".join(lines).encode())
    return archive.getvalue()


def add_to_archive(tar: tarfile.TarFile, name: str, content: bytes, *, mode: int = 0o644) -> None:
    # No times and no owner: the daemon's build cache goes by them.
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = mode
    tar.addfile(entry, io.BytesIO(content))


def _base(*, say: Say) -> str:
    """The Debian image to build from: here already, from a registry, or made here.

    :raises Unusable: none of the three.
    """
    for tag in (_BASE_PUBLIC, _BASE_MADE):
        if _has_image(tag):
            return tag
    from docker.errors import DockerException

    say(f"fetching {_BASE_PUBLIC}")
    try:
        docker_client().images.pull(_BASE_PUBLIC)
        return _BASE_PUBLIC
    except (DockerException, OSError) as error:
        say(f"no registry gives {_BASE_PUBLIC} ({first_line(error)})")
    _make_base(say=say)
    return _BASE_MADE


def _make_base(*, say: Say) -> None:
    with locked_cache("image-base", say=say):
        if _has_image(_BASE_MADE):
            return
        tool = shutil.which("mmdebstrap")
        if tool is None:
            raise Unusable(
                f"no registry gives {_BASE_PUBLIC}, and mmdebstrap, which could make it, is not "
                "found: apt-get install mmdebstrap"
            )
        if not _KEYRING.exists():
            raise Unusable(f"{_KEYRING} not found: apt-get install debian-archive-keyring")
        say(f"making {_BASE_MADE} with mmdebstrap (once)")
        with scratch_folders.folder("base") as folder:
            archive = folder / "base.tar"
            words = [
                tool, "--variant=minbase", f"--keyring={_KEYRING}", _SUITE, str(archive),
            ]  # fmt: skip
            made = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", timeout=BUILD_DEADLINE_S, check=False,
            )  # fmt: skip
            with log_file("base") as log:
                log.write(made.stdout)
            if "NO_PUBKEY" in made.stdout:
                raise Unusable(
                    f"{_KEYRING} does not know trixie's key: apt-get install --only-upgrade "
                    "debian-archive-keyring"
                )
            if made.returncode != 0:
                raise Unusable(f"mmdebstrap: {telling_line(made.stdout)} (log: {log.name})")
            repository, _, tag = _BASE_MADE.partition(":")
            with (
                talking_to_daemon("the base image cannot be imported") as client,
                archive.open("rb") as file,
            ):
                # As pieces: docker-py announces chunks, and sends a file without making any.
                client.api.import_image_from_stream(
                    iter(lambda: file.read(1 << 20), b""),
                    repository=repository,
                    tag=tag,
                    changes=[f"LABEL {LABEL}=1"],
                )
        if not _has_image(_BASE_MADE):
            raise Unusable(f"{_BASE_MADE} was imported and is not there: see the daemon's log")
