"""What `httpmark doctor` says of a machine."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from httpmark.harness.command import doctor
from httpmark.harness.servers import binaries, cpu_time, machine
from httpmark.harness.tests.shared import command_process


@pytest.mark.process
def test_doctor_mends_only_what_is_broken() -> None:
    checks = doctor.doctor()
    assert {f"httpmark-{name}" for name in binaries.NAMES} <= {check.name for check in checks}
    assert all(check.mend is None for check in checks if check.ok)
    assert all(check.mend for check in checks if not check.ok)


@pytest.mark.process
def test_doctor_looks_at_the_connection_tracking_table() -> None:
    assert "connection tracking" in {check.name for check in doctor.doctor()}


def test_executables_are_those_of_the_contract() -> None:
    assert list(doctor.executables()) == ["server", "load", "probe", "null"]


@pytest.mark.process
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
        (None, True, "unknown"),
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
    if not cpu_time.has_counters():
        assert failed != 0


def test_steal_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_time, "cpu_clock", lambda: (5, 100))
    stolen = doctor._steal()
    assert not stolen.ok
    assert "5.0%" in stolen.value
    monkeypatch.setattr(cpu_time, "cpu_clock", lambda: (1, 100))
    assert doctor._steal().ok


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


@pytest.mark.process
def test_a_server_without_io_uring_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = tmp_path / "httpmark-server"
    monkeypatch.setattr(binaries, "find", lambda name: str(server))
    for engines, ok in (
        ("epoll, uring, uring-direct", True),
        ("epoll (built without liburing)", False),
    ):
        server.write_text(f"#!/bin/sh\necho httpmark-server 1.0\necho 'engines: {engines}'\n")
        server.chmod(0o755)
        told = doctor._engines()
        assert (told.value, told.ok) == (engines, ok)


@pytest.mark.process
def test_the_command_tells_the_engines_of_its_server(tmp_path: Path) -> None:
    code, out, _ = command_process.run("--version", cwd=tmp_path)
    assert code == 0
    assert out.splitlines()[1].startswith("engines of httpmark-server: epoll")
