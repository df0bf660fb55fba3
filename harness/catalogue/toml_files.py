"""TOML files to structs; every mistake names file and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from httpmark.harness.http import printable
from httpmark.harness.model import toml_text
from httpmark.harness.model.errors import HarnessError

AnyStruct = TypeVar("AnyStruct", bound=msgspec.Struct)


def parsed_toml(path: Path, where: str) -> dict[str, Any]:
    """The tables of a file.

    :param where: the file's name in complaints.
    :raises HarnessError: it cannot be read, or is no TOML.
    """
    try:
        return toml_text.tables(path.read_text("utf-8"))
    except OSError as error:
        raise HarnessError(f"{where}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise HarnessError(f"{where}: not UTF-8") from None
    except toml_text.NotToml as error:
        raise HarnessError(f"{where}: not valid TOML: {error}") from None


def decoded_as(text: dict[str, Any], where: str, kind: type[AnyStruct], **known: str) -> AnyStruct:
    """Tables as a struct.

    :param known: fields that the file must not state.
    :raises HarnessError: a key is unknown, missing or of a wrong type.
    """
    if clash := text.keys() & known:
        raise HarnessError(f"{where}: key {min(clash)!r}: remove it; the file's name says it")
    try:
        return msgspec.convert({**text, **known}, kind)
    except msgspec.ValidationError as error:
        why = printable.one_line(str(error))
        raise HarnessError(f"{where}: {why}; scenarios/README.md lists the keys") from None
