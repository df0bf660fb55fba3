"""What `make mutants` counts as noticed, keeps, and tells."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from httpmark.harness.tests import mutants
from httpmark.harness.tests.mutants import Baseline, Mutant, Record, known_survivors, told
from httpmark.harness.tests.shared.mutant_server import (
    Judgement,
    judgement,
    run_bounded,
    serve_words,
)

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


def test_the_server_is_started_as_its_manifest_says() -> None:
    words = serve_words(Path("/b/httpmark-server"))
    assert words.startswith("/b/httpmark-server --address 127.0.0.1 --port {port} --workers 1 ")
    assert "--body-max 2097152" in words


def test_survivors_are_told_with_their_class() -> None:
    known = {("src/a.cpp", "a = 1;", "a = 2;"): "equivalent"}
    caught = Mutant(4, "src/a.cpp", 8, "number", "b", "c", "noticed", ("rfc/b",))
    text, open_ones = told([SURVIVOR, caught], known)
    assert open_ones == 0
    assert "src/a.cpp:7: survived, equivalent" in text
    assert "src/a.cpp:8" not in text
    assert told([SURVIVOR], {})[1] == 1
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
    outcomes = ("survived", "unfinished", "noticed", "not compiled", "same binary")
    found = {one: Mutant(1, "a", 1, "number", "1", "2", one).is_open for one in outcomes}
    assert [one for one, is_open in found.items() if is_open] == ["survived", "unfinished"]


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
    words = [sys.executable, "-c", "import time; time.sleep(60)"]
    begin = time.monotonic()
    on = threading.Event()
    assert run_bounded(words, 0.5, tmp_path / "log", on) is None
    ends = [sys.executable, "-c", "raise SystemExit(3)"]
    assert run_bounded(ends, 30, tmp_path / "log", on) == 3
    on.set()
    assert run_bounded(words, 60, tmp_path / "log", on) is None
    assert time.monotonic() - begin < 30
