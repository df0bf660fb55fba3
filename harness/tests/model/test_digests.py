"""Digests of the files of a run folder: damage is seen, and a lack of them is no damage."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from httpmark.harness.model import digests


def _kept(folder: Path, **files: bytes) -> list[Path]:
    made = []
    for name, octets in files.items():
        file = folder / name
        file.write_bytes(octets)
        digests.keep(file)
        made.append(file)
    return made


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(octets=st.binary(min_size=1, max_size=200), data=st.data())
def test_each_changed_octet_is_seen(tmp_path: Path, octets: bytes, data: st.DataObject) -> None:
    [file] = _kept(tmp_path, one=octets)
    assert not digests.differs(file)
    at = data.draw(st.integers(0, len(octets) - 1))
    changed = bytearray(octets)
    changed[at] ^= data.draw(st.integers(1, 255))
    file.write_bytes(changed)
    assert digests.differs(file)
    file.write_bytes(octets[:at])
    assert digests.differs(file)


def test_a_file_without_a_digest_does_not_differ(tmp_path: Path) -> None:
    one, two = _kept(tmp_path, one=b"1", two=b"2")
    digests.forget(one)
    one.write_bytes(b"3")
    assert not digests.is_known(one)
    assert not digests.differs(one)
    assert digests.is_known(two)
    (tmp_path / digests.NAME).write_bytes(b"\xff\x00 no list of digests\n")
    two.write_bytes(b"3")
    assert not digests.differs(two)


def test_a_digest_that_cannot_be_written_leaves_no_old_one(tmp_path: Path) -> None:
    one, two = _kept(tmp_path, one=b"1", two=b"2")
    (tmp_path / f"{digests.NAME}.part").mkdir()  # as where the disk is full
    one.write_bytes(b"3")
    with pytest.raises(OSError):
        digests.keep(one)
    assert not digests.differs(one)
    assert not digests.differs(two)


@pytest.mark.process
@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not here")
def test_sha256sum_checks_the_same(tmp_path: Path) -> None:
    one, _ = _kept(tmp_path, one=b"1", two=b"2")
    words = ["sha256sum", "-c", "--strict", digests.NAME]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    one.write_bytes(b"3")
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode == 1
