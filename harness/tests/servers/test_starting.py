"""Starting and stopping: what starts answers, what fails says why, and nothing is left running."""

from __future__ import annotations

import gc
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from httpmark.harness.model.cases import SECRET
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.servers import ContainerRecipe, Need, Server
from httpmark.harness.model.servers import ProcessRecipe as Recipe
from httpmark.harness.servers import containers as servers_containers
from httpmark.harness.servers import (
    docker_daemon,
    docker_images,
    manifests,
    resources,
    running,
    sockets,
    starting,
    static_files,
)
from httpmark.harness.tests.shared import child_process
from httpmark.harness.tests.shared.ports import own_port

GONE_DEADLINE_S = 10.0

# "workers" processes that answer on one port; each line of MANNER makes it odd.
TINY = """
import os, signal, socket, sys, time
address, port, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
print("tiny says hello", flush=True)
{manner}
listener = socket.create_server((address, port), backlog=64)
gate, key = os.pipe()
for _ in range(workers - 1):
    if os.fork() == 0:
        os.close(key)
        os.read(gate, 1)
        break
else:
    os.close(key)  # nobody answers before all are there
while True:
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(1)
        try:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
        except OSError:
            pass
"""


def tiny(folder: Path, manner: str = "", **changes: Any) -> Server:
    """A server in Python; ``manner`` runs after it has spoken and before it listens."""
    (folder / "server.py").write_text(TINY.format(manner=textwrap.dedent(manner)))
    fields: dict[str, Any] = {
        "name": "tiny", "title": "Tiny", "language": "Python", "version": "1",
        "homepage": "https://example.org/", "capabilities": ("hello",), "source": str(folder),
        "ready_timeout_s": 10.0,
        "process": Recipe(
            start=("{python}", "-S", "{source}/server.py", "{address}", "{port}", "{workers}")
        ),
    }  # fmt: skip
    return Server(**(fields | changes))


def start(server: Server, *, port: int | None = None, **options: Any) -> running.Running:
    chosen: dict[str, Any] = {"workers": 1, "cpus": None, "run_id": f"test{os.getpid()}"}
    chosen |= options
    return starting.start(
        server, chosen.pop("runtime", "process"), address="127.0.0.1",
        port=port or own_port(), **chosen,
    )  # fmt: skip


def until(truth: Callable[[], object], deadline_s: float = GONE_DEADLINE_S) -> bool:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        if truth():
            return True
        time.sleep(0.01)
    return bool(truth())


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setenv("TMPDIR", str(scratch))
    yield
    starting.stop_all()
    assert until(lambda: not list(scratch.iterdir()))


# --- processes --------------------------------------------------------------------------------


def test_a_server_starts_answers_and_is_gone_after_stop(tmp_path: Path) -> None:
    one = start(tiny(tmp_path), workers=3)
    pids = one.pids()
    assert len(pids) == 3
    assert one.alive()
    answer = sockets.ask("127.0.0.1", one.port, b"GET / HTTP/1.1\r\n\r\n", deadline_s=2)
    assert answer is not None
    assert answer.endswith(b"ok")
    assert one.log_tail() == "tiny says hello"
    assert sockets.port_taken("127.0.0.1", one.port)
    one.stop()
    assert not any(map(lives, pids))
    assert not sockets.port_taken("127.0.0.1", one.port)
    assert not one.alive()
    assert one.pids() == []
    assert one.exit_reason() == "killed by SIGTERM: tiny says hello"
    one.stop()  # a second time changes nothing


