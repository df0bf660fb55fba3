"""Two run folders of checks compared: exit code, table, JSON, Markdown, doubts."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner, Result

from httpmark.harness.command import cli, compare_checks
from httpmark.harness.load import comparison
from httpmark.harness.load.paired_verdicts import Gate
from httpmark.harness.model.errors import HarnessError, NothingSelected
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import Word
from httpmark.harness.tests.shared.made_checks import CASE, OTHER, check, stored, suite
from httpmark.harness.tests.shared.made_run import load_result

GOOD = check(suite({CASE: Word.PASS, OTHER: Word.FAIL}))
BAD = check(suite({CASE: Word.FAIL, OTHER: Word.PASS}))
DOUBT = check(suite({CASE: Word.UNSTABLE, OTHER: Word.FAIL}))


def compared(folder: Path, base: Run, head: Run, *words: str) -> Result:
    for name, run in (("base", base), ("head", head)):
        stored(folder / name, run)
    return CliRunner().invoke(
        cli.httpmark, ["compare", str(folder / "base"), str(folder / "head"), *words]
    )


def differs(folder: Path, base: Run, head: Run) -> str:
    found = of_folders(folder, base, head)
    return " | ".join(found.conformance.differs)


def of_folders(folder: Path, base: Run, head: Run) -> compare_checks.Compared:
    places = [stored(folder / name, run) for name, run in (("base", base), ("head", head))]
    found = compare_checks.folders(comparison.Options(base=places[0], head=places[1]))
    assert isinstance(found, compare_checks.Compared)
    return found


@pytest.mark.parametrize(
    ("base", "head", "words", "code", "verdict"),
    [
        (GOOD, BAD, (), 1, "fail"),
        (BAD, GOOD, (), 1, "fail"),
        (GOOD, GOOD, (), 0, "pass"),
        (GOOD, DOUBT, (), 0, "inconclusive"),
        (GOOD, DOUBT, ("--inconclusive", "fail"), 4, "inconclusive"),
        (DOUBT, BAD, ("--inconclusive", "fail"), 4, "inconclusive"),
    ],
)
def test_the_exit_code_says_whether_something_is_newly_broken(
    tmp_path: Path, base: Run, head: Run, words: tuple[str, ...], code: int, verdict: str
) -> None:
    done = compared(tmp_path, base, head, *words)
    assert done.exit_code == code, done.output
    assert done.output.endswith(f"verdict: {verdict}\n")


def test_the_json_has_the_keys_of_any_comparison_and_the_changes(tmp_path: Path) -> None:
    done = compared(tmp_path, GOOD, BAD, "--json")
    told = json.loads(done.stdout)
    assert {*msgspec.structs.asdict(EMPTY), "conformance"} == set(told)
    assert told["verdict"] == "fail"
    changes = told["conformance"]
    (broken,) = changes["newly_broken"]
    assert (broken["id"], broken["base"], broken["head"]) == (CASE, "passed", "failed")
    assert [one["id"] for one in changes["newly_mended"]] == [OTHER]
    assert changes["still_failing"] == changes["no_longer_asked"] == []
    assert changes["requirements"]["head"] == {"failed": 1, "asked": 2}


EMPTY = comparison.Comparison(
    base="", head="", how="", verdict=Gate.PASS, lines=(), notes=(), differences=(),
    seed=0,
)  # fmt: skip


def test_the_markdown_is_the_same_printed_and_written(tmp_path: Path) -> None:
    done = compared(
        tmp_path, GOOD, BAD, "--markdown", "--summary", str(tmp_path / "summary.md"),
        "--junit", str(tmp_path / "junit.xml"),
    )  # fmt: skip
    assert done.exit_code == 1
    assert done.stdout == (tmp_path / "summary.md").read_text()
    assert done.stdout.startswith("## httpmark: 1 newly broken, 1 newly mended, 0 still failing\n")
    suites = ElementTree.parse(tmp_path / "junit.xml").getroot()
    failed = [
        case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None
    ]
    assert len(failed) == 1
    assert CASE in str(failed[0])


def test_another_catalogue_ruleset_or_option_is_said(tmp_path: Path) -> None:
    assert differs(tmp_path / "1", GOOD, BAD) == ""
    other = msgspec.structs.replace(BAD, catalogue_version="d")
    assert "catalogues (c and d)" in differs(tmp_path / "2", GOOD, other)
    hardened = check(suite({CASE: Word.FAIL}, ruleset="hardened"))
    assert differs(tmp_path / "3", GOOD, hardened) == "the rulesets of rfc (rfc and hardened)"
    moved = check(suite({CASE: Word.PASS}), again=("--serve", "./s {port}", "--path", "/x"))
    assert "the options of the checks (none and --path /x)" in differs(tmp_path / "4", GOOD, moved)
    ported = check(suite({CASE: Word.PASS}), again=("http://127.0.0.1:9/",))
    assert differs(tmp_path / "5", GOOD, ported) == "", "where a server stands is no difference"
    told = compared(tmp_path / "6", GOOD, other).output
    assert "differs: the catalogues (c and d)" in told


def test_runs_that_were_cut_short_or_quick_say_so(tmp_path: Path) -> None:
    head = msgspec.structs.replace(GOOD, interrupted=True, quick=True)
    found = of_folders(tmp_path, GOOD, head)
    assert "head was interrupted: only what it judged is compared" in found.conformance.notes
    assert any(one.startswith("head was a quick look") for one in found.conformance.notes)
    assert found.verdict is Gate.INCONCLUSIVE


def test_servers_are_matched_by_name_and_a_pair_of_two_names_is_told(tmp_path: Path) -> None:
    found = of_folders(tmp_path / "1", check(suite({CASE: Word.PASS}), name="a"), BAD)
    assert found.conformance.is_broken
    assert found.conformance.differs == ("the names of the servers (a and target)",)
    both = msgspec.structs.replace(
        GOOD, servers=(*GOOD.servers, *check(suite({}), name="b").servers)
    )
    found = of_folders(tmp_path / "2", both, BAD)
    assert "b is only in base: it is not compared" in found.conformance.notes
    assert found.conformance.differs == ()


def test_two_runs_that_have_nothing_in_common_are_5(tmp_path: Path) -> None:
    both = msgspec.structs.replace(
        GOOD,
        servers=(*check(suite({}), name="a").servers, *check(suite({}), name="b").servers),
    )
    with pytest.raises(NothingSelected, match="nothing to compare"):
        of_folders(tmp_path, both, GOOD)


def with_speed(run: Run, kernel: str) -> Run:
    server = msgspec.structs.replace(run.servers[0], load=(load_result(90.0),))
    return msgspec.structs.replace(run, servers=(server,), environment={"fingerprint": kernel,
                                   "kernel": kernel})  # fmt: skip


@pytest.mark.process
def test_runs_that_measured_speed_too_are_compared_by_both(tmp_path: Path) -> None:
    base, head = (with_speed(run, "k") for run in (GOOD, BAD))
    found = of_folders(tmp_path / "1", base, head)
    assert found.speed is not None
    assert found.verdict is Gate.FAIL
    told = found.as_json()
    assert told["lines"]
    assert told["verdict"] == "fail"
    assert any("pipelined cpu_ns_per_request" in line for line in found.lines())
    assert "is no worse than that of" in found.markdown()
    places = [str(tmp_path / "1" / name) for name in ("base", "head")]
    alone = compare_checks.folders(
        comparison.Options(base=places[0], head=places[1], profiles=("pipelined",))
    )
    assert isinstance(alone, comparison.Comparison), "with a profile named, speed alone"


def test_verdicts_of_two_machines_are_compared_and_speeds_are_not(tmp_path: Path) -> None:
    base, head = with_speed(GOOD, "one"), with_speed(BAD, "other")
    found = of_folders(tmp_path, base, head)
    assert found.speed is None
    assert any("speed is not compared: the environments differ" in one
               for one in found.conformance.notes)  # fmt: skip
    assert found.conformance.is_broken


def test_latest_is_the_newest_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = tmp_path / "httpmark-runs"
    stored(runs / "a", GOOD)
    stored(runs / "b", msgspec.structs.replace(BAD, started="2026-11-21T05:00:00Z"))
    done = CliRunner().invoke(cli.httpmark, ["compare", "httpmark-runs/a", "latest"])
    assert done.exit_code == 1
    assert "httpmark-runs/a -> httpmark-runs/b" in done.output


def test_markdown_goes_with_neither_json_nor_aa() -> None:
    for words in (["a", "b", "--json"], ["a", "--aa", "3"]):
        done = CliRunner().invoke(cli.httpmark, ["compare", *words, "--markdown"])
        assert isinstance(done.exception, HarnessError)
        assert "exclude each other" in str(done.exception)
