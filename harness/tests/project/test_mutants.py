"""What `make mutants` counts as noticed, keeps, and tells."""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from httpmark.harness.tests import mutants
from httpmark.harness.tests.mutants import (
    Baseline,
    Mutant,
    Record,
    Todo,
    judge,
    known_survivors,
    may_be_chance,
    told,
    work,
)
from httpmark.harness.tests.shared import crashing_server
from httpmark.harness.tests.shared.cpp_changes import Change
from httpmark.harness.tests.shared.mutant_server import (
    Bench,
    Judgement,
    judgement,
    run_bounded,
    server_of,
)
from httpmark.harness.tests.shared.reached_lines import lines_never_executed, unreached

PASSES = Judgement(frozenset(), frozenset({"rfc/two-empty-lines"}))
BASELINE = Baseline(PASSES, PASSES)
SURVIVOR = Mutant(3, "src/a.cpp", 7, "number", "a = 1;", "a = 2;", "survived")


def result(cases: dict[str, str], answers: dict[str, dict[str, int]], died: str | None) -> Any:
    suite = {
        "cases": {name: {"word": word} for name, word in cases.items()},
        "generated": {},
        "answers": {name: {"words": {"MUST": words}} for name, words in answers.items()},
    }
    server = {"compliance": {"suites": {"rfc": suite}}, "died": died, "unavailable": None}
    return {"servers": [server]}


def test_failures_of_cases_and_of_response_rules_count() -> None:
    cases = {"a": "pass", "b": "fail", "c": "warn", "d": "not_applicable"}
    rules = {"RESP-01": {"pass": 9, "fail": 1}, "RESP-02": {"pass": 9, "fail": 0}}
    seen = judgement(result(cases, rules, None))
    assert seen.failed == {"rfc/b", "rfc/RESP-01"}
    assert seen.worse_than_pass == {"rfc/b", "rfc/c", "rfc/RESP-01"}
    assert not seen.end


def test_a_probe_that_ends_is_the_fault_of_the_harness() -> None:
    with pytest.raises(AssertionError, match="the probe cannot go on"):
        judgement(result({}, {}, "the probe cannot go on: killed"))


def test_a_change_is_noticed_by_a_new_failure_or_an_end() -> None:
    failing = Judgement(frozenset({"rfc/b"}), frozenset({"rfc/b"}))
    assert BASELINE.noticed(failing, quick=True) == ("rfc/b",)
    assert BASELINE.noticed(PASSES, quick=False) == ()
    dead = Judgement(frozenset(), frozenset(), "exit code 139")
    assert BASELINE.noticed(dead, quick=False) == ("exit code 139",)
    assert Baseline(failing, PASSES).noticed(failing, quick=True) == ()


class Looks(Bench):
    """A bench whose looks say what they are told to; it notes which of them were asked."""

    def __init__(self, folder: Path, *says: Judgement | None) -> None:
        super().__init__(folder, threading.Event())
        self.says = list(says)
        self.asked: list[tuple[bool, tuple[str, ...]]] = []
        self.unchanged = "another"
        self.sources.mkdir()
        (self.sources / "a.cpp").write_text("1")

    def build(self) -> bool:
        return True

    def hash(self) -> str:
        return (self.sources / "a.cpp").read_text()

    def judge(
        self, *, quick: bool, only: Sequence[str] = (), seconds: float | None = None
    ) -> Judgement | None:
        self.asked.append((quick, tuple(only)))
        return self.says.pop(0)


SAMPLE = (True, ())
ALL = (False, ())
ONE = Change("a.cpp", 0, "1", "2", "number")
FAILS_ONE = Judgement(frozenset({"rfc/content-length-plus-sign"}), frozenset())
FAILS_RULE = Judgement(frozenset({"rfc/RESP-01"}), frozenset())
FAILS_TWO = Judgement(frozenset({"rfc/a", "rfc/b"}), frozenset())
HANGS = Judgement(frozenset(), frozenset(), "it answers no request any more")
DIES = Judgement(frozenset(), frozenset(), "died: signal SIGSEGV", died=True)


@pytest.mark.parametrize(
    ("says", "outcome"),
    [(FAILS_TWO, "noticed"), (DIES, "noticed"), (PASSES, "survived"), (None, "unfinished")],
)
def test_one_look_has_one_outcome(tmp_path: Path, says: Judgement | None, outcome: str) -> None:
    bench = Looks(tmp_path, says)
    assert judge(bench, ONE, BASELINE, quick=False)[0] == outcome
    assert bench.asked == [ALL]
    assert (bench.sources / "a.cpp").read_text() == "1"


