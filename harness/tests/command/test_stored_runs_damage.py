"""A damaged run folder is exit 3 and one line, and what is whole is still shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpmark.harness.command import check_options, check_session
from httpmark.harness.model import digests, run_folder
from httpmark.harness.tests.shared import command_process, peers
from httpmark.harness.tests.shared.silent_events import SilentEvents

_PAGE = 4096


@pytest.fixture
def checked(tmp_path: Path) -> Path:
    """The folder of a check."""
    with peers.peer(peers.answering(peers.OK)) as peer:
        options = check_options.Options(
            target=f"127.0.0.1:{peer.port}", suites=("rfc",), cases=("CL-01", "HOST-01"),
            quick=True, out=tmp_path / "r",
        )  # fmt: skip
        check_session.Checker(options, SilentEvents()).check()
    return tmp_path / "r"


def _refused(folder: Path, *words: str) -> None:
    """Exit code 3 and one line that tells of damage."""
    code, out, errors = command_process.run(*words, cwd=folder.parent)
    assert (code, out) == (3, ""), (words, errors)
    assert "damaged" in errors
    lines = [line for line in errors.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1


@pytest.mark.process
def test_a_value_that_was_changed_is_seen(checked: Path) -> None:
    """What is well-formed may be damaged all the same."""
    result = checked / run_folder.RESULT
    octets = result.read_bytes()
    result.write_bytes(octets.replace(b'"failed": 0', b'"failed": 1', 1))
    assert result.read_bytes() != octets
    for words in (("report", "r"), ("judge", "r"), ("compare", "r", "r"), ("findings", "r")):
        _refused(checked, *words)
    code, _, errors = command_process.run("judge", "r", "--from-evidence", cwd=checked.parent)
    assert code == 0, errors
    assert command_process.run("report", "r", cwd=checked.parent)[0] == 0


@pytest.mark.process
def test_an_octet_of_the_evidence_that_was_changed_is_seen(checked: Path) -> None:
    file = checked / run_folder.EVIDENCE
    octets = file.read_bytes()
    assert b"HTTP/1.1 200 OK" in octets
    file.write_bytes(octets.replace(b"HTTP/1.1 200 OK", b"HTTP/1.1 204 OK", 1))
    for words in (("report", "r"), ("judge", "r"), ("findings", "r"), ("export", "r", "--json")):
        _refused(checked, *words)
    # What is whole is still shown.
    scoreboard = ("report", "r", "--format", "scoreboard")
    code, out, errors = command_process.run(*scoreboard, cwd=checked.parent)
    assert code == 0, errors
    assert "rfc" in out


@pytest.mark.process
def test_a_run_without_digests_is_read_and_said_to_carry_none(checked: Path) -> None:
    sums = checked / digests.NAME
    assert "carries no digest" not in command_process.run("report", "r", cwd=checked.parent)[2]
    sums.unlink()
    code, _, errors = command_process.run("report", "r", cwd=checked.parent)
    assert code == 0, errors
    assert "r carries no digest of result.json and evidence.sqlite" in errors
    code, _, errors = command_process.run("judge", "r", cwd=checked.parent)
    assert code == 0, errors
    assert "carries no digest" in errors
    # Judged again, it carries them.
    assert run_folder.without_digests(checked) is None


@pytest.mark.process
@pytest.mark.parametrize("damage", [b"\xff\xfe", b"}{"])
@pytest.mark.parametrize("has_digests", [True, False])
def test_a_damaged_result_is_made_again_of_the_evidence(
    checked: Path, damage: bytes, has_digests: bool
) -> None:
    if not has_digests:
        (checked / digests.NAME).unlink()
    result = checked / run_folder.RESULT
    result.write_bytes(result.read_bytes().replace(b"target", damage, 1)[:-9])
    for words in (("report", "r"), ("judge", "r"), ("compare", "r", "r"), ("findings", "r")):
        _refused(checked, *words)
    code, _, errors = command_process.run("judge", "r", "--from-evidence", cwd=checked.parent)
    assert code == 0, errors
    assert "rfc" in run_folder.read(checked).servers[0].compliance.suites


@pytest.mark.process
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("has_digests", [True, False])
def test_zeroed_pages_of_the_evidence_are_said(
    checked: Path, share: float, has_digests: bool
) -> None:
    if not has_digests:
        (checked / digests.NAME).unlink()
    file = checked / run_folder.EVIDENCE
    octets = bytearray(file.read_bytes())
    at = int(len(octets) / _PAGE * share) * _PAGE
    octets[at : at + _PAGE] = bytes(_PAGE)
    file.write_bytes(octets)
    for words in (("report", "r"), ("judge", "r"), ("findings", "r")):
        _refused(checked, *words)
    # What is whole is still shown.
    code, out, errors = command_process.run(
        "report", "r", "--format", "scoreboard", cwd=checked.parent
    )
    assert code == 0, errors
    assert "rfc" in out
