"""What can be wrong with a manifest: each mistake as one line, the key first, with what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import (
    CAPABILITIES,
    LIMITS,
    PARTS_OF_BEHAVE,
    RIGHTS,
    TIMEOUTS,
    WORKERS,
    ContainerRecipe,
    ProcessRecipe,
    ProxyRecipe,
    Server,
)
from httpmark.harness.servers.build_sources import PACKAGE

NAME = re.compile(r"[a-z][a-z0-9_]*")

_PLACEHOLDERS = (
    "address", "port", "endpoint", "workers", "build", "source", "scratch", "static", "python",
    "package",
)  # fmt: skip
_TLS_PLACEHOLDERS = ("tls_port", "tls_endpoint", "tls_cert", "tls_key")
_ORIGIN_PLACEHOLDERS = ("origin", "origin_host", "origin_port")
_CONTAINER_PLACEHOLDERS = ("address", "port", "endpoint", "workers", "scratch", "static")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def mended(complaint: str) -> str:
    """msgspec's complaint as key first, with what to do."""
    place = re.search(r" - at `\$\.?(.*)`$", complaint)
    said = complaint[: place.start()] if place else complaint
    inside = place[1] if place else ""
    unknown = re.fullmatch(r"Object contains unknown field `(.+)`", said)
    missing = re.fullmatch(r"Object missing required field `(.+)`", said)
    if unknown:
        return f"{_key(inside, unknown[1])}: no such key: see images/README.md, or remove it"
    if missing:
        return f"{_key(inside, missing[1])}: is missing: add it (images/README.md says what)"
    return f"{inside or 'the file'}: {said}"


def _key(inside: str, key: str) -> str:
    return f"{inside}.{key}" if inside else key


def name_mistake(name: str) -> str | None:
    """What is wrong with the name of a server."""
    if NAME.fullmatch(name):
        return None
    return f"name: {name!r}: use lower-case letters, digits and _, a letter first"


def complaints(one: Server, name: str, folder: Path) -> Iterator[str]:
    """What is wrong with a server that is called ``name`` and whose files are in ``folder``."""
    if one.name != name:
        yield f"name: is {one.name!r} in a folder called {name!r}: make them the same"
    if (mistake := name_mistake(one.name)) is not None:
        yield mistake
    for key in ("source", "trouble"):
        if getattr(one, key):
            yield f"{key}: no such key: see images/README.md, or remove it"
    if one.process is None and one.container is None and not one.url:
        yield "process: neither [process] nor [container] is given: say how it is started"
    if one.url and (one.process is not None or one.container is not None):
        yield "url: a server that runs already is not started: remove url, or the recipe"
    if one.url:
        yield from _url_complaints(one.url)
    if one.engine and not NAME.fullmatch(one.engine):
        yield f"engine: {one.engine!r}: give the name of the server whose HTTP parser it shares"
    if one.workers:
        yield from _vocabulary("workers", [one.workers], WORKERS)
    if not one.ready_path.startswith("/"):
        yield f"ready_path: {one.ready_path!r}: begin with /"
    if one.ready_timeout_s <= 0:
        yield f"ready_timeout_s: {one.ready_timeout_s}: give seconds above 0"
    if not one.capabilities:
        yield "capabilities: hello is missing: every server must answer it"
    yield from declarations(one)
    if one.process is not None:
        yield from _process_complaints(one)
    if one.container is not None:
        yield from _container_complaints(one, folder)
    if one.proxy is not None:
        yield from _proxy_complaints(one, one.proxy)


def _url_complaints(url: str) -> Iterator[str]:
    from httpmark.harness.servers import running_target  # few need it, and it loads much

    try:
        running_target.located(url, allow_remote=True)
    except HarnessError as error:
        yield f"url: {error}"


def declarations(one: Server) -> Iterator[str]:
    if one.capabilities and "hello" not in one.capabilities:
        yield "capabilities: hello is missing: every server must answer it"
    words = (*CAPABILITIES, *PARTS_OF_BEHAVE)
    yield from _vocabulary("capabilities", one.capabilities, words)
    yield from _vocabulary("limits", one.limits, LIMITS)
    yield from _vocabulary("timeouts", one.timeouts, TIMEOUTS)
    yield from _vocabulary("conformance.limits", one.conformance.limits, LIMITS)
    yield from _vocabulary("conformance.timeouts", one.conformance.timeouts, TIMEOUTS)


