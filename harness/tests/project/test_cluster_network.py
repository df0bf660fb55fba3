"""Suites and load on a network that the test makes: hosts in namespaces, Dask's own programs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from httpmark.harness.model import run_folder
from httpmark.harness.servers import proc_files
from httpmark.harness.tests.shared import command_process
from httpmark.harness.tests.shared.asking_again import asked_again
from httpmark.harness.tests.shared.namespaces import HEAD, Host, Lan
from httpmark.harness.tests.shared.pytest_rules import starts_process

pytestmark = pytest.mark.needs("netns")

URL = f"tcp://{HEAD}:8786"
DASK = str(Path(sys.executable).parent / "dask")
BENCH = ("bench", "null", "--runtime", "process", "--quick", "--rounds", "1", "--json")


@pytest.fixture
@starts_process
def lan(tmp_path: Path) -> Iterator[Lan]:
    made = Lan(tmp_path)
    try:
        yield made
    finally:
        made.stop()


# Answers come so fast, and for so many seconds, only when a generator is in its window.
_LOADED_OCTETS = 5_000  # a second
_WARM_S = 2
# Before all other programs of this machine: for loads that a slow link keeps small.
AT_ONCE = ("chrt", "--rr", "1")


def cluster(lan: Lan, *workers: tuple[Host, str], by: tuple[str, ...] = ()) -> None:
    """Start a scheduler, and a worker on each host with its roles.

    :param by: the words before those of the workers.
    """
    lan.start(lan.head, DASK, "scheduler", "--host", HEAD, "--port", "8786", "--no-dashboard")
    for host, roles in workers:
        lan.start(
            host, *by, DASK, "worker", URL, "--nthreads", "1", "--resources", roles,
            "--no-dashboard", "--name", host.link,
        )  # fmt: skip
    end = time.monotonic() + 60
    while True:
        code, told, _ = command(lan, "cluster", "doctor", "--cluster", URL)
        if all(host.link in told for host, _ in workers):
            return
        assert time.monotonic() < end, (code, told)


def begin(lan: Lan, *words: str) -> subprocess.Popen[str]:
    """Start the command where the scheduler is."""
    return lan.start(
        lan.head, *command_process.COMMAND, *words, env=command_process.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def command(lan: Lan, *words: str) -> tuple[int, str, str]:
    one = begin(lan, *words)
    out, errors = one.communicate(timeout=150)
    assert "Traceback" not in out + errors, errors
    return one.returncode, out, errors


def sample(out: str) -> tuple[dict[str, Any], list[str]]:
    told = json.loads(out)
    (result,) = told["servers"][0]["load"]
    return result["samples"][0], told["notes"]


def test_suites_and_load_cross_a_network_with_delay_and_loss(lan: Lan, tmp_path: Path) -> None:
    server, near = lan.host("server"), lan.host("near")
    far = lan.host("far", delay_s=0.005, loss=0.001)
    suites = lan.host("suites", delay_s=0.005, loss=0.001)
    cluster(
        lan, (server, "server=1"), (near, "generator=1"), (far, "generator=1"), (suites, "suite=1")
    )
    code, out, errors = command(
        lan, *BENCH, "--profile", "keepalive", "--cluster", URL, "--out", str(tmp_path / "load")
    )
    assert code == 0, errors
    taken, notes = sample(out)
    (note,) = (one for one in notes if "latencies include the path to the server" in one)
    paths = {one["name"]: one["path_us"] for one in taken["generators"]}
    assert paths
    # One that starved is left out: this machine may be busy.
    assert paths.get("far", 10_000) >= 10_000
    assert paths.get("near", 0) < 5_000
    assert all(name in note for name in paths)
    folder = tmp_path / "run"
    code, _, errors = command(
        lan, "run", "--server", "null", "--suite", "smuggling", "--quick", "--runtime", "process",
        "--cluster", URL, "--out", str(folder),
    )  # fmt: skip
    assert code == 0, errors
    assert run_folder.read(folder).completed.suites == (("smuggling", "null"),)


def limited(lan: Lan, rate: str, *, queue_bytes: int) -> dict[str, Any]:
    """A sample over a slow link. Where this machine starved the generator it is taken again."""
    server, one = lan.host("server"), lan.host("one")
    lan.limit(server, rate, queue_bytes=queue_bytes)
    cluster(lan, (server, "server=1"), (one, "generator=1"), by=AT_ONCE)
    words = ("bench", "null", "--profile", "keepalive", "--runtime", "process", "--rounds", "1")
    for left in reversed(range(4)):
        code, out, errors = command(lan, *words, "--cluster", URL, "--json")
        assert code == 0, errors
        taken, _ = sample(out)
        if not left or taken["bottleneck"] not in ("starved", "broken"):
            break
        asked_again.note("a load over a slow link", taken["bottleneck_why"])
    return taken


@pytest.mark.timed
def test_a_link_that_is_full_is_the_bottleneck(lan: Lan) -> None:
    taken = limited(lan, "1mbit", queue_bytes=200_000)
    assert taken["bottleneck"] == "network", taken["bottleneck_why"]
    assert "the round trip of the path grew from" in taken["bottleneck_why"]


@pytest.mark.nightly
def test_latency_of_an_open_loop_includes_the_path_and_says_so(lan: Lan) -> None:
    server = lan.host("server")
    far = lan.host("far", delay_s=0.02, loss=0.001)
    cluster(lan, (server, "server=1"), (far, "generator=1"), by=AT_ONCE)
    code, out, errors = command(lan, *BENCH, "--profile", "open_50", "--cluster", URL)
    assert code == 0, errors
    taken, notes = sample(out)
    assert taken["latency_us"]["p50"] >= 40_000
    assert any(
        "latencies include the path to the server, a round trip of 4" in one for one in notes
    ), notes


def test_a_partition_of_ten_seconds_is_survived_by_suites(lan: Lan, tmp_path: Path) -> None:
    suites, folder = lan.host("suites"), tmp_path / "run"
    cluster(lan, (suites, "suite=1"))
    one = begin(
        lan, "run", "--server", "null", "--suite", "smuggling", "--quick", "--runtime", "process",
        "--cluster", URL, "--out", str(folder),
    )  # fmt: skip
    assert one.stderr is not None
    for line in one.stderr:
        if "begun by the worker" in line:
            break
    lan.cut(suites)
    time.sleep(10)
    lan.mend(suites)
    out, errors = one.communicate(timeout=120)
    assert one.returncode == 0, out + errors
    assert run_folder.read(folder).completed.suites == (("smuggling", "null"),)
    wait_until_only_dask_runs(lan, suites)


@pytest.mark.nightly
def test_a_partition_of_ten_seconds_under_load_is_told_and_leaves_nothing_running(
    lan: Lan, tmp_path: Path
) -> None:
    server, one, two = lan.host("server"), lan.host("one"), lan.host("two")
    lan.limit(server, "1mbit", queue_bytes=200_000)  # else the generators starve each other
    workers = ((server, "server=1"), (one, "generator=1"), (two, "generator=1"))
    cluster(lan, *workers, by=AT_ONCE)
    folder = tmp_path / "run"
    bench = begin(
        lan, "bench", "null", "--profile", "keepalive", "--runtime", "process", "--rounds", "1",
        "--cluster", URL, "--json", "--out", str(folder),
    )  # fmt: skip
    end = time.monotonic() + 60
    while not any("--start-fd" in line for line in running(lan, two)):
        assert bench.poll() is None, bench.communicate()
        assert time.monotonic() < end, [running(lan, host) for host in (server, one, two)]
        time.sleep(0.02)
    wait_until_loaded(lan, two)
    lan.cut(two)
    time.sleep(10)
    lan.mend(two)
    out, errors = bench.communicate(timeout=150)
    assert bench.returncode == 0, errors
    taken, _ = sample(out)
    assert [one["name"] for one in taken["generators"]] == ["one"], errors
    told = "generator two was cut off: none of its 32 connections got an answer any more"
    assert told in errors, errors
    for host in (server, one, two):
        wait_until_only_dask_runs(lan, host)


def wait_until_loaded(lan: Lan, host: Host) -> None:
    """Wait until a generator on a host is in its window: answers have come for some seconds."""
    seconds, before = 0, octets_come(lan, host)
    end = time.monotonic() + 60
    while seconds < _WARM_S:
        assert time.monotonic() < end
        time.sleep(1.0)
        now = octets_come(lan, host)
        seconds = seconds + 1 if now - before > _LOADED_OCTETS else 0
        before = now


def octets_come(lan: Lan, host: Host) -> int:
    """What came by the network to a host."""
    rows = proc_files.text(lan.processes(host)[0], "net/dev").splitlines()
    return sum(int(row.split()[1]) for row in rows if row.strip().startswith("net0:"))


def running(lan: Lan, host: Host) -> list[str]:
    """The command lines of what runs on a host."""
    found = (proc_files.text_if_there(pid, "cmdline") for pid in lan.processes(host))
    return [line.replace("\0", " ") for line in found if line]


def wait_until_only_dask_runs(lan: Lan, host: Host) -> None:
    end = time.monotonic() + 30
    while left := [one for one in running(lan, host) if "httpmark-" in one]:
        assert time.monotonic() < end, left
        time.sleep(0.1)


@pytest.fixture
@starts_process
def keys(tmp_path: Path) -> Path:
    """A home with the keys of a user, and those of the hosts."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    for name in (home / ".ssh" / "id_ed25519", tmp_path / "host_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name], check=True, timeout=20
        )
    return home


