"""All scenario files below a folder to one catalogue, with the finds of ``httpmark fuzz``."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.catalogue.load_profiles import load_profile
from httpmark.harness.catalogue.mistakes import Collected
from httpmark.harness.catalogue.scenario_files import entries
from httpmark.harness.catalogue.toml_files import decoded_as, parsed_toml
from httpmark.harness.model.cases import Family, Requirement
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.load import LoadPlan

FOLDER = Path(__file__).resolve().parents[2] / "scenarios"
COVERAGE_HOLES = FOLDER / "coverage_holes.toml"
"""What no case covers of the grammar, with reasons; ``coverage_holes`` reads it."""
FORWARDING = FOLDER / "forwarding.toml"
"""What is sent to proxies beside the cases; ``forwarding_messages`` reads it."""
FOUND = Path("scenarios", "found")
"""Where ``httpmark fuzz`` saves finds and all commands look for them, below the working folder."""
FOUND_SET = "HTTPMARK_FOUND"
"""The environment variable that names another folder of finds."""


class _RequirementsText(msgspec.Struct, forbid_unknown_fields=True):
    """``requirements.toml`` as written."""

    requirement: list[Requirement]


class _PublishedText(msgspec.Struct, forbid_unknown_fields=True):
    """``seed/published.json`` as written."""

    about: str
    versions: dict[str, str]
    counts: dict[str, dict[str, tuple[int, int]]]  # detected, undetected
    detections: dict[str, dict[str, str]]


def found_folder() -> Path:
    """Where finds are saved and read: the folder that ``HTTPMARK_FOUND`` names, else
    ``scenarios/found`` below the working folder."""
    return Path(os.environ.get(FOUND_SET) or FOUND)


def load(folder: Path = FOLDER) -> Catalogue:
    """Read all scenario files below ``folder``.

    Those that come with httpmark are read once. What ``httpmark fuzz`` saved in
    :func:`found_folder` is added to them.

    :raises HarnessError: a file has a mistake; the message names file, entry and key.
    """
    if folder != FOLDER:
        return read_files(folder)
    finds = found_folder()
    if not finds.is_dir() or finds.resolve().is_relative_to(FOLDER):
        return _installed()
    paths = sorted(finds.glob("*.toml"))
    if not paths:
        return _installed()
    return _with_finds(tuple((path, path.stat().st_mtime_ns) for path in paths), Path.cwd())


@functools.cache
def _installed() -> Catalogue:
    return read_files(FOLDER)


@functools.lru_cache(maxsize=4)
def _with_finds(paths: tuple[tuple[Path, int], ...], below: Path) -> Catalogue:
    """The installed catalogue with finds added. The version stays the same: finds change no score
    of another suite."""
    known = _installed()
    families, rules = dict(known.families), dict(known.rules)
    told = Collected()
    for path, _ in paths:
        with told.noting():
            add_file(path, path.as_posix(), families, rules, told, suite="found")
    told.done()
    return msgspec.structs.replace(known, families=families, rules=rules)


def add_file(
    path: Path,
    name: str,
    families: dict[str, Family],
    rules: dict[str, Rule],
    told: Collected,
    *,
    suite: str | None = None,
) -> None:
    """Add the families of one file. A file that is wrong as a whole is raised, mistakes in entries
    are noted in ``told``."""
    for family, rule in entries(path, name, told):
        where = f"{name}: {family.id!r}: key"
        known = families.get(family.id)
        if known is not None:
            told.lines.append(f"{where} 'id': {known.source} has this id already; slugs are unique")
        elif suite is not None and family.suite != suite:
            told.lines.append(f"{where} 'suite': must be {suite!r} in this folder")
        else:
            families[family.id], rules[family.id] = family, rule


def read_files(folder: Path) -> Catalogue:
    families: dict[str, Family] = {}
    rules: dict[str, Rule] = {}
    plans: dict[str, LoadPlan] = {}
    requirements: list[Requirement] = []
    told = Collected()
    for path in sorted(folder.rglob("*.toml")):
        if path.name in (COVERAGE_HOLES.name, FORWARDING.name):
            continue
        name = path.relative_to(folder.parent).as_posix()
        with told.noting():
            if path.parent.name == "load":
                plans[path.stem] = load_profile(path, name)
            elif path.name == "requirements.toml":
                requirements += decoded_as(
                    parsed_toml(path, name), name, _RequirementsText
                ).requirement
            else:
                add_file(path, name, families, rules, told)
    told.lines += _between(families)
    told.done()
    # The profile with the most requests in flight comes first: it is the headline.
    defaults = sorted((plan for plan in plans.values() if plan.default), key=lambda p: -p.depth)
    return Catalogue(
        families,
        rules,
        plans,
        tuple(plan.name for plan in defaults),
        digest_of(families, rules, requirements),
        _published(folder),
        tuple(requirements),
    )


def _between(families: dict[str, Family]) -> Iterator[str]:
    """Mistakes between entries: numbers used twice, gates of families that do not exist."""
    numbers: dict[str, Family] = {}
    gateable = {"*", *families, *(family.group for family in families.values())}
    for family in families.values():
        where = f"{family.source}: {family.id!r}: key"
        # Generated families may share a number, and a control may repeat a case (suite seed).
        for ref in family.refs if family.group != family.ref and family.suite != "found" else ():
            if (known := numbers.setdefault(ref, family)) is not family:
                yield f"{where} 'ref': {known.id!r} of {known.source} has {ref} already"
        for gated in family.gates:
            if gated not in gateable:
                yield f"{where} 'gates': no family {gated!r}"


def _published(folder: Path) -> dict[str, dict[str, str]]:
    """What servers did in the published benchmark, request by request (seed/published.json)."""
    path = folder / "seed" / "published.json"
    if not path.is_file():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=_PublishedText).detections
    except msgspec.DecodeError as error:
        raise HarnessError(f"{path.relative_to(folder.parent)}: {error}") from None


def digest_of(
    families: dict[str, Family],
    rules: dict[str, Rule],
    requirements: list[Requirement],
) -> str:
    """A digest of all that decides a verdict. Titles and reasons can change without changing it."""
    digest = hashlib.sha256()
    for name in sorted(families):
        family = families[name]
        verdict_relevant = (
            name, family.suite, family.level, family.judged_by, sorted(family.gates),
            sorted(family.needs), family.transport, family.runner, rules[name],
        )  # fmt: skip
        digest.update(msgspec.json.encode(verdict_relevant, order="sorted"))
    digest.update(msgspec.json.encode([(r.id, r.level, r.cases) for r in requirements]))
    return digest.hexdigest()[:12]