@pytest.mark.parametrize(
    ("lines", "says", "outcomes", "asked"),
    [
        ({}, [PASSES, FAILS_TWO, PASSES], ["survived", "noticed"], [SAMPLE, SAMPLE, ALL]),
        ({}, [PASSES, PASSES, PASSES, DIES], ["survived", "noticed"], [SAMPLE, SAMPLE, ALL, ALL]),
        ({"a.cpp": {1}}, [PASSES, DIES], ["survived", "noticed"], [SAMPLE, SAMPLE]),
    ],
    ids=["one is left for the whole look", "both are", "no case executes the line"],
)
def test_all_are_looked_at_by_the_sample_and_then_what_is_left_by_all(
    tmp_path: Path, lines: Any, says: list[Judgement], outcomes: list[str], asked: list[Any]
) -> None:
    bench, record = Looks(tmp_path, *says), Record(tmp_path, 1, {})
    todo = Todo([ONE, ONE], record, again=False)
    work(bench, todo, {"a.cpp": "1"}, BASELINE, lines, record)
    assert [record.mutants[number].outcome for number in (0, 1)] == outcomes
    assert bench.asked == asked


def test_what_builds_quickly_comes_first(tmp_path: Path) -> None:
    files = ("src/http/a.hpp", "src/a.cpp", "src/scan/head.hpp")
    todo = Todo([dataclasses.replace(ONE, file=one) for one in files], Record(tmp_path, 1, {}),
                again=False)  # fmt: skip
    order = [one[1].file for one in (todo.next(), todo.next(), todo.next()) if one]
    assert order == ["src/a.cpp", "src/scan/head.hpp", "src/http/a.hpp"]


def test_a_run_goes_on_with_the_whole_looks_that_are_due(tmp_path: Path) -> None:
    record = Record(tmp_path, 1, {})
    for number, outcome in enumerate(("sampled", "survived", "noticed")):
        record.add(dataclasses.replace(SURVIVOR, number=number, outcome=outcome))
    todo = Todo([ONE] * 4, record, again=False)
    assert [todo.next(), todo.next(), todo.next()] == [(3, ONE, True), (0, ONE, False), None]
    again = Todo([ONE] * 3, record, again=True)
    assert [again.next(), again.next(), again.next()] == [(0, ONE, True), (1, ONE, True), None]


@pytest.mark.parametrize(
    ("first", "only"),
    [(FAILS_ONE, ("content-length-plus-sign",)), (FAILS_RULE, ()), (HANGS, ())],
)
def test_what_one_thing_alone_tells_counts_when_it_is_told_again(
    tmp_path: Path, first: Judgement, only: tuple[str, ...]
) -> None:
    for folder in ("yes", "no"):
        (tmp_path / folder).mkdir()
    again = Looks(tmp_path / "yes", first, first)
    assert judge(again, ONE, BASELINE, quick=True)[0] == "noticed"
    assert again.asked == [SAMPLE, (True, only)]
    once = Looks(tmp_path / "no", first, PASSES)
    assert judge(once, ONE, BASELINE, quick=True)[0] == "survived"
    assert once.asked == [SAMPLE, (True, only)]


TWO = ("content-length-plus-sign", "content-length-empty")
MANY = {"rfc/RESP-01", "rfc/path_pair", *(f"rfc/{one}" for one in TWO)}
CUT = Judgement(frozenset(MANY), frozenset(), cut_short=True)
CUT_EARLY = Judgement(frozenset(), frozenset(), cut_short=True)


def test_what_had_no_time_to_be_asked_again_is_asked_alone(tmp_path: Path) -> None:
    bench = Looks(tmp_path, CUT, FAILS_ONE)
    assert judge(bench, ONE, BASELINE, quick=True)[0] == "noticed"
    assert bench.asked == [SAMPLE, (True, (*sorted(TWO), "path_pair"))]  # the largest comes last


@pytest.mark.parametrize(
    ("says", "outcome"),
    [
        ((CUT_EARLY, FAILS_TWO), "noticed"),
        ((CUT_EARLY, CUT_EARLY), "unfinished"),
        ((CUT, PASSES, PASSES), "survived"),
        ((CUT, PASSES, CUT, FAILS_ONE), "noticed"),
        ((HANGS, None, HANGS, HANGS), "noticed"),
        ((HANGS, CUT_EARLY, HANGS, None), "unfinished"),
    ],
)
def test_a_look_that_was_cut_short_and_is_not_sure_is_made_again(
    tmp_path: Path, says: tuple[Judgement, ...], outcome: str
) -> None:
    bench = Looks(tmp_path, *says)
    assert judge(bench, ONE, BASELINE, quick=True)[0] == outcome
    assert not bench.says


def test_a_process_that_ended_and_several_failures_are_no_chance() -> None:
    assert not may_be_chance(DIES, (DIES.end,))
    assert not may_be_chance(FAILS_TWO, ("rfc/a", "rfc/b"))
    assert may_be_chance(HANGS, (HANGS.end,))


def test_a_line_is_unreached_where_none_of_its_copies_ran() -> None:
    def unit(name: str, **counts: int) -> dict[str, Any]:
        rows = [{"line_number": int(line[1:]), "count": count} for line, count in counts.items()]
        return {"files": [{"file": name, "lines": rows}]}

    told = [
        unit("/s/src/a.hpp", l1=0, l2=0, l3=4),
        unit("/s/src/a.hpp", l1=7, l2=0),
        unit("/usr/include/c++/12/string", l1=0),
    ]
    assert lines_never_executed(told, Path("/s")) == {"src/a.hpp": {2}}


