"""The skeleton of a server's folder: read without an error, and nothing is overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpmark.harness.command import image_skeleton
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.servers import brought, manifests, starting


def test_the_skeleton_is_a_good_manifest_and_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = image_skeleton.write("my_server", tmp_path / "servers")
    assert sorted(path.name for path in made.iterdir()) == ["Dockerfile", "server.toml"]
    one = manifests.read(made / "server.toml")
    assert (one.name, one.capabilities, one.workers) == ("my_server", ("hello",), "threads")
    assert one.process is not None
    assert one.container is not None
    assert one.process.start[0] == one.container.start[0] == "my_server"
    assert "NAME" not in (made / "Dockerfile").read_text() + (made / "server.toml").read_text()
    monkeypatch.setenv("HTTPMARK_IMAGES", str(tmp_path / "servers"))
    listed = starting.listed(brought.Field().server("my_server"))
    assert listed["available"]["process"] == (
        "my_server not found: put a program my_server on PATH"
    )


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    made = image_skeleton.write("mine", tmp_path)
    (made / "server.toml").write_text("my work")
    with pytest.raises(HarnessError, match=r"mine: is there already: choose another"):
        image_skeleton.write("mine", tmp_path)
    assert (made / "server.toml").read_text() == "my work"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("My", "images new: name: 'My': use lower-case letters"),
        ("../up", "images new: name: '../up': use lower-case letters"),
        ("", "images new: name: '': use lower-case letters"),
        ("nginx", "images new: name: nginx is a server already"),
    ],
)
def test_names_are_checked(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(HarnessError) as told:
        image_skeleton.write(name, tmp_path)
    assert str(told.value).startswith(why)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HarnessError, match="mine: cannot be made: Not a directory"):
        image_skeleton.write("mine", tmp_path / "file" / "deeper")
