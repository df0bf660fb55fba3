"""Two stored runs compared."""

from __future__ import annotations

import math
import random
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.command import compare_runs
from httpmark.harness.load import comparison, statistics
from httpmark.harness.load.paired_verdicts import Gate
from httpmark.harness.model import run_folder
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.memory import BytesPerConnection, Memory
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.report import comparison_text
from httpmark.harness.servers import cpu_time
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.made_comparison import against_itself, noisy
from httpmark.harness.tests.shared.scripted_race import fold_of


def test_a_comparison_fits_the_terminal(tmp_path: Path) -> None:
    base, head = (stored(tmp_path / name, cost=90, seed=1) for name in ("a" * 60, "b" * 60))
    for line in comparison_text.lines(
        compare_runs.folders(comparison.Options(base=base, head=head, seed=1))
    ):
        assert len(line) <= 80 or " " not in line.strip(), line
    calm = against_itself(noisy(100, 0.02, 1), noisy(100, 0.02, 2), comparisons=2)
    for line in comparison_text.lines([calm]):
        assert len(line) <= 80, line


@pytest.fixture(autouse=True)
def _who_else_ran_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine did during the windows of these tests must not change their samples."""
    monkeypatch.setattr(cpu_time, "idle_ns", lambda cpus: None)
    monkeypatch.setattr(cpu_time, "cpu_clock", lambda: (0, 0))


@pytest.fixture(autouse=True)
def _two_thousand_draws_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """For figures as far apart as these; the intervals themselves have tests of their own."""
    monkeypatch.setattr(statistics, "RESAMPLES", 2000)


def stored(
    folder: Path, *, cost: float, seed: int, resident: float = 100.0, fingerprint: str = "f",
    null: bool = True, **changes: object,
) -> str:  # fmt: skip
    """A run folder of one server, twelve rounds, on a machine of its own speed."""
    draw = random.Random(seed)
    pace = draw.uniform(0.5, 2.0)  # two runs are never as fast as each other
    costs = {"a": [cost * pace * math.exp(draw.gauss(0, 0.01)) for _ in range(12)]}
    if null:
        costs["null"] = [30 * pace * math.exp(draw.gauss(0, 0.01)) for _ in range(12)]
    result = fold_of(costs, rounds=12, **changes)["a"]
    memory = Memory(
        vmpeak_kb=1, vmhwm_kb=1, pss_kb=1,
        bytes_per_connection=BytesPerConnection(None, resident, None),
    )  # fmt: skip
    server = ServerResult(
        name="a", title="a", language="C", version=None, runtime="process", load=(result,),
        memory=memory,
    )  # fmt: skip
    made = Run(
        schema_version="1.0", catalogue_version="c", harness_version="0", id="x", started="now",
        finished="then", interrupted=False, quick=False, seed=seed, suites=(), profiles=("p",),
        environment={"fingerprint": fingerprint, "kernel": fingerprint}, servers=(server,),
    )  # fmt: skip
    folder.mkdir()
    run_folder.write(made, folder)
    return str(folder)


def of_folders(base: str, head: str, **changes: object) -> dict[str, comparison.Line]:
    options = comparison.Options(base=base, head=head, seed=1, **changes)  # type: ignore[arg-type]
    return {line.metric: line for line in compare_runs.folders(options).lines}


def test_two_runs_are_compared_by_what_they_cost_over_null(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1)
    alike = stored(tmp_path / "alike", cost=90, seed=2)
    worse = stored(tmp_path / "worse", cost=110, seed=3)
    assert of_folders(base, alike)[comparison.COST].verdict is Gate.PASS
    assert of_folders(base, worse)[comparison.COST].verdict is Gate.FAIL
    assert of_folders(worse, base)[comparison.COST].verdict is Gate.PASS
    wide = of_folders(base, worse, margin=0.5)
    assert wide[comparison.COST].verdict is Gate.PASS


def test_a_head_that_holds_fewer_connections_does_not_pass_by_the_slope_of_those(
    tmp_path: Path,
) -> None:
    base, head = (stored(tmp_path / name, cost=90, seed=1, resident=1000) for name in "ab")
    for folder, held, reason in ((base, 20_000, None), (head, 5_000, "the server held 5,000")):
        memory = run_folder.read(Path(folder)).servers[0].memory
        assert memory is not None
        changed(
            folder, memory=msgspec.structs.replace(memory, connections_held=held, reason=reason)
        )
    line = of_folders(base, head)[comparison.MEMORY]
    assert line.verdict is Gate.INCONCLUSIVE
    assert line.why == "head held 5,000 connections, base 20,000: the server held 5,000"
    assert of_folders(head, base)[comparison.MEMORY].verdict is Gate.PASS


def test_runs_that_were_cut_short_or_quick_say_so(tmp_path: Path) -> None:
    base, head = (stored(tmp_path / name, cost=90, seed=1) for name in "ab")
    run_folder.write(
        msgspec.structs.replace(run_folder.read(Path(head)), quick=True, interrupted=True),
        Path(head),
    )
    notes = compare_runs.folders(comparison.Options(base=base, head=head, seed=1)).notes
    assert "head was interrupted: only what it measured is compared" in notes
    assert "head was a quick run and the other was not: its windows are shorter" in notes
    alike = compare_runs.folders(comparison.Options(base=head, head=head, seed=1)).notes
    assert not any("quick" in note for note in alike)


def test_what_so_many_pairs_can_show_is_printed(tmp_path: Path) -> None:
    base, head = (
        stored(tmp_path / name, cost=90, seed=seed) for name, seed in (("a", 1), ("b", 2))
    )
    found = compare_runs.folders(comparison.Options(base=base, head=head, seed=1))
    judged = next(line.judged for line in found.lines if line.metric == comparison.COST)
    assert judged is not None
    assert judged.detectable is not None
    told = f"these pairs show a change of {judged.detectable - 1:.1%} or more 8 times in 10"
    assert told in " ".join(" ".join(comparison_text.lines(found)).split())


def test_memory_is_compared_by_its_slope(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1, resident=1000)
    more = stored(tmp_path / "more", cost=90, seed=2, resident=4000)
    assert of_folders(base, more)[comparison.MEMORY].verdict is Gate.FAIL
    assert of_folders(more, base)[comparison.MEMORY].verdict is Gate.PASS


def test_runs_without_null_are_inconclusive(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1, null=False)
    head = stored(tmp_path / "head", cost=300, seed=2, null=False)
    line = of_folders(base, head)[comparison.COST]
    assert line.verdict is Gate.INCONCLUSIVE
    assert "no null server" in line.why


def test_different_environments_are_refused_unless_forced(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1, fingerprint="one")
    head = stored(tmp_path / "head", cost=90, seed=2, fingerprint="other")
    with pytest.raises(HarnessError, match=r"kernel: one, other.*--force"):
        of_folders(base, head)
    forced = compare_runs.folders(comparison.Options(base=base, head=head, force=True))
    assert forced.differences == ("kernel: one, other",)
    shown = comparison_text.lines(forced)
    assert "--force was given" in "\n".join(shown)
    assert shown.index("  differs: kernel: one, other") < next(
        number for number, line in enumerate(shown) if comparison.COST in line
    ), "what it is worth stands above the figures"


def test_a_container_is_not_compared_with_a_process(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1)
    head = stored(tmp_path / "head", cost=90, seed=2)
    as_docker(tmp_path / "head", {"version": "20.10", "runc": "1.1"})
    with pytest.raises(HarnessError, match="a ran as: process, docker"):
        of_folders(base, head)
    as_docker(tmp_path / "base", {"version": "20.10", "runc": "1.0"})
    with pytest.raises(HarnessError, match=r"docker\.runc: 1\.0, 1\.1"):
        of_folders(base, head)
    as_docker(tmp_path / "base", {"version": "20.10", "runc": "1.1"})
    assert of_folders(base, head)[comparison.COST].verdict is Gate.PASS


def as_docker(folder: Path, facts: dict[str, str]) -> None:
    """Let a stored run have had its server in a container of this daemon."""
    made = run_folder.read(folder)
    server = msgspec.structs.replace(made.servers[0], runtime="docker")
    run_folder.write(
        msgspec.structs.replace(
            made, servers=(server,), environment={**made.environment, "docker": facts}
        ),
        folder,
    )


def test_a_head_with_errors_fails(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1)
    head = stored(tmp_path / "head", cost=90, seed=2, a={"errors": {"order": 1}})
    assert of_folders(base, head)[comparison.COST].verdict is Gate.FAIL


def changed(folder: str, **changes: object) -> str:
    """Change the one server of a stored run."""
    made = run_folder.read(Path(folder))
    server = msgspec.structs.replace(made.servers[0], **changes)
    run_folder.write(msgspec.structs.replace(made, servers=(server,)), Path(folder))
    return folder


@pytest.mark.process
@pytest.mark.parametrize(
    ("changes", "verdict", "said"),
    [
        ({"died": "exit code 139"}, Gate.FAIL, "head died: exit code 139"),
        ({}, Gate.INCONCLUSIVE, "head "),
        ({"unavailable": "no cargo"}, Gate.INCONCLUSIVE, "not measure it: no cargo"),
        ({"name": "b"}, Gate.INCONCLUSIVE, "head does not have this server"),
    ],
)
def test_what_head_lacks_is_never_passed_over(
    changes: dict[str, object], verdict: Gate, said: str, tmp_path: Path
) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1)
    head = changed(stored(tmp_path / "head", cost=90, seed=2), load=(), memory=None, **changes)
    lines = of_folders(base, head)
    for metric in (comparison.COST, comparison.MEMORY):
        assert lines[metric].verdict is verdict
        assert lines[metric].server == "a"
        assert said in lines[metric].why
    code, out, _ = command("compare", base, head, "--inconclusive", "fail", cwd=tmp_path)
    assert code == (1 if verdict is Gate.FAIL else 4)
    assert f"verdict: {verdict}" in out


def test_a_death_alone_fails_and_one_in_both_does_not(tmp_path: Path) -> None:
    base = changed(stored(tmp_path / "base", cost=90, seed=1), load=(), memory=None)
    head = changed(stored(tmp_path / "head", cost=90, seed=2), died="killed", load=(), memory=None)
    assert of_folders(base, head)[comparison.ALIVE].verdict is Gate.FAIL
    partly = stored(tmp_path / "partly", cost=90, seed=2)
    load_result = run_folder.read(Path(partly)).servers[0].load[0]
    changed(partly, died="killed", load=(msgspec.structs.replace(load_result, reason="killed"),))
    whole = stored(tmp_path / "whole", cost=90, seed=1)
    assert of_folders(whole, partly)[comparison.COST].verdict is Gate.FAIL
    changed(whole, died="killed, too")
    assert of_folders(whole, partly)[comparison.COST].verdict is Gate.INCONCLUSIVE


def test_all_figures_of_two_runs_share_one_chance_of_a_false_alarm(tmp_path: Path) -> None:
    """Alone it fails; of two hundred one such is no wonder."""
    base = stored(tmp_path / "base", cost=90, seed=1)
    head = stored(tmp_path / "head", cost=95.5, seed=8)
    assert of_folders(base, head)[comparison.COST].verdict is Gate.FAIL
    for folder, other in ((base, "x"), (head, "y")):
        made = run_folder.read(Path(folder))
        calm = run_folder.read(Path(stored(tmp_path / other, cost=90, seed=4))).servers[0]
        more = [msgspec.structs.replace(calm, name=f"s{number}") for number in range(200)]
        run_folder.write(
            msgspec.structs.replace(made, servers=(*made.servers, *more)), Path(folder)
        )
    found = compare_runs.folders(comparison.Options(base=base, head=head, seed=1))
    of_a = [line for line in found.lines if (line.server, line.metric) == ("a", comparison.COST)]
    assert [line.verdict for line in of_a] == [Gate.INCONCLUSIVE]
    assert any("201 gated figures share one chance" in note for note in found.notes)


def test_only_the_profiles_that_are_named_are_asked_for(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1)
    head = changed(stored(tmp_path / "head", cost=90, seed=2), memory=None)
    assert set(of_folders(base, head, profiles=("p",))) == {comparison.COST}
    assert set(of_folders(base, head, profiles=("idle_memory",))) == {comparison.MEMORY}


def test_a_long_command_is_no_folder() -> None:
    assert not compare_runs.is_folder("./server --port {port} " + "x" * 5000)


def test_a_folder_goes_with_a_folder(tmp_path: Path) -> None:
    base = stored(tmp_path / "base", cost=90, seed=1)
    options = comparison.Options(base=base, head="reference")
    with pytest.raises(HarnessError, match="only be compared with another one"):
        compare_runs.measure(options, events=None)  # type: ignore[arg-type]


def loaded(folder: str, **changes: object) -> str:
    """Change the one load of a stored run."""
    made = run_folder.read(Path(folder))
    load = msgspec.structs.replace(made.servers[0].load[0], **changes)
    return changed(folder, load=(load,))


def test_a_load_that_measured_nothing_is_no_base_and_no_head(tmp_path: Path) -> None:
    good, bad = (stored(tmp_path / name, cost=90, seed=1) for name in ("good", "bad"))
    why = "GET / was answered with 404, so nothing was measured"
    loaded(bad, refused={"404": 9}, reason=why, path="/")
    for base, head, side in ((good, bad, "head"), (bad, good, "base"), (bad, bad, "head")):
        found = compare_runs.folders(comparison.Options(base=base, head=head, seed=1))
        line = next(one for one in found.lines if one.metric == comparison.COST)
        assert line.verdict is Gate.INCONCLUSIVE
        assert line.why == f"{side} measured nothing: {why}"
        assert comparison.exit_code(found, inconclusive="warn") == 3


def test_two_paths_are_two_loads(tmp_path: Path) -> None:
    one, other = (stored(tmp_path / name, cost=90, seed=1) for name in "ab")
    loaded(other, path="/other")
    line = of_folders(one, other)[comparison.COST]
    assert line.verdict is Gate.INCONCLUSIVE
    assert line.why == "base was asked for /hello and head for /other"
    unknown = loaded(one, path=None)  # of an earlier version
    assert of_folders(unknown, other)[comparison.COST].verdict is Gate.PASS
