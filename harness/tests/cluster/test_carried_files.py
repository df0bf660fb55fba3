"""A file comes back octet by octet, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpmark.harness.cluster import carried_files
from httpmark.harness.cluster.carried_files import Listed
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import Unusable

PIECE = 1000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried_files, "PIECE_BYTES", PIECE)


@pytest.fixture
def there(tmp_path: Path) -> Path:
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / run_folder.EVIDENCE).write_bytes(bytes(range(256)) * 10)
    (folder / run_folder.RESULT).write_bytes(b"")
    (folder / "secret").write_bytes(b"stays there")
    return folder


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
def test_files_of_any_size_come_back_whole(there: Path, tmp_path: Path, size: int) -> None:
    (there / run_folder.EVIDENCE).write_bytes((bytes(range(251)) * PIECE)[:size])
    files = carried_files.listed(there)
    total = carried_files.bring(
        files, tmp_path, lambda name, number: carried_files.piece(str(there), name, number)
    )
    assert total == size
    for name in carried_files.NAMES:
        assert (tmp_path / name).read_bytes() == (there / name).read_bytes()
    assert not (tmp_path / "secret").exists()


def test_a_damaged_piece_is_asked_for_again(there: Path, tmp_path: Path) -> None:
    asked: list[int] = []

    def fetch(name: str, number: int) -> object:
        asked.append(number)
        good = carried_files.piece(str(there), name, number)
        return good[:-1] + b"x" if asked == [0, 1] else good

    carried_files.bring(carried_files.listed(there), tmp_path, fetch)
    assert asked == [0, 1, 1, 2]
    name = run_folder.EVIDENCE
    assert (tmp_path / name).read_bytes() == (there / name).read_bytes()


@pytest.mark.parametrize(
    ("told", "why"),
    [(b"other", "its digest is wrong"), (OSError("reset"), "reset"), (None, "the worker is gone")],
)
def test_what_never_comes_whole_is_refused(
    there: Path, tmp_path: Path, told: object, why: str
) -> None:
    with pytest.raises(Unusable, match=f"piece 1 of evidence.sqlite did not come whole: {why}"):
        carried_files.bring(carried_files.listed(there), tmp_path, lambda name, number: told)


def test_a_worker_cannot_name_another_file(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="nobody asked for"):
        carried_files.bring((Listed("../escape", ()),), tmp_path, lambda name, number: b"")
    assert not (tmp_path.parent / "escape").exists()
