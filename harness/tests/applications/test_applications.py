"""Ordinary applications, each on the server that its framework comes with: what the judge holds
against the server is known, and nothing of it is the application's routing."""

from __future__ import annotations

import http.client
import re
from pathlib import Path

import pytest

from httpmark.harness.tests.shared import applications, checked_requirements

# What routers answer, and the cases that once took it for the server's fault.
_ROUTED = (
    "BASE", "EXP", "FOLD", "MTH", "PIPE", "absolute-form-https-on-cleartext", "chunk-64-kib",
    "head-length-is-that-of-get", "smuggle-octet-behind-content", "target-at-limit", "trailer-one",
)  # fmt: skip


def asked(port: int, method: str, path: str, content: bytes = b"") -> int:
    """The status that one good request gets."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body=content or None)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.process
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", applications.each())
def test_an_application_has_exact_routes(name: str) -> None:
    """GET of its page and POST at one path; the framework refuses all else by itself."""
    applications.require(name)
    known = applications.read(name)
    with applications.listening(name) as port:
        assert asked(port, "GET", known.path) == 200
        assert asked(port, "POST", known.post_path, b"hello") in (200, 201)
        assert asked(port, "GET", "/unknown") == 404
        assert asked(port, "POST", known.path, b"hello") in (404, 405)


@pytest.mark.parametrize("name", applications.names())
def test_each_known_fault_has_its_clause_a_case_and_a_sentence(name: str) -> None:
    faults = applications.faults(name, post=True)
    assert len({one.requirement for one in faults}) == len(faults)
    for one in faults:
        assert checked_requirements.may_show(one.case, one.requirement), one
        assert re.findall(r"RFC \d+ [\d.]+", one.clause), f"{one.clause}: name RFC and section"
        assert re.fullmatch(r"['A-Z][^\n]{30,300}\.", one.why), one.why


@pytest.mark.process
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "post"), applications.forms())
def test_a_server_is_blamed_for_its_known_faults_and_for_nothing_else(
    name: str, post: bool, tmp_path: Path
) -> None:
    """What shows each known fault, and what only the application's routes answer."""
    cases = {*_ROUTED, *(one.case for one in applications.faults(name, post=post))}
    compare(name, tmp_path, post, *(word for case in sorted(cases) for word in ("--case", case)))


@pytest.mark.nightly
@pytest.mark.process
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "post"), applications.forms())
def test_a_quick_check_of_an_application_tells_its_known_faults(
    name: str, post: bool, tmp_path: Path
) -> None:
    compare(name, tmp_path, post)


def compare(name: str, folder: Path, post: bool, *options: str) -> None:
    """Check an application, and compare what fails with what is known of its server."""
    applications.require(name)
    application = applications.read(name)
    paths = ["--path", application.path, *(["--post-path", application.post_path] * post)]
    found = checked_requirements.failing(
        folder, applications.command(name), "--quick", *paths, *options, seconds=500
    )
    known = {one.requirement for one in applications.faults(name, post=post)}
    kept = applications.GOLDEN / f"{name}.toml"
    assert not found - known, (
        f"{application.title}: new: {sorted(found - known)}. Look at the bytes, and read the "
        f"clause as the maintainers of {application.server} would. If they would agree, add it to "
        f"{kept.name} with one sentence; if it is the application's routing, the judge is wrong."
        f"\n{checked_requirements.shown_by(folder, found - known)}"
        f"\n{checked_requirements.told(folder)}"
    )
    missing = known - found
    if missing and missing <= checked_requirements.undecided(folder):
        # What this machine drops leaves silence undecided: it is asked once more by itself.
        faults = applications.faults(name, post=post)
        again = [
            word for one in faults if one.requirement in missing for word in ("--case", one.case)
        ]
        missing -= checked_requirements.failing(
            folder / "again", applications.command(name), "--quick", *paths, *again
        )
    assert not missing, (
        f"{application.title}: gone: {sorted(missing)}. If the server mended it, remove it "
        f"from {kept.name}; else the judge has lost it.\n{checked_requirements.told(folder)}"
    )
