"""Commands that are killed at any moment: nothing stored is lost, and nothing is left."""

from __future__ import annotations

import fcntl
import sys
from pathlib import Path

import pytest

from httpmark.harness.tests import kills
from httpmark.harness.tests.shared import kill_laws
from httpmark.harness.tests.shared.kill_laws import Kill, Killed, Task

# A command that behaves, but for what MANNER does when it is told to end.
FAKE = """
import os, pathlib, signal, sqlite3, subprocess, sys, tempfile, time
def end(number, _):
    code, said = 128 + number, "no run folder was written"
{manner}
    print(f"httpmark: interrupted; {{said}}", file=sys.stderr, flush=True)
    os._exit(code)
signal.signal(signal.SIGTERM, end)
{before}
print(flush=True)
time.sleep(60)
"""
SLEEPS = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
STORES = """
os.mkdir("r")
base = sqlite3.connect("r/evidence.sqlite")
base.execute("CREATE TABLE exchange (a)")
base.execute("INSERT INTO exchange VALUES (1)")
base.commit()
"""


def fake(manner: str = "pass", before: str = "", ended: str = "never said") -> Task:
    text = FAKE.format(manner=f"    {manner}", before=before)
    return Task("fake", (sys.executable, "-c", text), ended)


@pytest.mark.process
@pytest.mark.parametrize(
    ("task", "told"),
    [
        (fake(), None),
        (fake(SLEEPS), "a process is left"),
        (fake("tempfile.mkdtemp()"), "temporary files are left: ['tmp"),
        (fake("pathlib.Path('stray').write_text('')"), "files are left: ['stray']"),
        (fake("raise ValueError"), "a trace: "),
        (fake("code = 1"), "exit code 1 after SIGTERM"),
        (fake("time.sleep(60)"), "it runs 2 s later"),
        (fake("said += chr(10) + 'httpmark: and more'"), "not one line that says what was kept"),
        (fake("said = 'the results until then are in r'"), "that it names does not exist"),
        (fake("print('x: saved as found/x.toml')"), "said to be saved, and is not there"),
        (fake("os.mkdir('r')"), "a run folder with [], and it says"),
        (fake("os.unlink('r/evidence.sqlite')", STORES), "1 exchanges were stored: 0"),
        (fake(before=STORES), "a run folder without a result"),
    ],
    ids=lambda one: one if isinstance(one, str) else "-",
)  # fmt: skip
def test_each_law_can_be_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: Task, told: str | None
) -> None:
    monkeypatch.setattr(kill_laws, "GONE_S", 0.5)
    monkeypatch.setattr(kill_laws, "ENDS_S", 2.0)
    one = kill_laws.killed(task, Kill("SIGTERM", 0.3), tmp_path / "k")
    if told is None:
        assert not one.broken
        assert not one.is_late
    else:
        assert told in kill_laws.told(one.broken)


@pytest.mark.process
def test_what_a_killed_command_left_must_be_gone_after_the_next_start(tmp_path: Path) -> None:
    one = kill_laws.killed(fake(before="tempfile.mkdtemp()"), Kill("SIGKILL", 0.2), tmp_path / "k")
    assert "temporary files are left after the next start" in kill_laws.told(one.broken)


def test_a_kill_is_drawn_from_the_seed_and_its_number() -> None:
    usual = dict.fromkeys(kills.COMMANDS, 4.0)
    drawn = [kills.drawn(3, number, usual) for number in range(100)]
    assert drawn == [kills.drawn(3, number, usual) for number in range(100)]
    assert drawn[7] != kills.drawn(4, 7, usual)
    assert {(name, kill.way) for name, kill in drawn} == {
        (name, way) for name in kills.COMMANDS for way in kill_laws.SIGNALS
    }
    assert all(0 <= kill.after_s <= 4 for _, kill in drawn)


def test_the_table_counts_kills_by_command() -> None:
    good, late = Killed(130, 0.1, False, []), Killed(0, 0.1, True, [])
    bad = Killed(1, 0.1, False, ["a law"])
    done = [
        ("run", Kill("SIGINT", 1.0), good),
        ("run", Kill("SIGINT", 1.0), late),
        ("fuzz", Kill("SIGKILL", 1.0), bad),
    ]
    assert [line.split() for line in kills.table(done).splitlines()[1:]] == [
        ["run", "0", "1", "0", "0", "1", "0"],
        ["fuzz", "1", "0", "0", "0", "0", "1"],
        ["all", "1", "1", "0", "0", "1", "1"],
    ]


@pytest.mark.nightly
@pytest.mark.process
@pytest.mark.timeout(1800)
def test_commands_that_are_killed_lose_and_leave_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = kills.main(["--kills", "20", "--seed", "1", "--folder", str(tmp_path / "k")])
    assert code == 0, capsys.readouterr().out


def test_two_do_not_kill_in_one_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "kills"
    with (folder.with_suffix(".lock")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert kills.main(["--folder", str(folder)]) == 2
    assert "another one uses" in capsys.readouterr().err
