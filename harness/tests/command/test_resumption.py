"""A run that was interrupted is carried on: what it has done stays, the rest is done once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from httpmark.harness.command import (
    cli,
    resumption,
    run_options,
    run_session,
    stored_runs,
)
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.progress import Interrupted
from httpmark.harness.model.run import Asked, NamedServer, Run
from httpmark.harness.servers import machine, starting
from httpmark.harness.tests.shared import made_run
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.silent_events import SilentEvents

SERVERS = ("null", "reference")
SUITES = ("smuggling", "resilience")
PROFILES = ("keepalive", "pipelined")


def asked(*words: str, folder: Path) -> Asked:
    return Asked(
        servers=tuple(NamedServer(word, str(folder)) for word in words),
        all_servers=False,
        full=False,
        runtime="process",
        port=None,
        suite_minutes=60.0,
        allow_remote=False,
        configuration=None,
    )


class Stopping(SilentEvents):
    """Interrupts a run in the middle of a task, as Ctrl-C would; and remembers what was begun."""

    def __init__(self, at: str | None = None) -> None:
        self.begun: list[str] = []
        self._at = at

    def task(self, name: str, total: int) -> None:
        if "," not in name:  # else: cases of a task that are asked again
            self.begun.append(name)

    def advance(self, name: str, by: int) -> None:
        if name == self._at:
            raise Interrupted(130)


def begun_run(
    folder: Path,
    at: str,
    *,
    suites: tuple[str, ...] = SUITES,
    profiles: tuple[str, ...] = PROFILES,
) -> Run:
    """A run that was interrupted in a task."""
    options = run_options.Options(
        suites=suites, profiles=profiles, servers=SERVERS, runtime="process", quick=True, seed=3,
        out=folder, asked=asked(*SERVERS, folder=folder),
    )  # fmt: skip
    with pytest.raises(Interrupted):
        run_session.Runner(options, Stopping(at)).run()
    return run_folder.read(folder)


def carried_on(folder: Path) -> tuple[Run, list[str]]:
    events = Stopping()
    return run_session.Runner(resumption.options(folder), events).run(), events.begun


def is_whole(before: Run, after: Run) -> None:
    """A run that was carried on has everything, and what it had before."""
    assert not after.interrupted
    assert (after.id, after.started, after.seed) == (before.id, before.started, 3)
    assert set(after.completed.suites) == {(s, name) for s in SUITES for name in SERVERS}
    assert after.completed.profiles == PROFILES
    assert any(note.startswith("interrupted, and carried on at") for note in after.notes)
    for old, new in zip(before.servers, after.servers, strict=True):
        assert set(new.compliance.suites) == set(SUITES)
        assert [load.profile for load in new.load] == list(PROFILES)
        assert new.memory is not None
        for suite, name in before.completed.suites:
            if name == new.name:
                assert new.compliance.suites[suite] == old.compliance.suites[suite]
    assert {pair.profile for pair in after.paired} == set(PROFILES)


@pytest.mark.process
def test_a_suite_that_was_begun_is_asked_anew(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    before = begun_run(folder, "resilience: null")
    after, begun = carried_on(folder)
    assert begun == [
        "resilience: null", "smuggling: reference", "resilience: reference", "load keepalive",
        "load pipelined",
    ]  # fmt: skip
    is_whole(before, after)
    again = stored_runs.rejudge(folder)
    assert msgspec.json.encode(again) == msgspec.json.encode(after)


@pytest.mark.process
def test_the_command_takes_up_a_load_that_was_begun(tmp_path: Path) -> None:
    before = begun_run(tmp_path / "r", "load pipelined")
    code, out, errors = command("run", "--resume", "r", cwd=tmp_path)
    assert (code, "report: r/report.html" in out) == (0, True), errors
    assert "smuggling" not in errors
    assert "keepalive" not in errors
    is_whole(before, run_folder.read(tmp_path / "r"))
    code, _, errors = command("run", "--resume", "r", cwd=tmp_path)
    assert code == 2
    assert errors == "httpmark: r: this run has ended: there is nothing to carry on\n"


@pytest.mark.process
def test_a_port_that_is_taken_since_costs_the_suites_of_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "r"
    begun_run(folder, "smuggling: reference", suites=("smuggling",), profiles=())
    with Evidence(folder / run_folder.EVIDENCE) as evidence:
        facts = evidence.facts("null")
    assert facts is not None
    taken = int(facts.host.rpartition(":")[2])
    monkeypatch.setattr(
        starting, "port_trouble", lambda _, port: "taken" if port == taken else None
    )
    _, begun = carried_on(folder)
    assert begun == ["smuggling: null", "smuggling: reference"]


def stored(folder: Path, **changes: object) -> Path:
    folder.mkdir()
    (folder / run_folder.LOG).touch()
    run = msgspec.structs.replace(
        made_run.made_run(SERVERS), interrupted=True, harness_version=machine.version(),
        asked=asked(*SERVERS, folder=folder),
    )  # fmt: skip
    run_folder.write(msgspec.structs.replace(run, **changes), folder)
    return folder


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"asked": None}, "not of 'httpmark run', so it cannot be carried on"),
        ({"interrupted": False, "finished": "then"}, "this run has ended"),
        ({"harness_version": "0.0.0"}, "begun by httpmark 0.0.0, and this is"),
    ],
)
def test_what_cannot_be_carried_on_says_why(
    tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    with pytest.raises(HarnessError, match=why):
        resumption.options(stored(tmp_path / "r", **changes))


def test_the_options_are_those_that_were_asked(tmp_path: Path) -> None:
    (tmp_path / "httpmark.toml").write_text('[server]\nmine = "./mine {port}"\n', "utf-8")
    words = msgspec.structs.replace(
        asked("reference", "mine", "own=./own {port}", folder=tmp_path),
        configuration=str(tmp_path / "httpmark.toml"),
        port=4321,
    )
    found = resumption.options(stored(tmp_path / "r", asked=words, quick=True, seed=9))
    assert found.servers == ("reference", "mine", "own")
    assert (found.port, found.quick, found.seed, found.runtime) == (4321, True, 9, "process")
    own = found.field.server("own").process
    assert own is not None
    assert str(tmp_path / "own") in own.start


def test_nothing_else_is_asked_beside_it(tmp_path: Path) -> None:
    folder = stored(tmp_path / "r")
    done = CliRunner().invoke(cli.httpmark, ["run", "--resume", str(folder), "--quick"])
    assert isinstance(done.exception, HarnessError)
    assert str(done.exception).startswith("--resume and --quick exclude each other")


def test_two_runs_do_not_write_one_folder(tmp_path: Path) -> None:
    folder = stored(tmp_path / "r")
    with (
        run_folder.held(folder),
        pytest.raises(HarnessError, match="another httpmark is writing this run"),
        run_folder.held(folder),
    ):
        raise AssertionError