def test_what_was_counted_is_counted_again_for_other_cases_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"of": "sources cases", "lines": {"src/a.cpp": [3]}}
    (tmp_path / "unreached.json").write_text(json.dumps(kept))
    monkeypatch.setattr("shutil.which", lambda name: None)  # nothing can be counted here
    on = threading.Event()
    assert unreached(tmp_path, "sources cases", on) == {"src/a.cpp": {3}}
    assert unreached(tmp_path, "sources other", on) == {}


def test_the_server_is_started_as_its_manifest_says() -> None:
    recipe = server_of(Path("/b/httpmark-server")).process
    assert recipe is not None
    assert recipe.start[:3] == ("/b/httpmark-server", "--address", "{address}")
    assert "--body-max" in recipe.conformance


def test_survivors_are_told_with_their_class() -> None:
    known = {("src/a.cpp", "a = 1;", "a = 2;"): "equivalent"}
    caught = Mutant(4, "src/a.cpp", 8, "number", "b", "c", "noticed", ("rfc/b",))
    text, open_ones = told([SURVIVOR, caught], known)
    assert open_ones == 0
    assert "src/a.cpp:7: survived, equivalent" in text
    assert "src/a.cpp:8" not in text
    assert told([SURVIVOR], {})[1] == 1
    unseen = dataclasses.replace(SURVIVOR, reached=False)
    assert "src/a.cpp:7: survived, where no case comes, equivalent" in told([unseen], known)[0]
    assert told([SURVIVOR], {next(iter(known)): "missed"})[1] == 1


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    record = Record(tmp_path, 1, {"a": "b"})
    record.add(SURVIVOR)
    assert Record(tmp_path, 1, {"a": "b"}).mutants == {3: SURVIVOR}
    assert json.loads(record.path.read_text())["seed"] == 1


@pytest.mark.parametrize(("seed", "text"), [(2, "b"), (1, "c")])
def test_a_run_of_other_sources_is_not_gone_on_with(tmp_path: Path, seed: int, text: str) -> None:
    Record(tmp_path, 1, {"a": "b"}).add(SURVIVOR)
    with pytest.raises(SystemExit, match="other sources or another seed"):
        Record(tmp_path, seed, {"a": text})


def test_what_nobody_noticed_can_be_judged_again() -> None:
    outcomes = ("survived", "unfinished", "sampled", "noticed", "not compiled", "same binary")
    found = {one: Mutant(1, "a", 1, "number", "1", "2", one).is_open for one in outcomes}
    assert [one for one, is_open in found.items() if is_open] == list(outcomes[:3])


def test_the_kept_list_is_whole() -> None:
    for file, was, became in known_survivors():
        assert (mutants.SOURCES / file).exists(), file
        assert was != became


def test_what_decides_answers_is_changed_and_nothing_else() -> None:
    names = set(mutants.sources())
    assert {"src/http/parser.cpp", "src/net/connection_requests.cpp"} <= names
    assert "example/application.cpp" in names
    assert not [name for name in names if "tls" in name or "uring" in name]


@pytest.mark.process
def test_what_takes_too_long_is_stopped(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "import time; time.sleep(600)"]
    begin = time.monotonic()
    on = threading.Event()
    assert run_bounded(words, 0.5, tmp_path / "log", on) is None
    ends = [sys.executable, "-c", "raise SystemExit(3)"]
    assert run_bounded(ends, 30, tmp_path / "log", on) == 3
    on.set()
    assert run_bounded(words, 600, tmp_path / "log", on) is None
    # A Python that only starts may lose a SIGINT, and is killed after a while.
    assert time.monotonic() - begin < 300


def test_no_object_file_of_an_earlier_build_looks_newer_than_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subprocess.run", lambda *words, **options: None)
    bench = Looks(tmp_path)
    begin = time.time()
    bench.prepare()
    copied = bench.sources / "src" / "http" / "error.cpp"
    assert copied.stat().st_mtime > begin - 1
    assert (mutants.SOURCES / "src" / "http" / "error.cpp").read_text() == copied.read_text()


@pytest.mark.process
@pytest.mark.parametrize(
    ("manner", "died"),
    [("gzip", "killed by SIGABRT"), ("start", "")],
    ids=["of a case", "at start"],
)
def test_a_server_that_dies_is_not_started_again(tmp_path: Path, manner: str, died: str) -> None:
    bench = Bench(tmp_path, threading.Event())
    bench.binary.parent.mkdir()
    # The words of the manifest: --address A --port P, and more.
    program = f'exec {sys.executable} {crashing_server.__file__} "$4" {manner}'
    bench.binary.write_text(f"#!/bin/sh\n{program if died else 'exit 3'}\n")
    bench.binary.chmod(0o755)
    seen = bench.judge(quick=True, only=["transfer-encoding-gzip-chunked"])
    assert seen is not None
    assert seen.died is bool(died)
    assert (died or "not tested: died at start") in seen.end
