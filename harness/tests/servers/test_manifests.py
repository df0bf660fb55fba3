"""Manifests: each mistake is told with its file and key, and every shipped one is right."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.model import servers
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.servers import TIMEOUTS, Server
from httpmark.harness.servers import manifests, starting

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


RUNNING = GOOD.partition("[process]")[0] + 'url = "{}"\n'
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
        (
            GOOD + '[container]\ndockerfile = "images/applications/D"\n'
            'context = ["images/applications"]\nstart = ["s", "{port}"]\n',
            f"container.dockerfile: {manifests.IMAGES / 'applications' / 'D'} is not there",
        ),
        (  # it is in no folder that joins the build
            GOOD + '[container]\ndockerfile = "images/applications/Dockerfile"\n',
            "container.dockerfile: ",
        ),
        (GOOD + CONTAINER + 'context = ["nowhere"]\n', "container.context: "),
        (GOOD + CONTAINER + 'start = ["{build}/x"]\n', "container.start: {build} is not filled"),
        (GOOD.replace("{port}", "80"), "process.port: nothing says where it listens: write {port}"),
        (GOOD + "port = 70000\n", "process.port: 70000: give a number from 1 to 65535"),
        (GOOD + CONTAINER, "container.port: nothing says where it listens"),
        (
            GOOD + CONTAINER + 'start = ["a", "{port}"]\nargs = ["b"]\n',
            "container.args: go after the image's own command",
        ),
        (GOOD + CONTAINER + 'args = ["{prot}"]\n', "container.args: {prot} is not filled in"),
        (GOOD.replace("name =", 'url = "http://127.0.0.1:1/"\nname ='), "url: a server that runs"),
        (GOOD.replace("name =", 'trouble = "x"\nname ='), "trouble: no such key"),
        (RUNNING.format("http://a.example/"), "url: http://a.example/: write the host as an IP"),
        (RUNNING.format("unix:/run/x"), "url: unix:/run/x: a Unix socket cannot be measured"),
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


@pytest.fixture
def laid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Server]:
    """What comes of manifests of one server, each in a later folder of HTTPMARK_IMAGES."""

    def made(*texts: str, name: str = "odd") -> Server:
        folders = [tmp_path / str(number) for number in range(len(texts))]
        for folder, text in zip(folders, texts, strict=True):
            (folder / name).mkdir(parents=True, exist_ok=True)
            (folder / name / manifests.MANIFEST).write_text(text, encoding="utf-8")
        monkeypatch.setenv("HTTPMARK_IMAGES", os.pathsep.join(map(str, folders)))
        return manifests.server(name)

    return made


def test_single_keys_are_laid_over_a_server_of_an_earlier_folder(
    tmp_path: Path, laid: Callable[..., Server]
) -> None:
    plain = laid(GOOD)
    one = laid(GOOD, "ready_timeout_s = 60\n[process]\nenv = {A = '1'}\n", "notes = 'Slow.'\n")
    assert plain.process is not None
    process = msgspec.structs.replace(plain.process, env={"A": "1"})
    assert one == msgspec.structs.replace(
        plain, ready_timeout_s=60.0, notes="Slow.", process=process
    )
    assert one.source == str(tmp_path / "0" / "odd")


def test_a_manifest_that_says_all_replaces_what_was_there(laid: Callable[..., Server]) -> None:
    whole = RUNNING.format("http://127.0.0.1:1/")
    one = laid(GOOD + "[limits]\nfields = 3\n", whole)
    assert (one.process, one.limits, one.url) == (None, {}, "http://127.0.0.1:1/")
    assert Path(one.source).parent.name == "1"


def test_a_key_takes_the_place_of_those_that_exclude_it(laid: Callable[..., Server]) -> None:
    image = GOOD + CONTAINER + 'start = ["a", "{port}"]\n'
    one = laid(image, "[container]\nargs = ['-p', '{port}']\n").container
    assert one is not None
    assert (one.image, one.start, one.args) == ("a", (), ("-p", "{port}"))
    shipped = manifests.server("nginx").container
    nginx = laid("[container]\nimage = 'nginx:1'\n", name="nginx").container
    assert nginx is not None
    assert shipped is not None
    assert (nginx.dockerfile, nginx.image) == (None, "nginx:1")
    assert nginx.start == shipped.start != ()
    running = laid(GOOD, "url = 'http://127.0.0.1:1/'\n")
    assert (running.process, running.trouble) == (None, "")
    again = laid(GOOD, "url = 'http://127.0.0.1:1/'\n", '[process]\nstart = ["b", "{port}"]\n')
    assert (again.url, again.process is None, again.trouble) == ("", False, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sart = 1\n", "sart: no such key: see images/README.md, or remove it"),
        ("[process]\nstart = ['{prot}']\n", "process.start: {prot} is not filled in: use "),
        ("name = 'other'\n", "name: is 'other' in a folder called 'odd'"),
        ("[container]\ndockerfile = 'D'\n", "container.dockerfile: a build has files of its own"),
        ("name = ", "no valid TOML"),
    ],
)
def test_one_bad_manifest_is_one_unavailable_server(
    tmp_path: Path, laid: Callable[..., Server], text: str, said: str
) -> None:
    shipped = {one.name for one in manifests.servers()}
    one = laid(GOOD, text)
    assert one.trouble.startswith(f"{tmp_path / '1' / 'odd' / manifests.MANIFEST}: {said}")
    found = {one.name: one for one in manifests.servers()}
    assert set(found) == shipped | {"odd"}
    assert [name for name, one in found.items() if one.trouble] == ["odd"]
    assert starting.availability(one, "process") == one.trouble
    for word in ("auto", "process"):
        with pytest.raises(Unusable, match=r"server\.toml: "):
            starting.for_server(one, word)
    with pytest.raises(Unusable, match=r"server\.toml: "):
        starting.prepare(one, "process", say=lambda line: None)
    assert laid(GOOD, text, "notes = 'more'\n").trouble == one.trouble
    assert laid(GOOD, text, GOOD).trouble == ""


def test_a_manifest_without_an_earlier_one_must_say_all(laid: Callable[..., Server]) -> None:
    assert "title: is missing: add it" in laid('name = "odd"\n').trouble
    assert "is missing" in laid("", name="Odd One").trouble


def test_a_folder_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPMARK_IMAGES", "/nowhere/at/all")
    with pytest.raises(HarnessError, match="HTTPMARK_IMAGES: /nowhere/at/all is not a folder"):
        manifests.servers()


def test_every_key_is_described() -> None:
    text = (manifests.IMAGES / "README.md").read_text("utf-8")
    told = set(Server.__struct_fields__) - {"source", "trouble"}
    told -= {"process", "container", "proxy", "conformance", "limits", "timeouts"}
    fields = [f"`{name}`" for name in told]
    fields += [f"`limits.{word}`" for word in servers.LIMITS]
    fields += [f"`timeouts.{word}`" for word in TIMEOUTS]
    for part in ("process", "container", "proxy"):
        recipe = manifests.server("nginx")
        fields += [f"`{part}.{word}`" for word in getattr(recipe, part).__struct_fields__]
    assert [field for field in fields if f"| {field} |" not in text] == []


def test_files_for_both_are_given_to_both_and_their_own_ones_win(tmp_path: Path) -> None:
    text = """
name = "twin"
title = "Twin"
language = "C"
version = "1"
homepage = ""
capabilities = ["hello"]

[files]
"a.conf" = "both"
"b.conf" = "both"

[conformance_files]
"a.conf" = "short"

[process]
start = ["twin", "{endpoint}"]

[process.files]
"b.conf" = "own"

[container]
image = "twin"
args = ["{endpoint}"]
"""
    folder = tmp_path / "twin"
    folder.mkdir()
    (folder / "server.toml").write_text(text, "utf-8")
    one = manifests.read(folder / "server.toml")
    assert one.process is not None
    assert one.container is not None
    assert one.process.files == {"a.conf": "both", "b.conf": "own"}
    assert one.container.files == {"a.conf": "both", "b.conf": "both"}
    assert one.process.conformance_files == one.container.conformance_files == {"a.conf": "short"}
    (folder / "server.toml").write_text("files = 3\n" + text.replace("[files]", "[other]"), "utf-8")
    with pytest.raises(HarnessError, match="no such key"):
        manifests.read(folder / "server.toml")
