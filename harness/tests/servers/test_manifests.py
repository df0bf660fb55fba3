"""Manifests: each mistake is told with its file and key, and every shipped one is right."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from httpmark.harness.model import servers
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import TIMEOUTS
from httpmark.harness.servers import manifests

GOOD = """
name = "odd"
title = "Odd"
language = "Python"
version = "1"
homepage = "https://example.org/"
capabilities = ["hello"]

[process]
start = ["odd", "--port", "{port}"]
"""


def manifest(folder: Path, text: str) -> Path:
    place = folder / "odd"
    place.mkdir(exist_ok=True)
    path = place / "server.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_manifest_is_read(tmp_path: Path) -> None:
    one = manifests.read(manifest(tmp_path, GOOD))
    assert one.name == "odd"
    assert one.process is not None
    assert one.process.start == ("odd", "--port", "{port}")
    assert one.source == str(tmp_path / "odd")
    assert one.ready_path == "/hello"
    assert not one.control


CONTAINER = '[container]\nimage = "a"\n'


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (GOOD.replace('title = "Odd"\n', ""), "title: is missing"),
        (GOOD + "\n[porcess]\n", "porcess: no such key"),
        (GOOD + 'sart = ["x"]\n', "process.sart: no such key"),
        (GOOD.replace('title = "Odd"', "title = 3"), "title: Expected `str`, got `int`"),
        (GOOD.replace('"odd"\n', '"other"\n', 1), "name: is 'other' in a folder called 'odd'"),
        (GOOD.replace('["hello"]', '["hello", "bdoy"]'), "capabilities: 'bdoy' is not known: did"),
        (GOOD.replace('["hello"]', '["body"]'), "capabilities: hello is missing"),
        (GOOD.replace("{port}", "{prot}"), "process.start: {prot} is not filled in"),
        (GOOD.replace('start = ["odd", "--port", "{port}"]', "start = []"), "process.start: is"),
        (GOOD + "build = [[]]\n", "process.build[0]: is empty"),
        (GOOD.partition("[process]")[0], "process: neither [process] nor [container]"),
        (GOOD + '[process.files]\n"a/b" = ""\n', "process.files: 'a/b': give a plain file name"),
        (GOOD + "[limits]\nhaed_bytes = 1\n", "limits: 'haed_bytes' is not known: did you mean"),
        (GOOD + "[timeouts]\nzzz = 1\n", "timeouts: 'zzz' is not known: use one of head_s"),
        (GOOD + '[[process.needs]]\ninstall = "x"\n', "process.needs[0]: give exactly one of"),
        (GOOD + '[[process.needs]]\ncommand = "x"\n', "process.needs[0].install: is missing"),
        (
            GOOD + '[[process.needs]]\nfile = "x"\ninstall = "y"\nat_least = "1"\n',
            "process.needs[0].at_least: goes with command only",
        ),
        (GOOD + "[container]\n", "container: give exactly one of dockerfile and image"),
        (GOOD + '[container]\ndockerfile = "D"\n', "container.dockerfile: "),
        (GOOD + CONTAINER + 'context = ["nowhere"]\n', "container.context: "),
        (GOOD + CONTAINER + 'start = ["{build}/x"]\n', "container.start: {build} is not filled"),
        (GOOD.replace("name =", 'ready_path = "hello"\nname ='), "ready_path: 'hello': begin with"),
        (GOOD.replace("name =", "ready_timeout_s = 0\nname ="), "ready_timeout_s: 0.0: give"),
        ("name = ", "no valid TOML"),
    ],
)
def test_each_mistake_is_told_with_file_and_key(tmp_path: Path, text: str, key: str) -> None:
    path = manifest(tmp_path, text)
    with pytest.raises(HarnessError) as told:
        manifests.read(path)
    assert str(told.value).startswith(f"{path}: {key}")
    assert "\n" not in str(told.value)


def test_what_is_declared_of_a_target_needs_neither_folder_nor_recipe(tmp_path: Path) -> None:
    path = tmp_path / "my-server.toml"
    path.write_text("[limits]\nfields = 100\n[timeouts]\nhead_s = 2\n", encoding="utf-8")
    one = manifests.declared(path)
    assert (one.limits, one.timeouts, one.capabilities) == ({"fields": 100}, {"head_s": 2}, ())
    path.write_text(GOOD, encoding="utf-8")
    assert manifests.declared(path).name == "odd"
    for text, key in (
        ('capabilities = ["body"]', "capabilities: hello is missing"),
        ("[limits]\nhaed_bytes = 1\n", "limits: 'haed_bytes' is not known: did you mean"),
        ("[porcess]\n", "porcess: no such key"),
        ("name = ", "no valid TOML"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(HarnessError) as told:
            manifests.declared(path)
        assert str(told.value).startswith(f"{path}: {key}")


def test_a_manifest_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    with pytest.raises(HarnessError, match=r"server\.toml: cannot be read"):
        manifests.read(path)


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(HarnessError, match=r"'go_nethttp'; did you mean go_net_http\? There are"):
        manifests.server("go_nethttp")
    with pytest.raises(HarnessError, match=r"no server is called 'zzzzzz'; There are"):
        manifests.server("zzzzzz")


def test_the_users_folders_add_and_replace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    for folder, title in ((first, "First"), (second, "Second")):
        folder.mkdir()
        manifest(folder, GOOD.replace('"Odd"', f'"{title}"'))
    shipped = {one.name for one in manifests.servers()}
    monkeypatch.setenv("HTTPMARK_IMAGES", os.pathsep.join([str(first), str(second)]))
    found = {one.name: one for one in manifests.servers()}
    assert set(found) == shipped | {"odd"}
    assert found["odd"].title == "Second"


def test_a_folder_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPMARK_IMAGES", "/nowhere/at/all")
    with pytest.raises(HarnessError, match="HTTPMARK_IMAGES: /nowhere/at/all is not a folder"):
        manifests.servers()


def test_every_key_is_described() -> None:
    text = (manifests.IMAGES / "README.md").read_text("utf-8")
    fields = [f"`{name}`" for name in ("name", "title", "ready_timeout_s", "control", "notes")]
    fields += [f"`limits.{word}`" for word in servers.LIMITS]
    fields += [f"`timeouts.{word}`" for word in TIMEOUTS]
    for part in ("process", "container"):
        recipe = manifests.server("nginx")
        fields += [f"`{part}.{word}`" for word in getattr(recipe, part).__struct_fields__]
    assert [field for field in fields if f"| {field} |" not in text] == []
