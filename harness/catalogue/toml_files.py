"""TOML files to structs; every mistake names file and key."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from httpmark.harness.model.errors import HarnessError

_Text = TypeVar("_Text", bound=msgspec.Struct)


def parsed_toml(path: Path, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise HarnessError(f"{where}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise HarnessError(f"{where}: not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise HarnessError(f"{where}: not valid TOML: {error}") from None


def decoded_as(text: dict[str, Any], where: str, kind: type[_Text], **known: str) -> _Text:
    if clash := text.keys() & known:
        raise HarnessError(f"{where}: key {min(clash)!r}: it follows from the file's name")
    try:
        return msgspec.convert({**text, **known}, kind)
    except msgspec.ValidationError as error:
        raise HarnessError(f"{where}: {error}; scenarios/README.md lists the keys") from None
