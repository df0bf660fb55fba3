"""A run folder: written whole, read back, judged and drawn again from what is stored."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import jsonschema
import msgspec
import pytest

from httpmark.harness.command import (
    check_options,
    check_session,
    cut_progress,
    run_result,
    stored_runs,
)
from httpmark.harness.model import run_folder
from httpmark.harness.model.crashes import Blame
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.load import Bottleneck
from httpmark.harness.model.memory import Memory
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import Compliance, Controls, Deliveries
from httpmark.harness.tests.shared import (
    command_process,
    crashing_server,
    finished_run,
    made_run,
    peers,
)
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.silent_events import SilentEvents


def test_the_folder_holds_what_the_contract_says(finished: Path) -> None:
    assert finished_run.files_left(finished) == [
        "SHA256SUMS", "evidence.sqlite", "log.txt", "report.html", "result.json",
    ]  # fmt: skip
    assert (finished / "report.html").stat().st_size < 500_000


def test_the_result_obeys_the_published_schema(finished: Path) -> None:
    result = json.loads((finished / "result.json").read_text("utf-8"))
    jsonschema.validate(result, msgspec.json.schema(Run))
    assert result["seed"] == finished_run.SEED
    assert result["schema_version"] == "1.0"


def test_every_server_has_scores_costs_and_memory(finished: Path) -> None:
    result = run_folder.read(finished)
    for server in result.servers:
        assert server.unavailable is None
        seed = server.compliance.suites["seed"]
        assert seed.score_percent is not None
        assert seed.requests == 123_942
        assert seed.server_cpu_seconds
        assert seed.probe_cpu_seconds
        assert {load.profile for load in server.load} == {"pipelined", "keepalive"}
        for load in server.load:
            assert load.rounds == 3
            assert load.errors == {}
            assert load.cpu_ns_per_request.server
            assert load.cpu_ns_per_request.client
            assert load.littles_law_ratio is not None
            if server.name != "nginx":  # its batches take as long as a quick window
                assert load.littles_law_ratio == pytest.approx(1.0, abs=0.15)
            assert load.ranked == (load.bottleneck == "server" and not server.control)
        assert server.memory is not None
        assert server.memory.pss_kb is not None
        assert server.memory.vmhwm_kb is not None
        assert server.memory.vmpeak_kb is not None
        assert server.memory.pss_kb <= server.memory.vmhwm_kb <= server.memory.vmpeak_kb
        assert server.memory.connections_held >= 512


def test_what_ran_is_known(finished: Path) -> None:
    result = run_folder.read(finished)
    engine = result.environment["engine"]
    assert engine["name"] == "native"
    assert engine["sha256"] == result.environment["binaries_sha256"]["load"]
    for server in result.servers:
        assert server.command
        assert server.binary_sha256
        assert len(server.binary_sha256) == 64
    reference = next(server for server in result.servers if server.name == "reference")
    assert reference.binary_sha256 == result.environment["binaries_sha256"]["server"]
    assert reference.command is not None
    assert "--workers" in reference.command


def test_a_control_is_never_ranked(finished: Path) -> None:
    null = next(server for server in run_folder.read(finished).servers if server.name == "null")
    assert null.control
    assert all(load.cost_rank is None for load in null.load)


@pytest.mark.parametrize("bottleneck", [Bottleneck.SERVER, Bottleneck.CLIENT])
@pytest.mark.parametrize(
    ("must", "controls", "reason"),
    [
        ({"passed": 60, "failed": 3}, Controls(9, 0), "not ranked: 3 MUSTs failed"),
        ({"passed": 62, "failed": 1}, Controls(9, 0), "not ranked: 1 MUST failed"),
        ({"passed": 63, "failed": 0}, Controls(9, 0), None),
        ({"passed": 63, "failed": 0}, Controls(0, 0), None),  # a suite without controls
        ({"passed": 63}, Controls(8, 1), "not ranked: positive controls of rfc not passed"),
        (None, Controls(0, 0), "not ranked: positive controls of rfc not passed"),
    ],
)
def test_who_does_not_keep_what_is_mandatory_is_shown_and_not_ranked(
    must: dict[str, int] | None, controls: Controls, reason: str | None, bottleneck: Bottleneck
) -> None:
    made = made_run.small_run()
    hyper = next(one for one in made.servers if one.name == "rust_hyper")
    rfc = msgspec.structs.replace(hyper.compliance.suites["seed"], must=must, controls=controls)
    before = made_run.with_server(
        made,
        hyper.name,
        compliance=Compliance({**hyper.compliance.suites, "rfc": rfc}),
        load=(made_run.load_result(873.0, bottleneck=bottleneck),),
    )
    again = next(one for one in stored_runs.ranked(before).servers if one.name == hyper.name)
    (load,) = again.load
    assert load.cpu_ns_per_request == made_run.load_result(873.0).cpu_ns_per_request
    assert load.cost_rank_reason == reason
    assert (load.cost_rank is None) == (reason is not None)
    # Throughput goes with it, and comes back with it.
    limit = bottleneck is Bottleneck.SERVER
    assert load.ranked == (limit and reason is None)
    if limit and reason:
        assert load.ranked_reason == reason


def test_judging_again_changes_nothing(finished: Path) -> None:
    assert stored_runs.rejudge(finished) == run_folder.read(finished)


@pytest.mark.process
@pytest.mark.parametrize("ruleset", ["rfc", "hardened", "realistic"])
def test_judging_again_keeps_the_ruleset(tmp_path: Path, ruleset: str) -> None:
    with peers.peer(peers.naive) as peer:
        options = check_options.Options(
            target=f"127.0.0.1:{peer.port}", suites=("rfc", "smuggling"), ruleset=ruleset,
            cases=("TE", "CLTE"), out=tmp_path / "run",
        )  # fmt: skip
        before = check_session.Checker(options, SilentEvents()).check()
    suites = before.servers[0].compliance.suites
    assert {suite.ruleset for suite in suites.values()} == {ruleset}
    assert stored_runs.rejudge(tmp_path / "run") == run_folder.read(tmp_path / "run")


@pytest.mark.process
def test_judging_again_gives_no_score_to_who_died(tmp_path: Path) -> None:
    def dying(connection: socket.socket) -> None:
        while request := peers.head(connection):
            if b"Content-Length: +" in request:
                peer.stop()
                return
            connection.sendall(peers.OK)

    with peers.peer(dying) as peer:
        options = check_options.Options(
            target=f"127.0.0.1:{peer.port}", suites=("rfc",), cases=("CL",), out=tmp_path / "run"
        )
        check_session.Checker(options, SilentEvents()).check()
    before = run_folder.read(tmp_path / "run")
    suite = before.servers[0].compliance.suites["rfc"]
    assert suite.score_percent is None
    assert (suite.reason or "").startswith("not scored: ")
    assert stored_runs.rejudge(tmp_path / "run") == before


def test_drawing_again_gives_the_same_page(finished: Path, tmp_path: Path) -> None:
    again = stored_runs.draw(finished, run_folder.read(finished), out=tmp_path / "again.html")
    assert again.read_bytes() == (finished / "report.html").read_bytes()


@pytest.mark.process
def test_report_and_judge_are_commands(finished: Path, tmp_path: Path) -> None:
    code, out, _ = command("report", str(finished), "--out", "page.html", cwd=tmp_path)
    assert (code, out.strip()) == (0, "page.html")
    assert (tmp_path / "page.html").read_bytes() == (finished / "report.html").read_bytes()
    shutil.copytree(finished, tmp_path / "copy")
    code, out, _ = command("judge", "copy", cwd=tmp_path)
    assert code == 0
    assert "reference" in out
    assert (tmp_path / "copy" / "result.json").read_bytes() == (
        finished / "result.json"
    ).read_bytes()


@pytest.mark.process
def test_a_folder_is_never_written_twice(finished: Path, tmp_path: Path) -> None:
    code, _, errors = command("run", "--out", str(finished), cwd=tmp_path)
    assert code == 2
    assert "holds a run already" in errors


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [("{}", "not a result", 2), ("no json", "damaged", 3), ("", "damaged", 3)],
)
def test_a_broken_result_is_said(tmp_path: Path, text: str, said: str, code: int) -> None:
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(HarnessError, match=said) as stop:
        run_folder.read(tmp_path)
    assert stop.value.exit_code == code
    assert "--from-evidence" not in str(stop.value), "there is none"


def test_another_schema_is_said(finished: Path, tmp_path: Path) -> None:
    result = json.loads((finished / "result.json").read_text("utf-8"))
    result["schema_version"] = "9.0"
    (tmp_path / "result.json").write_text(json.dumps(result))
    with pytest.raises(HarnessError, match=r"schema 9\.0"):
        run_folder.read(tmp_path)


def test_memory_is_that_of_the_highest_ladder_with_the_peak_under_load_beside_it() -> None:
    """Figures of one start stay together: connections of one and pages of another are no fact."""
    low, high = made_run.held(44), made_run.held(55)
    high = msgspec.structs.replace(high, connections_held=19000, vmhwm_kb=9000)
    load = Memory(vmpeak_kb=90_000, vmhwm_kb=80_000, pss_kb=70_000, connections_held=512)
    found = run_result.memory_of([high, load, low])
    assert found == msgspec.structs.replace(high, busy_vmhwm_kb=80_000)
    assert run_result.memory_of([load]) == msgspec.structs.replace(load, busy_vmhwm_kb=80_000)
    assert run_result.memory_of([]) is None


def test_cuts_are_a_task_of_their_own_where_any_go_out() -> None:
    said: list[tuple[object, ...]] = []

    class Heard:
        def say(self, line: str) -> None: ...

        def task(self, name: str, total: int) -> None:
            said.append((name, total))

        def advance(self, name: str, by: int) -> None:
            said.append((name, by))

        def done(self, name: str, result: str) -> None:
            said.append((name, result))

    told = Deliveries(messages=2, fired={"two": 5, "byte": 2})
    cutting = cut_progress.CutProgress(Heard(), "rfc: one")
    cutting.done(told)
    assert said == [], "nothing was cut"
    cutting.begin(7)(1)
    cutting.done(told)
    name = "rfc: one, in pieces"
    assert said == [
        (name, 7),
        (name, 1),
        (name, "0 of 2 messages were answered differently in some of 7 deliveries"),
    ]


@pytest.mark.process
def test_a_server_that_dies_of_a_case_is_started_again_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    images = tmp_path / "images"
    for name, manner in (("mortal", "gzip"), ("plain", "none")):
        (images / name).mkdir(parents=True)
        (images / name / "server.toml").write_text(crashing_server.manifest(name, manner))
    code, out, _ = command_process.run(
        "run", "--runtime", "process", "--quick", "--suite", "smuggling", "--out", "r",
        "--server", "mortal", "--server", "plain", cwd=tmp_path, images=images,
    )  # fmt: skip
    assert code == 0, "a run gates nothing"
    assert "DIED OR HUNG OF A REQUEST" in out
    assert "mortal dies of " in out
    mortal, plain = sorted(run_folder.read(tmp_path / "r").servers, key=lambda one: one.name)
    assert mortal.died is None
    assert [crash.blame for crash in mortal.crashes] == [Blame.ALONE] * len(mortal.crashes)
    assert "content-length-with-transfer-encoding-chunked-not-last" in {
        name for crash in mortal.crashes for name in crash.cases
    }
    asked = [set(one.compliance.suites["smuggling"].cases) for one in (mortal, plain)]
    assert asked[0] == asked[1], "nothing was left out but the attempt that kills"
    assert not plain.crashes
