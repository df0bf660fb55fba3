"""images/*/server.toml to Server; every complaint names the file, the key and what to do.

The keys are described in images/README.md. What is wrong with one manifest is the trouble of one
server: it is listed as unavailable, and the others are not touched.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.http import printable
from httpmark.harness.model import toml_text
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import build_sources, manifest_mistakes

IMAGES = build_sources.PACKAGE / "images"
MANIFEST = "server.toml"

Table = dict[str, Any]
"""The keys of a manifest as they are written."""

# What a manifest that stands alone must say. One that says less is laid over another of its name.
_REQUIRED = ("name", "title", "language", "version", "homepage", "capabilities")
_STARTS = ("process", "container", "url")
# Files that a process and a container share may stand above both.
_FOR_BOTH = ("files", "tls_files", "conformance_files")
# Of a container: a later manifest's key takes the place of an earlier one's.
_INSTEAD = {
    "image": ("dockerfile", "context"), "start": ("args",), "args": ("start",),
}  # fmt: skip


class Layer(msgspec.Struct, frozen=True):
    """What is known of one server: the keys, the folder of its files, and what is wrong."""

    table: Table
    source: Path | None = None
    trouble: str = ""


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
    """Every server there is, by name. One whose manifest is wrong says so as its ``trouble``."""
    return told(layers())


def told(known: Mapping[str, Layer]) -> list[Server]:
    """The servers of some layers, by name."""
    return [_told(name, layer) for name, layer in sorted(known.items())]


def server(name: str) -> Server:
    """The server called ``name``.

    :raises HarnessError: there is none; the nearest names are told.
    """
    return named(name, {one.name: one for one in servers()})


def named(name: str, known: Mapping[str, Server]) -> Server:
    """One of some servers.

    :raises HarnessError: none has that name; the nearest names are told.
    """
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    meant = f" did you mean {near[0]}?" if near else ""
    raise HarnessError(
        f"no server is called {name!r};{meant} There are: {', '.join(sorted(known))}"
    )


def layers() -> dict[str, Layer]:
    """What all folders say, by name.

    A later folder's manifest replaces an earlier one of the same name if it says all that a
    manifest must say. Else its keys are laid over the earlier ones.
    """
    found: dict[str, Layer] = {}
    for folder in folders():
        for path in sorted(folder.glob(f"*/{MANIFEST}")):
            name = path.parent.name
            found[name] = _layer(path, found.get(name))
    return found


def _layer(path: Path, below: Layer | None) -> Layer:
    """One manifest, over what earlier folders say of that server."""
    try:
        table = _table(path)
        if below is None or _is_whole(table):
            layer = Layer(table, path.parent)
        elif below.trouble:
            return below
        else:
            layer = laid_over(below, table, str(path))
        checked(path.parent.name, layer, str(path))
    except HarnessError as error:
        return Layer({}, path.parent, str(error))
    return layer


def _is_whole(table: Table) -> bool:
    return all(key in table for key in _REQUIRED) and any(key in table for key in _STARTS)


def laid_over(below: Layer, table: Table, where: str) -> Layer:
    """The keys of a table over those of a server that is known; its files stay where they are.

    :raises HarnessError: the table needs files of its own.
    """
    if "dockerfile" in _inner(table, "container"):
        raise HarnessError(
            f"{where}: container.dockerfile: a build has files of its own: write a whole manifest, "
            f"with {', '.join(_REQUIRED)}, or name an image"
        )
    return Layer(_merged(below.table, table), below.source)


def _inner(table: Table, key: str) -> Table:
    inner = table.get(key, {})
    return inner if isinstance(inner, dict) else {}


def _merged(below: Table, above: Table) -> Table:
    """Table in table, key by key; what takes the place of another key removes it."""
    gone = {"process", "container"} if "url" in above else set()
    if "process" in above or "container" in above:
        gone |= {"url"} - set(above)
    kept = {key: value for key, value in below.items() if key not in gone}
    both = kept | above
    for key in set(kept) & set(above):
        if isinstance(kept[key], dict) and isinstance(above[key], dict):
            both[key] = _merged(kept[key], above[key])
    for key in set(_INSTEAD) & set(_inner(above, "container")):
        for other in set(_INSTEAD[key]) - set(above["container"]):
            both["container"].pop(other, None)
    return both


def checked(name: str, layer: Layer, where: str) -> Server:
    """The server that a layer describes.

    :param where: what the complaints begin with.
    :raises HarnessError: it breaks the schema.
    """
    one = _converted(layer.table, where)
    folder = layer.source or Path()
    for complaint in manifest_mistakes.complaints(one, name, folder):
        raise HarnessError(f"{where}: {complaint}")
    return msgspec.structs.replace(one, source=str(layer.source or ""))


def _told(name: str, layer: Layer) -> Server:
    if not layer.trouble:
        return checked(name, layer, name)
    return Server(
        name=name, title=name, language="", version="", homepage="", capabilities=("hello",),
        source=str(layer.source or ""), trouble=layer.trouble,
    )  # fmt: skip


def read(path: Path) -> Server:
    """One manifest. The name of its folder is the name of the server.

    :raises HarnessError: it cannot be read, is no TOML, or breaks the schema.
    """
    return checked(path.parent.name, Layer(_table(path), path.parent), str(path))


_UNNAMED = {
    "name": "target", "title": "target", "language": "", "version": "", "homepage": "",
    "capabilities": [],
}  # fmt: skip


def declared(path: Path) -> Server:
    """What a manifest declares of a target that is not started from it: capabilities (none: not
    said), limits, timeouts. All its keys may be left out, and its name is free.

    :raises HarnessError: it cannot be read, is no TOML, or says what no manifest can.
    """
    one = _converted(_UNNAMED | _table(path), str(path))
    for complaint in manifest_mistakes.declarations(one):
        raise HarnessError(f"{path}: {complaint}")
    return msgspec.structs.replace(one, source=str(path.parent))


def _table(path: Path) -> Table:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"{path}: cannot be read: {error}") from error
    try:
        table: Table = toml_text.tables(text)
    except toml_text.NotToml as error:
        raise HarnessError(f"{path}: no valid TOML: {error}") from error
    return table


def _shared(table: Table) -> Table:
    """The files that a process and a container share, given to both; their own ones win.

    What is no table is left for the schema to complain of.
    """
    both = {key: table[key] for key in _FOR_BOTH if isinstance(table.get(key), dict)}
    left = {key: value for key, value in table.items() if key not in both}
    for recipe in ("process", "container"):
        own = left.get(recipe)
        if isinstance(own, dict):
            left[recipe] = own | {
                key: files | own[key] if isinstance(own.get(key), dict) else own.get(key, files)
                for key, files in both.items()
            }
    return left


def _converted(table: Table, where: str) -> Server:
    try:
        return msgspec.convert(_shared(table), Server)
    except msgspec.ValidationError as error:
        complaint = printable.one_line(str(error))
        raise HarnessError(f"{where}: {manifest_mistakes.mended(complaint)}") from error
