"""Servers that the user brings, and all servers that one call knows.

A server is brought as ``NAME=docker:TAG WORDS``, ``NAME=PROGRAM WORDS`` or ``NAME=http://HOST:PORT/``
(images/README.md). If NAME is one of ours, its manifest says what it is and can do, and only how it
is started changes. Any other NAME is a new server that can do ``hello`` alone, unless a
configuration file says more.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import manifest_mistakes, manifests
from httpmark.harness.servers.manifests import Layer, Table

_NAMED = re.compile(r"([^\s:/=]*)=(.*)", re.DOTALL)
_DOCKER = "docker:"
FROM = "from"
"""The key of a configuration file that says how a server is brought."""
_NEW: Table = {
    "language": "", "version": "as brought", "homepage": "", "capabilities": ["hello"],
}  # fmt: skip
# What a manifest says of a server that is started in its own way, and that need not be true of one
# that the user starts in another.
_OF_ITS_START = ("limits", "timeouts", "conformance")
_STILL_GIVEN = ("env", "files")  # to a recipe with other words, which may name them


class Brought(msgspec.Struct, frozen=True):
    """A server as its user names it: ``name=how``."""

    name: str
    how: str
    folder: Path  # where relative paths begin, and a program is started

    def __str__(self) -> str:
        return f"{self.name}={self.how}"


class Stated(msgspec.Struct, frozen=True):
    """What a configuration file says of a server: how it is brought, and keys of a server.toml."""

    name: str
    table: Table
    where: str  # for messages
    folder: Path


def is_named(text: str) -> bool:
    """Whether a text is ``NAME=HOW`` with a name that a server may have; ``A=1 ./server`` is a
    command that sets a variable."""
    found = _NAMED.fullmatch(text)
    return found is not None and manifest_mistakes.name_mistake(found[1]) is None


def read(text: str, folder: Path) -> Brought | None:
    """``NAME=HOW``; None where the text is a name or an address.

    :raises HarnessError: nothing can be called so.
    """
    found = _NAMED.fullmatch(text)
    if found is None:
        return None
    if (mistake := manifest_mistakes.name_mistake(found[1])) is not None:
        raise HarnessError(f"{text}: {mistake}")
    return Brought(found[1], found[2], folder)


class Field:
    """The servers that a call knows: by manifest, by its configuration file, by its command line.

    :raises HarnessError: the configuration file is wrong.
    """

    def __init__(self, stated: Iterable[Stated] = ()) -> None:
        self._layers = manifests.layers()
        for one in stated:
            self._layers[one.name] = _stated(one, self._layers.get(one.name))
        self._taken: dict[str, Brought | None] = {}

    def take(self, word: str | Brought, *, allow_remote: bool = False) -> str:
        """The name of a server that the command line names; one that it brings is known from now.

        :raises HarnessError: there is no such server, it cannot be brought in that way, or one name
            stands for two servers.
        """
        one = word if isinstance(word, Brought) else None
        name = one.name if one is not None else str(word)
        if self._taken.setdefault(name, one) != one:
            raise HarnessError(
                f"{word}: another server is called {name}, too: give it another name"
            )
        if one is not None:
            self._layers[name] = _brought(one, self._layers.get(name), str(one))
        server = self.server(name)
        if server.url:
            from httpmark.harness.servers import running_target

            running_target.located(server.url, allow_remote=allow_remote)
        return name

    def servers(self) -> list[Server]:
        """All of them, by name."""
        return manifests.told(self._layers)

    def server(self, name: str) -> Server:
        """One of them.

        :raises HarnessError: there is none of that name; the nearest names are told.
        """
        return manifests.named(name, {one.name: one for one in self.servers()})


def _stated(one: Stated, below: Layer | None) -> Layer:
    """A server with what a configuration file says of it."""
    table = dict(one.table)
    how = table.pop(FROM, None)
    if how is not None and not isinstance(how, str):
        raise HarnessError(f"{one.where}: {FROM}: must be a string, as 'docker:TAG', not {how!r}")
    if (mistake := manifest_mistakes.name_mistake(one.name)) is not None:
        raise HarnessError(f"{one.where}: {mistake}")
    if below is not None and below.trouble:
        return below
    layer = below or Layer(_NEW | {"name": one.name, "title": one.name})
    if how is not None:
        layer = _as_brought(Brought(one.name, how, one.folder), layer, one.where)
    layer = manifests.laid_over(layer, table, one.where)
    manifests.checked(one.name, layer, one.where)
    return layer


def _brought(one: Brought, below: Layer | None, where: str) -> Layer:
    """A server as the command line brings it."""
    if below is not None and below.trouble:
        return below
    layer = _as_brought(one, below or Layer(_NEW | {"name": one.name, "title": one.name}), where)
    manifests.checked(one.name, layer, where)
    return layer


def _as_brought(one: Brought, below: Layer, where: str) -> Layer:
    """The keys of a server with another start."""
    try:
        words = shlex.split(one.how)
    except ValueError as error:
        raise HarnessError(f"{where}: {error}: check the quotes") from None
    first, rest = (words[0], words[1:]) if words else ("", [])
    if first in ("", _DOCKER):
        raise HarnessError(
            f"{where}: nothing is named: write {one.name}=docker:TAG, {one.name}=PROGRAM or "
            f"{one.name}=http://HOST:PORT/"
        )
    kept = {key: value for key, value in below.table.items() if key not in ("process", "container")}
    kept.pop("url", None)
    kept["version"] = _NEW["version"]
    from httpmark.harness.servers import running_target  # the help of commands needs no more of it

    is_running = running_target.is_address(first)
    if is_running and rest:
        raise HarnessError(f"{where}: {first} runs already: leave out {shlex.join(rest)!r}")
    if is_running or rest:
        kept = _without_its_start(kept)
    if is_running:
        kept["url"] = first
        if first.startswith("https:"):
            kept["capabilities"] = [*kept["capabilities"], "tls"]
    elif first.startswith(_DOCKER):
        kept["container"] = _container(first, rest, below.table.get("container"))
    else:
        kept["process"] = _process(first, rest, below.table.get("process"), one.folder)
    return Layer(kept, below.source)


def _without_its_start(table: Table) -> Table:
    left = {key: value for key, value in table.items() if key not in _OF_ITS_START}
    return left | {"capabilities": [word for word in table["capabilities"] if word != "tls"]}


def _container(first: str, rest: list[str], ours: Any) -> Table:
    image = {"image": first.removeprefix(_DOCKER)}
    if rest:
        return _given(rest, ours) | image | {"args": rest}
    return {
        key: value for key, value in (ours or {}).items() if key not in ("dockerfile", "context")
    } | image


def _process(first: str, rest: list[str], ours: Any, folder: Path) -> Table:
    program = os.path.normpath(folder / Path(first).expanduser()) if "/" in first else first
    if rest:
        # In the folder of who brings it, as its words may name files there.
        start = ["env", "-C", str(folder), program, *rest]
        return _given(rest, ours) | {"start": start, "binary": program}
    recipe = {
        key: value
        for key, value in (ours or {}).items()
        if key not in ("build", "build_env", "needs", "version")
    }
    return recipe | {"start": [program, *recipe.get("start", ())[1:]], "binary": program}


def _given(words: list[str], ours: Any) -> Table:
    """What a recipe of ours still gives to a start with other words."""
    keys: tuple[str, ...] = _STILL_GIVEN
    if not any("{port}" in word or "{endpoint}" in word for word in words):
        keys = (*keys, "port")
    return {key: value for key, value in (ours or {}).items() if key in keys}
