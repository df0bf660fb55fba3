"""The configuration file of a project: httpmark.toml, or ``[tool.httpmark]`` of pyproject.toml.

It has a table per command, with the command's long options without their dashes as keys::

    [tool.httpmark.check]
    suite = ["seed"]
    fail-under = 90
    baseline = "conformance-baseline.toml"

The keys are read from the commands' options, so every new option can be configured. The command
line beats the file. The table ``server`` says how servers are brought, each as a string or as a
table of the keys of a server.toml (images/README.md). A path in the file is relative to the file's
folder. The file is searched from the working folder upwards, and the search ends at the top of the
repository.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from httpmark.harness.command.run_argument import RunFolder
from httpmark.harness.command.server_word import ServerWord
from httpmark.harness.model import run_folder, toml_text
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import brought

NAME = "httpmark.toml"
PYPROJECT = "pyproject.toml"

SERVERS = "server"  # the table of servers; no command is called so

# These options are for one call, and cannot be configured.
_ONCE = {"config", "help", "update", "allow-growth", "resume"}


class Source(msgspec.Struct, frozen=True):
    """What a configuration file says for each command."""

    path: Path
    where: str  # the table's name, for messages
    tables: dict[str, Any]


def find(folder: Path) -> Source | None:
    """The configuration file for a folder: the nearest in it or above it, or None.

    In one folder ``httpmark.toml`` comes before ``pyproject.toml``. A pyproject.toml without our
    table does not count.

    :raises HarnessError: it is not TOML.
    """
    for place in (folder, *folder.parents):
        for name in (NAME, PYPROJECT):
            if (place / name).is_file() and (found := read(place / name)) is not None:
                return found
        if (place / ".git").exists():
            break
    return None


def read(path: Path) -> Source | None:
    """The configuration in one file; None for a pyproject.toml without our table.

    :raises HarnessError: it cannot be read, or is not TOML.
    """
    try:
        value = toml_text.tables(path.read_text("utf-8"))
    except OSError as error:
        raise HarnessError(f"{path}: {error.strerror}: name a file that exists") from None
    except UnicodeDecodeError:
        raise HarnessError(f"{path}: it is not UTF-8 text: save it as UTF-8") from None
    except toml_text.NotToml as error:
        raise HarnessError(f"{path}: it is not TOML: {error}") from None
    if path.name != PYPROJECT:
        return Source(path, "", value)
    tool = value.get("tool", {})
    if not isinstance(tool, dict) or "httpmark" not in tool:
        return None
    tables = tool["httpmark"]
    if not isinstance(tables, dict):
        raise HarnessError(f"{path}: [tool.httpmark] must be a table of tables, one per command")
    return Source(path, "tool.httpmark.", tables)


def defaults(source: Source, command: str, commands: Mapping[str, click.Command]) -> dict[str, Any]:
    """What a file says for one command, as click's ``default_map``: by parameter name.

    The whole file is checked, so that mistakes in the tables of other commands are reported, too.

    :raises HarnessError: an unknown table or key, or a value of another kind; names the nearest.
    """
    read_now: dict[str, Any] = {}
    stated(source)
    for name, table in source.tables.items():
        where = f"{source.path}: [{source.where}{toml_text.shown_key(name)}]"
        if name in ("$schema", "schema", SERVERS):
            continue
        if name not in commands:
            raise HarnessError(f"{where}: {_nearest('table', name, commands)}")
        if not isinstance(table, dict):
            raise HarnessError(f"{where} must be a table of options")
        options = _options(commands[name])
        values = {}
        for key, value in table.items():
            if key not in options:
                raise HarnessError(f"{where}: {_nearest('key', key, options)}")
            option = options[key]
            values[str(option.name)] = _value(f"{where} {key}", option, value, source.path.parent)
        if name == command:
            read_now = values
    return read_now


def stated(source: Source) -> tuple[brought.Stated, ...]:
    """The servers that a file brings, or says something of.

    :raises HarnessError: one of them is neither a string nor a table.
    """
    where = f"{source.path}: [{source.where}{SERVERS}"
    table = source.tables.get(SERVERS, {})
    if not isinstance(table, dict):
        raise HarnessError(f"{where}] must be a table, with a name for each server")
    found = []
    for name, value in table.items():
        keys = {brought.FROM: value} if isinstance(value, str) else value
        one = f"{where}.{toml_text.shown_key(name)}]"
        if not isinstance(keys, dict):
            raise HarnessError(f"{one} must be a string, as 'docker:TAG', or a table of keys")
        found.append(brought.Stated(name, keys, one, source.path.parent))
    return tuple(found)


def schema(commands: Mapping[str, click.Command]) -> dict[str, Any]:
    """The JSON Schema of httpmark.toml (and of the table in pyproject.toml)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "httpmark configuration",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "schema": {"type": "string", "description": "The address of this schema, for editors."},
            SERVERS: _servers_schema(),
            **{
                name: {
                    "type": "object",
                    "description": (command.help or "").partition("\n")[0],
                    "additionalProperties": False,
                    "properties": {
                        key: _schema(option) for key, option in _options(command).items()
                    },
                }
                for name, command in commands.items()
            },
        },
    }


