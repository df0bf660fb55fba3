"""Scenario files to families and rules; every mistake names file, entry and key."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.catalogue.designed_cases import designed_case
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.catalogue.generated_families import generated_family
from httpmark.harness.catalogue.mistakes import Collected
from httpmark.harness.catalogue.scenario_keys import CaseEntry, CaseFile, FamilyEntry, FamilyFile
from httpmark.harness.catalogue.toml_files import AnyStruct, decoded_as, parsed_toml
from httpmark.harness.model.cases import Family


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """The keys of a kind; kept, as reading annotations is slow and there are a thousand entries."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def _entry(text: dict[str, Any], where: str, kind: type[AnyStruct]) -> AnyStruct:
    """An entry as its kind.

    :raises Mistakes: keys are unknown, missing or of a wrong type; all of them are named.
    """
    told = Collected()
    known = _fields(kind)
    for key, value in text.items():
        if key not in known:
            near = difflib.get_close_matches(key, list(known), 1)
            hint = f"did you mean {near[0]}?" if near else "scenarios/README.md lists the keys"
            told.lines.append(f"{where} {key!r}: there is no such key; {hint}")
            continue
        try:
            msgspec.convert(value, known[key].type)
        except msgspec.ValidationError as error:
            told.lines.append(f"{where} {key!r}: {error}")
    for key, field in known.items():
        if field.required and key not in text:
            told.lines.append(f"{where} {key!r}: is missing")
    told.done()
    return msgspec.convert(text, kind)


def _named(texts: list[dict[str, Any]], kind: str, name: str) -> Iterator[tuple[str, Any]]:
    """Entries, each with its name in complaints: its id, or its number where it has none."""
    for number, text in enumerate(texts):
        id = text.get("id")
        called = repr(id) if isinstance(id, str) else f"number {number + 1}"
        yield f"{name}: {kind} {called}: key", text


def entries(path: Path, name: str, told: Collected) -> Iterator[tuple[Family, Rule]]:
    """The entries of one file; mistakes in an entry are noted in ``told``.

    :param name: the file's name in complaints.
    :raises HarnessError: the file as a whole is wrong.
    """
    text = parsed_toml(path, name)
    if "case" in text:
        cases = decoded_as(text, name, CaseFile)
        for where, one in _named(cases.case, "case", name):
            with told.noting():
                yield designed_case(cases, _entry(one, where, CaseEntry), where, name)
    else:
        file = decoded_as(text, name, FamilyFile)
        for where, one in _named(file.family, "family", name):
            with told.noting():
                yield generated_family(file, _entry(one, where, FamilyEntry), where, name)
