"""A server as a container: its name, its labels, and nothing of it is left."""

from __future__ import annotations

import io
import os
import signal
import tarfile
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from httpmark.harness.model.cases import SECRET
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.servers import Server
from httpmark.harness.servers import (
    container_rights,
    docker_daemon,
    sockets,
    static_files,
)
from httpmark.harness.servers import containers as servers_containers
from httpmark.harness.tests.shared.tiny_server import GONE_DEADLINE_S, helper, lives, start

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def containers() -> dict[str, dict[str, Any]]:
    """Every container of the daemon, by name."""
    return {
        one["Names"][0].removeprefix("/"): one
        for one in docker_daemon.docker_client().api.containers(all=True)
    }


def test_a_container_of_files_is_given_the_planted_ones() -> None:
    archive = servers_containers._scratch_archive({"a.conf": "b"}, with_static=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        names = tar.getnames()
        folder = servers_containers._SCRATCH
        assert f"{folder}/a.conf" in names
        assert f"{folder}/{SECRET}" in names
        assert f"{folder}/{static_files.FOLDER}/sub/index.html" in names
        link = tar.getmember(f"{folder}/{static_files.FOLDER}/link-out")
        assert (link.issym(), link.linkname) == (True, f"../{SECRET}")
        page = tar.getmember(f"{folder}/{static_files.FOLDER}/ok.html")
        assert (page.uid, page.mode & 0o777) == (0, 0o644)
        assert tar.getmember(f"{folder}/{static_files.FOLDER}/future.html").mtime > time.time()


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


def status(pid: int) -> dict[str, str]:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (row.partition(":") for row in rows)}


@pytest.mark.needs("docker")
def test_a_container_may_do_little(contained: Server) -> None:
    one = start(contained, runtime="docker", run_id="rights")
    found = docker_daemon.docker_client().api.inspect_container("httpmark-rights-nginx")
    limits = found["HostConfig"]
    assert limits["PidsLimit"] == container_rights.PIDS_MAX
    assert 0 < limits["Memory"] == limits["MemorySwap"]
    for pid in one.pids():
        said = status(pid)
        assert said["NoNewPrivs"] == "1"
        # None of them, neither now nor after a program is started: the bounding set is empty.
        assert {said[name] for name in ("CapEff", "CapPrm", "CapInh", "CapBnd")} == {"0" * 16}
    client = docker_daemon.docker_client()
    container = client.containers.get("httpmark-rights-nginx")

    def writes(path: str) -> bool:
        code, _ = container.exec_run(["touch", path], user="0")
        return bool(code == 0)

    assert not writes("/etc/anything")
    assert not writes("/anything")
    assert writes("/tmp/anything")
    assert writes("/httpmark/scratch/anything")
    [volume] = [one["Name"] for one in found["Mounts"] if one["Type"] == "volume"]
    one.stop()
    assert volume not in {one.name for one in client.volumes.list()}


@pytest.mark.needs("docker")
def test_a_container_keeps_what_its_manifest_says(contained: Server) -> None:
    recipe = contained.container
    assert recipe is not None
    changed = msgspec.structs.replace(
        recipe, keeps=("capabilities", "new-privileges"), writes=("/var/cache",)
    )
    server = msgspec.structs.replace(contained, container=changed)
    one = start(server, runtime="docker", run_id="kept")
    container = docker_daemon.docker_client().containers.get("httpmark-kept-nginx")
    said = status(one.pids()[0])
    assert said["NoNewPrivs"] == "0"
    assert int(said["CapBnd"], 16) != 0
    assert container.exec_run(["touch", "/var/cache/anything"], user="0")[0] == 0
    assert container.exec_run(["touch", "/etc/anything"], user="0")[0] != 0
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
