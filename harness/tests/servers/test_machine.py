"""What machine this was: repeatable, and without anything private."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.servers import binaries, docker_daemon, machine, proc_files


@pytest.mark.process
def test_the_fingerprint_repeats() -> None:
    assert machine.capture()["fingerprint"] == machine.capture()["fingerprint"]


@pytest.mark.process
def test_nothing_private_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPMARK_TEST_SECRET", "do-not-publish-me")
    text = msgspec.json.encode(machine.capture()).decode()
    assert "do-not-publish-me" not in text
    assert f'"{platform.node()}"' not in text
    assert os.path.expanduser("~") not in text


@pytest.mark.process
def test_the_environment_holds_what_decides_figures() -> None:
    found = machine.capture()
    assert {"kernel_config", "boot", "vulnerabilities", "timer_slack_ns", "source"} <= set(found)
    assert {"cores", "numa", "governor", "khz_max", "turbo"} <= set(found["cpu"])
    assert all(word.split("=")[0] in machine._BOOT_WORDS for word in found["boot"])


@pytest.mark.process
def test_what_changes_by_itself_is_no_difference() -> None:
    one = machine.capture()
    other = {**one, "load_average": [9.0, 9.0, 9.0], "pressure_cpu": 99.0}
    assert machine.differences(one, other) == []


@pytest.mark.process
def test_differences_are_named_by_their_key() -> None:
    one = machine.capture()
    changed = {
        **one, "fingerprint": "other", "kernel": "0.1", "cpu": {**one["cpu"], "governor": "x"},
        "load_average": [0.0],
    }  # fmt: skip
    found = machine.differences(one, changed)
    assert found == [
        f"cpu.governor: {one['cpu']['governor']}, x", f"kernel: {one['kernel']}, 0.1",
    ]  # fmt: skip
    only = machine.differences(one, {**one, "fingerprint": "other"})
    assert only == ["fingerprint: made by different versions of httpmark"]


def test_runs_that_do_not_tell_their_machine_are_not_of_the_same_one() -> None:
    assert machine.differences({}, {}) == ["fingerprint: neither run tells its machine"]
    assert machine.differences({"fingerprint": "a"}, {"fingerprint": "a"}) == []
    assert machine.differences({"fingerprint": "a"}, {}) != []


@pytest.mark.process
def test_the_daemon_is_no_part_of_the_fingerprint_and_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = {"version": "20.10", "runc": "1.1", "security": ["name=seccomp,profile=default"]}
    monkeypatch.setattr(docker_daemon, "docker_facts", lambda: None)
    without = machine.capture()
    monkeypatch.setattr(docker_daemon, "docker_facts", lambda: facts)
    one = machine.capture()
    assert one["docker"] == facts
    assert without["docker"] is None
    assert one["fingerprint"] == without["fingerprint"]
    assert machine.differences(one, without) == []
    other = {**one, "docker": {**facts, "runc": "1.2"}}
    assert machine.docker_differences(one, other) == ["docker.runc: 1.1, 1.2"]
    assert machine.docker_differences(one, one) == []
    assert machine.docker_differences(one, {}) == []


@pytest.mark.process
def test_binaries_tell_how_they_were_built() -> None:
    found = machine.capture()["binaries_built"]
    assert set(found) == set(binaries.NAMES)
    for one in found.values():
        assert one["compiler"]
    assert "OpenSSL 3" in found["load"]["libraries"]["libcrypto.so.3"]


@pytest.mark.process
@pytest.mark.needs("g++")
def test_binaries_tell_what_they_were_compiled_with(tmp_path: Path) -> None:
    source = tmp_path / "one.cpp"
    source.write_text("int main() { return 0; }\n")
    words = ["g++", "-std=c++20", "-O2", "-mavx2", f"-I{tmp_path}", str(source), "-o"]
    for name, more in (("told", ["-frecord-gcc-switches"]), ("untold", [])):
        subprocess.run([*words, str(tmp_path / name), *more], check=True, timeout=60)
    told, untold = (machine._built(str(tmp_path / name)) for name in ("told", "untold"))
    assert told is not None
    assert untold is not None
    [flags] = told["flags"]
    assert {"-O2", "-mavx2", "-std=c++20"} <= set(flags.split())
    assert str(tmp_path) not in flags
    assert "flags_reason" not in told
    assert untold["flags"] is None
    assert "-frecord-gcc-switches" in untold["flags_reason"]


@pytest.mark.process
def test_libraries_of_a_binary_have_versions_or_there_is_a_reason() -> None:
    for one in machine.capture()["binaries_built"].values():
        assert bool(one["libraries"]) is ("libraries_reason" not in one)


def test_limits_of_a_container_are_those_of_its_cgroup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_text("0::/docker/x\n")
    monkeypatch.setattr(proc_files, "ROOT", str(tmp_path))
    told = {"/sys/fs/cgroup/docker/x/cpu.max": "200000 100000"}
    monkeypatch.setattr(machine, "file_text", told.get)
    assert machine.cgroup_limits(7) == {"cpu.max": "200000 100000"}
    assert machine.cgroup_limits(8) == {}


@pytest.mark.process
def test_limits_are_part_of_the_fingerprint_and_the_clock_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = machine.capture()
    assert {"memlock", "nproc", "stack"} == set(one["limits"])
    assert isinstance(one["cgroup_limits"], dict)
    monkeypatch.setattr(machine, "_clock_now", lambda: [1, 2])
    assert machine.capture()["fingerprint"] == one["fingerprint"]
    monkeypatch.setattr(machine, "_limits", lambda: {"stack": [1, 1]})
    assert machine.capture()["fingerprint"] != one["fingerprint"]
