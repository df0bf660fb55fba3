"""The servers of a run: where each one listens."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from httpmark.harness.command.run_log import RunLog
from httpmark.harness.command.run_options import Options
from httpmark.harness.command.run_servers import Servers, chosen
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.load import placing
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.servers import manifests
from httpmark.harness.tests.shared import brought_programs, child_process, command_process
from httpmark.harness.tests.shared.ports import is_listening, own_port, wait_listening
from httpmark.harness.tests.shared.silent_events import SilentEvents
from httpmark.harness.tests.shared.tiny_server import tiny

PLAN = LoadPlan(name="p", title="t", why="w", connections=4, depth=2, duration_s=1.0)
PLACE = placing.Placement(server=None, client=None)
# It listens with SO_REUSEPORT alone and closes first: its connections keep others off its port.
SHARES = """
def alone(where, backlog):
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(where)
    made.listen(backlog)
    return made
socket.create_server = alone
"""


def servers(folder: Path, *, port: int | None = None) -> Servers:
    said: Any = None
    options = Options(suites=(), profiles=(), runtime="process", port=port)
    sharing, plain = folder / "a", folder / "b"
    for one in (sharing, plain):
        one.mkdir()
    made = Servers(options, [tiny(sharing, SHARES, name="a"), tiny(plain, name="b")], said, "test")
    for entry in made.entries:
        entry.runtime = "process"
    return made


def asked(port: int) -> None:
    """One request; the server closes first."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        while client.recv(4096):
            pass


def test_a_run_that_names_no_server_uses_the_default_ones_or_all() -> None:
    known = {one.name: one.by_default for one in manifests.servers()}
    plain = Options(suites=(), profiles=())
    names = {one.name for one in chosen(plain)}
    assert names == {name for name, by_default in known.items() if by_default}
    assert {"reference", "null", "nginx"} <= names
    assert "apache" not in names
    every = msgspec.structs.replace(plain, all_servers=True)
    assert {one.name for one in chosen(every)} == set(known)
    named = msgspec.structs.replace(plain, servers=("apache", "null", "apache"))
    assert [one.name for one in chosen(named)] == ["apache", "null"]


@pytest.mark.process
def test_a_server_that_closes_first_keeps_no_other_off_its_port(tmp_path: Path) -> None:
    """Connections that it closed wait on its port for a minute (TIME_WAIT)."""
    made = servers(tmp_path)
    ports: dict[str, list[int]] = {"a": [], "b": []}
    for _ in range(2):
        for entry in made.entries:
            with made.up_for_suites(entry) as one:
                asked(one.now.port)
                ports[entry.server.name].append(one.now.port)
    # What a suite sends names its port, so all suites of a server have one.
    assert ports["a"][0] == ports["a"][1]
    assert ports["b"][0] == ports["b"][1]
    loaded = []
    for entry in made.entries * 2:
        with made.up_for_load(entry, PLAN, PLACE) as one:
            asked(one.port)
            loaded.append(one.port)
    assert len({*ports["a"], *ports["b"], *loaded}) == 6


@pytest.mark.process
def test_the_port_that_is_asked_for_is_the_port_of_all(tmp_path: Path) -> None:
    port = own_port()
    made = servers(tmp_path, port=port)
    made.check_port()
    with made.up_for_suites(made.entries[1]) as one:
        assert one.now.port == port
        assert is_listening(port)
        with pytest.raises(Unusable, match="is taken: stop what listens there, or name another"):
            made.check_port()


@pytest.mark.process
def test_a_port_of_its_own_is_told_where_another_is_asked_for(tmp_path: Path) -> None:
    made = servers(tmp_path, port=own_port())
    made._log = RunLog(SilentEvents(), tmp_path)
    recipe = made.entries[0].server.process
    assert recipe is not None
    own = msgspec.structs.replace(recipe, port=8250)
    made.entries[0].server = msgspec.structs.replace(made.entries[0].server, process=own)
    with pytest.raises(Unusable, match="listens on port 8250 alone: leave out --port"):
        made._choose(made.entries[0])
    made._choose(made.entries[1])


@pytest.mark.process
def test_what_the_user_brings_runs_and_one_bad_manifest_spoils_nothing(tmp_path: Path) -> None:
    images, port = tmp_path / "images", own_port()
    (images / "odd").mkdir(parents=True)
    (images / "odd" / "server.toml").write_text("sart = 1\n")
    program = brought_programs.kourier(tmp_path)
    words = f"./{program.name} {brought_programs.KOURIER_WORDS}"
    (tmp_path / "httpmark.toml").write_text(
        f'[server]\nmine = {{from = "http://127.0.0.1:{port}/", get_only = true}}\n'
    )
    child = child_process.start(
        [str(program), "-a", "127.0.0.1", "-p", str(port), "--worker-count=1"]
    )
    with child:
        wait_listening(port, until=True, seconds=20)
        code, out, _ = command_process.run("list", "servers", "--json", cwd=tmp_path, images=images)
        assert code == 0
        listed = {one["name"]: one["available"] for one in json.loads(out)["servers"]}
        assert listed["mine"]["address"] is True
        assert "odd/server.toml: sart: no such key" in listed["odd"]["process"]
        code, _, errors = command_process.run(
            "run", "--runtime", "process", "--quick", "--suite", "smuggling", "--out", "r",
            "--server", f"kourier={words}", "--server", "mine", "--server", "odd",
            cwd=tmp_path, images=images,
        )  # fmt: skip
        child.kill()
    assert code == 3
    assert "odd/server.toml: sart: no such key" in command_process.last_line(errors)
    found = {one.name: one for one in run_folder.read(tmp_path / "r").servers}
    kourier, mine = found["kourier"], found["mine"]
    assert (kourier.title, kourier.runtime, mine.runtime) == ("Kourier", "process", "address")
    assert kourier.command is not None
    assert kourier.command[-1] == "--worker-count=1"
    scores = [one.compliance.suites["smuggling"].score_percent for one in (kourier, mine)]
    assert scores[0] == scores[1] is not None
    with Evidence(tmp_path / "r" / run_folder.EVIDENCE) as evidence:
        for name in ("kourier", "mine"):
            facts = evidence.facts(name)
            assert facts is not None
            assert (facts.post_path, facts.own.post, facts.own.head) == (None, None, 404)