def test_a_server_that_dies_at_start_says_its_last_words(tmp_path: Path) -> None:
    server = tiny(tmp_path, "print('no teeth', file=sys.stderr, flush=True); sys.exit(7)")
    with pytest.raises(Unusable, match=r"died at start: exit code 7: no teeth"):
        start(server)
    killed = tiny(tmp_path, "os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(Unusable, match=r"died at start: killed by SIGSEGV: tiny says hello"):
        start(killed)


def test_a_server_that_never_listens_or_never_answers_is_given_up(tmp_path: Path) -> None:
    deaf = tiny(tmp_path, "time.sleep(60)", ready_timeout_s=0.5)
    with pytest.raises(Unusable, match=r"listens on no port: waited 0.5 s; .*tiny says hello"):
        start(deaf)
    mute = tiny(
        tmp_path,
        "held = socket.create_server((address, port)); time.sleep(60)",
        ready_timeout_s=0.5,
    )
    with pytest.raises(Unusable, match=r"does not answer GET /hello: waited 0.5 s"):
        start(mute)


def test_a_taken_port_is_told_before_anything_starts(tmp_path: Path) -> None:
    one = start(tiny(tmp_path))
    with pytest.raises(Unusable, match=rf"port {one.port} on 127.0.0.1 is taken"):
        start(tiny(tmp_path), port=one.port)
    assert one.alive()
    with pytest.raises(Unusable, match=r"192\.0\.2\.1 cannot be listened on"):
        starting.start(
            tiny(tmp_path), "process", address="192.0.2.1", port=1, workers=1, cpus=None, run_id="x"
        )


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    server = tiny(tmp_path, process=Recipe(start=("no-such-program-at-all",)))
    with pytest.raises(Unusable, match=r"cannot be run: no-such-program-at-all: .*No such file"):
        start(server)


def test_a_server_that_ignores_sigterm_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "STOP_GRACE_S", 0.2)
    one = start(tiny(tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN)"), workers=2)
    pids = one.pids()
    one.stop()
    assert not any(map(lives, pids))
    assert one.exit_reason().startswith("killed by SIGKILL")


def test_a_child_that_runs_away_is_still_part_of_the_tree(tmp_path: Path) -> None:
    runaway = """
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    os.wait()
    """
    one = start(tiny(tmp_path, runaway))
    pids = one.pids()
    assert len(pids) == 2
    one.stop()
    assert not any(map(lives, pids))


def test_what_a_child_that_ran_away_used_is_in_the_books_when_it_has_ended(tmp_path: Path) -> None:
    manner = """
        if os.fork() == 0:
            if os.fork() == 0:
                while time.process_time() < 0.4: pass
            os._exit(0)
        os.wait()
        """
    one = start(tiny(tmp_path, manner))
    assert until(lambda: len(one.pids()) == 1)
    (pid,) = one.pids()
    assert (resources.cpu_ns([pid]) or 0) < 0.3e9
    assert (resources.spent_ns([pid]) or 0) < 0.3e9
    assert until(lambda: (resources.spent_ns(one.trees()) or 0) > 0.4e9)


def test_death_in_mid_run_is_seen(tmp_path: Path) -> None:
    one = start(tiny(tmp_path), workers=2)
    pids = one.pids()
    os.kill(min(pids), signal.SIGKILL)
    assert until(lambda: not one.alive())
    assert one.exit_reason() == "killed by SIGKILL: tiny says hello"
    assert until(lambda: not any(map(lives, pids)))  # its workers do not outlive it


def test_pinning_is_to_the_processors_named(tmp_path: Path) -> None:
    last = max(os.sched_getaffinity(0))
    one = start(tiny(tmp_path), workers=2, cpus=str(last))
    assert [os.sched_getaffinity(pid) for pid in one.pids()] == [{last}, {last}]


def test_a_server_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started: list[running.Running] = []
    thread = threading.Thread(target=lambda: started.append(start(tiny(tmp_path))))
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert started[0].alive()
    started[0].stop()


HELPER = """
import sys, time
from pathlib import Path
from httpmark.harness.servers import starting
import msgspec
from httpmark.harness.model.servers import Server
server = msgspec.json.decode(Path({server!r}).read_bytes(), type=Server)
one = starting.start(server, {runtime!r}, address="127.0.0.1", port={port}, workers=2, cpus=None,
                    run_id={run_id!r})
try:
    print(*one.pids(), flush=True)
    time.sleep(60)
finally:
    one.stop()
"""


def with_package() -> dict[str, str]:
    """The environment in which another Python finds this package where this one found it."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def helper(
    folder: Path, server: Server, *, how: str, run_id: str = "helper"
) -> tuple[subprocess.Popen[str], list[int], int]:
    """Another harness, with a server up; its process, the server's pids and port."""
    described = folder / f"{run_id}.json"
    described.write_bytes(msgspec.json.encode(server))
    port = own_port()
    text = HELPER.format(
        server=str(described), runtime=how, port=port,
        run_id=run_id,
    )  # fmt: skip
    env = with_package()
    child = child_process.start([sys.executable, "-c", text], stdout=subprocess.PIPE, env=env)
    assert child.stdout is not None
    with child.stdout as told:
        return child, [int(word) for word in told.readline().split()], port


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_dies_with_its_harness(tmp_path: Path, how: signal.Signals) -> None:
    child, pids, port = helper(tmp_path, tiny(tmp_path), how="process")
    assert len(pids) == 2
    assert all(map(lives, pids))
    child.send_signal(how)
    child.wait(timeout=GONE_DEADLINE_S)
    assert until(lambda: not any(map(lives, pids)))
    assert until(lambda: not sockets.port_taken("127.0.0.1", port))


def test_a_server_whose_supervisor_is_killed_can_still_be_stopped(tmp_path: Path) -> None:
    one = start(tiny(tmp_path), workers=3)
    pids = one.pids()
    parent = int(Path(f"/proc/{min(pids)}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)
    assert until(lambda: not one.alive())
    assert "supervisor was killed" in one.exit_reason()
    assert until(lambda: not lives(min(pids)))  # the kernel sees to the first process
    one.stop()
    assert until(lambda: not any(map(lives, pids)))


def test_files_and_variables_are_filled_in(tmp_path: Path) -> None:
    recipe = tiny(tmp_path).process
    assert recipe is not None
    manner = "print(open('odd.conf').read(), os.environ['ODD'], flush=True)"
    filled = msgspec.structs.replace(
        recipe, files={"odd.conf": "listen {endpoint}; { keep }"}, env={"ODD": "w{workers}"}
    )
    one = start(tiny(tmp_path, manner, process=filled))
    assert one.log_tail().splitlines()[-1] == f"listen 127.0.0.1:{one.port}; {{ keep }} w1"


def test_where_suites_are_fired_a_server_gets_what_is_added_for_them(tmp_path: Path) -> None:
    recipe = tiny(tmp_path).process
    assert recipe is not None
    manner = "print(sys.argv[4:], os.path.exists('short.conf'), flush=True)"
    added = msgspec.structs.replace(
        recipe, conformance=("--short", "{port}"), conformance_files={"short.conf": "5s"}
    )
    server = tiny(tmp_path, manner, process=added)
    one = start(server, conformance=True)
    assert one.log_tail().splitlines()[-1] == f"['--short', '{one.port}'] True"
    other = start(server)
    assert other.log_tail().splitlines()[-1] == "[] False"


def test_a_server_of_files_is_given_the_planted_ones(tmp_path: Path) -> None:
    recipe = tiny(tmp_path).process
    assert recipe is not None
    served = msgspec.structs.replace(recipe, start=(*recipe.start, "{static}"))
    manner = """
        folder = sys.argv[4]
        print(sorted(os.listdir(folder)), os.listdir(folder + '/..'), flush=True)
    """
    one = start(tiny(tmp_path, manner, process=served, capabilities=("hello", "static")))
    said = one.log_tail().splitlines()[-1]
    assert "'link-out', 'ok.html', 'sub'" in said
    assert SECRET in said


def test_a_container_of_files_is_given_the_planted_ones() -> None:
    archive = servers_containers._scratch_archive({"a.conf": "b"}, with_static=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        names = tar.getnames()
        folder = servers_containers._IN_CONTAINER.removeprefix("/")
        assert f"{folder}/a.conf" in names
        assert f"{folder}/{SECRET}" in names
        assert f"{folder}/{static_files.FOLDER}/sub/index.html" in names
        link = tar.getmember(f"{folder}/{static_files.FOLDER}/link-out")
        assert (link.issym(), link.linkname) == (True, f"../{SECRET}")
        page = tar.getmember(f"{folder}/{static_files.FOLDER}/ok.html")
        assert (page.uid, page.mode & 0o777) == (0, 0o644)
        assert tar.getmember(f"{folder}/{static_files.FOLDER}/future.html").mtime > time.time()


# --- builds and availability ------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "httpmark"


def test_a_build_runs_once_for_each_state_of_the_sources(tmp_path: Path, cache: Path) -> None:
    said: list[str] = []
    recipe = Recipe(
        build=(("cp", "{source}/part", "{build}/part"),), start=("x",), binary="{build}/part"
    )
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "part").write_text("#!/bin/sh\n")
    (folder / "part").chmod(0o755)
    server = tiny(folder, process=recipe)
    assert starting.binary(server) is None
    for _ in range(2):
        starting.prepare(server, "process", say=said.append)
    assert len([line for line in said if line.startswith("building tiny")]) == 1
    first = starting.binary(server)
    assert first is not None
    assert Path(first).is_relative_to(cache)
    (folder / "part").write_text("#!/bin/sh\nexit\n")
    starting.prepare(server, "process", say=said.append)
    assert len([line for line in said if line.startswith("building tiny")]) == 2
    assert starting.binary(server) not in (None, first)


def test_a_source_edited_in_mid_run_changes_nothing_of_the_run(tmp_path: Path, cache: Path) -> None:
    recipe = Recipe(
        build=(("cp", "{source}/server.py", "{build}/"),),
        start=("{python}", "-S", "{build}/server.py", "{address}", "{port}", "{workers}"),
    )
    server = tiny(tmp_path, process=recipe)
    starting.prepare(server, "process", say=lambda line: None)
    (tmp_path / "server.py").write_text("not even Python")
    assert start(server).alive()


def test_a_failed_build_says_the_error_and_keeps_the_log(tmp_path: Path, cache: Path) -> None:
    script = "echo all fine; echo 'x.c:1: error: no ; here'; echo stopping; exit 3"
    server = tiny(tmp_path, process=Recipe(build=(("sh", "-c", script),), start=("x",)))
    with pytest.raises(Unusable, match=r"build failed: x\.c:1: error: no ; here \(log: ") as told:
        starting.prepare(server, "process", say=lambda line: None)
    log = Path(str(told.value).partition("(log: ")[2].rstrip(")"))
    assert log.read_text().endswith("stopping\n")
    assert list((cache / "build").iterdir()) == []


@pytest.mark.parametrize(
    ("need", "reason"),
    [
        (Need(install="get it", command="no-such-program"), "no-such-program not found: get it"),
        (Need(install="get it", file="/no/such"), "/no/such not found: get it"),
        (Need(install="get it", python="no_such"), "the Python module no_such not found: get it"),
        (
            Need(install="get it", command=sys.executable, at_least="99.0"),
            rf"{sys.executable} 3[.0-9]+ is older than 99.0: get it",
        ),
    ],
)
def test_what_is_missing_is_told_with_its_mend(tmp_path: Path, need: Need, reason: str) -> None:
    server = tiny(tmp_path, process=Recipe(start=("x",), needs=(need,)))
    with pytest.raises(Unusable, match=f"^process: {reason}$"):
        starting.for_server(server, "process")
    assert starting.listed(server)["available"]["process"] == starting.availability(
        server, "process"
    )


def test_what_is_there_is_available(tmp_path: Path) -> None:
    needs = (
        Need(install="", command=sys.executable, at_least="3.11"),
        Need(install="", file="/proc"),
        Need(install="", python="msgspec"),
    )
    server = tiny(tmp_path, process=Recipe(start=("x",), needs=needs))
    assert starting.availability(server, "process") is True
    assert starting.for_server(server, "process") == "process"


def test_a_missing_pkg_config_module_is_told(tmp_path: Path) -> None:
    need = Need(install="get it", pkg_config="no-such-module >= 6.8")
    server = tiny(tmp_path, process=Recipe(start=("x",), needs=(need,)))
    reason = starting.availability(server, "process")
    assert isinstance(reason, str)
    assert "no-such-module" in reason
    assert reason.endswith(": get it")


def test_an_unknown_runtime_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="no runtime is called 'podman': use auto, docker or"):
        starting.choose("podman")
    assert starting.choose("process") == "process"


def test_what_a_daemon_is_like_is_told_or_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_daemon, "docker_trouble", lambda: "no daemon")
    assert docker_daemon.docker_facts() is None
    monkeypatch.setattr(docker_daemon, "docker_trouble", lambda: None)

    class Client:
        def info(self) -> dict[str, object]:
            return {
                "ServerVersion": "20.10", "Driver": "overlay2", "CgroupVersion": "1",
                "RuncCommit": {"ID": "1.1.5"}, "SecurityOptions": ["b", "a"], "Name": "a-host",
            }  # fmt: skip

    monkeypatch.setattr(docker_daemon, "docker_client", Client)
    facts = docker_daemon.docker_facts()
    assert facts is not None
    assert (facts["version"], facts["runc"], facts["security"]) == ("20.10", "1.1.5", ["a", "b"])
    assert facts["containerd"] is None
    assert "a-host" not in str(facts), "host names stay at home"


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
    monkeypatch.setattr(docker_daemon, "_client", None)
    assert starting.choose("auto") == "process"
    with pytest.raises(Unusable, match=r"no Docker daemon answers at .*no\.sock: "):
        starting.choose("docker")
    assert servers_containers.sweep() == []
    reason = starting.availability(manifests.server("nginx"), "docker")
    assert isinstance(reason, str)
    assert reason.startswith("no Docker daemon answers")


def test_a_daemon_that_is_dead_behind_its_socket_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dead.sock").touch()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/dead.sock")
    monkeypatch.setattr(docker_daemon, "_client", None)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ResourceWarning
        )  # docker-py drops a socket it could not use
        trouble = docker_daemon.docker_trouble()
        gc.collect()
    assert trouble is not None
    assert trouble.startswith("no Docker daemon answers at")
    assert "\n" not in trouble


