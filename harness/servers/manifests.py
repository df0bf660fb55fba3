"""images/*/server.toml to Server; every complaint names the file, the key and what to do.

The keys are described in images/README.md.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import (
    CAPABILITIES,
    LIMITS,
    PARTS_OF_BEHAVE,
    TIMEOUTS,
    ContainerRecipe,
    ProcessRecipe,
    Server,
)

IMAGES = Path(__file__).resolve().parents[2] / "images"
MANIFEST = "server.toml"

_PLACEHOLDERS = (
    "address", "port", "endpoint", "workers", "build", "source", "scratch", "static", "python",
)  # fmt: skip
_TLS_PLACEHOLDERS = ("tls_port", "tls_endpoint", "tls_cert", "tls_key")
_CONTAINER_PLACEHOLDERS = ("address", "port", "endpoint", "workers", "scratch", "static")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def folders() -> list[Path]:
    """The folders that are searched: the package's own, then those of ``HTTPMARK_IMAGES``.

    :raises HarnessError: a folder of ``HTTPMARK_IMAGES`` is not there.
    """
    found = [IMAGES]
    for word in filter(None, os.environ.get("HTTPMARK_IMAGES", "").split(os.pathsep)):
        folder = Path(word).expanduser().resolve()
        if not folder.is_dir():
            raise HarnessError(
                f"HTTPMARK_IMAGES: {word} is not a folder: name folders that hold "
                f"<server>/{MANIFEST}, with {os.pathsep!r} between them"
            )
        found.append(folder)
    return found


def servers() -> list[Server]:
    """Every server there is, by name; a later folder's manifest replaces one of the same name.

    :raises HarnessError: a manifest is wrong.
    """
    found: dict[str, Server] = {}
    for folder in folders():
        for path in sorted(folder.glob(f"*/{MANIFEST}")):
            one = read(path)
            found[one.name] = one
    return [found[name] for name in sorted(found)]


def server(name: str) -> Server:
    """The server called ``name``.

    :raises HarnessError: there is none; the nearest names are told.
    """
    known = {one.name: one for one in servers()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    meant = f" did you mean {near[0]}?" if near else ""
    raise HarnessError(f"no server is called {name!r};{meant} There are: {', '.join(known)}")


def read(path: Path) -> Server:
    """One manifest. The name of its folder is the name of the server.

    :raises HarnessError: it cannot be read, is no TOML, or breaks the schema.
    """
    one = _server(path, {})
    for complaint in _complaints(one, path):
        raise HarnessError(f"{path}: {complaint}")
    return msgspec.structs.replace(one, source=str(path.parent))


_UNNAMED = {
    "name": "target", "title": "target", "language": "", "version": "", "homepage": "",
    "capabilities": [],
}  # fmt: skip


def declared(path: Path) -> Server:
    """What a manifest declares of a target that is not started from it: capabilities (none: not
    said), limits, timeouts. All its keys may be left out, and its name is free.

    :raises HarnessError: it cannot be read, is no TOML, or says what no manifest can.
    """
    one = _server(path, _UNNAMED)
    for complaint in _declarations(one):
        raise HarnessError(f"{path}: {complaint}")
    return msgspec.structs.replace(one, source=str(path.parent))


def _server(path: Path, defaults: Mapping[str, object]) -> Server:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"{path}: cannot be read: {error}") from error
    try:
        return msgspec.convert({**defaults, **msgspec.toml.decode(text)}, Server)
    except msgspec.ValidationError as error:
        raise HarnessError(f"{path}: {_mend(str(error))}") from error
    except msgspec.DecodeError as error:
        raise HarnessError(f"{path}: no valid TOML: {error}") from error


def _mend(complaint: str) -> str:
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


def _complaints(one: Server, path: Path) -> Iterator[str]:
    if one.name != path.parent.name:
        yield f"name: is {one.name!r} in a folder called {path.parent.name!r}: make them the same"
    if not re.fullmatch(r"[a-z][a-z0-9_]*", one.name):
        yield f"name: {one.name!r}: use lower-case letters, digits and _, a letter first"
    if one.source:
        yield "source: no such key: see images/README.md, or remove it"
    if one.process is None and one.container is None:
        yield "process: neither [process] nor [container] is given: say how it is started"
    if not one.ready_path.startswith("/"):
        yield f"ready_path: {one.ready_path!r}: begin with /"
    if one.ready_timeout_s <= 0:
        yield f"ready_timeout_s: {one.ready_timeout_s}: give seconds above 0"
    if not one.capabilities:
        yield "capabilities: hello is missing: every server must answer it"
    yield from _declarations(one)
    if one.process is not None:
        yield from _process_complaints(one)
    if one.container is not None:
        yield from _container_complaints(one, path.parent)


def _declarations(one: Server) -> Iterator[str]:
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


def _process_complaints(one: Server) -> Iterator[str]:
    recipe = one.process
    assert recipe is not None
    if not recipe.start:
        yield "process.start: is empty: give the command and its words"
    for number, words in enumerate(recipe.build):
        if not words:
            yield f"process.build[{number}]: is empty: give the command and its words"
        yield from _placeholders(f"process.build[{number}]", words, _PLACEHOLDERS)
    yield from _placeholders("process.start", recipe.start, _PLACEHOLDERS)
    yield from _placeholders("process.version", recipe.version, _PLACEHOLDERS)
    yield from _placeholders("process.tls", recipe.tls, _PLACEHOLDERS + _TLS_PLACEHOLDERS)
    yield from _file_names("process.files", recipe.files)
    yield from _file_names("process.tls_files", recipe.tls_files)
    yield from _placeholders("process.conformance", recipe.conformance, _PLACEHOLDERS)
    yield from _file_names("process.conformance_files", recipe.conformance_files)
    yield from _tls_complaints("process", one, recipe)
    for number, need in enumerate(recipe.needs):
        key = f"process.needs[{number}]"
        kinds = (need.command, need.file, need.pkg_config, need.python)
        if sum(kind is not None for kind in kinds) != 1:
            yield f"{key}: give exactly one of command, file, pkg_config and python"
        if need.at_least is not None and need.command is None:
            yield f"{key}.at_least: goes with command only (pkg_config takes 'Module >= 1.2')"
        if need.at_least is not None and not re.fullmatch(r"\d+(\.\d+)*", need.at_least):
            yield f"{key}.at_least: {need.at_least!r}: give a version such as 1.21"


def _container_complaints(one: Server, folder: Path) -> Iterator[str]:
    recipe = one.container
    assert recipe is not None
    known = _CONTAINER_PLACEHOLDERS
    if (recipe.dockerfile is None) == (recipe.image is None):
        yield "container: give exactly one of dockerfile and image"
    if recipe.dockerfile is not None and not (folder / recipe.dockerfile).is_file():
        yield f"container.dockerfile: {folder / recipe.dockerfile} is not there: add it"
    for word in recipe.context:
        if not (IMAGES.parent / word).is_dir():
            yield f"container.context: {IMAGES.parent / word} is not there: name a package folder"
    yield from _placeholders("container.start", recipe.start, known)
    yield from _placeholders("container.version", recipe.version, known)
    yield from _placeholders("container.tls", recipe.tls, known + _TLS_PLACEHOLDERS)
    yield from _file_names("container.files", recipe.files)
    yield from _file_names("container.tls_files", recipe.tls_files)
    yield from _placeholders("container.conformance", recipe.conformance, known)
    yield from _file_names("container.conformance_files", recipe.conformance_files)
    yield from _tls_complaints("container", one, recipe)


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