def open_to_ssh(lan: Lan, host: Host, home: Path) -> None:
    """Start OpenSSH's server on a host, for the owner of the keys only."""
    Path("/run/sshd").mkdir(exist_ok=True)
    owned = home.parent / "host_key"
    lan.start(
        host, shutil.which("sshd", path="/usr/sbin:/usr/bin") or "sshd", "-D", "-e",
        "-f", "/dev/null", "-h", str(owned), "-o", "StrictModes=no", "-o", "PidFile=none",
        "-o", f"AuthorizedKeysFile={home}/.ssh/id_ed25519.pub", "-o", "PermitRootLogin=yes",
    )  # fmt: skip
    with (home / ".ssh" / "known_hosts").open("a") as known:
        known.write(f"{host.address} {owned.with_suffix('.pub').read_text()}")


@pytest.mark.needs("sshd", "ssh-keygen")
def test_by_ssh_workers_are_started_and_stopped(lan: Lan, keys: Path, tmp_path: Path) -> None:
    one, two = lan.host("one"), lan.host("two", delay_s=0.002)
    for host in (one, two):
        open_to_ssh(lan, host, keys)
    folder = tmp_path / "run"
    done = lan.start(
        lan.head, *command_process.COMMAND, "run", "--server", "null", "--server", "reference",
        "--suite", "smuggling", "--quick", "--runtime", "process", "--out", str(folder),
        "--cluster", f"ssh:{one.address},{two.address}",
        env=command_process.environment(HOME=str(keys)), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    out, errors = done.communicate(timeout=150)
    assert done.returncode == 0, out + errors
    servers = sorted(server for _, server in run_folder.read(folder).completed.suites)
    assert servers == ["null", "reference"]
    end = time.monotonic() + 30
    for host in (one, two):
        while left := [line for line in running(lan, host) if "distributed" in line]:
            assert time.monotonic() < end, left
            time.sleep(0.1)