def test_a_daemon_that_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mute.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    monkeypatch.setattr(docker_daemon, "_client", None)
    monkeypatch.setattr(docker_daemon, "_DOCKER_PING_S", 0.2)
    with socket.socket(socket.AF_UNIX) as mute, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        mute.bind(str(path))
        mute.listen()
        began = time.monotonic()
        trouble = docker_daemon.docker_trouble()
        gc.collect()
    assert trouble is not None
    assert trouble.startswith(f"no Docker daemon answers at unix://{path}")
    assert time.monotonic() - began < 5


def test_a_build_gets_what_the_machine_needs_and_its_name_does_not_depend_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\n")
    server = tiny(tmp_path, container=ContainerRecipe(dockerfile="Dockerfile"))
    monkeypatch.setattr(docker_images, "_CA_FOLDER", tmp_path / "none")
    bare = docker_images.image_tag(server)
    authorities = tmp_path / "authorities"
    authorities.mkdir()
    (authorities / "own.crt").write_text("certificate")
    (authorities / "note.txt").write_text("no certificate")
    monkeypatch.setattr(docker_images, "_CA_FOLDER", authorities)
    monkeypatch.setenv("GOPROXY", "it's mine")
    monkeypatch.setenv("CARGO_HTTP_MULTIPLEXING", "false")
    monkeypatch.setenv("GOPATH", "/not/for/builds")
    shutil.rmtree(tmp_path / "scratch")  # the source is all of this folder
    try:
        with tarfile.open(fileobj=io.BytesIO(docker_images._context_archive(server))) as tar:
            names = tar.getnames()
            env = tar.extractfile("host/env")
            assert env is not None
            lines = env.read().decode().splitlines()
    finally:
        (tmp_path / "scratch").mkdir()
    assert "host/ca/own.crt" in names
    assert "host/ca/note.txt" not in names
    assert "Dockerfile" in names
    quoted = "'it'" + '"\'"' + "'s mine'"
    assert f"export GOPROXY={quoted}" in lines
    assert "export CARGO_HTTP_MULTIPLEXING=false" in lines
    assert not any("GOPATH" in line for line in lines)
    shutil.rmtree(authorities)
    assert docker_images.image_tag(server) == bare


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, r"mmdebstrap, which could make it, is not found: apt-get install mmdebstrap"),
        ("echo 'W: GPG error: NO_PUBKEY 6ED0E7B82643E131'; exit 1", r"does not know trixie's key"),
        ("echo 'E: no room'; exit 1", r"mmdebstrap: E: no room \(log: "),
    ],
)
def test_a_base_that_cannot_be_made_says_why(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, reason: str
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    if script is not None:
        (programs / "mmdebstrap").write_text(f"#!/bin/sh\n{script}\n")
        (programs / "mmdebstrap").chmod(0o755)
        monkeypatch.setattr(
            docker_images, "_KEYRING", programs / "mmdebstrap"
        )  # anything that exists
    monkeypatch.setattr(shutil, "which", lambda name: script and str(programs / name))
    monkeypatch.setattr(docker_images, "_has_image", lambda tag: False)
    with pytest.raises(Unusable, match=reason):
        docker_images._make_base(say=lambda line: None)


BUILDER = """
import sys
from pathlib import Path
from httpmark.harness.servers import starting
import msgspec
from httpmark.harness.model.servers import Server
server = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Server)
starting.prepare(server, "process", say=lambda line: print(line, flush=True))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_build_ends_with_its_harness_and_leaves_nothing(
    tmp_path: Path, cache: Path, how: signal.Signals
) -> None:
    script = f"echo $$ > {tmp_path}/pid; sleep 60; true"
    server = tiny(tmp_path, process=Recipe(build=(("sh", "-c", script),), start=("x",)))
    (tmp_path / "server.json").write_bytes(msgspec.json.encode(server))
    with child_process.start(
        [sys.executable, "-c", BUILDER, str(tmp_path / "server.json")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=with_package(),
    ) as child:  # fmt: skip
        noted = tmp_path / "pid"
        assert until(lambda: noted.exists() and noted.read_text().strip())
        child.send_signal(how)
        child.wait(timeout=GONE_DEADLINE_S)
    assert until(lambda: not lives(int(noted.read_text())))
    assert until(lambda: not list((cache / "build").iterdir()))


def test_a_socket_without_permission_says_which_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locked.sock").touch()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/locked.sock")
    monkeypatch.setattr(os, "access", lambda *words: False)  # root may do everything
    trouble = docker_daemon.docker_trouble()
    assert trouble is not None
    assert trouble.startswith(f"no permission for {tmp_path}/locked.sock: sudo usermod -aG ")
    assert trouble.endswith("then log in again")


def test_an_image_that_the_user_has_not_brought_is_told(tmp_path: Path) -> None:
    server = tiny(tmp_path, container=ContainerRecipe(image="httpmark-test/no-such-image"))
    reason = starting.availability(server, "docker")
    assert isinstance(reason, str)
    assert "no image httpmark-test/no-such-image: docker tag" in reason or "Docker" in reason


# --- containers -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def contained() -> Server:
    """A server whose image builds in seconds, built."""
    server = manifests.server("nginx")
    starting.prepare(server, "docker", say=lambda line: None)
    return server


def containers() -> dict[str, dict[str, Any]]:
    """Every container of the daemon, by name."""
    return {
        one["Names"][0].removeprefix("/"): one
        for one in docker_daemon.docker_client().api.containers(all=True)
    }


@pytest.mark.needs("docker")
def test_a_container_has_its_name_its_labels_and_its_processors(contained: Server) -> None:
    one = start(contained, runtime="docker", workers=2, cpus="0", run_id="names")
    name = "httpmark-names-nginx"
    found = containers()[name]
    assert found["Labels"]["httpmark"] == "1"
    assert found["Labels"]["httpmark.owner"].startswith(f"{os.getpid()}-")
    pids = one.pids()
    assert len(pids) == 3  # the master and two workers, by the host's numbers
    assert "nginx" in Path(f"/proc/{pids[0]}/comm").read_text()
    assert all(os.sched_getaffinity(pid) == {0} for pid in pids)
    assert one.image_digest is not None
    assert one.image_digest.startswith("sha256:")
    assert one.version is not None
    assert one.version.startswith("1.")
    assert one.cgroup is None or os.path.isdir(one.cgroup)
    assert one.alive()
    one.stop()
    assert name not in containers()
    assert not any(map(lives, pids))
    assert not sockets.port_taken("127.0.0.1", one.port)
    one.stop()


@pytest.mark.needs("docker")
def test_a_container_that_dies_at_start_says_why_and_is_removed(contained: Server) -> None:
    recipe = contained.container
    assert recipe is not None
    broken = msgspec.structs.replace(recipe, files={"nginx.conf": "nonsense;"})
    with pytest.raises(Unusable, match=r"died at start: exit code 1: .*unknown directive"):
        start(msgspec.structs.replace(contained, container=broken), runtime="docker", run_id="dies")
    missing = msgspec.structs.replace(recipe, start=("no-such-program",))
    with pytest.raises(Unusable, match=r"its container cannot be started: .*no-such-program"):
        start(
            msgspec.structs.replace(contained, container=missing), runtime="docker", run_id="dies"
        )
    assert "httpmark-dies-nginx" not in containers()


@pytest.mark.needs("docker")
def test_sweep_removes_what_dead_harnesses_left_and_nothing_else(
    contained: Server, tmp_path: Path
) -> None:
    living = start(contained, runtime="docker", run_id="living")
    child, pids, port = helper(tmp_path, contained, how="docker", run_id="dead")
    assert pids
    assert not [
        name for name in servers_containers.sweep() if name.endswith(("dead-nginx", "living-nginx"))
    ]
    child.kill()
    child.wait(timeout=GONE_DEADLINE_S)
    assert "httpmark-dead-nginx" in containers()
    assert "httpmark-dead-nginx" in servers_containers.sweep()
    assert "httpmark-dead-nginx" not in containers()
    assert not sockets.port_taken("127.0.0.1", port)
    assert living.alive()


@pytest.mark.needs("docker")
def test_ctrl_c_removes_the_container_at_once(contained: Server, tmp_path: Path) -> None:
    child, pids, _ = helper(tmp_path, contained, how="docker", run_id="ctrlc")
    assert pids
    child.send_signal(signal.SIGINT)
    child.wait(timeout=GONE_DEADLINE_S)
    assert "httpmark-ctrlc-nginx" not in containers()
    assert not any(map(lives, pids))


@pytest.mark.needs("docker")
def test_an_image_is_built_once(contained: Server) -> None:
    said: list[str] = []
    starting.prepare(contained, "docker", say=said.append)
    assert said == []


@pytest.mark.needs("docker")
def test_a_dockerfile_that_fails_says_its_error(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "Dockerfile").write_text(
        "ARG BASE\nFROM ${BASE}\nRUN echo 'error: no teeth' && exit 3\n"
    )
    server = tiny(tmp_path, container=ContainerRecipe(dockerfile="Dockerfile"))
    with pytest.raises(Unusable, match=r"its image cannot be built: error: no teeth \(log: "):
        starting.prepare(server, "docker", say=lambda line: None)
