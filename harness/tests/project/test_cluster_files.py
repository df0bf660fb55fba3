"""The files of docs/cluster/ name what there is, and the one for SLURM runs on one host."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from distributed.cli.dask_scheduler import main as scheduler
from distributed.cli.dask_worker import main as worker

from httpmark.harness.cluster.connecting import ROLES
from httpmark.harness.model import run_folder
from httpmark.harness.tests.shared import child_process, ports
from httpmark.harness.tests.shared.pytest_rules import starts_process
from httpmark.harness.tests.shared.repository import ROOT

FOLDER = ROOT / "docs" / "cluster"
SBATCH = FOLDER / "slurm" / "httpmark.sbatch"
PROGRAMS = {"scheduler": scheduler, "worker": worker}


def options(program: str) -> set[str]:
    """What a program of Dask takes."""
    command = PROGRAMS[program]
    return {word for one in command.params for word in (*one.opts, *one.secondary_opts)}


def documents() -> list[dict[str, Any]]:
    files = sorted((FOLDER / "kubernetes").glob("*.yaml"))
    assert files
    return [one for file in files for one in yaml.safe_load_all(file.read_text("utf-8"))]


def test_kubernetes_starts_programs_of_dask_with_options_that_they_have() -> None:
    roles = set()
    for one in (one for one in documents() if one["kind"] == "Deployment"):
        pod = one["spec"]["template"]
        assert one["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
        (container,) = pod["spec"]["containers"]
        dask, program = container["command"]
        words = container["args"]
        assert dask == "dask"
        assert {word for word in words if word.startswith("--")} <= options(program)
        PROGRAMS[program].make_context(program, list(words), resilient_parsing=False)
        if "--resources" in words:
            roles.add(words[words.index("--resources") + 1].partition("=")[0])
        volumes = {volume["name"] for volume in pod["spec"].get("volumes", [])}
        assert {mount["name"] for mount in container.get("volumeMounts", [])} == volumes
    assert roles == set(ROLES)


def test_workers_look_for_the_scheduler_where_its_service_is() -> None:
    (service,) = (one for one in documents() if one["kind"] == "Service")
    (port,) = service["spec"]["ports"]
    text = (FOLDER / "kubernetes" / "workers.yaml").read_text("utf-8")
    found = set(re.findall(r"tcp://\S+", text))
    assert found == {f"tcp://{service['metadata']['name']}:{port['port']}"}
    labels = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in documents()
        if one["kind"] == "Deployment"
    ]
    assert service["spec"]["selector"] in labels


@pytest.mark.process
def test_the_file_for_slurm_is_a_shell_script_with_options_that_there_are() -> None:
    subprocess.run(["bash", "-n", SBATCH], check=True, timeout=20)
    text = SBATCH.read_text("utf-8").replace("\\\n", " ")
    for program in PROGRAMS:
        (line,) = re.findall(rf'/dask" {program} (.+)', text)
        assert set(re.findall(r"--[a-z-]+", line)) <= options(program)
    given = " ".join(re.findall(r'roles="([^"]+)"', text))
    assert set(re.findall(r"(\w+)=1\b", given)) == set(ROLES)


@pytest.mark.needs("netns")
def test_the_page_of_capacity_shows_what_its_command_prints() -> None:
    """Figures differ from machine to machine; the lines are those of the command."""
    command = [sys.executable, str(FOLDER / "capacity.py"), "--seconds", "0.2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    def lines(text: str) -> list[str]:
        return [re.sub(r"[ \d,.]+", " ", line) for line in text.strip().splitlines()]

    page = (FOLDER / "capacity.md").read_text("utf-8")
    for shown in re.findall(r"```\n(requests .*?)```", page, re.S):
        assert lines(shown) == lines(done.stdout)
    assert "out" in done.stdout
    segments = re.search(r"TCP segments a request +(\d+\.\d)", done.stdout)
    assert segments is not None
    assert float(segments[1]) >= 2.0, "one each way, at depth 1"


_CONFIGURATION = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/daemon.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES OverSubscribe=FORCE:4 State=UP
"""


@pytest.fixture
@starts_process
def slurm(tmp_path: Path) -> Iterator[Path]:
    """A SLURM of one host; the path of its configuration."""
    for name in ("state", "spool"):
        (tmp_path / name).mkdir()
    tmp_path.chmod(0o755)
    file, key = tmp_path / "slurm.conf", tmp_path / "munge.key"
    file.write_text(
        _CONFIGURATION.format(
            host=os.uname().nodename.partition(".")[0], folder=tmp_path, cpus=os.cpu_count(),
            controller=ports.own_port(), daemon=ports.own_port(),
        )
    )  # fmt: skip
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    munge = [f"--{name}-file={tmp_path}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    every = (
        ["munged", "--foreground", "--force", f"--socket={tmp_path}/munge.socket", *munge],
        ["slurmctld", "-D", "-f", str(file)],
        ["slurmd", "-D", "-f", str(file)],
    )
    running = []
    for words in every:
        words[0] = shutil.which(words[0], path="/usr/sbin:/usr/bin") or words[0]
        with (tmp_path / f"{Path(words[0]).name}.log").open("w") as log:
            running.append(child_process.start(words, stdout=log, stderr=log))
        time.sleep(1.0)
    yield file
    for one in reversed(running):
        one.terminate()
        one.wait(timeout=30)


@pytest.mark.nightly
@pytest.mark.needs("slurmctld", "slurmd", "munged", "sbatch")
def test_a_job_of_slurm_loads_a_server_and_leaves_a_result(slurm: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ, "SLURM_CONF": str(slurm), "HTTPMARK_PORT": str(ports.own_port()),
        "HTTPMARK_BIN": str(Path(sys.executable).parent),
    }  # fmt: skip
    words = (
        "sbatch", "--wait", "--ntasks", "2", "--ntasks-per-node", "2", "--oversubscribe",
        str(SBATCH), "bench", "null", "--profile", "keepalive", "--runtime", "process", "--quick",
        "--rounds", "1",
    )  # fmt: skip
    done = subprocess.run(
        words, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200,
        check=False,
    )  # fmt: skip
    told = "\n".join(one.read_text() for one in tmp_path.glob("httpmark-*.log"))
    assert done.returncode == 0, done.stdout + done.stderr + told
    (folder,) = (tmp_path / "httpmark-runs").iterdir()
    run = run_folder.read(folder)
    assert run.completed.profiles == ("keepalive",)
    (note,) = (one for one in run.notes if "load by 1 generator" in one)
    assert "-1 on " in note