def _vocabulary(key: str, words: Iterable[str], known: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        if word not in known:
            near = difflib.get_close_matches(word, known, n=1)
            meant = f"did you mean {near[0]}?" if near else f"use one of {', '.join(known)}"
            yield f"{key}: {word!r} is not known: {meant}"


def _port_complaints(
    key: str, recipe: ProcessRecipe | ContainerRecipe, words: Iterable[str]
) -> Iterator[str]:
    if recipe.port is not None and not 0 < recipe.port < 65536:
        yield f"{key}.port: {recipe.port}: give a number from 1 to 65535"
    named = (*words, *recipe.files.values(), *recipe.env.values())
    if recipe.port is None and not any("{port}" in w or "{endpoint}" in w for w in named):
        yield f"{key}.port: nothing says where it listens: write {{port}} in its words, or state it"


def _process_complaints(one: Server) -> Iterator[str]:
    recipe = one.process
    assert recipe is not None
    if not recipe.start:
        yield "process.start: is empty: give the command and its words"
    for number, words in enumerate(recipe.build):
        if not words:
            yield f"process.build[{number}]: is empty: give the command and its words"
        yield from _placeholders(f"process.build[{number}]", words, _PLACEHOLDERS)
    yield from _recipe_complaints("process", one, recipe, _PLACEHOLDERS)
    if recipe.start:
        yield from _port_complaints("process", recipe, recipe.start)
    for number, need in enumerate(recipe.needs):
        key = f"process.needs[{number}]"
        kinds = (need.command, need.file, need.pkg_config, need.python)
        if sum(kind is not None for kind in kinds) != 1:
            yield f"{key}: give exactly one of command, file, pkg_config and python"
        if need.at_least is not None and need.command is None:
            yield f"{key}.at_least: goes with command only (pkg_config takes 'Module >= 1.2')"
        if need.at_least is not None and not re.fullmatch(r"\d+(\.\d+)*", need.at_least):
            yield f"{key}.at_least: {need.at_least!r}: give a version such as 1.21"


def _proxy_complaints(one: Server, recipe: ProxyRecipe) -> Iterator[str]:
    if one.process is None:
        yield "proxy: goes with [process] only: it is started as a local process"
    if not recipe.start:
        yield "proxy.start: is empty: give the command and its words"
    yield from _placeholders("proxy.start", recipe.start, _PLACEHOLDERS + _ORIGIN_PLACEHOLDERS)
    yield from _file_names("proxy.files", recipe.files)
    words = (*recipe.start, *recipe.files.values())
    for what, names in (
        ("where it listens", ("{port}", "{endpoint}")),
        ("where the origin is", ("{origin}", "{origin_port}")),
    ):
        if not any(name in word for name in names for word in words):
            yield f"proxy.start: nothing says {what}: write {' or '.join(names)} in its words"


def _container_complaints(one: Server, folder: Path) -> Iterator[str]:
    recipe = one.container
    assert recipe is not None
    known = _CONTAINER_PLACEHOLDERS
    if (recipe.dockerfile is None) == (recipe.image is None):
        yield "container: give exactly one of dockerfile and image"
    if recipe.dockerfile is not None:
        is_shared = recipe.dockerfile.startswith(tuple(f"{word}/" for word in recipe.context))
        path = (PACKAGE if is_shared else folder) / recipe.dockerfile
        if not path.is_file():
            yield f"container.dockerfile: {path} is not there: add it"
    if recipe.start and recipe.args:
        yield "container.args: go after the image's own command: remove them, or start"
    yield from _vocabulary("container.keeps", recipe.keeps or (), RIGHTS)
    for word in recipe.writes:
        if not word.startswith("/") or ".." in word.split("/") or word.strip("/") == "":
            yield f"container.writes: {word!r}: give the whole path of a folder, as /var/cache"
    yield from _placeholders("container.args", recipe.args, known)
    yield from _recipe_complaints("container", one, recipe, known)
    yield from _port_complaints("container", recipe, (*recipe.start, *recipe.args))


def _recipe_complaints(
    key: str, one: Server, recipe: ProcessRecipe | ContainerRecipe, known: tuple[str, ...]
) -> Iterator[str]:
    yield from _context(key, recipe.context)
    yield from _placeholders(f"{key}.start", recipe.start, known)
    yield from _placeholders(f"{key}.version", recipe.version, known)
    yield from _placeholders(f"{key}.tls", recipe.tls, known + _TLS_PLACEHOLDERS)
    yield from _placeholders(f"{key}.conformance", recipe.conformance, known)
    yield from _file_names(f"{key}.files", recipe.files)
    yield from _file_names(f"{key}.tls_files", recipe.tls_files)
    yield from _file_names(f"{key}.conformance_files", recipe.conformance_files)
    yield from _tls_complaints(key, one, recipe)


def _context(key: str, folders: tuple[str, ...]) -> Iterator[str]:
    for word in folders:
        if not (PACKAGE / word).is_dir():
            yield f"{key}.context: {PACKAGE / word} is not there: name a package folder"


def _tls_complaints(
    key: str, one: Server, recipe: ProcessRecipe | ContainerRecipe
) -> Iterator[str]:
    given = bool(recipe.tls or recipe.tls_files)
    if "tls" in one.capabilities and not given:
        yield f"{key}.tls: is missing: the capability tls needs the words that switch it on"
    if given and "tls" not in one.capabilities:
        yield f"{key}.tls: add tls to capabilities, or remove it"


def _placeholders(key: str, words: tuple[str, ...], known: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        for name in _PLACEHOLDER.findall(word):
            if name not in known:
                yield f"{key}: {{{name}}} is not filled in: use {', '.join(known)}"


def _file_names(key: str, files: dict[str, str]) -> Iterator[str]:
    for name in files:
        if name in ("", ".", "..") or "/" in name:
            yield f"{key}: {name!r}: give a plain file name"
