"""requirements/*.txt lock what pyproject.toml asks for, and `make` installs nothing else."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from httpmark.harness.tests.shared.repository import ROOT

FOLDER = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
BUILD = (FOLDER / "build.in").read_text("utf-8")
ALWAYS = [
    *PROJECT["project"]["dependencies"],
    *(line for line in BUILD.splitlines() if not line.startswith("#")),
]
EXTRAS = [word for words in PROJECT["project"]["optional-dependencies"].values() for word in words]
ASKED = {"setup": ALWAYS, "dev": [*ALWAYS, *EXTRAS]}
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+?)(?: ; (.+?))? \\$", re.MULTILINE)


def text(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text("utf-8")


def pins(name: str) -> dict[str, list[Version]]:
    """The versions of each package: one, or one for each kind of machine or Python."""
    found: dict[str, list[Version]] = {}
    for package, version, _ in _PIN.findall(text(name)):
        found.setdefault(canonicalize_name(package), []).append(Version(version))
    return found


@pytest.mark.parametrize("name", ASKED)
def test_all_that_is_asked_for_is_locked_at_a_version_that_fits(name: str) -> None:
    locked = pins(name)
    for word in ASKED[name]:
        wanted = Requirement(word)
        versions = locked.get(canonicalize_name(wanted.name), [])
        assert versions, f"{word} is not in requirements/{name}.txt: make lock"
        for version in versions:
            assert wanted.specifier.contains(version, prereleases=True), f"{word}: make lock"


@pytest.mark.parametrize("name", ASKED)
def test_each_package_has_its_hashes_and_no_place(name: str) -> None:
    blocks = re.split(r"^(?=[A-Za-z0-9])", text(name), flags=re.MULTILINE)[1:]
    assert len(blocks) == sum(map(len, pins(name).values())) > 10
    for block in blocks:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", block), block
    assert "://" not in text(name)
    assert "--index" not in text(name)


def test_what_both_lock_is_the_same() -> None:
    ours, all_of_them = pins("setup"), pins("dev")
    assert {name: all_of_them[name] for name in ours} == ours


def test_make_installs_by_hash_and_nothing_beside_it() -> None:
    rules = (ROOT / "Makefile").read_text("utf-8")
    assert "--require-hashes -r requirements/$(1).txt" in rules
    installs = [line for line in rules.splitlines() if "/pip install" in line]
    # Packages, ourselves, and the programs that lock and audit.
    assert len(installs) == 4, installs
    assert any("--no-deps" in line for line in installs)
