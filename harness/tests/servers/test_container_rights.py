"""What a container may do, as Docker is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import RIGHTS, ContainerRecipe
from httpmark.harness.servers import container_rights, manifests

OURS = ContainerRecipe(dockerfile="Dockerfile", start=("server", "{port}"))
BROUGHT = ContainerRecipe(image="somebody/server:1")


def bounds(recipe: ContainerRecipe) -> dict[str, object]:
    return container_rights.bounds(recipe, volume="/own")


def test_what_we_build_keeps_none_of_dockers_rights() -> None:
    said = bounds(OURS)
    assert said["cap_drop"] == ["ALL"]
    assert said["security_opt"] == ["no-new-privileges:true"]
    assert said["read_only"] is True
    assert {"/tmp", "/var/tmp", "/run"} == set(said["tmpfs"])  # type: ignore[call-overload]
    assert said["volumes"] == ["/own"]


def test_an_image_that_was_brought_keeps_all_unless_its_manifest_says_less() -> None:
    assert container_rights.kept(BROUGHT) == set(RIGHTS)
    assert not {"cap_drop", "security_opt", "read_only", "tmpfs"} & set(bounds(BROUGHT))
    strict = ContainerRecipe(image="somebody/server:1", keeps=())
    assert bounds(strict) == bounds(OURS)


@pytest.mark.parametrize(
    ("word", "gone"),
    [("capabilities", "cap_drop"), ("new-privileges", "security_opt"), ("writes", "read_only")],
)
def test_each_right_can_be_kept_alone(word: str, gone: str) -> None:
    recipe = ContainerRecipe(dockerfile="Dockerfile", keeps=(word,))
    assert set(bounds(OURS)) - set(bounds(recipe)) == {
        gone,
        *(["tmpfs"] if gone == "read_only" else []),
    }


@pytest.mark.parametrize("recipe", [OURS, BROUGHT])
def test_processes_and_memory_are_always_limited(recipe: ContainerRecipe) -> None:
    said = bounds(recipe)
    assert said["pids_limit"] == container_rights.PIDS_MAX
    assert said["mem_limit"] == said["memswap_limit"]


def test_a_folder_that_is_written_to_is_a_volume_of_its_own() -> None:
    recipe = ContainerRecipe(dockerfile="Dockerfile", writes=("/var/cache",))
    assert bounds(recipe)["volumes"] == ["/own", "/var/cache"]


MANIFEST = """
name = "one"
title = "One"
language = "C"
version = "1"
homepage = "https://example.org/"
capabilities = ["hello"]
[container]
image = "somebody/server:1"
start = ["server", "{port}"]
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('keeps = ["capabilites"]', "container.keeps: .*did you mean capabilities"),
        ('writes = ["cache"]', "container.writes: 'cache': give the whole path"),
        ('writes = ["/"]', "container.writes: '/'"),
        ('writes = ["/a/../b"]', "container.writes"),
    ],
)
def test_a_manifest_that_says_it_wrongly_is_told(line: str, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "server.toml").write_text(MANIFEST + line + "\n")
    with pytest.raises(HarnessError, match=said):
        manifests.read(folder / "server.toml")
    (folder / "server.toml").write_text(MANIFEST + 'keeps = []\nwrites = ["/var/cache"]\n')
    recipe = manifests.read(folder / "server.toml").container
    assert recipe is not None
    assert recipe.keeps == ()
    assert recipe.writes == ("/var/cache",)
