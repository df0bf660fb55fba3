"""Servers that the user brings: by image, program or address, with words of their own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from httpmark.harness.http.address import endpoint
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import ContainerRecipe, ProcessRecipe, Server
from httpmark.harness.servers import brought, docker_images, manifests, sockets, starting
from httpmark.harness.tests.shared import brought_programs
from httpmark.harness.tests.shared.ports import own_port
from httpmark.harness.tests.shared.tiny_server import start

HERE = Path("/some/folder")
KOURIER = f"docker:kourier-bench:kourier {brought_programs.KOURIER_WORDS}"
KOURIER_ARGS = ("-a", "{address}", "-p", "{port}", "--worker-count={workers}")


def taken(text: str, folder: Path = HERE, **options: Any) -> Server:
    """The server that a word of the command line brings."""
    field = brought.Field()
    word = brought.read(text, folder)
    assert word is not None
    return field.server(field.take(word, **options))


def stated(name: str, folder: Path = HERE, **keys: Any) -> Server:
    """The server that a table of a configuration file brings."""
    one = brought.Stated(
        name, {"from" if k == "from_" else k: v for k, v in keys.items()}, "f", folder
    )
    return brought.Field([one]).server(name)


@pytest.mark.parametrize("text", ["kourier", "http://127.0.0.1:1/?a=b", "127.0.0.1:80", ""])
def test_a_name_or_an_address_brings_nothing(text: str) -> None:
    assert brought.read(text, HERE) is None


def test_an_image_gets_the_words_after_its_own_command() -> None:
    one = taken(f"kourier={KOURIER}")
    assert one.container == ContainerRecipe(image="kourier-bench:kourier", args=KOURIER_ARGS)
    assert (one.process, one.title, one.get_only) == (None, "Kourier", True)
    assert one.notes == manifests.server("kourier").notes


def test_the_published_images_need_no_words() -> None:
    kourier = taken("kourier=docker:kourier-bench:kourier").container
    assert kourier == ContainerRecipe(image="kourier-bench:kourier", args=KOURIER_ARGS)
    for text in ("", f" {brought_programs.LITHIUM_WORDS}"):
        lithium = taken(f"lithium=docker:kourier-bench:lithium{text}").container
        assert lithium == ContainerRecipe(
            image="kourier-bench:lithium", args=("--worker-count={workers}",), port=8250
        )


def test_words_that_name_a_port_leave_a_fixed_one_out() -> None:
    one = taken("lithium=docker:mine --port={port}").container
    assert one == ContainerRecipe(image="mine", args=("--port={port}",))
    process = taken("lithium=/opt/lithium --listen={endpoint}").process
    assert process is not None
    assert process.port is None


def test_a_program_with_words_runs_in_the_folder_of_who_brings_it() -> None:
    one = taken("mine=build/server -p {port} 'a b'")
    program = str(HERE / "build" / "server")
    assert one.process == ProcessRecipe(
        start=("env", "-C", str(HERE), program, "-p", "{port}", "a b"), binary=program
    )
    assert (one.container, one.capabilities, one.title, one.version) == (
        None, ("hello",), "mine", "as brought",
    )  # fmt: skip
    for text, program in (("../x", "/some/x"), ("/a/x", "/a/x"), ("~/x", str(Path.home() / "x"))):
        process = taken(f"mine={text} {{port}}").process
        assert process is not None
        assert process.binary == program
    on_path = taken("mine=server {port}").process
    assert on_path is not None
    assert on_path.binary == "server"


def test_a_program_without_words_gets_those_of_the_manifest() -> None:
    ours = manifests.server("go_net_http")
    one = taken("go_net_http=/opt/go-server")
    assert ours.process is not None
    assert one.process is not None
    assert one.process.start == ("/opt/go-server", *ours.process.start[1:])
    assert (one.process.build, one.process.needs) == ((), ())
    assert one.process.conformance == ours.process.conformance
    assert (one.limits, one.timeouts, one.capabilities) == (
        ours.limits, ours.timeouts, ours.capabilities,
    )  # fmt: skip


def test_what_holds_for_our_start_alone_is_not_declared_of_another() -> None:
    ours = manifests.server("reference")
    assert ours.limits
    assert "tls" in ours.capabilities
    for how in ("docker:mine -p {port}", "./mine -p {port}", "http://127.0.0.1:1/"):
        one = taken(f"reference={how}")
        assert (one.limits, one.timeouts) == ({}, {})
        assert one.conformance == type(one.conformance)()
        assert one.capabilities == tuple(word for word in ours.capabilities if word != "tls")


def test_an_address_is_neither_started_nor_built() -> None:
    one = taken("kourier=http://127.0.0.1:8080/")
    assert (one.url, one.process, one.container) == ("http://127.0.0.1:8080/", None, None)
    assert one.title == "Kourier"
    secure = taken("mine=https://127.0.0.1:8080/x")
    assert secure.capabilities == ("hello", "tls")
    with pytest.raises(HarnessError, match="is not this machine: add --allow-remote"):
        taken("mine=http://192.0.2.1/")
    assert taken("mine=http://192.0.2.1/", allow_remote=True).url == "http://192.0.2.1/"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("", "nothing is named: write mine=docker:TAG"),
        ("docker:", "nothing is named"),
        ("docker:a 'b", "No closing quotation: check the quotes"),
        ("docker:a", "container.port: nothing says where it listens: write {port}"),
        ("docker:a {prot}", "container.args: {prot} is not filled in: use address, port"),
        ("./a", "process.port: nothing says where it listens"),
        ("./a {prot} {port}", "process.start: {prot} is not filled in"),
        ("http://127.0.0.1:1/ -x", "http://127.0.0.1:1/ runs already: leave out '-x'"),
        ("http://a.example/", "url: http://a.example/: write the host as an IP address"),
    ],
)
def test_each_mistake_is_one_line_that_says_what_to_do(how: str, said: str) -> None:
    with pytest.raises(HarnessError) as told:
        taken(f"mine={how}")
    assert str(told.value).startswith(f"mine={how}: {said}")
    assert "\n" not in str(told.value)
    with pytest.raises(HarnessError) as told:
        stated("mine", from_=how)
    assert str(told.value).startswith(f"f: {said}")


def test_a_name_stands_for_one_server() -> None:
    field = brought.Field()
    word = brought.read("mine=./a {port}", HERE)
    assert word is not None
    assert (field.take(word), field.take(word)) == ("mine", "mine")
    for other in ("mine", brought.Brought("mine", "./b {port}", HERE)):
        with pytest.raises(HarnessError, match="another server is called mine, too"):
            field.take(other)
    with pytest.raises(HarnessError, match=r"no server is called 'min'; did you mean mine\?"):
        field.take("min")
    with pytest.raises(HarnessError, match="Mine=x: name: 'Mine': use lower-case letters"):
        brought.read("Mine=x", HERE)


def test_a_file_says_more_of_what_is_brought() -> None:
    one = stated(
        "mine", from_="docker:mine -t {workers}", capabilities=["hello", "body"],
        container={"port": 8250, "env": {"A": "b"}}, limits={"fields": 100}, title="Mine",
    )  # fmt: skip
    assert one.container == ContainerRecipe(
        image="mine", args=("-t", "{workers}"), port=8250, env={"A": "b"}
    )
    assert (one.title, one.capabilities, one.limits) == ("Mine", ("hello", "body"), {"fields": 100})
    ours = manifests.server("nginx")
    assert stated("nginx", notes="Slow.") == msgspec.structs.replace(ours, notes="Slow.")
    for keys, said in (
        ({"from_": 3}, "f: from: must be a string"),
        ({"sart": 3, "url": "http://127.0.0.1:1/"}, "f: sart: no such key"),
        ({}, "f: process: neither"),
    ):
        with pytest.raises(HarnessError) as told:
            stated("mine", **keys)
        assert str(told.value).startswith(said)


def test_a_bad_manifest_stays_bad_where_it_is_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kourier").mkdir()
    (tmp_path / "kourier" / manifests.MANIFEST).write_text("sart = 1\n")
    monkeypatch.setenv("HTTPMARK_IMAGES", str(tmp_path))
    for one in (taken(f"kourier={KOURIER}"), stated("kourier", notes="x")):
        assert "sart: no such key" in one.trouble


def answer(address: str, port: int, method: str = "GET") -> bytes | None:
    request = f"{method} /hello HTTP/1.1\r\nHost: {endpoint(address, port)}\r\n\r\n"
    return sockets.ask(address, port, request.encode(), deadline_s=5)


@pytest.mark.process
@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("words", ["", f" {brought_programs.KOURIER_WORDS}"])
def test_a_program_with_the_flags_of_kourier_starts(tmp_path: Path, words: str) -> None:
    program = brought_programs.kourier(tmp_path)
    server = taken(f"kourier=./{program.name}{words}", tmp_path)
    assert starting.availability(server, "process") is True
    one = start(server, workers=3)
    assert one.log_tail().splitlines() == [
        f"called with -a 127.0.0.1 -p {one.port} --worker-count=3"
    ]
    assert str(answer("127.0.0.1", one.port)).endswith("Hello World!'")
    assert str(answer("127.0.0.1", one.port, "POST")).startswith("b'HTTP/1.1 404 ")


@pytest.mark.process
@pytest.mark.usefixtures("nothing_is_left")
def test_a_program_with_the_flag_of_lithium_starts_on_its_own_port(tmp_path: Path) -> None:
    port = own_port()
    program = brought_programs.lithium(tmp_path, port)
    server = stated("lithium", tmp_path, from_=f"./{program.name}", process={"port": port})
    one = start(server, workers=2)
    assert one.port == port
    assert one.log_tail().splitlines() == ["called with --worker-count=2"]
    assert str(answer("127.0.0.1", port)).endswith("Hello World!'")


@pytest.mark.needs("docker")
@pytest.mark.usefixtures("nothing_is_left")
def test_images_with_the_published_flags_keep_their_entry_point(
    tmp_path: Path, contained: Server
) -> None:
    below, port = docker_images.image_tag(contained), own_port()
    for name, own, words in (
        ("kourier", None, brought_programs.KOURIER_WORDS),
        ("lithium", port, brought_programs.LITHIUM_WORDS),
    ):
        folder = brought_programs.image_folder(tmp_path / name, below, own_port=own)
        built = msgspec.structs.replace(
            contained, name=f"{name}_stand_in", source=str(folder),
            container=ContainerRecipe(dockerfile="Dockerfile"),
        )  # fmt: skip
        docker_images.build_image(built, say=lambda line: None)
        tag = docker_images.image_tag(built)
        keys: dict[str, Any] = {"container": {"port": own}} if own else {}
        for how in (f"docker:{tag}", f"docker:{tag} {words}"):
            server = stated(name, from_=how, **keys)
            assert starting.for_server(server, "auto") == "docker"
            starting.prepare(server, "docker", say=lambda line: None)
            one = start(server, runtime="docker", workers=2, run_id=f"brought{os.getpid()}")
            try:
                place = "" if own else f"-a 127.0.0.1 -p {one.port} "
                assert one.log_tail().splitlines()[0] == f"called with {place}--worker-count=2"
                assert one.port == (own or one.port)
                assert str(answer("127.0.0.1", one.port)).endswith("Hello World!'")
            finally:
                one.stop()
