"""The published compliance counts, reproduced exactly: the proof that the corpus and the reading
are those of the benchmark this project starts from."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.judging import published_score
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.tests.shared.command_process import run

PUBLISHED = json.loads((loading.FOLDER / "seed" / "published.json").read_text("utf-8"))
FAMILIES = {
    "path_byte": 175,
    "query_byte": 175,
    "field_name_byte": 178,
    "field_value_byte": 30,
    "path_pct_pair": 61692,
    "query_pct_pair": 61692,
}
# The posts' own figures, (detected, undetected) in the order above.
COUNTS = {
    "rust_hyper": [(165, 10), (165, 10), (178, 0), (30, 0), (55332, 6360), (55332, 6360)],
    "go_net_http": [(35, 140), (34, 141), (177, 1), (30, 0), (61692, 0), (16252, 45440)],
    "qhttpserver": [(1, 174), (1, 174), (0, 178), (0, 30), (765, 60927), (765, 60927)],
    # The user brings these two.
    "kourier": [(175, 0), (175, 0), (178, 0), (30, 0), (61692, 0), (61692, 0)],
    "lithium": [(0, 175), (0, 175), (0, 178), (0, 30), (0, 61692), (0, 61692)],
}
SCORES = {"rust_hyper": 89.7, "go_net_http": 63.1, "qhttpserver": 1.2}


@pytest.mark.parametrize("server", COUNTS)
def test_the_record_has_the_published_counts(server: str) -> None:
    recorded = [tuple(PUBLISHED["counts"][server][family]) for family in FAMILIES]
    assert recorded == COUNTS[server]
    for family, requests in FAMILIES.items():
        detected = published_score.expand(PUBLISHED["detections"][server][family])
        assert len(detected) == requests
        assert (sum(detected), requests - sum(detected)) == tuple(
            PUBLISHED["counts"][server][family]
        )


def reproduce(tmp_path: Path, runtime: str, *servers: str) -> None:
    names = [word for server in servers for word in ("--server", server)]
    code, out, errors = run(
        "run", "--suite", "seed", "--runtime", runtime, "--out", "r", *names,
        cwd=tmp_path, timeout=900,
    )  # fmt: skip
    assert code == 0, errors
    result = json.loads((tmp_path / "r" / "result.json").read_text("utf-8"))
    assert [entry["name"] for entry in result["servers"]] == list(servers)
    for entry in result["servers"]:
        suite = entry["compliance"]["suites"]["seed"]
        found = suite["families"]
        got = [(found[family]["detected"], found[family]["undetected"]) for family in FAMILIES]
        assert got == COUNTS[entry["name"]], entry["name"]
        assert entry["runtime"] == runtime
        assert suite["published"] == "exact"
        assert suite["differences"] == []
        assert round(suite["score_percent"], 1) == SCORES[entry["name"]]
        assert all(family["void"] == 0 for family in found.values())
    assert "exact" in out


@pytest.mark.nightly
@pytest.mark.needs("docker")
@pytest.mark.timeout(1200)
def test_three_servers_in_containers_give_exactly_the_published_counts(tmp_path: Path) -> None:
    reproduce(tmp_path, "docker", "go_net_http", "rust_hyper", "qhttpserver")


@pytest.mark.first
@pytest.mark.process
@pytest.mark.needs("go", "cargo")
@pytest.mark.timeout(900)
def test_two_servers_as_processes_give_exactly_the_published_counts(tmp_path: Path) -> None:
    reproduce(tmp_path, "process", "go_net_http", "rust_hyper")


def test_what_detects_all_or_nothing_has_the_published_counts_of_the_two_that_are_brought(
    finished: Path,
) -> None:
    known = loading.load()
    recorded = {"reference": known.published["kourier"], "null": known.published["lithium"]}
    crossed = {"reference": known.published["lithium"], "null": known.published["kourier"]}
    with Evidence(finished / "evidence.sqlite") as evidence:
        for published, said in ((recorded, "exact"), (crossed, "differs")):
            catalogue = msgspec.structs.replace(known, published=published)
            for name in published:
                found = published_score.score_seed(catalogue, name, evidence)
                assert found.published == said
                assert len(found.differences) == (0 if said == "exact" else len(FAMILIES))


def test_the_reference_rejects_all_and_null_nothing(finished: Path) -> None:
    result = json.loads((finished / "result.json").read_text("utf-8"))
    suites = {s["name"]: s["compliance"]["suites"]["seed"] for s in result["servers"]}
    for family, requests in FAMILIES.items():
        # Not merely detected: every one answered with a well-formed 400.
        assert suites["reference"]["families"][family]["rejected"] == requests
        assert suites["null"]["families"][family]["accepted"] == requests
    assert suites["reference"]["score_percent"] == 100.0
    assert suites["null"]["score_percent"] == 0.0
    assert suites["reference"]["controls"] == suites["null"]["controls"]
