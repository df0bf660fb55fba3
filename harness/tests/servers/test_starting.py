"""Starting and stopping: what starts answers, what fails says why, and nothing is left running."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.servers import Need
from httpmark.harness.model.servers import ProcessRecipe as Recipe
from httpmark.harness.servers import containers as servers_containers
from httpmark.harness.servers import (
    docker_daemon,
    docker_images,
    manifests,
    open_connections,
    running,
    starting,
)
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.ports import close_first, own_port
from httpmark.harness.tests.shared.tiny_server import start, tiny

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.mark.process
def test_a_server_that_never_listens_or_never_answers_is_given_up(tmp_path: Path) -> None:
    deaf = tiny(tmp_path, "time.sleep(60)", ready_timeout_s=2)
    with pytest.raises(Unusable, match=r"listens on no port: waited 2 s; .*tiny says hello"):
        start(deaf)
    mute = tiny(
        tmp_path,
        "held = socket.create_server((address, port)); time.sleep(60)",
        ready_timeout_s=4,  # on a busy machine it listens after a second
    )
    with pytest.raises(Unusable, match=r"does not answer GET /hello: waited 4 s"):
        start(mute)


@pytest.mark.process
def test_a_taken_port_is_told_before_anything_starts(tmp_path: Path) -> None:
    one = start(tiny(tmp_path))
    with pytest.raises(Unusable, match=rf"port {one.port} on 127.0.0.1 is taken"):
        start(tiny(tmp_path), port=one.port)
    assert one.alive()
    with pytest.raises(Unusable, match=r"192\.0\.2\.1 cannot be listened on"):
        starting.start(
            tiny(tmp_path), "process", address="192.0.2.1", port=1, workers=1, cpus=None, run_id="x"
        )


@pytest.mark.process
def test_what_another_program_answers_at_the_port_is_not_the_servers_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "port_trouble", lambda *_: None)  # it was free a moment ago
    with peers.peer(peers.answering(peers.OK)) as other:
        with pytest.raises(Unusable, match=r"died at start: exit code 1: .*Address already in use"):
            start(tiny(tmp_path, "time.sleep(0.5)"), port=other.port)
        monkeypatch.setattr(starting, "_STRANGER_S", 0.2)
        one = start(tiny(tmp_path, "time.sleep(60)"), port=other.port)
        assert one.alive()  # it had its server started by somebody else, for all we know
        one.stop()


@pytest.mark.process
def test_a_port_that_another_program_shares_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "_STRANGER_S", 3.0)  # a busy machine takes so long to start it
    monkeypatch.setattr(starting, "_READY_ASK_S", 0.2)
    shared = "socket.create_server = functools.partial(socket.create_server, reuse_port=True)"
    server = tiny(tmp_path, f"import functools\n{shared}")
    one = start(server)
    monkeypatch.setattr(starting, "port_trouble", lambda *_: None)
    with pytest.raises(Unusable, match=r"is shared with another program \(process \d+\): stop it"):
        start(server, port=one.port)
    one.stop()


def test_a_port_that_closed_connections_keep_is_not_called_listened_on() -> None:
    with socket.create_server(("127.0.0.1", own_port())) as listener:
        port = listener.getsockname()[1]
        told = starting.port_trouble("127.0.0.1", port)
        assert told is not None
        assert "is taken: stop what listens there" in told
        listener.close()
        assert starting.port_trouble("127.0.0.1", port) is None
    told = starting.port_trouble("127.0.0.1", close_first(listening(own_port())))
    assert told is not None
    assert "is kept by closed connections (TIME_WAIT), and nobody listens there" in told


def test_a_server_that_shares_its_port_comes_back_to_it() -> None:
    port = close_first(listening(own_port(), socket.SO_REUSEPORT))
    assert starting.port_trouble("127.0.0.1", port) is None
    begun = time.monotonic()
    running.wait_port_free("127.0.0.1", port)
    assert time.monotonic() - begun < 4  # not until it gives up, which takes five


def listening(port: int, *options: int) -> socket.socket:
    """A listener that is bound with these options alone."""
    listener = socket.socket()
    for option in options:
        listener.setsockopt(socket.SOL_SOCKET, option, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener


def test_an_unknown_runtime_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="no runtime is called 'podman': use auto, docker or"):
        starting.choose("podman")
    assert starting.choose("process") == "process"


def test_auto_takes_what_the_user_brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_daemon, "docker_trouble", lambda: None)
    monkeypatch.setattr(docker_images, "image_trouble", lambda server: "no image: docker tag it")
    assert starting.for_server(tiny(tmp_path), "auto") == "process"
    need = Need(install="get it", command="no-such-program")
    server = tiny(tmp_path, process=Recipe(start=("x",), needs=(need,)))
    with pytest.raises(Unusable, match=r"^docker: no image.*; process: no-such-program not found"):
        starting.for_server(server, "auto")
    with pytest.raises(Unusable, match=r"^docker: no image: docker tag it$"):
        starting.for_server(tiny(tmp_path), "docker")


def test_without_a_daemon_auto_means_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    docker_daemon.docker_client.cache_clear()
    assert starting.choose("auto") == "process"
    with pytest.raises(Unusable, match=r"no Docker daemon answers at .*no\.sock: "):
        starting.choose("docker")
    assert servers_containers.sweep() == []
    reason = starting.availability(manifests.server("nginx"), "docker")
    assert isinstance(reason, str)
    assert reason.startswith("no Docker daemon answers")


@pytest.mark.process
def test_a_server_with_a_port_of_its_own_is_asked_there(tmp_path: Path) -> None:
    port = own_port()
    words = ("{python}", "-S", "{source}/server.py", "0.0.0.0", str(port), "{workers}")
    server = tiny(tmp_path, process=Recipe(start=words, port=port))
    for _ in range(2):
        one = start(server, port=own_port())
        assert one.port == port
        one.stop()
    with socket.create_server(("127.0.0.1", port)), pytest.raises(Unusable, match=f"port {port} "):
        start(server)


@pytest.mark.process
def test_a_server_waits_until_its_own_port_is_no_longer_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = own_port()
    words = ("{python}", "-S", "{source}/server.py", "{address}", "{port}", "{workers}")
    server = tiny(tmp_path, process=Recipe(start=words, port=port))
    asked: list[int] = []

    def kept(address: str, wanted: int) -> str | None:
        asked.append(wanted)
        return "kept by closed connections" if len(asked) < 3 else None

    monkeypatch.setattr(starting, "port_trouble", kept)
    monkeypatch.setattr(open_connections, "is_only_waiting", lambda port: True)
    one = start(server)
    assert (one.port, asked) == (port, [port] * 4)


def test_a_server_that_runs_already_is_available_while_it_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", own_port())) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        server = tiny(tmp_path, process=None, url=url)
        assert starting.listed(server)["available"] == {
            "docker": f"it runs already, at {url}, and is not started as a container",
            "process": f"it runs already, at {url}, and is not started as a process",
            "address": True,
        }
    told = starting.availability(server, "address")
    assert told == f"nothing answers at {url}: is the server running?"
    elsewhere = tiny(tmp_path, process=None, url="http://192.0.2.1/")
    said = starting.availability(elsewhere, "address")
    assert str(said).startswith("not asked: http://192.0.2.1/ is not this machine: add")