def _servers_schema() -> dict[str, Any]:
    """Servers by name: a string, or the keys of a server.toml and how it is brought."""
    how = {
        "type": "string",
        "description": "How the server is brought: docker:TAG, a program or an address, and words.",
    }
    keys: dict[str, Any] = {
        name: {} for name in Server.__struct_fields__ if name not in ("source", "trouble")
    }
    table = {
        "type": "object",
        "additionalProperties": False,
        "properties": {brought.FROM: how, **keys},
    }
    return {
        "type": "object",
        "description": "Servers that you bring, or of which you say more.",
        "additionalProperties": {"anyOf": [how, table]},
    }


def _nearest(kind: str, name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = difflib.get_close_matches(name.replace("_", "-"), names, 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
    return f"unknown {kind} {name!r}: {hint}"


def _options(command: click.Command) -> dict[str, click.Parameter]:
    """A command's parameters by the key that configures them."""
    found: dict[str, click.Parameter] = {}
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            longest = max(parameter.opts, key=len).removeprefix("--")
            if longest not in _ONCE:
                found[longest] = parameter
        else:
            # As help shows it: TARGET|SERVER... is configured as server.
            shown = (parameter.metavar or parameter.name or "").lower()
            found[re.findall("[a-z]+", shown)[-1]] = parameter
    return found


def _many(parameter: click.Parameter) -> bool:
    return parameter.multiple if isinstance(parameter, click.Option) else parameter.nargs != 1


def _value(where: str, parameter: click.Parameter, value: Any, folder: Path) -> Any:
    """One value as click would have read it.

    :raises HarnessError: it is of another kind, or out of bounds.
    """
    if _many(parameter):
        listed = value if isinstance(value, list) else [value]
        return tuple(_one(where, parameter, item, folder) for item in listed)
    return _one(where, parameter, value, folder)


def _one(where: str, parameter: click.Parameter, value: Any, folder: Path) -> Any:
    kind, wanted = parameter.type, _kind(parameter)
    if not _is(value, wanted):
        raise HarnessError(f"{where}: must be {_ARTICLES[wanted]}, not {value!r}")
    if isinstance(kind, click.Path):
        is_latest = isinstance(kind, RunFolder) and value == run_folder.LATEST
        return value if is_latest else folder / value
    if isinstance(kind, ServerWord):
        return kind.of_file(value, folder)
    try:
        return kind.convert(value, parameter, None)
    except click.BadParameter as error:
        raise HarnessError(f"{where}: {error.message}") from None


_ARTICLES = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "a string",
}


def _kind(parameter: click.Parameter) -> str:
    """JSON's word for what a parameter takes."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return "boolean"
    kind = parameter.type
    if isinstance(kind, click.types.IntParamType):
        return "integer"
    if isinstance(kind, click.types.FloatParamType):
        return "number"
    return "string"


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    types: dict[str, Any] = {"integer": int, "number": (int, float), "string": str}
    return kind in types and isinstance(value, types[kind])


def _schema(parameter: click.Parameter) -> dict[str, Any]:
    kind = parameter.type
    one: dict[str, Any] = {"type": _kind(parameter)}
    if isinstance(kind, click.Choice):
        one = {"enum": [str(choice) for choice in kind.choices]}
    for word, bound in (("minimum", "min"), ("maximum", "max")):
        if getattr(kind, bound, None) is not None:
            one[word] = getattr(kind, bound)
    found: dict[str, Any] = (
        {"anyOf": [one, {"type": "array", "items": one}]} if _many(parameter) else one
    )
    help_text = getattr(parameter, "help", None)
    return {**found, **({"description": help_text} if help_text else {})}
