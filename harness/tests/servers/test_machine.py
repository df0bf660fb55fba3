"""What machine this was: repeatable, and without anything private."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.command import doctor
from httpmark.harness.servers import binaries, docker_daemon, machine, resources


def test_the_fingerprint_repeats() -> None:
    assert machine.capture()["fingerprint"] == machine.capture()["fingerprint"]


def test_nothing_private_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPMARK_TEST_SECRET", "do-not-publish-me")
    text = msgspec.json.encode(machine.capture()).decode()
    assert "do-not-publish-me" not in text
    assert f'"{platform.node()}"' not in text
    assert os.path.expanduser("~") not in text


def test_doctor_mends_only_what_is_broken() -> None:
    checks = doctor.doctor()
    assert {f"httpmark-{name}" for name in binaries.NAMES} <= {check.name for check in checks}
    assert all(check.mend is None for check in checks if check.ok)
    assert all(check.mend for check in checks if not check.ok)


def test_doctor_looks_at_the_connection_tracking_table() -> None:
    assert "connection tracking" in {check.name for check in doctor.doctor()}


def test_executables_are_those_of_the_contract() -> None:
    assert list(doctor.executables()) == ["server", "load", "probe", "null"]


def test_the_environment_holds_what_decides_figures() -> None:
    found = machine.capture()
    assert {"kernel_config", "boot", "vulnerabilities", "timer_slack_ns", "source"} <= set(found)
    assert {"cores", "numa", "governor", "khz_max", "turbo"} <= set(found["cpu"])
    assert all(word.split("=")[0] in machine._BOOT_WORDS for word in found["boot"])


def test_what_changes_by_itself_is_no_difference() -> None:
    one = machine.capture()
    other = {**one, "load_average": [9.0, 9.0, 9.0], "pressure_cpu": 99.0}
    assert machine.differences(one, other) == []


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


def test_doctor_tells_what_can_be_measured() -> None:
    checks = {check.name: check for check in doctor.doctor()}
    assert "limited by" in checks["connections for the published 500,000"].value
    for name in (
        "listen queue", "a quiet machine", "CPU frequency", "kernel memory of connections", "PSS",
        "cgroup peak", "CPU time in ns and run-queue delay", "hardware counters", "h2load",
        "openssl", "perf_event_paranoid", "steal",
    ):  # fmt: skip
        assert name in checks, name


def test_a_noisy_neighbour_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cpu_pressure", lambda: 60.0)
    loud = doctor._quiet()
    assert not loud.ok
    assert "60 %" in loud.value
    monkeypatch.setattr(machine, "cpu_pressure", lambda: 1.0)
    assert doctor._quiet().ok


@pytest.mark.parametrize(
    ("failed", "ok", "said"),
    [
        (0, True, "instructions are counted"),
        (errno.ENOENT, True, "no PMU"),
        (errno.EACCES, False, "forbidden"),
        (None, True, "not known"),
    ],
)
def test_counters_are_asked_of_the_kernel_and_not_of_a_tool(
    failed: int | None, ok: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_counting", lambda: failed)
    monkeypatch.setenv("PATH", "")  # no perf there
    counters, paranoid = doctor._pmu()
    assert said in counters.value
    assert (counters.ok, paranoid.ok) == (True, ok)


def test_the_kernel_answers_whether_it_counts() -> None:
    failed = doctor._counting()
    assert failed in (None, 0) or errno.errorcode[failed] in {
        "ENOENT", "EOPNOTSUPP", "EACCES", "EPERM", "ENODEV", "ENOSYS",
    }  # fmt: skip
    if not resources.has_counters():
        assert failed != 0


def test_steal_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "cpu_clock", lambda: (5, 100))
    stolen = doctor._steal()
    assert not stolen.ok
    assert "5.0%" in stolen.value
    monkeypatch.setattr(doctor, "cpu_clock", lambda: (1, 100))
    assert doctor._steal().ok


def test_binaries_tell_how_they_were_built() -> None:
    found = machine.capture()["binaries_built"]
    assert set(found) == set(binaries.NAMES)
    for one in found.values():
        assert one["compiler"]
    assert "OpenSSL 3" in found["load"]["libraries"]["libcrypto.so.3"]


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


def test_libraries_of_a_binary_have_versions_or_there_is_a_reason() -> None:
    for one in machine.capture()["binaries_built"].values():
        assert bool(one["libraries"]) is ("libraries_reason" not in one)


def test_limits_of_a_container_are_those_of_its_cgroup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"/proc/7/cgroup": "0::/docker/x", "/sys/fs/cgroup/docker/x/cpu.max": "200000 100000"}
    monkeypatch.setattr(machine, "first_line_of", told.get)
    assert machine.cgroup_limits(7) == {"cpu.max": "200000 100000"}
    assert machine.cgroup_limits(8) == {}


def test_what_doctor_says_fits_the_terminal() -> None:
    found = [
        doctor.Check("a", True, "b " * 70),
        doctor.Check("c", False, "/a/path/" + "that/is/long" * 9, "apt-get install " * 9),
    ]
    shown = doctor.lines(found)
    for line in shown:
        assert len(line) <= 80 or " " not in line.strip(), line
    assert "/a/path/" + "that/is/long" * 9 in "\n".join(shown), "there to be copied"
    assert not any(line.endswith("-") for line in shown)
    assert sum(line.startswith(("ok  ", "MEND")) for line in shown) == 2


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
